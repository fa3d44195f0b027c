package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
)

const (
	r6Workers   = 50
	r6Latency   = 20 * time.Millisecond
	r6Of        = 10                     // out of this many calls that reach the provider …
	r6Fail      = 3                      // … this many fail
	r6Most      = 1.5                    // times the ideal: 1.43 for 30 % failures, and some margin
	r6Herd      = r6Workers / 10         // maximum workers within a second after a gate opens
	r6Watched   = 10 * time.Second       // after that
	r6Closed    = time.Second            // Retry-After
	r6Idle      = 3 * time.Second        // idle_timeout instead of the usual 60 s; the first byte comes later
	r6Outage    = 400 * time.Millisecond // nothing listens
	r6Every     = 6 * time.Second        // an outage
	r6Goal      = "Survive the provider."
	r6Own       = `{"fallback": ["custom/second"], "retry_delay": "300ms", "idle_timeout": "3s"}`
	r6MoreTurns = 3 // of the whole, in the full trial
)

// r6Faults are the provider's failures, one after the other. A refused connection is not among them: it needs an outage.
var r6Faults = []string{"429", "500", "502", "503", "529", "reset", "late"}

// r6 lets fifty workers work with a provider that fails in every possible way.
func r6(ctx context.Context, t *T) {
	sum := &badProvider{t: t, rand: t.Rand, ideal: t.Scale(1, 2), failed: map[string]int{}}
	begun := time.Now()
	rounds := t.Scale(1, r6MoreTurns)
	for range rounds {
		if ctx.Err() == nil {
			sum.mission(ctx)
		}
	}
	for _, f := range r6Faults {
		t.Figure("calls that met "+f, sum.failed[f])
		if sum.failed[f] == 0 {
			t.Failf("no call met %s, so that this proves nothing", f)
		}
	}
	t.Figure("refused", sum.refused)
	t.Figure("tasks done", sum.done)
	t.Figure("requests in place of the ideal", round(float64(sum.requests)/float64(rounds*r6Workers*sum.ideal), 2))
	t.Figure("in one second after a 429", sum.herd)
	t.Figure("continued with another model", sum.changed)
	t.Figure("a mission", time.Since(begun)/time.Duration(rounds))
}

// badProvider answers the workers of a mission, and fails in between.
type badProvider struct {
	t     *T
	ideal int // requests that a worker needs: one for its file and one for its end

	mu     sync.Mutex // protects the fields below
	rand   *rand.Rand
	block  []bool // which of the next calls fail
	next   int    // the next fault
	failed map[string]int
	calls  []r6Call

	refused, done, requests, herd, changed int
}

// r6Call is a call of a worker. after closes the model's gate, if the answer was 429.
type r6Call struct {
	at    time.Time
	model string
	until time.Time
}

// fault draws the fault of a call, "" for none: of every ten calls three fail, at random places.
func (b *badProvider) fault() string {
	if len(b.block) == 0 {
		b.block = make([]bool, r6Of)
		for _, i := range b.rand.Perm(r6Of)[:r6Fail] {
			b.block[i] = true
		}
	}
	fails := b.block[0]
	b.block = b.block[1:]
	if !fails {
		return ""
	}
	f := r6Faults[b.next%len(r6Faults)]
	b.next++
	b.failed[f]++
	return f
}

func (b *badProvider) answer(r scripted.Request) scripted.Answer {
	b.mu.Lock()
	f := b.fault()
	if r.Agent() != "commander" {
		c := r6Call{at: time.Now(), model: r.Model}
		if f == "429" {
			c.until = c.at.Add(r6Closed + r6Latency)
		}
		b.calls = append(b.calls, c)
		b.requests++
	}
	b.mu.Unlock()
	a := r6Commander(r)
	if r.Agent() != "commander" {
		a = b.worker(r)
	}
	switch f {
	case "429":
		return scripted.Answer{Error: &scripted.Error{Status: http.StatusTooManyRequests, Message: "slow down", RetryAfter: r6Closed}}
	case "500":
		return scripted.Answer{Error: &scripted.Error{Status: http.StatusInternalServerError, Message: "the server had an error"}}
	case "502":
		return scripted.Answer{Error: &scripted.Error{Status: http.StatusBadGateway, Message: "bad gateway"}}
	case "503":
		return scripted.Answer{Error: &scripted.Error{Status: http.StatusServiceUnavailable, Message: "no capacity"}}
	case "529":
		return scripted.Answer{Error: &scripted.Error{Status: 529, Message: "overloaded", Type: "overloaded_error"}}
	case "reset":
		a.Cut = scripted.CutReset
	case "late":
		a.Delay = 2 * r6Idle
	}
	return a
}

func r6Commander(r scripted.Request) scripted.Answer {
	for _, c := range history(r) {
		if c.name == "delegate_task" {
			return scripted.Answer{Say: "I wait."}
		}
	}
	var calls []scripted.Call
	for i := range r6Workers {
		calls = append(calls, tool("delegate_task", map[string]any{"agent": "worker", "description": "Write " + item(i),
			"prompt": "Write out/" + item(i) + ".txt."}))
	}
	return scripted.Answer{Say: "I delegate.", Calls: calls}
}

var r6File = regexp.MustCompile(`Write (out/T\d+\.txt)\.`)

