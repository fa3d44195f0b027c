package web

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"centurion"
)

// told is everything that is said of an error.
func told(err error) string {
	return fmt.Sprintf("%s: %v (%s)", centurion.KindOf(err), err, centurion.HintOf(err))
}

// TRIAL S6: a block that is not in the public network ends where it ends.
func TestEdgesOfBlocks(t *testing.T) {
	for s, want := range map[string]bool{"0.255.255.255": false, "1.0.0.0": true, "9.255.255.255": true, "10.255.255.255": false, "11.0.0.0": true, "100.63.255.255": true,
		"172.15.255.255": true, "172.16.0.0": false, "192.0.0.255": false, "192.0.1.0": true, "192.0.2.255": false, "192.0.3.0": true, "192.88.98.255": true, "192.88.99.0": false,
		"192.88.99.255": false, "192.88.100.0": true, "192.167.255.255": true, "192.169.0.0": true, "198.17.255.255": true, "198.19.255.255": false, "198.20.0.0": true,
		"198.51.99.255": true, "198.51.100.255": false, "198.51.101.0": true, "203.0.112.255": true, "203.0.113.255": false, "203.0.114.0": true, "168.63.129.15": true,
		"168.63.129.17": true, "223.255.255.255": true, "1fff::1": false, "2000::1": true, "2001:1ff::1": false, "2001:200::1": true, "2001:db7::1": true, "2001:db8:ffff::1": false,
		"2001:db9::1": true, "2002:ffff::1": false, "2003::1": true, "3ffe::1": true, "3fff::1": false, "3fff:fff::1": false, "3fff:1000::1": true, "4000::1": false,
		"64:ff9b::1:8.8.8.8": false, "64:ff9b::192.168.0.1": false} {
		if got := IsPublic(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is public: %v", s, got)
		}
	}
}

// A model that gives a wrong address is told what is wrong with it.
func TestParseURLSaysWhatIsWrong(t *testing.T) {
	const whole = "give a whole URL, as https://example.com/page"
	for in, want := range map[string]string{
		"http://%zz/":   `usage: fetch: the URL cannot be read: invalid URL escape "%zz" (` + whole + ")",
		"ftp://a.b":     "usage: fetch: only http and https are fetched, not ftp://a.b (" + whole + "; files are read with read)",
		"go.dev":        "usage: fetch: only http and https are fetched, not go.dev (" + whole + "; files are read with read)",
		"http://u:p@ab": "usage: fetch: the URL holds a user or a password (leave out what stands before the @)",
		"http:///x":     "usage: fetch: the URL names no host (" + whole + ")",
	} {
		if _, err := ParseURL(in); told(err) != want {
			t.Errorf("%s:\n%s, want\n%s", in, told(err), want)
		}
	}
	if u, err := ParseURL("https://a.b"); err != nil || u.Path != "/" {
		t.Errorf("%#v, %v", u, err)
	}
	if err := public("a.b:80", "10.0.0.1:80"); told(err) != "permission: fetch: a.b:80 leads to 10.0.0.1:80, which is not in the public network; nothing was sent ()" {
		t.Error(told(err))
	}
}

// ORCH-49, ORCH-50: the whole request of each engine, at its public address.
func TestSearchRequests(t *testing.T) {
	for want, e := range map[string]engine{
		"GET http://s.x/search?categories=general&format=json&q=x+%26+y ":                                                                                         Search{SearXNG: "http://s.x"}.searxng("general"),
		"GET https://s.x/a/search?categories=it&format=json&q=x+%26+y ":                                                                                           Search{SearXNG: "https://s.x/a/search"}.searxng("it"),
		"GET https://api.search.brave.com/res/v1/web/search?count=3&q=x+%26+y&text_decorations=false X-Subscription-Token: k ":                                    Search{Brave: "k"}.brave(),
		`POST https://api.tavily.com/search Authorization: Bearer k Content-Type: application/json {"max_results":3,"query":"x \u0026 y","search_depth":"basic"}`: Search{Tavily: "k"}.tavily(),
		"GET https://api.github.com/search/code?per_page=3&q=x+%26+y Accept: application/vnd.github.text-match+json Authorization: Bearer k ":                     Search{GitHub: "k"}.github(),
	} {
		r, err := e.ask(t.Context(), "x & y", 3)
		if err != nil {
			t.Fatal(err)
		}
		var header strings.Builder
		_ = r.Header.Write(&header)
		body, _ := io.ReadAll(r.Body)
		if got := r.Method + " " + r.URL.String() + " " + strings.ReplaceAll(header.String(), "\r\n", " ") + string(body); got != want {
			t.Errorf("%s:\n%s, want\n%s", e.name, got, want)
		}
	}
}

