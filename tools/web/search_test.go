package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
)

// ORCH-49, ORCH-50: what each engine is asked, with which key, and what becomes of its answer.
func TestSearch(t *testing.T) {
	var last *http.Request
	var body string
	address, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		last, body = r, string(b)
		answer := map[string]string{
			"/search": `{"results":[{"title":"A\nB","url":"https://a.b/1","content":"c  <T> d"},{"title":"bad","url":"javascript:x"},{"title":"C","url":"https://a.b/2"}]}`,
			"/brave":  `{"web":{"results":[{"title":"A B","url":"https://a.b/1","description":"c <strong>d</strong> &amp; e"}]}}`,
			"/tavily": `{"results":[{"title":"A B","url":"https://a.b/1","content":"c d"}]}`,
			"/github": `{"items":[{"path":"x/y.go","html_url":"https://github.com/o/r/blob/x/y.go","repository":{"full_name":"o/r"},"text_matches":[{"fragment":"a < b\n\tc"}]}]}`,
		}[r.URL.Path]
		_, _ = w.Write([]byte(answer))
	})
	ends := map[string]string{"brave": address + "/brave", "tavily": address + "/tavily", "github": address + "/github"}
	all := Search{SearXNG: address, Brave: "bk", Tavily: "tk", GitHub: "gk", Endpoints: ends}
	for name, tt := range map[string]struct {
		s      Search
		code   bool
		engine string
		hits   []Hit
		asked  func() bool
	}{
		"first of all": {all, false, "SearXNG", []Hit{{"A B", "https://a.b/1", "c <T> d"}, {"C", "https://a.b/2", ""}}, func() bool {
			q := last.URL.Query()
			return q.Get("q") == "x & y" && q.Get("format") == "json" && q.Get("categories") == "general" && last.Header.Get("Authorization") == ""
		}},
		"brave": {Search{Brave: "bk", Tavily: "tk", Endpoints: ends}, false, "Brave", []Hit{{"A B", "https://a.b/1", "c d & e"}}, func() bool {
			return last.Header.Get("X-Subscription-Token") == "bk" && last.URL.Query().Get("q") == "x & y" && last.URL.Query().Get("count") == "8"
		}},
		"tavily": {Search{Tavily: "tk", Endpoints: ends}, false, "Tavily", []Hit{{"A B", "https://a.b/1", "c d"}}, func() bool {
			var in struct {
				Query string
				Max   int `json:"max_results"`
			}
			return json.Unmarshal([]byte(body), &in) == nil && in.Query == "x & y" && in.Max == 8 && last.Header.Get("Authorization") == "Bearer tk"
		}},
		"code": {all, true, "GitHub", []Hit{{"o/r: x/y.go", "https://github.com/o/r/blob/x/y.go", "a < b\n\tc"}}, func() bool {
			return last.Header.Get("Authorization") == "Bearer gk" && last.URL.Query().Get("q") == "x & y" && last.URL.Query().Get("per_page") == "8"
		}},
		"code without a token": {Search{SearXNG: address + "/search"}, true, "SearXNG", []Hit{{"A B", "https://a.b/1", "c <T> d"}, {"C", "https://a.b/2", ""}}, func() bool {
			return last.URL.Path == "/search" && last.URL.Query().Get("categories") == "it"
		}},
	} {
		c := New(Config{Search: tt.s})
		ask := c.SearchWeb
		if tt.code {
			ask = c.SearchCode
		}
		engine, hits, err := ask(t.Context(), "x & y", 0)
		if err != nil || engine != tt.engine || len(hits) != len(tt.hits) {
			t.Errorf("%s: %s, %+v, %v", name, engine, hits, err)
			continue
		}
		for i := range hits {
			if hits[i] != tt.hits[i] {
				t.Errorf("%s: %+v, want %+v", name, hits[i], tt.hits[i])
			}
		}
		if last.Header.Get("User-Agent") != "Centurion" {
			t.Errorf("%s: asked as %q", name, last.Header.Get("User-Agent"))
		}
		if !tt.asked() {
			t.Errorf("%s: asked %s %v %s", name, last.URL, last.Header, body)
		}
	}
	if _, hits, _ := New(Config{Search: all}).SearchWeb(t.Context(), "x", 1); len(hits) != 1 {
		t.Errorf("%d hits, want 1", len(hits))
	}
	for n, want := range map[int]string{-3: "8", 3: "3", 20: "20", 500: "20"} {
		if _, _, err := New(Config{Search: Search{Brave: "bk", Endpoints: ends}}).SearchWeb(t.Context(), "x", n); err != nil || last.URL.Query().Get("count") != want {
			t.Errorf("%d hits are wanted, %s are asked for, %v", n, last.URL.Query().Get("count"), err)
		}
	}
}

