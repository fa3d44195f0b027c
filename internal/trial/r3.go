package trial

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/failpoint"
)

const (
	r3Workers = 3
	r3Quick   = 3  // kills at each step
	r3Full    = 20 // likewise
	// r3GitQuick is r3Quick for a mission in a repository, which takes three times as long.
	r3GitQuick = 2
	// r3AtOnce is how many missions are killed concurrently: each mostly waits for its processes.
	r3AtOnce = 3
	// r3Persons is how many projects share the commands of a person: within one, they run in sequence.
	r3Persons = 3
	// r3States contains state files of the first version, which opening migrates.
	r3States = "store/testdata/v1"
)

// r3Both are steps with a different meaning when work is merged.
var r3Both = []failpoint.Point{failpoint.CheckRan, failpoint.TaskEnded, failpoint.MissionVerdict}

// stepper kills hosts at named steps.
type stepper struct {
	t     *T
	bin   string
	git   bool   // the mission works in worktrees and merges
	kind  string // of the worktrees
	kills int
	maybe int
	sum   damage
}

// r3Kill is one kill of a mission.
type r3Kill struct {
	point failpoint.Point
	n     int // the occurrence of the step
	git   bool
}

// r3 kills a mission at every named step of the program, and resumes it.
func r3(ctx context.Context, t *T) {
	bin := t.BinaryWith("failpoint")
	counters := []*stepper{{t: t, bin: bin}, {t: t, bin: bin, git: true}}
	counts := make([]map[failpoint.Point]int, len(counters))
	t.InParallel(len(counters), r3AtOnce, func(i int) { counts[i] = counters[i].count() })
	reached, inGit := counts[0], counts[1]
	kills := r3Kills(t, reached, inGit)
	steppers := make([]stepper, r3Persons+len(kills))
	taken := make([]map[failpoint.Point]bool, r3Persons)
	migrated := 0
	t.InParallel(len(steppers)+1, r3AtOnce, func(i int) {
		switch {
		case i < r3Persons: // they take longest
			t.Part(fmt.Sprintf("person%d", i+1), func(part *T) {
				s := &steppers[i]
				s.t, s.bin = part, bin
				taken[i] = s.person(ctx, i, t.Scale(1, r3Full))
			})
		case i < len(steppers):
			k := kills[i-r3Persons]
			t.Part(fmt.Sprintf("%d-%s-%d", i, k.point, k.n), func(part *T) {
				s := &steppers[i]
				s.t, s.bin, s.git, s.kind = part, bin, k.git, workspaces[i%len(workspaces)]
				s.kill(k.point, k.n)
			})
		default:
			t.Part("migration", func(part *T) {
				migrated = (&stepper{t: part, bin: bin}).migration(t.Scale(r3Quick, r3Full))
			})
		}
	})
	if ctx.Err() != nil {
		return
	}
	never := 0
	for _, point := range failpoint.All() {
		if reached[point]+inGit[point] == 0 && !slices.ContainsFunc(taken, func(m map[failpoint.Point]bool) bool { return m[point] }) {
			never++
			t.Failf("the step %q is never reached by this mission: nothing calls failpoint.Hit with it, or the mission has to be extended", point)
		}
	}
	var sum stepper
	for _, s := range steppers {
		sum.kills, sum.maybe, sum.sum = sum.kills+s.kills, sum.maybe+s.maybe, damage{sum.sum.lost + s.sum.lost, sum.sum.twice + s.sum.twice}
	}
	t.Figure("steps", len(failpoint.All()))
	t.Figure("reached", len(failpoint.All())-never)
	t.Figure("kills", sum.kills+migrated)
	t.Figure("lost", sum.sum.lost)
	t.Figure("twice", sum.sum.twice)
	t.Figure("marked as maybe ran", sum.maybe)
}

// r3Kills draws at which occurrences of a step to kill.
func r3Kills(t *T, reached, inGit map[failpoint.Point]int) (all []r3Kill) {
	for _, point := range failpoint.All() {
		for range t.Scale(r3Quick, r3Full) {
			if reached[point] > 0 {
				all = append(all, r3Kill{point, 1 + t.Rand.IntN(reached[point]), false})
			}
		}
		for range t.Scale(r3GitQuick, r3Full) {
			if inGit[point] > 0 && !personal(point) && (reached[point] == 0 || slices.Contains(r3Both, point)) {
				all = append(all, r3Kill{point, 1 + t.Rand.IntN(inGit[point]), true})
			}
		}
	}
	return all
}

// project creates a project with a mission of a few workers, one of which runs a command that a person is asked about and has a
// conversation that must be shortened.
func (s *stepper) project() (*squad, *project) {
	q := &squad{workers: r3Workers, asks: 1, long: true, latency: 2 * time.Millisecond, git: s.git}
	p := s.t.Project(q.files())
	if s.git {
		p.gitInitWith(cmp.Or(s.kind, workspaces[0]), "")
	}
	p.Bin = s.bin
	q.serve(p)
	return q, p
}

// count runs the mission once to its end and counts how often it reaches each step.
func (s *stepper) count() map[failpoint.Point]int {
	q, p := s.project()
	log := filepath.Join(p.Root, "reached")
	c := p.StartWith(func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "CENTURION_FAILPOINT_LOG="+log) }, runArgs("--ask", "ask")...)
	if code := s.attend(p, c); code != 0 {
		s.t.Fatalf("the mission that counts the steps ended with %d: %s", code, lastLines(c.Stderr(), 3))
	}
	check(s.t, p, p.Told(c))
	s.finished(q, p)
	reached := map[failpoint.Point]int{}
	for name := range strings.FieldsSeq(readAll(log)) {
		reached[failpoint.Point(name)]++
	}
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		s.t.Logf("%s is reached %d times", name, reached[name])
	}
	return reached
}