// ORCH-49, ORCH-50: a search that fails says which engine, why, and what to do.
func TestSearchSaysWhatFailed(t *testing.T) {
	answer := ""
	status := 200
	address, _ := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	const again = " (try it once more, or do without)"
	for _, test := range []struct {
		status       int
		answer, want string
	}{
		{200, "<", "network: search: GitHub answered something that is no list of results: invalid character '<' looking for beginning of value (a person checks GITHUB_TOKEN or search.github_token)"},
		{200, strings.Repeat(" ", maxAnswer+1), "network: search: GitHub cannot be reached: its answer is larger than 2 MB" + again},
		{200, `{"items":[]}` + strings.Repeat(" ", maxAnswer-12), ":  ()"},
		{401, "", "auth: search: GitHub answered 401 Unauthorized (do without; a person checks GITHUB_TOKEN or search.github_token)"},
		{403, "", "auth: search: GitHub answered 403 Forbidden (do without; a person checks GITHUB_TOKEN or search.github_token)"},
		{429, "", "rate_limit: search: GitHub answered 429 Too Many Requests (wait before you search again, or do without)"},
		{422, "", "usage: search: GitHub answered 422 Unprocessable Entity (make the query simpler)"},
		{400, "", "usage: search: GitHub answered 400 Bad Request (make the query simpler)"},
		{500, "", "network: search: GitHub answered 500 Internal Server Error" + again},
		{204, "", "network: search: GitHub answered 204 No Content" + again},
	} {
		status, answer = test.status, test.answer
		name, hits, err := New(Config{Search: Search{GitHub: "k", Endpoints: map[string]string{"github": address}}}).SearchCode(t.Context(), "x", 1)
		got := told(err)
		if err == nil {
			got = ":  ()"
		}
		if got != test.want || name != "GitHub" || len(hits) != 0 {
			t.Errorf("%d: %s\n%s, want\n%s", test.status, name, got, test.want)
		}
	}
	for name, e := range map[string]engine{"a person checks BRAVE_API_KEY or search.brave_key": Search{}.brave(), "a person checks TAVILY_API_KEY or search.tavily_key": Search{}.tavily(),
		"SearXNG answers programs only if search.formats in its settings.yml lists json": Search{}.searxng("")} {
		if e.hint != name {
			t.Errorf("%s says %q", e.name, e.hint)
		}
	}
	const place = ` in ~/.config/centurion/config.jsonc, or with one of the variables `
	for want, code := range map[string]bool{
		`config: search: no search engine for code is configured, so nothing was searched (do without it. A person configures one with "search": {"github_token": "ghp_…"} or {"searxng": "http://localhost:8080"}` + place + `GITHUB_TOKEN and SEARXNG_URL)`:                       true,
		`config: search: no search engine is configured, so nothing was searched (do without it. A person configures one with "search": {"searxng": "http://localhost:8080"}, {"brave_key": "…"} or {"tavily_key": "…"}` + place + `SEARXNG_URL, BRAVE_API_KEY and TAVILY_API_KEY)`: false,
	} {
		if got := told(New(Config{}).CanSearch(code)); got != want {
			t.Errorf("%s, want\n%s", got, want)
		}
	}
}

