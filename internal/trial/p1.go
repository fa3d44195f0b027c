package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/provider/scripted"
)

const (
	p1Workers = 50
	p1Plugins = 6
	p1Quick   = 20 // seconds, in each of which a plugin is killed while one runs
	p1Full    = 180
	p1Latency = time.Second // of the model: how many hooks are called at once is no matter here
	p1After   = "tool.execute.after"
)

// p1Told is what a plugin has told: that it begins, or a call before it is answered.
type p1Told struct {
	plugin, what, call string
	at                 time.Time
}

// p1Plugs are plugins that observe each call and have a tool, and tell what they are asked for.
type p1Plugs struct {
	t *T
	g guard.Group

	mu     sync.Mutex // protects the fields below
	told   []p1Told
	killed map[string][]time.Time
}

func p1Plug(i int) string { return fmt.Sprintf("p%d", i) }

// serve listens for what plugins tell, and returns its address.
func (p *p1Plugs) serve() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	p.t.Must(err)
	p.t.Cleanup(func() { _ = l.Close(); _ = p.g.Wait() })
	p.g.Go("listen to plugins", func() error {
		for {
			conn, err := l.Accept()
			if err != nil {
				return nil // it is closed
			}
			p.g.Go("listen to a plugin", func() error {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					f := strings.Fields(lines.Text())
					if len(f) != 4 { // it was killed within a line
						continue
					}
					nano, _ := strconv.ParseInt(f[3], 10, 64)
					p.mu.Lock()
					p.told = append(p.told, p1Told{f[0], f[1], f[2], time.Unix(0, nano)})
					p.mu.Unlock()
				}
				return nil
			})
		}
	})
	return l.Addr().String()
}

// kill kills a random plugin that runs, and reports whether there was one.
func (p *p1Plugs) kill() bool {
	for _, i := range p.t.Rand.Perm(p1Plugins) {
		name := p1Plug(i)
		pids := outsiders(outsidePlugin, name)
		if len(pids) == 0 {
			continue
		}
		p.mu.Lock()
		p.killed[name] = append(p.killed[name], time.Now())
		p.mu.Unlock()
		for _, pid := range pids {
			endProcess(pid)
		}
		return true
	}
	return false
}

// p1 kills a plugin every second, while 50 workers work with the tools of all of them. What is killed a fourth time within ten minutes is
// not started again, so that in the end workers go on without.
func p1(ctx context.Context, t *T) {
	plugs := &p1Plugs{t: t, killed: map[string][]time.Time{}}
	address := plugs.serve()
	s := &squad{workers: p1Workers, latency: p1Latency}
	var over atomic.Bool
	s.deed = func(r scripted.Request) scripted.Answer { return s.p1Worker(r, over.Load()) }
	s.napping("none") // there is no ledger
	p := t.Project(s.files())
	p.put("in.txt", "input\n")
	var entries []any
	for i := range p1Plugins {
		entries = append(entries, []any{"exec:" + p1Plug(i), map[string]any{"command": p.outside(outsidePlugin, p1Plug(i), address, "")}})
	}
	rules, err := json.Marshal(map[string]any{"plugin": entries, "permission": "allow", "agent": map[string]any{"worker": map[string]any{"tools": map[string]bool{"p*_note": true}}}})
	t.Must(err)
	p.put(personRules, string(rules))
	s.serve(p)
	if code, out := p.Run("plugin", "list"); code != 0 || strings.Count(out, " ready ") != p1Plugins {
		t.Fatalf("the plugins do not work: %s %s", out, p.children[0].Stderr())
	}
	for i := range p1Plugins { // no request waits for the start of a plugin
		plugs.killed[p1Plug(i)] = []time.Time{time.Now()}
	}
	c := p.Start(runArgs("--ask", "allow")...)
	soon(ctx, waitLimit, func() bool { return c.Ended() || plugs.count(p1After) > 0 })
	kills, tick := 0, time.NewTicker(time.Second)
	for range t.Scale(p1Quick, p1Full) {
		select {
		case <-tick.C:
		case <-c.done:
		case <-ctx.Done():
		}
		if plugs.kill() {
			kills++
		}
	}
	tick.Stop()
	over.Store(true)
	if code := c.Wait(t, waitLimit); code != 0 {
		t.Failf("the mission ended with %d: %s\n%s\n%s", code, lastLines(c.Stdout(), 1), c.Stderr(), p.undone(ctx))
	}
	told := p.Told(c)
	check(t, p, told)
	missing := s.unwritten(p)
	t.Figure("kills", kills)
	t.Figure("tasks done", p1Workers-len(missing))
	if len(missing) > 0 {
		t.Failf("the mission is complete and %q", missing)
	}
	plugs.judge(told)
}

