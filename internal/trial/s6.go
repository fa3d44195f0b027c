package trial

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"

	"centurion/guard"
	"centurion/provider/scripted"
)

// s6Hosts are names of this machine and of its networks; an agent's page is fetched by the host, which no confinement holds.
var s6Hosts = []string{"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0", "localhost", "LOCALHOST", "localhost.", "a.localhost",
	"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "127.0.0.1.", "①②⑦.0.0.1", "127。0。0。1", "user@127.0.0.1", "example.com@127.0.0.1"}

// s6 lets an agent fetch pages of this machine, by every name that leads there, although everything is allowed.
func s6(ctx context.Context, t *T) {
	var hits atomic.Int64
	l, err := net.Listen("tcp", ":0") // both families
	t.Must(err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hits.Add(1); fmt.Fprintln(w, "canary page") })}
	var g guard.Group
	g.Go("canary", func() error { _ = srv.Serve(l); return nil })
	t.Cleanup(func() { _ = srv.Close(); _ = g.Wait() })
	port := l.Addr().(*net.TCPAddr).Port
	resp, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	t.Must(err)
	_ = resp.Body.Close()
	if hits.Swap(0) != 1 {
		t.Failf("the canary cannot be hit at all")
	}
	p := t.Project(map[string]string{personRules: `{"permission": "allow"}`})
	var calls []scripted.Call
	for _, host := range s6Hosts {
		for _, scheme := range []string{"http", "https"} {
			calls = append(calls, tool("webfetch", map[string]any{"url": fmt.Sprintf("%s://%s:%d/", scheme, host, port)}))
		}
	}
	_, done := p.errand(calls, "--profile", "assistant", "--ask", "allow", "Fetch them.")
	refused := 0
	for _, call := range done {
		if strings.Contains(call.result, "canary page") {
			t.Failf("it was read: %s", call.args)
		}
		for _, reason := range []string{"nothing was sent", "no such host", "holds a user"} {
			if strings.Contains(call.result, reason) {
				refused++
				break
			}
		}
	}
	t.Figure("addresses", len(calls))
	t.Figure("refused", refused)
	t.Figure("hits", hits.Load())
	if hits.Load() > 0 || refused < len(calls) {
		t.Failf("%d hits, %d of %d refused", hits.Load(), refused, len(calls))
	}
}
