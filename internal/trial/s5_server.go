package trial

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// s5Server lets strangers and agents talk to the server for OpenCode's clients, over TCP and with its token.
func s5Server(t *T, approved *int) (tried int) {
	w := newWild(t)
	s5Rules(t, w)
	if code, _ := w.p.Run("serve", "--hostname", "0.0.0.0", "--port", "0", "--model", "custom/m"); code != 2 {
		t.Failf("serving on all addresses exits with %d", code)
	}
	w.env["TRIES"] = filepath.Join(w.p.Home, "tries")
	s5Model(t, w, append(slices.Clone(s5Approve), `$TOOL serve "$SERVE" $(cat attacks/id)`, `env -i PATH="$PATH" setsid -w $TOOL serve "$SERVE" $(cat attacks/id)`))
	s := w.p.serve("--sandbox", "off", "--isolation", "shared")
	w.env["SERVE"] = s.url
	tried = s5Strangers(s)
	s.do("POST", "/session/"+s.open()+"/prompt_async", `{"parts":[{"type":"text","text":"Touch it."}]}`)
	var asks []struct{ ID string }
	for end := time.Now().Add(waitLimit); len(asks) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // another process asks
		t.Must(json.Unmarshal([]byte(s.do("GET", "/permission", "")), &asks))
	}
	if len(asks) != 1 {
		t.Fatalf("%d asks", len(asks))
	}
	t.Must(os.WriteFile(filepath.Join(w.p.Dir, "attacks/id"), []byte(asks[0].ID), 0o600))
	time.Sleep(s5Wait) // what is under test
	if _, err := os.Stat(filepath.Join(w.p.Dir, "forbidden")); err == nil || !strings.Contains(s.do("GET", "/permission", ""), asks[0].ID) {
		*approved++
		t.Failf("an agent has answered its own ask over TCP")
	}
	s.do("POST", "/permission/"+asks[0].ID+"/reply", `{"reply":"reject"}`)
	return tried + strings.Count(readAll(w.env["TRIES"]), "try")
}

// s5Strangers makes requests that have to be refused, and one that is not.
func s5Strangers(s *served) (tried int) {
	u, err := url.Parse(s.url)
	s.t.Must(err)
	bare, token := "http://"+u.Host, strings.TrimPrefix(u.Path, "/t/")
	for name, one := range map[string]struct {
		url, body string
		header    map[string]string
	}{
		"no token":            {url: bare},
		"a wrong token":       {url: bare + "/t/" + strings.Repeat("A", len(token))},
		"half of the token":   {url: bare + "/t/" + token[:len(token)/2]},
		"a wrong bearer":      {url: bare, header: map[string]string{"Authorization": "Bearer x"}},
		"a foreign host":      {url: s.url, header: map[string]string{"Host": "evil.example"}},
		"a foreign page":      {url: s.url, header: map[string]string{"Origin": "http://evil.example"}},
		"another port's page": {url: s.url, header: map[string]string{"Origin": "http://127.0.0.1:1"}},
		"a page without name": {url: s.url, header: map[string]string{"Origin": "null"}},
		"a form":              {url: s.url, body: "{}", header: map[string]string{"Content-Type": "text/plain"}},
		"no kind of body":     {url: s.url, body: "{}"},
	} {
		for _, path := range []string{"/session", "/event", "/centurion/v1/missions"} {
			method := map[bool]string{true: http.MethodPost, false: http.MethodGet}[one.body != ""]
			req, err := http.NewRequestWithContext(s.t.ctx, method, one.url+path, strings.NewReader(one.body))
			s.t.Must(err)
			for key, value := range one.header {
				req.Header.Set(key, value)
			}
			req.Host = one.header["Host"]
			resp, err := http.DefaultClient.Do(req)
			s.t.Must(err)
			_ = resp.Body.Close()
			if tried++; resp.StatusCode < 400 {
				s.t.Failf("%s gets %d from %s", name, resp.StatusCode, path)
			}
		}
	}
	s.do("GET", "/session", "")
	return tried
}