// ORCH-48: a page that is not read says why, in full.
func TestFetchSaysWhatFailed(t *testing.T) {
	var header http.Header
	status, body := 200, ""
	address, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Type"] = nil
		maps.Copy(w.Header(), header)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		if header.Get("Content-Length") == "" {
			w.(http.Flusher).Flush() // so that its length is not told
		}
	})
	type heads = map[string]string
	u := address + "/x"
	const binary, smaller = " (only text can be read; look for the same thing as a web page)", " (look for a smaller page)"
	for _, test := range []struct {
		status int
		header heads
		body   string
		want   string
		wait   time.Duration
	}{
		{200, heads{"Content-Type": "image/png"}, "\x89PNG", "usage: fetch: " + u + " is no text but image/png of unknown size" + binary, 0},
		{200, heads{"Content-Type": "image/png", "Content-Length": "4"}, "\x89PNG", "usage: fetch: " + u + " is no text but image/png with 4 bytes" + binary, 0},
		{200, heads{"Content-Type": "application/octet-stream"}, "%PDF-1.4", "usage: fetch: " + u + " is no text but application/pdf with 8 bytes" + binary, 0},
		{200, heads{"Content-Type": "text/plain", "Content-Length": "7864320"}, "", "usage: fetch: " + u + " has 7.5 MB; at most 5 MB are read" + smaller, 0},
		{200, heads{"Content-Type": "text/plain"}, strings.Repeat("a", MaxBody+1), "usage: fetch: " + u + " has more; at most 5 MB are read" + smaller, 0},
		{404, nil, "", "not_found: fetch: " + u + " answered 404 Not Found (check the address, or search for the page)", 0},
		{410, nil, "", "not_found: fetch: " + u + " answered 410 Gone (check the address, or search for the page)", 0},
		{500, nil, "", "network: fetch: " + u + " answered 500 Internal Server Error (try another source)", 0},
		{429, nil, "", "rate_limit: fetch: " + u + " answered 429 Too Many Requests (wait before you try again, or use another source)", 0},
		{429, heads{"Retry-After": "0"}, "", "rate_limit: fetch: " + u + " answered 429 Too Many Requests (wait before you try again, or use another source)", 0},
		{429, heads{"Retry-After": "99999999999999999999"}, "", "rate_limit: fetch: " + u + " answered 429 Too Many Requests (wait before you try again, or use another source)", 0},
		{429, heads{"Retry-After": "1"}, "", "rate_limit: fetch: " + u + " answered 429 Too Many Requests (it asks to wait 1s; or use another source)", time.Second},
		{302, heads{"Location": "/x"}, "", "network: fetch: " + u + " redirects more than 5 times (use the address that it should redirect to)", 0},
		{302, heads{"Location": "file:///x"}, "", "network: fetch: " + u + " leads to something that cannot be fetched: fetch: only http and https are fetched, not file:///x (give a whole URL, as https://example.com/page; files are read with read)", 0},
	} {
		header, status, body = http.Header{}, test.status, test.body
		for k, v := range test.header {
			header.Set(k, v)
		}
		_, err := New(Config{AllowHosts: []string{host}}).Fetch(t.Context(), parse(t, u), anything)
		if told(err) != test.want {
			t.Errorf("%d %v:\n%s, want\n%s", test.status, test.header, told(err), test.want)
		}
		if e, ok := err.(*centurion.Error); !ok || e.RetryAfter != test.wait {
			t.Errorf("%d %v: wait %+v", test.status, test.header, e)
		}
	}
}

// ORCH-48: what counts as text, and how its letters are read.
func TestTextOfABody(t *testing.T) {
	for _, kind := range []string{"text/x", "a/b+json", "a/b+xml", "a/b+yaml", "application/json", "application/jsonl", "application/x-ndjson", "application/xml", "application/yaml",
		"application/toml", "application/javascript", "application/ecmascript", "application/typescript", "application/x-sh", "application/sql", "application/graphql",
		"application/x-httpd-php", "application/x-tex", "application/x-latex"} {
		if !isText(kind) {
			t.Errorf("%s is no text", kind)
		}
	}
	for _, kind := range []string{"image/svg+xml", "image/png", "application/zip", "application/json2", "", "video/mp4"} {
		if isText(kind) {
			t.Errorf("%s is text", kind)
		}
	}
	all := make([]byte, 0x22)
	for i := range all {
		all[i] = byte(0x7f + i)
	}
	const windows = "\x7f€\ufffd‚ƒ„…†‡ˆ‰Š‹Œ\ufffdŽ\ufffd\ufffd‘’“”•–—˜™š›œ\ufffdžŸ\u00a0"
	for charset, want := range map[string]string{"iso-8859-1": windows, "Latin1": windows, "WINDOWS-1252": windows, "us-ascii": windows, "ascii": windows, "koi8-r": "\x7f\ufffd"} {
		if got, ok := decode(all, charset); got != want || !ok {
			t.Errorf("%s: %q, want %q", charset, got, want)
		}
	}
}