// ORCH-49, ORCH-50: without an engine, and with one that refuses, the message says what to do.
func TestSearchFails(t *testing.T) {
	none := New(Config{})
	for _, code := range []bool{false, true} {
		is(t, "none", none.CanSearch(code), centurion.KindConfig, "SEARXNG_URL", "~/.config/centurion/config.jsonc", `"searxng": "http://`)
	}
	_, _, err := none.SearchWeb(t.Context(), "x", 1)
	is(t, "none", err, centurion.KindConfig, "BRAVE_API_KEY", "TAVILY_API_KEY")
	_, _, err = New(Config{Search: Search{Brave: "k"}}).SearchCode(t.Context(), "x", 1)
	is(t, "none for code", err, centurion.KindConfig, "GITHUB_TOKEN")
	var status atomic.Int64
	elsewhere, _ := site(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a key was sent on to another host") })
	address, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch st := int(status.Load()); st {
		case 0:
			_, _ = w.Write([]byte("<html>no JSON</html>"))
		case 1:
			_, _ = w.Write(make([]byte, maxAnswer+10))
		case 2:
			<-r.Context().Done()
		case 302:
			http.Redirect(w, r, elsewhere, st)
		default:
			w.WriteHeader(st)
		}
	})
	for st, want := range map[int]centurion.Kind{0: centurion.KindNetwork, 1: centurion.KindNetwork, 2: centurion.KindTimeout, 302: centurion.KindNetwork,
		401: centurion.KindAuth, 403: centurion.KindAuth, 422: centurion.KindUsage, 429: centurion.KindRateLimit, 500: centurion.KindNetwork} {
		status.Store(int64(st))
		timeout := 5 * time.Second
		if st == 2 {
			timeout = 50 * time.Millisecond
		}
		c := New(Config{Timeout: timeout, Search: Search{GitHub: "hidden-key", Endpoints: map[string]string{"github": address}}})
		_, _, err := c.SearchCode(t.Context(), "x", 1)
		is(t, http.StatusText(st), err, want, "GitHub")
		if e, ok := errors.AsType[*centurion.Error](err); !ok || e.Op != "search" || e.Hint == "" || st > 2 && e.Status != st {
			t.Errorf("%d: %+v", st, e)
		}
		if st == 1 && !strings.Contains(err.Error(), "larger than 2 MB") {
			t.Error(err)
		}
		if err != nil && strings.Contains(err.Error()+centurion.HintOf(err), "hidden-key") {
			t.Errorf("%v tells the key", err)
		}
	}
	for _, address := range []string{"localhost:8080", "http://", "ftp://a.b", "http://[::1"} {
		_, _, err = New(Config{Search: Search{SearXNG: address}}).SearchWeb(t.Context(), "x", 1)
		is(t, "wrong address", err, centurion.KindConfig, "the address of SearXNG is no http or https URL", "http://localhost:8080")
	}
	if err := New(Config{Search: Search{GitHub: "k"}}).CanSearch(true); err != nil {
		t.Error(err)
	}
	is(t, "only code", New(Config{Search: Search{GitHub: "k"}}).CanSearch(false), centurion.KindConfig, "no search engine is configured, so nothing was searched")
	is(t, "only the web", New(Config{Search: Search{Tavily: "k"}}).CanSearch(true), centurion.KindConfig, "no search engine for code is configured")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	c := New(Config{Search: Search{GitHub: "k", Endpoints: map[string]string{"github": address}}})
	_, _, err = c.SearchCode(ctx, "x", 1)
	is(t, "ended", err, centurion.KindInterrupted)
}
