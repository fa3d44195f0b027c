package orchestrator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/merge"
	"centurion/permission"
	"centurion/sandbox"
)

// slow runs checks that take two seconds each, and counts how many at once.
type slow struct {
	*shell
	mu            sync.Mutex
	running, most int
	ran           int
}

func (s *slow) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	if c.Check {
		s.mu.Lock()
		s.running++
		s.ran++
		s.most = max(s.most, s.running)
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.running--
			s.mu.Unlock()
		}()
		if err := guard.Sleep(ctx, 2*time.Second); err != nil {
			return centurion.CommandResult{ExitCode: -1}, err
		}
	}
	return s.shell.Run(ctx, c)
}

// lined is what became of a plan of landings: the commits of the branch, the receipts in their order, and what was returned.
type lined struct {
	commits, receipts, back string
	took                    time.Duration
}

const holdsTogether = "lacks base.txt broken"

// landAll puts landings through the queue of a new mission that runs most checks at once. All wait before the first begins.
func (r *rig) landAll(t testing.TB, most int, kinds []string) (l lined) {
	t.Helper()
	r.host.cfg().Checks, r.runs = most, 0
	m := r.queued(t, centurion.MissionOptions{Verify: []string{holdsTogether}})
	release, err := m.queue.Hold(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var g guard.Group
	var all []*merge.Work
	for i, kind := range kinds {
		item, file := fmt.Sprint("T", i+1), fmt.Sprint("f", i+1)
		w := &merge.Work{Agent: "worker", Item: item, Verify: []string{"exists " + file}, Commit: r.work(m, map[string]string{file: "x"})}
		switch kind {
		case "red":
			w.Verify = append(w.Verify, "exists never")
		case "breaks":
			w.Commit = r.work(m, map[string]string{file: "x", "base.txt": "broken\n"})
		case "clashes":
			w.Commit = r.work(m, map[string]string{file: "x", "x.txt": item})
		case "hollow":
			w.Verify, w.Mends, w.Commit = []string{"exists base.txt"}, true, r.work(m, map[string]string{file + "_test.go": "package x", file: "x"})
		case "nothing":
			w.Verify, w.Commit.ID = []string{"exists base.txt"}, ""
		}
		all = append(all, w)
		g.Go(item, func() error { return m.queue.Land(r.ctx, w) })
		for m.queue.Waiting() <= i {
			time.Sleep(time.Millisecond)
		}
	}
	start := time.Now()
	release()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	l.took = time.Since(start)
	l.commits = r.git("log", "--reverse", "--format=%T", "main.."+m.iso.Branch())
	receipts, err := r.store.Receipts(r.ctx, m.st.ID)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, x := range receipts {
		var runs []string
		for _, run := range x.Runs {
			runs = append(runs, fmt.Sprint(run.Kind, run.Passed))
		}
		l.receipts += fmt.Sprintln(x.Item, x.Command, x.Tree, x.Passed, x.Proof, x.Why, runs)
		if ids[x.ID] {
			t.Errorf("two receipts are %s", x.ID)
		}
		ids[x.ID] = true
	}
	for _, w := range all {
		switch {
		case w.Back != nil:
			l.back += fmt.Sprintf("%s for %s on %s\n", w.Item, w.Back.Cause, r.git("rev-parse", w.Back.Onto+"^{tree}"))
		case w.Landed == nil && w.Commit.ID != "":
			t.Errorf("%s neither landed nor came back", w.Item)
		}
	}
	return l
}

func sideBySide(t testing.TB) (*rig, *slow) {
	r := inRepo(t, map[string]string{"base.txt": "base\n", "x.txt": "x\n"}, nobody())
	runner := &slow{shell: r.shell}
	r.cfg.Runner = runner
	r.restart()
	return r, runner
}

// O4: however many checks run at once, random plans with red, conflicting and hollow work end with the same commits in the same order, the same
// receipts, and the same work returned for the same reason on the same commit.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	for range 3 {
		seed := rand.Uint64()
		random, kinds := rand.New(rand.NewPCG(seed, 0)), make([]string, 9)
		for i := range kinds {
			if random.IntN(10) < 4 { // a fifth is red, a fifth is in others' way
				kinds[i] = []string{"red", "breaks", "clashes", "clashes", "hollow", "nothing"}[random.IntN(6)]
			}
		}
		t.Run(fmt.Sprint("seed ", seed), faked(func(t *testing.T) {
			r, runner := sideBySide(t)
			one := r.landAll(t, 1, kinds)
			if runner.most != 1 {
				t.Errorf("one at a time ran %d at once", runner.most)
			}
			for _, most := range []int{2, 8} {
				got := r.landAll(t, most, kinds)
				if got.commits != one.commits || got.receipts != one.receipts || got.back != one.back {
					t.Errorf("%d at once, %q:\n%s\n%s\n%s\nwant\n%s\n%s\n%s", most, kinds, got.commits, got.receipts, got.back, one.commits, one.receipts, one.back)
				}
				if got.took > one.took {
					t.Errorf("%d at once took %s, one at a time %s", most, got.took, one.took)
				}
			}
			if runner.most < 3 || runner.most > 9 {
				t.Errorf("eight at once ran %d at once", runner.most)
			}
			synctest.Wait()
			if runner.running > 0 {
				t.Errorf("%d checks still run", runner.running)
			}
		}))
	}
}

