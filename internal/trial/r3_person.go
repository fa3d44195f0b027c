package trial

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"centurion/failpoint"
	"centurion/store"
)

// r3Cycles are commands of a person that lead back to the start. $M is the mission.
var r3Cycles = [][]string{
	{"merge", "undo $M"},
	{"merge --squash", "undo $M"},
	{"merge --only T1,T3", "merge", "undo $M", "undo $M"},
	{"merge", "undo T2", "undo --redo T2", "undo $M"},
	{"merge", "undo $M", "undo --redo $M", "undo $M"},
	{"undo T2", "undo --redo T2"},
	{"undo --yes $M", "undo --redo $M"},
}

// personal reports whether a step belongs to a person's handling of a mission's work.
func personal(p failpoint.Point) bool {
	switch p {
	case failpoint.MergeIntent, failpoint.LandingJournal, failpoint.LandingMoved, failpoint.LandingPlaced, failpoint.LandingIndexed, failpoint.LandingDone,
		failpoint.UndoMoved, failpoint.UndoRecorded:
		return true
	}
	return false
}

// taker merges and undoes the work of a mission.
type taker struct {
	s       *stepper
	p       *project
	mission string
	reached map[failpoint.Point]bool
}

// person kills a person's merges and undos at each of their steps and repeats them: afterwards everything is as without the kill, and
// the person's uncommitted work is unchanged. It takes one share of [r3Persons] of all cycles of commands. It returns the steps it
// reached.
func (s *stepper) person(ctx context.Context, share, times int) map[failpoint.Point]bool {
	t := s.t
	q := &squad{workers: r3Workers, git: true}
	p := t.Project(q.files())
	p.Bin = s.bin
	t.Must(os.WriteFile(filepath.Join(p.Dir, "mine.txt"), []byte("as it was\n"), 0o600))
	p.gitInitWith(workspaces[share%len(workspaces)], "")
	q.serve(p)
	if code, out := p.Run(runArgs("--ask", "allow")...); code != 0 {
		t.Fatalf("the mission whose work is merged ended with %d: %s", code, lastLines(out, 3))
	}
	t.Must(os.WriteFile(filepath.Join(p.Dir, "mine.txt"), []byte("not committed\n"), 0o600))
	t.Must(os.WriteFile(filepath.Join(p.Dir, "new.txt"), []byte("new\n"), 0o600))
	w := &taker{s: s, p: p, mission: strings.Split(p.missionBranch(), "/")[3], reached: map[failpoint.Point]bool{}}
	for i, cycle := range r3Cycles {
		if i%r3Persons == share {
			w.cycle(ctx, cycle, times)
		}
	}
	for _, what := range p.leftInGit(false) {
		t.Failf("after centurion gc: %s", what)
	}
	check(t, p, nil)
	return w.reached
}

// cycle runs commands once undisturbed, noting each one's steps and result, then with a kill at each step.
func (w *taker) cycle(ctx context.Context, commands []string, times int) {
	t := w.s.t
	states := make([]string, len(commands))
	points := make([][]failpoint.Point, len(commands))
	if strings.HasPrefix(commands[0], "merge") { // from its own end state: previous undos and their steps matter for the next merge
		for _, command := range commands {
			if code := w.start("", command).Wait(t, waitLimit); code != 0 {
				t.Failf("%s ended with %d", command, code)
				return
			}
		}
	}
	begin := w.state()
	for i, command := range commands {
		log := filepath.Join(w.p.Root, "reached")
		t.Must(os.RemoveAll(log))
		c := w.start("CENTURION_FAILPOINT_LOG="+log, command)
		if code := c.Wait(t, waitLimit); code != 0 {
			t.Failf("%s ended with %d: %s", command, code, lastLines(c.Stdout()+c.Stderr(), 3))
			return
		}
		states[i] = w.state()
		for _, point := range failpoint.All() {
			if personal(point) && strings.Contains("\n"+readAll(log), "\n"+string(point)+"\n") {
				points[i] = append(points[i], point)
				w.reached[point] = true
			}
		}
	}
	if now := w.state(); now != begin {
		t.Failf("%q do not lead back to where they began: %s; it was %s", commands, now, begin)
		return
	}
	for n := range max(times, 1) {
		for at := 0; ctx.Err() == nil; at++ { // each command dies at its next step
			if !w.killed(commands, states, points, at, n) {
				break
			}
		}
	}
}

// killed runs a cycle once; each command dies at its at-th step and is repeated. It returns false if no command has that many.
func (w *taker) killed(commands, states []string, points [][]failpoint.Point, at, n int) (some bool) {
	t := w.s.t
	for i := range commands {
		some = some || at < len(points[i])
	}
	if !some || t.Failed() {
		return false
	}
	for i, command := range commands {
		where := command
		if at < len(points[i]) {
			point := points[i][at]
			c := w.start("CENTURION_FAILPOINT="+string(point), command)
			if code := c.Wait(t, waitLimit); code != -9 {
				t.Failf("%s did not reach %s again: it ended with %d: %s", command, point, code, lastLines(c.Stderr(), 2))
			}
			w.s.kills++
			where = fmt.Sprintf("%s, killed at %s and repeated,", command, point)
		}
		c := w.start("", command)
		code := c.Wait(t, waitLimit)
		t.Logf("%d: %s ended with %d: %s", n, where, code, lastLines(c.Stdout()+c.Stderr(), 2))
		if now := w.state(); now != states[i] {
			t.Failf("%s ended with %d (%s) and left\n  %s\nwithout a kill it is\n  %s", where, code, lastLines(c.Stdout()+c.Stderr(), 3), now, states[i])
			return false
		}
		if code != 0 && c.Stderr() == "" {
			t.Failf("%s ended with %d and says nothing", where, code)
		}
	}
	return true
}

func (w *taker) start(env, command string) *process {
	return w.p.StartWith(func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, env) }, strings.Fields(strings.ReplaceAll(command, "$M", w.mission))...)
}

// state is everything a person sees of the work: trees, their own files, which tasks are reverted, and the plan.
func (w *taker) state() string {
	p, t := w.p, w.s.t
	status, _ := p.tryGit("status", "--porcelain")
	all := []string{"HEAD, mission " + strings.ReplaceAll(p.git("rev-parse", "HEAD^{tree}", p.missionBranch()+"^{tree}"), "\n", ", "),
		fmt.Sprintf("status %q", status), "mine " + strings.TrimSpace(readAll(filepath.Join(p.Dir, "mine.txt"))+readAll(filepath.Join(p.Dir, "new.txt")))}
	db, err := store.Open(t.ctx, p.Database())
	t.Must(err)
	defer db.Close()
	m, err := db.Mission(t.ctx, w.mission)
	t.Must(err)
	tasks, err := db.Tasks(t.ctx, w.mission)
	t.Must(err)
	for _, one := range tasks {
		if !one.Undone.IsZero() {
			all = append(all, one.Item+" is taken back")
		}
	}
	all = append(all, fmt.Sprintf("mission %s", m.Status))
	merged := 0
	for at := m.Merged; at != nil; at = at.Earlier {
		if merged++; at.Commit == "" {
			all = append(all, "a merge is recorded that has no commit")
		}
	}
	for line := range strings.Lines(readAll(filepath.Join(p.Dir, filepath.FromSlash(m.Todo)))) {
		if strings.Contains(line, "] T") {
			all = append(all, strings.TrimSpace(strings.SplitN(line, " Write", 2)[0]))
		}
	}
	return fmt.Sprintf("%s, %d merges", strings.Join(all, ", "), merged)
}
