package trial

import (
	"context"
	"net/http"
	"strings"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// r12Bombs grow like a fork bomb and like a leak, but end by themselves, so that a failure does not take the machine along: 1,365
// processes, and a gigabyte.
var r12Bombs = map[string]string{
	"processes": `f() { if [ $1 -gt 0 ]; then for i in 1 2 3 4; do f $(($1 - 1)) & done; fi; sleep 5; wait; }; f 5 2>/dev/null`,
	"memory":    `head -c 1000m /dev/zero | tail`,
}

const (
	r12Limits = `{"max_processes": 64, "max_memory": 200}`
	r12Answer = 250 * time.Millisecond // the host's, p99
	r12Goal   = "Build it."
)

// r12 lets commands of two workers start too many processes and take too much memory, while others work and the host is asked.
func r12(ctx context.Context, t *T) {
	t.outside(func() {
		p := t.Project(map[string]string{"main.go": "package main\n"})
		p.put("~/.config/centurion/config.jsonc", r12Limits)
		p.gitInit()
		w := &wild{t: t, p: p, env: map[string]string{}}
		p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: r12Model})
		c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "deny", "--sandbox", "require", r12Goal)
		c.Until(t, `"type":"tool.started"`, waitLimit)
		w.variables()
		var times []time.Duration
		for !c.Ended() && ctx.Err() == nil {
			begun := time.Now()
			if err := controlHost(w.env["CONTROL"], w.env["TOKEN"], http.MethodGet, "missions", ""); err == nil {
				times = append(times, time.Since(begun))
			}
			time.Sleep(10 * time.Millisecond) // between two looks
		}
		if c.Wait(t, waitLimit) == 2 {
			t.NotPossible("not enforced here: %s", lastLines(c.Stderr(), 2))
		}
		stopped, honest := 0, 0
		for _, e := range p.Told(c) {
			text := string(e.Data)
			switch {
			case e.Type == centurion.EventToolCompleted && strings.Contains(text, "it used more than "):
				stopped++
			case e.Type == centurion.EventToolCompleted && strings.Contains(text, "honest end"):
				honest++
			}
		}
		p99 := quantile(times, 0.99)
		t.Figure("bombs ended at the limits", stopped)
		t.Figure("others that ended well", honest)
		t.Figure("answers of the host", len(times))
		t.Figure("p99", p99)
		if stopped != len(r12Bombs) || honest != 2 {
			t.Failf("%d bombs were ended, and %d others ended well", stopped, honest)
		}
		if len(times) < 50 || p99 > r12Answer {
			t.Failf("the host answered %d times, p99 %s", len(times), p99)
		}
	})
}

// r12Model delegates the bombs and honest work to a worker each.
func r12Model(r scripted.Request) scripted.Answer {
	work := map[string]string{"processes": r12Bombs["processes"], "memory": r12Bombs["memory"], "first": "sleep 2; echo honest end", "second": "for i in 1 2 3 4; do sleep 1; done; echo honest end"}
	switch {
	case len(r.Tools()) == 0 || len(history(r)) > 0:
		return scripted.Answer{Say: "It is done."}
	case r.Agent() == "commander":
		var calls []scripted.Call
		for name := range work {
			calls = append(calls, tool("delegate_task", map[string]any{"agent": "worker", "description": name, "prompt": "Run the " + name + " script."}))
		}
		return scripted.Answer{Calls: calls}
	}
	for name, script := range work {
		if strings.Contains(r.First(), "Run the "+name+" script.") {
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": script, "timeout": 60000})}}
		}
	}
	return scripted.Answer{Say: "There is nothing to run."}
}