// Where every check takes two seconds, eight at once take at most a quarter of the time of one at a time, and run no check more.
func TestSideBySideIsFast(t *testing.T) {
	t.Run("", faked(func(t *testing.T) {
		r, runner := sideBySide(t)
		kinds := make([]string, 20)
		one := r.landAll(t, 1, kinds)
		ran := runner.ran
		eight := r.landAll(t, 8, kinds)
		if eight.took > one.took/4 || runner.ran != 2*ran {
			t.Errorf("eight at once took %s for %d runs, one at a time %s for %d", eight.took, runner.ran-ran, one.took, ran)
		}
		if eight.commits != one.commits || eight.receipts != one.receipts {
			t.Errorf("\n%s\n%s\nwant\n%s\n%s", eight.commits, eight.receipts, one.commits, one.receipts)
		}
	}))
}

// A check runs before its turn only if it may run as things are: for that nobody is asked, and no refusal is recorded.
func TestEarlyChecksAskNobody(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	const command = "exists base.txt"
	for name, c := range map[string]struct {
		action  permission.Action
		opts    centurion.MissionOptions
		adopted bool
		want    bool
	}{
		"allowed by a rule":              {permission.Allow, centurion.MissionOptions{Ask: "deny"}, false, true},
		"denied by a rule":               {permission.Deny, centurion.MissionOptions{Ask: "allow"}, false, false},
		"a person would be asked":        {permission.Ask, centurion.MissionOptions{Ask: "ask"}, false, false},
		"nobody is there":                {permission.Ask, centurion.MissionOptions{Ask: "deny"}, false, false},
		"allowed by policy":              {permission.Ask, centurion.MissionOptions{Ask: "allow"}, false, true},
		"shipped, which no policy helps": {permission.Ask, centurion.MissionOptions{Ask: "allow"}, true, false},
		"trusted":                        {permission.Ask, centurion.MissionOptions{Ask: "deny", TrustVerify: true}, true, true},
		"of the configuration":           {permission.Ask, centurion.MissionOptions{Ask: "deny", Verify: []string{command}}, false, true},
	} {
		r.host.cfg().Rules = func(string) []permission.Level { return rules(c.action) }
		if _, err := m.st.Record(r.ctx, func(rec *centurion.Mission) {
			rec.Options, rec.Adopted = c.opts, nil
			if c.adopted {
				rec.Adopted = []string{command}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if got := m.approvals.Allows(r.ctx, command, "worker"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	equal(t, "asks", r.count(m.st.ID, centurion.EventPermissionAsked)+r.count(m.st.ID, centurion.EventPermissionReplied), 0)
	if asks, err := r.store.Asks(r.ctx, m.st.ID, false); err != nil || len(asks) > 0 {
		t.Errorf("recorded: %+v, %v", asks, err)
	}
}

// BenchmarkSideBySide is fifty landings that wait together, whose item's check and mission's check are a shell that sleeps: the first for two
// seconds in each of its three runs.
func BenchmarkSideBySide(b *testing.B) {
	for _, most := range []int{8, 1} {
		b.Run(fmt.Sprint(most, " at once"), func(b *testing.B) {
			r, _ := sideBySide(b)
			runner := &sandbox.Runner{Checks: most}
			r.cfg.Runner = scripts{runner}
			r.restart()
			for b.Loop() {
				r.landAll(b, most, make([]string, 50))
			}
		})
	}
}

// scripts runs the words of the fake shell in a real one, each after two seconds if it is an item's.
type scripts struct{ *sandbox.Runner }

func (s scripts) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	word, arg, _ := strings.Cut(c.Script, " ")
	switch word {
	case "exists":
		c.Script = "sleep 2; test -e " + arg
	case "lacks":
		c.Script = "! grep -q broken base.txt"
	}
	return s.Runner.Run(ctx, c)
}