// attend answers a command's questions to a person, from another process as a person would, until the command has ended.
func (s *stepper) attend(p *project, c *process) int {
	answered := map[string]bool{}
	deadline := time.Now().Add(waitLimit)
	for !c.Ended() && time.Now().Before(deadline) && s.t.ctx.Err() == nil {
		told, err := c.Events()
		if err != nil {
			s.t.Failf("I6 %v", err)
			break
		}
		for _, e := range told {
			var ask struct{ ID string }
			if e.Type != centurion.EventPermissionAsked || json.Unmarshal(e.Data, &ask) != nil || answered[ask.ID] {
				continue
			}
			answered[ask.ID] = true
			p.Run("approve", ask.ID) // if its host dies meanwhile, it is asked again
		}
		time.Sleep(3 * time.Millisecond) // another process works
	}
	return c.Wait(s.t, waitLimit)
}

// kill kills the mission at the n-th occurrence of a step, and resumes it. A step may occur less often than in the counting run: then
// it retries with an earlier occurrence, finally the first.
func (s *stepper) kill(point failpoint.Point, n int) {
	start := time.Now()
	defer func() {
		s.t.Logf("killed at %s:%d and resumed in %s", point, n, time.Since(start).Round(time.Millisecond))
	}()
	for ; ; n = n / 2 {
		if n == 0 {
			s.t.Failf("the step %s was not reached again", point)
			return
		}
		q, p := s.project()
		c := p.StartWith(func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, fmt.Sprintf("CENTURION_FAILPOINT=%s:%d", point, n))
		}, runArgs("--ask", "ask")...)
		code := s.attend(p, c)
		told := p.Told(c)
		if code == -9 {
			s.kills++
			s.resume(point, n, q, p, told)
			return
		}
		if code != 0 {
			s.t.Failf("%s:%d: it ended with %d before it was killed: %s", point, n, code, lastLines(c.Stderr(), 3))
			return
		}
	}
}

// resume resumes after a kill, and checks that nothing is lost or done twice.
func (s *stepper) resume(point failpoint.Point, n int, q *squad, p *project, told []centurion.Event) {
	args := []string{"resume", "--format", "json", "--ask", "ask"}
	if len(told) == 0 && nothingStarted(p) {
		args = runArgs("--ask", "ask")
	}
	c := p.Start(args...)
	code := s.attend(p, c)
	more := p.Told(c)
	if code != 0 {
		s.t.Failf("the resume ended with %d: %s", code, lastLines(c.Stderr(), 3))
	}
	told = append(told, more...)
	d := check(s.t, p, told)
	s.sum.lost += d.lost
	s.sum.twice += d.twice
	s.finished(q, p)
	for _, e := range more {
		if e.Type == centurion.EventToolCompleted && strings.Contains(string(e.Data), "interrupted by a restart") {
			s.maybe++
		}
	}
	if s.t.Failed() {
		s.t.Failf("that was after a kill at %s:%d, in %s", point, n, p.Root)
	}
}

// finished checks the work of an ended mission.
func (s *stepper) finished(q *squad, p *project) {
	for _, word := range q.twice(p) {
		s.sum.twice++
		s.t.Failf("I2 the ledger has %s", word)
	}
	if missing := q.unwritten(p); len(missing) > 0 {
		s.t.Failf("the mission is complete and %q", missing)
	}
	if !s.git {
		return
	}
	for _, what := range p.leftInGit(false) {
		s.t.Failf("after centurion gc: %s", what)
	}
}

// migration kills the program while it migrates a state file of the first version. It returns the number of kills.
func (s *stepper) migration(times int) (kills int) {
	files, _ := filepath.Glob(filepath.Join(s.t.Root(), filepath.FromSlash(r3States), "*.db.gz"))
	if len(files) == 0 {
		s.t.Failf("there is no state file of the first version in %s, so that no migration can be cut off", r3States)
		return 0
	}
	for i := range times {
		old := files[i%len(files)]
		want, _ := s.migrated(old, 0)
		got, killed := s.migrated(old, 1)
		if !killed {
			s.t.Failf("opening %s does not reach the step %s", filepath.Base(old), failpoint.Migration)
			return kills
		}
		kills++
		if got != want || got == "" {
			s.t.Failf("after a kill in the migration of %s ps says %s, not %s", filepath.Base(old), got, want)
		}
	}
	return kills
}

// migrated puts a state file of an earlier version into a fresh project and returns the output of ps, after a kill at the n-th step of
// the migration if n is not 0.
func (s *stepper) migrated(old string, n int) (ps string, killed bool) {
	p := s.t.Project(nil)
	p.Bin = s.bin
	p.Run("ps") // makes the state directory
	dirs, _ := filepath.Glob(filepath.Join(p.State, "projects", "*"))
	if len(dirs) != 1 {
		s.t.Fatalf("ps made %d state directories in %s", len(dirs), p.State)
	}
	b, err := unpack(old)
	s.t.Must(err)
	s.t.Must(os.WriteFile(filepath.Join(dirs[0], "centurion.db"), b, 0o600))
	if n > 0 {
		c := p.StartWith(func(cmd *exec.Cmd) {
			cmd.Env = append(cmd.Env, fmt.Sprintf("CENTURION_FAILPOINT=%s:%d", failpoint.Migration, n))
		}, "ps", "--format", "json")
		killed = c.Wait(s.t, waitLimit) == -9
	}
	code, ps := p.Run("ps", "--format", "json")
	if code != 0 {
		s.t.Failf("ps on %s exits with %d: %s", filepath.Base(old), code, p.children[len(p.children)-1].Stderr())
	}
	return ps, killed
}

// unpack reads a packed file.
func unpack(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
