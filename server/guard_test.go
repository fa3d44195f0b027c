package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"centurion/sandbox"
	"centurion/server"
)

// S5, issue "Real OpenCode clients" 8: nobody gets in without the token, and no web page of another origin with it.
func TestGuard(t *testing.T) {
	h := server.Guard(token, "127.0.0.1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	const base, form = "http://127.0.0.1:4096", "application/x-www-form-urlencoded"
	link := server.AskLink(token, "per_1")
	for name, test := range map[string]struct {
		method, url, body string
		header            map[string]string
		host              string
		status            int
		path              string
	}{
		"no token":                 {url: base + "/session", status: 401},
		"wrong bearer":             {url: base + "/session", header: map[string]string{"Authorization": "Bearer x"}, status: 401},
		"bearer":                   {url: base + "/session", header: map[string]string{"Authorization": "Bearer " + token}, status: 200, path: "/session"},
		"base URL":                 {url: base + "/t/" + token + "/session/x", status: 200, path: "/session/x"},
		"base URL alone":           {url: base + "/t/" + token, status: 200, path: "/"},
		"wrong base URL":           {url: base + "/t/x/session", status: 401},
		"a beginning of the token": {url: base + "/t/" + token[:4] + "/session", status: 401},
		"basic":                    {url: base + "/x", header: map[string]string{"Authorization": "Basic b3BlbmNvZGU6bGV0LW1lLWlu"}, status: 200, path: "/x"},
		"wrong basic":              {url: base + "/x", header: map[string]string{"Authorization": "Basic b3BlbmNvZGU6eA=="}, status: 401},
		"rebound name":             {url: base + "/t/" + token + "/x", host: "evil.example:4096", status: 403},
		"localhost":                {url: base + "/t/" + token + "/x", host: "localhost:4096", status: 200, path: "/x"},
		"IPv6":                     {url: base + "/t/" + token + "/x", host: "[::1]:4096", status: 200, path: "/x"},
		"a name that begins alike": {url: base + "/t/" + token + "/x", host: "127.0.0.1.evil.example", status: 403},
		"own page":                 {url: base + "/t/" + token + "/x", header: map[string]string{"Origin": base}, status: 200, path: "/x"},
		"page of another port":     {url: base + "/t/" + token + "/x", header: map[string]string{"Origin": "http://127.0.0.1:80"}, status: 403},
		"page of another site":     {url: base + "/t/" + token + "/x", header: map[string]string{"Origin": "https://evil.example"}, status: 403},
		"page without an origin":   {url: base + "/t/" + token + "/x", header: map[string]string{"Origin": "null"}, status: 403},
		"plain text":               {method: "POST", url: base + "/t/" + token + "/x", body: "{}", header: map[string]string{"Content-Type": "text/plain"}, status: 400},
		"no type":                  {method: "POST", url: base + "/t/" + token + "/x", body: "{}", status: 400},
		"a form":                   {method: "POST", url: base + "/t/" + token + "/x", body: "a=b", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 400},
		"JSON":                     {method: "POST", url: base + "/t/" + token + "/x", body: "{}", header: map[string]string{"Content-Type": "application/json; charset=utf-8"}, status: 200, path: "/x"},
		"link":                     {url: base + link, status: 200, path: link},
		"link's form":              {method: "POST", url: base + link, body: "a=b", header: map[string]string{"Content-Type": form, "Origin": base}, status: 200, path: link},
		"link's form with a token": {method: "POST", url: base + "/t/" + token + link, body: "a=b", header: map[string]string{"Content-Type": form}, status: 200, path: link},
		"form of another site":     {method: "POST", url: base + link, body: "a=b", header: map[string]string{"Content-Type": form, "Origin": "https://evil.example"}, status: 403},
		"link's plain text":        {method: "POST", url: base + link, body: "a=b", header: map[string]string{"Content-Type": "text/plain"}, status: 400},
		"link's JSON":              {method: "POST", url: base + link, body: "{}", header: map[string]string{"Content-Type": "application/json"}, status: 200, path: link},
		"link of another name":     {url: base + link, host: "evil.example:4096", status: 403},
		"link of another ask":      {url: base + strings.Replace(link, "per_1", "per_2", 1), status: 401},
		"its form":                 {method: "POST", url: base + strings.Replace(link, "per_1", "per_2", 1), body: "a=b", header: map[string]string{"Content-Type": form}, status: 400},
		"link of another token":    {url: base + server.AskLink("another", "per_1"), status: 401},
		"link of no token":         {url: base + server.AskLink("", "per_1"), status: 401},
		"a longer path":            {url: base + link + "/../../session", status: 401},
		"a link that is cut":       {url: base + link[:len(link)-1], status: 401},
		"no link":                  {url: base + "/ask/", status: 401},
		"no body":                  {method: "DELETE", url: base + "/t/" + token + "/x", status: 200, path: "/x"},
	} {
		t.Run(name, func(t *testing.T) {
			method := test.method
			if method == "" {
				method = "GET"
			}
			r := httptest.NewRequest(method, test.url, strings.NewReader(test.body))
			for k, v := range test.header {
				r.Header.Set(k, v)
			}
			if test.host != "" {
				r.Host = test.host
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != test.status || test.status == 200 && w.Body.String() != test.path {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), token) {
				t.Errorf("the answer has the token: %s", w.Body)
			}
		})
	}
	r := httptest.NewRequest("GET", base+"/t/"+token+"/x", nil)
	refused := httptest.NewRecorder()
	h.ServeHTTP(refused, r.WithContext(server.WithPeer(r.Context(), sandbox.Peer{PID: 7, Refused: "a command started it"})))
	if refused.Code != 403 || !strings.Contains(refused.Body.String(), "a command started it") {
		t.Errorf("a command of an agent: %d %s", refused.Code, refused.Body)
	}
	w := httptest.NewRecorder()
	server.Guard("", "127.0.0.1", h).ServeHTTP(w, httptest.NewRequest("GET", base+"/t//x", nil))
	if w.Code != 401 {
		t.Errorf("an empty token lets in: %d", w.Code)
	}
}

// A web page may send a body without saying how long it is; that has to be JSON as well.
func TestGuardOfStreams(t *testing.T) {
	h := server.Guard(token, "127.0.0.1", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for kind, status := range map[string]int{"": 400, "text/plain": 400, "application/json": 200} {
		r := httptest.NewRequest("POST", "http://127.0.0.1:4096/t/"+token+"/x", io.MultiReader(strings.NewReader("{}")))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != status || r.ContentLength >= 0 {
			t.Errorf("a body of %q and %d bytes: %d %s", kind, r.ContentLength, w.Code, w.Body)
		}
	}
}