func (p *p1Plugs) count(what string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.told {
		if r.what == what {
			n++
		}
	}
	return n
}

// p1Worker reads and calls a tool of each plugin in turn until it is over.
func (s *squad) p1Worker(r scripted.Request, over bool) scripted.Answer {
	g := ownItem.FindStringSubmatch(r.First())
	if g == nil {
		return scripted.Answer{Say: "I have no item."}
	}
	id := "T" + g[1]
	n, _ := strconv.Atoi(g[1]) // digits
	past := history(r)
	switch {
	case len(past) > 0 && past[len(past)-1].name == "write":
		return scripted.Answer{Say: id + " is written."}
	case over:
		return scripted.Answer{Say: "I write.", Calls: []scripted.Call{tool("write", map[string]any{"filePath": "out/" + id + ".txt", "content": s.output(id)})}}
	}
	return scripted.Answer{Say: "I work.", Calls: []scripted.Call{tool("read", map[string]any{"filePath": "in.txt"}),
		tool(p1Plug((n+len(past)/2)%p1Plugins)+"_note", map[string]any{"word": fmt.Sprintf("%s-%d", id, len(past))})}}
}

// p1Call is a call of a worker's, from the journal.
type p1Call struct {
	tool, failed string
	began, ended time.Time
}

// judge compares what plugins were asked for with the calls of the journal.
func (p *p1Plugs) judge(facts []centurion.Event) {
	calls := map[string]p1Call{}
	for _, e := range facts {
		var d event.ToolData
		switch {
		case e.Type == centurion.EventToolStarted && json.Unmarshal(e.Data, &d) == nil:
			calls[d.Call] = p1Call{began: e.Time.Time}
		case e.Type == centurion.EventToolCompleted && json.Unmarshal(e.Data, &d) == nil:
			calls[d.Call] = p1Call{d.Tool, d.Error, calls[d.Call].began, e.Time.Add(time.Millisecond)} // which it is rounded to
		}
	}
	told := map[p1Told]int{} // without their time
	for _, r := range p.told {
		told[p1Told{plugin: r.plugin, what: r.what, call: r.call}]++
	}
	down, again := p.down()
	asked, lost, twice, whileDown, without := 0, 0, 0, 0, 0
	for id, c := range calls {
		if owner, ok := strings.CutSuffix(c.tool, "_note"); ok {
			n := told[p1Told{plugin: owner, what: "note", call: id}]
			switch {
			case n > 1:
				twice++
				p.t.Failf("the tool %s was called %d times for %s", c.tool, n, id)
			case n == 0 && c.failed == "":
				lost++
				p.t.Failf("the call %s of %s has a result and was not made", id, c.tool)
			case c.failed != "":
				if without++; n > 0 && !strings.Contains(c.failed, "may have run") {
					p.t.Failf("the call %s of %s was made and ended with: %s", id, c.tool, c.failed)
				}
			}
		}
		for i := 0; i < p1Plugins && c.failed == ""; i++ {
			name := p1Plug(i)
			n := told[p1Told{plugin: name, what: p1After, call: id}]
			asked += n
			switch {
			case n > 1:
				twice++
				p.t.Failf("%s was asked %d times after %s", name, n, id)
			case n == 0 && slices.ContainsFunc(down[name], func(d [2]time.Time) bool { return c.ended.After(d[0]) && c.began.Before(d[1]) }):
				whileDown++
			case n == 0:
				lost++
				p.t.Failf("%s runs and was not asked after %s of %s, at %s; it was down: %v", name, id, c.tool, c.ended, down[name])
			}
		}
	}
	p.t.Figure("hooks", asked)
	p.t.Figure("left out while a plugin was down", whileDown)
	p.t.Figure("lost", lost)
	p.t.Figure("twice", twice)
	p.t.Figure("restarts after which it was asked again", again)
	p.t.Figure("calls of tools that ended without a plugin", without)
	if asked < 1000 || again < p1Plugins {
		p.t.Failf("only %d hooks, and %d restarts after which there were more", asked, again)
	}
}

// down returns the times in which a plugin could not be asked, each from a kill until the next process was asked for the first time, and how
// many of them ended.
func (p *p1Plugs) down() (all map[string][][2]time.Time, ended int) {
	all = map[string][][2]time.Time{}
	for name, kills := range p.killed {
		for _, at := range kills {
			begun, back := false, time.Now()
			for _, r := range p.told {
				if r.plugin != name || r.at.Before(at) {
					continue
				}
				if begun && r.what != "begins" {
					ended++
					back = r.at
					break
				}
				begun = begun || r.what == "begins"
			}
			all[name] = append(all[name], [2]time.Time{at, back})
		}
	}
	return all, ended - p1Plugins // the start of each is none
}
