package trial

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"centurion"
)

const (
	r18Workers = 3
	r18Limit   = 5 * time.Second // from the signal to the end of the process
	r18Quick   = 1               // rounds of all cases
	r18Full    = 10
)

// r18 ends hosts whose workers run shell commands, in every way that a person or a system ends a program.
func r18(ctx context.Context, t *T) {
	var slowest time.Duration
	cases := []struct {
		name string
		sig  os.Signal // nil: the terminal closes
		live bool      // the live view is on that terminal too
	}{
		{"SIGTERM", syscall.SIGTERM, false}, {"SIGINT", os.Interrupt, false}, {"SIGHUP", syscall.SIGHUP, false},
		{"SIGKILL", syscall.SIGKILL, false}, {"the terminal gone", nil, false}, {"the terminal gone with the live view", nil, true},
	}
	endings := 0
	for range t.Scale(r18Quick, r18Full) {
		for i, one := range cases {
			for _, kind := range append([]string{""}, workspaces...) {
				if kind == "" || t.Full || i%len(workspaces) == slices.Index(workspaces, kind) {
					if ctx.Err() == nil {
						endings++
						slowest = max(slowest, endBy(t, one.name, one.sig, one.live, kind))
					}
				}
			}
		}
	}
	t.Figure("endings", endings)
	t.Figure("slowest", slowest)
}

// endBy starts a mission, in a repository if workspaces names the kind of its worktrees, ends it while shell commands run, and resumes it. It
// returns how long ending took.
func endBy(t *T, name string, sig os.Signal, live bool, workspaces string) time.Duration {
	s := &squad{workers: r18Workers, latency: 5 * time.Millisecond, git: workspaces != ""}
	s.napping("sleep 300 & sleep 301 & wait")
	p := t.Project(s.files())
	if s.git {
		name += " with worktrees of the kind " + workspaces
		p.gitInitWith(workspaces, "")
	}
	s.serve(p)
	defer hearHangUps()()
	args := runArgs("--ask", "allow", "--yes")
	var c *process
	end := func() error { return c.Signal(sig) }
	if sig != nil {
		c = p.Start(args...)
	} else {
		control, terminal, err := openTerminal()
		t.Must(err)
		defer control.Close()
		end = control.Close
		if live {
			args = append([]string{"run", "--format", "text"}, args[3:]...)
		}
		c = p.StartWith(func(cmd *exec.Cmd) { onTerminal(cmd, terminal, live) }, args...)
		t.Must(terminal.Close())
		if live {
			drained := drain(control)
			defer func() { <-drained }()
		}
	}
	if !s.napped(c, t) {
		t.Failf("%s: no shell command was started: %s", name, lastLines(c.Stderr(), 3))
		c.Kill()
		return 0
	}
	start := time.Now()
	t.Must(end())
	killed := sig == syscall.SIGKILL // it reports nothing and cleans nothing up; the resuming host does
	took := ends(t, c, name, killed, start)
	var told []centurion.Event
	if !live { // the live view tells the person
		told = p.Told(c)
	}
	if !killed {
		saved(t, p, name)
	}
	s.napping("true")
	again := p.Start("resume", "--format", "json", "--ask", "allow")
	if code := again.Wait(t, waitLimit); code != 0 {
		t.Failf("%s: resume exits with %d: %s", name, code, lastLines(again.Stderr(), 3))
	}
	told = append(told, p.Told(again)...)
	check(t, p, told)
	if missing := s.unwritten(p); len(missing) > 0 {
		t.Failf("%s: after the resume %q", name, missing)
	}
	t.Logf("%s: ended after %s", name, took.Round(time.Millisecond))
	return took
}

// ends waits until a process has ended and checks how, and that it took no longer than allowed since start.
func ends(t *T, c *process, name string, killed bool, start time.Time) (took time.Duration) {
	code := c.Wait(t, waitLimit)
	took = c.ended.Sub(start)
	if want := map[bool]int{false: 130, true: -9}[killed]; code != want {
		t.Failf("%s: it exited with %d, not %d: %s", name, code, want, lastLines(c.Stderr(), 3))
	}
	if took >= r18Limit {
		t.Failf("%s: it took %s to end", name, took)
	}
	return took
}

// saved checks what a host leaves behind when asked to end.
func saved(t *T, p *project, name string) {
	if left := p.gone(goneLimit); len(left) > 0 {
		t.Failf("I5 %s left %d processes behind: %q", name, len(left), left)
	}
	if code, out := p.Run("ps", "--format", "json"); code != 0 || !strings.Contains(out, `"status":"paused"`) {
		t.Failf("%s: the mission is not paused: ps exits with %d and says %s", name, code, out)
	}
}

// hearHangUps lets child processes end on a hang-up if this process ignores it: under nohup children inherit that. It returns a
// function that stops it.
func hearHangUps() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return func() { signal.Stop(c) }
}
