package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

const (
	o6Workers = 50
	o6Failing = 5 // of them
	o6Most    = 3 // notices of one mission
)

// o6 counts the desktop notices of missions of fifty workers, some of which fail, while a policy or a person answers asks. The program
// is the real one; a fake notify-send, its fallback without a bus, stands for the desktop.
func o6(ctx context.Context, t *T) {
	if runtime.GOOS != "linux" {
		t.NotPossible("a desktop's notices can be caught on Linux only")
	}
	t.Figure("workers", o6Workers)
	for _, one := range []struct {
		policy string
		asks   int
		want   []string // the titles, in order
	}{
		{"deny", 20, []string{"Mission done"}},
		{"ask", 1, []string{"Centurion needs you", "Mission done"}},
	} {
		if ctx.Err() != nil {
			return
		}
		n := &noticed{squad: squad{workers: o6Workers - o6Failing, latency: 5 * time.Millisecond, asks: one.asks}, t: t}
		n.run(one.policy, one.want)
	}
}

// noticed is a mission whose notices are captured.
type noticed struct {
	squad
	t *T
}

func (n *noticed) run(policy string, want []string) {
	t := n.t
	p := t.Project(n.files())
	p.Serve(scripted.Config{Func: n.answer, Latency: n.latency, Pace: -1, Chunk: -1})
	caught := filepath.Join(p.Root, "notices")
	desktop := filepath.Join(p.Root, "desktop")
	t.Must(os.MkdirAll(desktop, 0o700))
	t.Must(os.WriteFile(filepath.Join(desktop, "notify-send"), fmt.Appendf(nil, "#!/bin/sh\nprintf '%%s|%%s\\n' \"$1\" \"$2\" >> '%s'\n", caught), 0o700))
	p.Env = append(p.Env, "PATH="+desktop+":"+os.Getenv("PATH"), "DBUS_SESSION_BUS_ADDRESS=unix:path="+filepath.Join(p.Root, "no-bus"))
	c := p.Start(runArgs("--ask", policy)...)
	if policy == "ask" && c.Until(t, `"type":"permission.asked"`, waitLimit) {
		n.approve(p, c)
	}
	if code := c.Wait(t, waitLimit); code != 0 {
		t.Failf("--ask %s: it ends with %d: %s", policy, code, lastLines(c.Stderr(), 3))
	}
	told := p.Told(c)
	check(t, p, told)
	failed, policies := 0, 0
	for _, e := range told {
		switch e.Type {
		case centurion.EventTaskFailed:
			failed++
		case centurion.EventPermissionReplied:
			if d, err := event.Decode[event.AskData](e); err == nil && d.By == "policy" {
				policies++
			}
		}
	}
	if failed != o6Failing || policy == "deny" && policies < n.asks {
		t.Failf("--ask %s: the mission was not the one that was meant: %d tasks failed, %d asks were answered by policy", policy, failed, policies)
	}
	lines := strings.Split(strings.TrimSpace(readAll(caught)), "\n")
	var titles []string
	for _, l := range lines {
		title, _, _ := strings.Cut(l, "|")
		titles = append(titles, title)
	}
	if got := strings.Join(titles, ", "); got != strings.Join(want, ", ") || len(lines) > o6Most {
		t.Failf("--ask %s: a person was called %d times, by %q; want %q", policy, len(lines), lines, want)
	}
	t.Figure("notices, --ask "+policy, len(lines))
}

// approve answers the only ask as a person would, from another process.
func (n *noticed) approve(p *project, c *process) {
	told, err := c.Events()
	n.t.Must(err)
	for _, e := range told {
		var ask struct{ ID string }
		if e.Type == centurion.EventPermissionAsked && json.Unmarshal(e.Data, &ask) == nil {
			if code, out := p.Run("approve", ask.ID); code != 0 {
				n.t.Failf("approve exits with %d: %s", code, out)
			}
		}
	}
}

// answer is the squad's, plus failing tasks outside the plan.
func (n *noticed) answer(r scripted.Request) scripted.Answer {
	if r.Agent() != "commander" {
		if strings.Contains(r.First(), "You fail.") {
			return scripted.Answer{Error: &scripted.Error{Status: 400, Message: "this task cannot be done"}}
		}
		return n.squad.answer(r)
	}
	a := n.squad.answer(r)
	if len(a.Calls) == 0 || a.Calls[0].Name != "delegate_task" || strings.Contains(r.Last(), "Next: ") {
		return a
	}
	for i := range o6Failing {
		a.Calls = append(a.Calls, tool("delegate_task", map[string]any{"agent": "worker", "description": fmt.Sprint("Fail ", i+1), "prompt": "You fail."}))
	}
	return a
}
