package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

const (
	r10Timeout = time.Second     // of each call
	r10Late    = 2 * time.Second // how late a call may end
	r10Slack   = 3               // descriptors more than at the start
)

// r10Scripts are commands that crash, or resist ending.
var r10Scripts = []struct {
	name, script string
	ends         bool // by itself, at once
}{
	{"crashes", `kill -SEGV $$`, true},
	{"exits with what it started left behind", `sleep 60 & sh -c 'trap "" TERM; sleep 60' >/dev/null 2>&1 & exit 7`, true},
	{"hangs", `exec sleep 60`, false},
	{"ignores every signal that can be", `trap "" TERM INT HUP QUIT; while :; do sleep 0.1; done`, false},
	{"a grandchild holds the pipe", `sh -c 'trap "" TERM; while :; do sleep 0.1; done' & trap "" TERM; wait; wait`, false},
	{"a grandchild of another session holds the pipe", `setsid sh -c 'trap "" TERM; while :; do sleep 0.1; done' & sleep 0.2; exit 0`, true},
	{"a double fork into another session", `setsid nohup sh -c 'sh -c "sleep 60; :" & exit' >/dev/null 2>&1 & sleep 60`, false},
	{"closes its output and goes on", `exec >&- 2>&-; sleep 60`, false},
	{"stops itself", `kill -STOP $$; sleep 60`, false},
	{"forks quickly", `trap "" TERM; while :; do sleep 0.3 & sleep 0.005; done`, false},
}

// r10 lets an agent call hostile commands one after the other through the program, with a harmless one after each.
func r10(ctx context.Context, t *T) {
	p := t.Project(map[string]string{personRules: `{"permission": {"*": "allow"}}`})
	calls := 2 * len(r10Scripts) * t.Scale(1, 20)
	w := &r10Watch{t: t, p: p, started: map[string]time.Time{}}
	p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		n := len(history(r))
		soon(ctx, waitLimit, func() bool { return int(w.looked.Load()) >= n })
		if len(r.Tools()) == 0 || n >= calls {
			return scripted.Answer{Say: "All have ended."}
		}
		if n%2 == 1 {
			return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": fmt.Sprintf("echo alive %d", n)})}}
		}
		return scripted.Answer{Calls: []scripted.Call{tool("bash", map[string]any{"command": r10Scripts[n/2%len(r10Scripts)].script, "timeout": r10Timeout.Milliseconds()})}}
	}})
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "allow", "Run them.")
	w.c = c
	deadline := time.Now().Add(time.Duration(calls) * waitLimit)
	for !c.Ended() && ctx.Err() == nil && time.Now().Before(deadline) {
		w.look()
		time.Sleep(10 * time.Millisecond) // another process writes it
	}
	if code := c.Wait(t, waitLimit); code != 0 {
		t.Failf("the mission ended with %d: %s", code, lastLines(c.Stdout()+c.Stderr(), 3))
	}
	w.look()
	check(t, p, p.Told(c))
	if w.done != calls {
		t.Failf("%d calls have a result, and not %d", w.done, calls)
	}
	if w.fdsLast > w.fdsFirst+r10Slack {
		t.Failf("the host holds %d descriptors, and held %d early on", w.fdsLast, w.fdsFirst)
	}
	t.Figure("commands", calls/2)
	t.Figure("gone after the limit at most", w.late)
	t.Figure("left behind", w.left)
	t.Figure("descriptors", fmt.Sprintf("%d, then %d", w.fdsFirst, w.fdsLast))
}

// r10Watch watches a running mission.
type r10Watch struct {
	t *T
	p *project
	c *process

	looked            atomic.Int64 // results checked so far: the next call waits for this
	read              int          // events
	started           map[string]time.Time
	done, left        int
	late              time.Duration
	fdsFirst, fdsLast int
}

// look reads the new events. A hostile command that has ended must have left nothing: the next call waits for this check.
func (w *r10Watch) look() {
	all, err := w.c.Events()
	w.t.Must(err)
	for _, e := range all[w.read:] {
		var d struct{ Call, Output, Error string }
		switch e.Type {
		case centurion.EventToolStarted, centurion.EventToolCompleted:
			w.t.Must(json.Unmarshal(e.Data, &d))
		default:
			continue
		}
		if e.Type == centurion.EventToolStarted {
			w.started[d.Call] = e.Time.Time
			continue
		}
		n := w.done
		w.done++
		if n%2 == 1 {
			if want := fmt.Sprintf("alive %d", n); strings.TrimSpace(d.Output) != want {
				w.t.Failf("the call after it (%d) printed %q%s, and not %q", n, d.Output, d.Error, want)
			}
			continue
		}
		one := r10Scripts[n/2%len(r10Scripts)]
		took := e.Time.Sub(w.started[d.Call])
		if !one.ends {
			w.late = max(w.late, took-r10Timeout)
			if !strings.Contains(d.Output+d.Error, "timed out") {
				w.t.Failf("%s: the result does not say that it was killed: %q%s", one.name, d.Output, d.Error)
			}
		}
		if took > r10Timeout+r10Late {
			w.t.Failf("%s: it had a result after %s", one.name, took)
		}
		w.behind(one.name)
		if w.fdsLast = w.descriptors(); n < len(r10Scripts) { // of the first round half
			w.fdsFirst = w.fdsLast
		}
	}
	w.read = len(all)
	w.looked.Store(int64(w.done))
}

// hostGit matches a git of the host that waits for its next question: see package gitobj.
var hostGit = regexp.MustCompile(`/git (cat-file --batch-command|mktree .*--batch|(hash-object|update-ref|diff-tree) .*--stdin)`)

// behind fails the trial if anything but the host works in the project. Killed processes may take a moment to disappear.
func (w *r10Watch) behind(name string) {
	var others []string
	soon(w.t.ctx, r10Late, func() bool {
		others = slices.DeleteFunc(w.p.left(), func(line string) bool {
			pid, _, _ := strings.Cut(line, " ")
			return pid == strconv.Itoa(w.c.cmd.Process.Pid) || w.c.Ended() || hostGit.MatchString(line)
		})
		return len(others) == 0
	})
	for _, line := range others {
		w.left++
		w.t.Failf("%s: it is left behind: %s", name, line)
	}
}

// descriptors returns how many the host holds; the last known number once it has ended.
func (w *r10Watch) descriptors() int {
	all, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(w.c.cmd.Process.Pid), "fd"))
	if len(all) == 0 {
		return w.fdsLast
	}
	return len(all)
}
