package trial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"centurion/provider/scripted"
)

// errand runs the calls one after the other in a mission whose agent does whatever it is told, and returns them with their results.
func (p *project) errand(calls []scripted.Call, args ...string) (*process, []past) {
	var mu sync.Mutex
	var done []past
	p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		if len(r.Tools()) == 0 {
			return scripted.Answer{Say: "It was done."}
		}
		all := history(r)
		mu.Lock()
		defer mu.Unlock()
		if len(all) > len(done) {
			done = all
		}
		if len(all) < len(calls) {
			return scripted.Answer{Calls: calls[len(all) : len(all)+1]}
		}
		return scripted.Answer{Say: "All is done."}
	}})
	c := p.Start(append([]string{"run", "--format", "json", "--model", "custom/m", "--isolation", "shared"}, args...)...)
	c.Wait(p.t, waitLimit)
	mu.Lock()
	defer mu.Unlock()
	for _, call := range done {
		if malformed(call.result) {
			p.t.Failf("a call of the trial itself is wrong, so that it tries nothing: %s %s: %s", call.name, call.args, call.result)
		}
	}
	if len(done) < len(calls) {
		p.t.Failf("%d of %d calls were made: %s", len(done), len(calls), lastLines(c.Stderr(), 3))
	}
	return c, done
}

// malformed reports whether a call never reached its tool: the agent does not hold it, or its arguments do not fit.
func malformed(result string) bool {
	return strings.HasPrefix(result, "Tool not found") || strings.Contains(result, "is not a property") || strings.Contains(result, "the arguments are {")
}

// attackLimit bounds each attempt of an attack.
const attackLimit = 2 * time.Second

// put writes a file of the project, or of the person's home by "~/NAME".
func (p *project) put(name, text string) string {
	path := filepath.Join(p.Dir, name)
	if len(name) > 1 && name[:2] == "~/" {
		path = filepath.Join(p.Home, name[2:])
	}
	p.t.Must(os.MkdirAll(filepath.Dir(path), 0o700))
	p.t.Must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// controlHost asks the host's own socket with the right token.
func controlHost(socket, token, method, path, body string) error {
	client := &http.Client{Timeout: attackLimit, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}}
	req, err := http.NewRequest(method, "http://host/centurion/v1/"+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}
