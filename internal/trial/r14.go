package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"centurion/guard"
	"centurion/provider/scripted"
)

const (
	r14Readers  = 200
	r14Deaf     = 50 // of them never read
	r14Slow     = 10 // of them read nothing while the others read all
	r14Sessions = 10 // each with 200 tokens a second
	r14Pace     = 5 * time.Millisecond
	r14Memory   = 64 // MiB of resident memory more, at most
)

// r14 has many readers of OpenCode's stream of events while sessions write, some of which are slow or never read.
func r14(ctx context.Context, t *T) {
	text := strings.Repeat("twelve chars", t.Scale(2000, 20_000)) // of a chunk each
	p := t.Project(nil)
	p.Serve(scripted.Config{Pace: r14Pace, Func: func(r scripted.Request) scripted.Answer {
		if strings.Contains(r.Last(), "warm up") {
			return scripted.Answer{Say: "Warm."}
		}
		return scripted.Answer{Say: text}
	}})
	s := p.serve()
	s.do("POST", "/session/"+s.open()+"/message", `{"parts":[{"type":"text","text":"warm up"}]}`)
	before := peak(s.process.cmd.Process.Pid)

	f := &r14Following{served: s, idle: map[string]bool{}, text: len(text)}
	for range r14Sessions {
		f.idle[s.open()] = true
	}
	f.deaf(ctx)
	var readers guard.Group
	f.connected.Add(r14Readers - r14Deaf)
	f.fast.Add(r14Readers - r14Deaf - r14Slow)
	for i := range r14Readers - r14Deaf {
		readers.Go("read events", func() error { return f.read(ctx, i < r14Slow) })
	}
	f.connected.Wait()
	began := time.Now()
	for id := range f.idle {
		s.do("POST", "/session/"+id+"/prompt_async", `{"parts":[{"type":"text","text":"Write much."}]}`)
	}
	t.Must(readers.Wait())
	took, after := time.Since(began), peak(s.process.cmd.Process.Pid)
	t.Figure("readers", fmt.Sprintf("%d, %d never read, %d slow", r14Readers, r14Deaf, r14Slow))
	t.Figure("events a second", int(float64(f.most)/took.Seconds()))
	t.Figure("readers without a delta of some", f.gaps)
	t.Figure("sent away and read all again", f.again)
	t.Figure("ends lost", f.lost)
	t.Figure("resident at most", fmt.Sprintf("%.0f MiB, before %.0f MiB", after, before))
	if after-before > r14Memory || f.lost > 0 || f.gaps == 0 && f.again == 0 {
		t.Failf("%.0f MiB more, %d ends lost; %d readers had gaps, %d began anew", after-before, f.lost, f.gaps, f.again)
	}
}

// r14Following is what the readers have seen.
type r14Following struct {
	*served
	idle      map[string]bool // the sessions that write
	text      int             // bytes of each answer
	connected sync.WaitGroup
	fast      sync.WaitGroup // those that have not read all

	mu                      sync.Mutex
	most, gaps, again, lost int
}

// deaf opens the streams that are never read.
func (f *r14Following) deaf(ctx context.Context) {
	u, err := url.Parse(f.url)
	f.t.Must(err)
	for range r14Deaf {
		c, err := dialNarrow(ctx, "tcp", u.Host)
		f.t.Must(err)
		f.t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "GET %s/global/event HTTP/1.1\r\nHost: %s\r\n\r\n", u.Path, u.Host)
		f.t.Must(err)
	}
}

// dialNarrow connects with so small a buffer that the kernel keeps little of what is not read.
func dialNarrow(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetReadBuffer(32 << 10)
}

var (
	r14Idle  = regexp.MustCompile(`"type":"session.idle","properties":{"sessionID":"(ses_\w+)"`)
	r14Delta = regexp.MustCompile(`"type":"message.part.delta".*"delta":"([^"]*)"`)
)

// read reads events until all sessions have ended. A reader that is sent away asks what it has missed.
func (f *r14Following) read(ctx context.Context, slow bool) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/event", nil)
	if err != nil {
		return err
	}
	client := http.DefaultClient
	if slow {
		client = &http.Client{Transport: &http.Transport{DialContext: dialNarrow}}
		defer client.CloseIdleConnections()
	} else {
		defer f.fast.Done()
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	there := sync.OnceFunc(f.connected.Done)
	defer there()
	events, bytes, ended, away := 0, 0, map[string]bool{}, false
	lines := bufio.NewReader(resp.Body)
	for len(ended) < len(f.idle) {
		line, err := lines.ReadString('\n')
		if away = err != nil; away {
			break
		}
		there()
		if !strings.HasPrefix(line, "data: ") {
			continue
		}
		events++
		if m := r14Delta.FindStringSubmatch(line); m != nil {
			bytes += len(m[1])
		}
		if m := r14Idle.FindStringSubmatch(line); m != nil && f.idle[m[1]] {
			ended[m[1]] = true
		}
		if slow && events == 100 {
			f.fast.Wait() // what is under test
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.most = max(f.most, events)
	if bytes < f.text*len(f.idle) && !away {
		f.gaps++
	}
	if away {
		f.again++
		f.catchUp(ended)
	}
	return ctx.Err()
}

// catchUp reads the sessions whose end a reader has not seen.
func (f *r14Following) catchUp(ended map[string]bool) {
	for id := range f.idle {
		if !ended[id] {
			until := time.Now().Add(waitLimit)
			for strings.Contains(f.do("GET", "/session/status", ""), id) && time.Now().Before(until) {
				time.Sleep(50 * time.Millisecond) // its answer is written
			}
			if len(f.do("GET", "/session/"+id+"/message", "")) < f.text {
				f.lost++
			}
		}
	}
}

// served is a server for OpenCode's clients.
type served struct {
	t       *T
	process *process
	url     string // with its token
}

// serve starts a server, and waits until it answers.
func (p *project) serve(more ...string) *served {
	c := p.Start(append([]string{"serve", "--port", "0", "--model", "custom/m"}, more...)...)
	const says = "opencode server listening on "
	if !c.Until(p.t, says, waitLimit) {
		p.t.Fatalf("it does not serve: %s", lastLines(c.Stderr(), 3))
	}
	return &served{p.t, c, strings.TrimSpace(strings.TrimPrefix(c.Stdout(), says))}
}

// do makes a request that has to succeed, and returns its answer.
func (s *served) do(method, path, body string) string {
	req, err := http.NewRequestWithContext(s.t.ctx, method, s.url+path, bytes.NewReader([]byte(body)))
	s.t.Must(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	s.t.Must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	s.t.Must(err)
	if resp.StatusCode >= 300 {
		s.t.Failf("%s %s: %d %s", method, path, resp.StatusCode, b)
	}
	return string(b)
}

// open opens a session of the assistant.
func (s *served) open() string {
	var opened struct{ ID string }
	s.t.Must(json.Unmarshal([]byte(s.do("POST", "/session", `{"agent":"assistant"}`)), &opened))
	return opened.ID
}