func (b *badProvider) worker(r scripted.Request) scripted.Answer {
	g := r6File.FindStringSubmatch(r.First())
	if g == nil {
		return scripted.Answer{Say: "I have no file."}
	}
	if len(history(r)) == b.ideal-1 {
		return scripted.Answer{Say: g[1] + " is written."}
	}
	return scripted.Answer{Say: "I write.", Calls: []scripted.Call{tool("write", map[string]any{"filePath": g[1], "content": g[1] + "\n"})}}
}

// mission runs one mission to its end and checks what the provider saw.
func (b *badProvider) mission(ctx context.Context) {
	t := b.t
	p := t.Project(map[string]string{"../home/.config/centurion/config.jsonc": r6Own})
	p.Model = scripted.New(scripted.Config{Func: b.answer, Latency: r6Latency, Pace: -1, Chunk: 20})
	p.models = append(p.models, p.Model)
	b.calls = nil
	door := &door{handler: p.Model}
	t.Must(door.open())
	p.url = "http://" + door.address + "/v1"
	over, end := context.WithCancel(ctx)
	var g guard.Group
	g.Go("outages", func() error { return door.outages(over) })
	c := p.Start("run", "--format", "json", "--model", "custom/first", "--max-per-agent", fmt.Sprint(r6Workers), "--ask", "allow", r6Goal)
	code := c.Wait(t, waitLimit)
	end()
	if err := errors.Join(g.Wait(), door.close()); err != nil {
		t.Failf("the provider itself: %v", err)
	}
	told := p.Told(c)
	check(t, p, told)
	if code != 0 {
		t.Failf("the mission ended with %d: %s\n%s", code, lastLines(c.Stdout(), 2), c.Stderr())
	}
	b.told(told)
	for i := range r6Workers * (b.ideal - 1) {
		name := filepath.Join("out", item(i)+".txt")
		if text, err := os.ReadFile(filepath.Join(p.Dir, name)); err != nil || string(text) != filepath.ToSlash(name)+"\n" {
			t.Failf("%s holds %q (%v)", name, text, err)
		}
	}
	if n := len(b.calls); float64(n) > r6Most*float64(r6Workers*b.ideal) {
		t.Failf("%d workers made %d requests; ideal are %d", r6Workers, n, r6Workers*b.ideal)
	}
	for _, model := range []string{"first", "second"} {
		n, early := herd(b.calls, model)
		b.herd = max(b.herd, n)
		if n > r6Herd {
			t.Failf("%d workers asked %s within one second after a 429", n, model)
		}
		if early > 0 {
			t.Failf("%d requests came to %s while its provider had asked to wait", early, model)
		}
	}
}

// told checks the events: every task was done although the provider was sometimes unreachable.
func (b *badProvider) told(events []centurion.Event) {
	done, refused := 0, 0
	for _, e := range events {
		switch {
		case e.Type == centurion.EventTaskCompleted:
			done++
		case e.Type == centurion.EventTaskRetrying || e.Type == centurion.EventProviderRetry:
			if strings.Contains(string(e.Data), "connection refused") {
				refused++
			}
		case e.Type == centurion.EventSessionModel:
			b.changed++
		}
	}
	b.done, b.refused = b.done+done, b.refused+refused
	if done != r6Workers {
		b.t.Failf("%d of %d tasks are done", done, r6Workers)
	}
	if refused == 0 {
		b.t.Failf("no connection was refused, so that this proves nothing")
	}
}

// herd returns the maximum number of a model's calls within one second soon after its gate opened, and the number while it was closed,
// except for those in flight when it closed.
func herd(calls []r6Call, model string) (most, early int) {
	var of []r6Call
	for _, c := range calls {
		if c.model == model {
			of = append(of, c)
		}
	}
	const onTheWay = 500 * time.Millisecond // on a busy machine too; a gate that fails lets some through at any time of the second
	var closed, open time.Time
	for i, c := range of {
		if c.at.After(closed.Add(onTheWay)) && c.at.Before(open.Add(-onTheWay/5)) {
			early++
		}
		if !open.IsZero() && !c.at.Before(open) && c.at.Before(open.Add(r6Watched)) {
			n := 0
			for _, d := range of[i:] {
				if d.at.Before(c.at.Add(time.Second)) {
					n++
				}
			}
			most = max(most, n)
		}
		if c.until.After(open) {
			if c.at.After(open) {
				closed = c.at
			}
			open = c.until
		}
	}
	return most, early
}

// door is the provider's listener. While it is closed, connections are refused. Every request uses a new connection, so that this is
// noticed.
type door struct {
	handler http.Handler
	server  *http.Server
	address string
	serving guard.Group
	l       net.Listener
}

func (d *door) open() error {
	address := d.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if d.server == nil {
		d.server = &http.Server{Handler: d.handler, ReadHeaderTimeout: time.Minute}
		d.server.SetKeepAlivesEnabled(false)
	}
	d.l, d.address = l, l.Addr().String()
	d.serving.Go("serve", func() error {
		if err := d.server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

// outages shuts the door now and then.
func (d *door) outages(ctx context.Context) error {
	for first := r6Every / 3; ; first = r6Every {
		if !pause(ctx, first) {
			return nil
		}
		if err := d.l.Close(); err != nil {
			return err
		}
		pause(ctx, r6Outage)
		if err := d.open(); err != nil {
			return err
		}
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *door) close() error { return errors.Join(d.server.Close(), d.serving.Wait()) }
