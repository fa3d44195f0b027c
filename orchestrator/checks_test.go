package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/worktree"
)

// idle is a project with a queue in which nobody waits.
func idle(t *testing.T, files map[string]string) (*rig, *mission) {
	t.Helper()
	r := inRepo(t, files, map[string]script{"commander": func(scripted.Request) scripted.Answer { return say("done") }})
	return r, r.queued(t, centurion.MissionOptions{})
}

// onTop makes a commit of files on another one; an empty text deletes.
func (r *rig) onTop(m *mission, at string, files map[string]string) string {
	r.t.Helper()
	with := map[string][]byte{}
	for name, text := range files {
		with[name] = nil
		if text != "" {
			with[name] = []byte(text)
		}
	}
	tree, err := m.iso.Ground.Repo.With(r.ctx, at, with)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.git("commit-tree", "-p", at, "-m", "work", tree)
}

// A check of the mission that is red once is run once more, where it was green before, and one that writes in the project is red.
func TestOwnCheck(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	for _, c := range []struct {
		command string
		green   bool
		passed  bool
		proof   centurion.Proof
		runs    int
	}{
		{"exists base.txt", true, true, "", 1},
		{"exists none.txt", true, false, "", 2},
		{"exists no.txt", false, false, "", 1},
		{"flaky 1", true, true, centurion.ProofFlaky, 2},
		{"put base.txt changed", true, false, "", 2},
		{"put new.txt x", true, true, "", 1},
	} {
		for range 2 { // the second time it is known
			got, err := m.queue.OwnCheck(r.ctx, c.command, m.iso.Ground.Base.Commit, c.green)
			if err != nil || got.Passed != c.passed || got.Proof != c.proof || r.shell.times(c.command) != c.runs {
				t.Errorf("%s: %+v, %v, %d runs", c.command, got, err, r.shell.times(c.command))
			}
		}
	}
}

// The finished work is checked as it is: a green of other files does not count, and a red one is run once more.
func TestFinalCheck(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	check := func(command string, passed bool, runs int) {
		t.Helper()
		got, err := m.queue.Check(r.ctx, merge.Check{Command: command, Agent: "commander", Final: true})
		if err != nil || got.Passed != passed || !got.Final || r.shell.times(command) != runs {
			t.Errorf("%s: %+v, %v, %d runs", command, got, err, r.shell.times(command))
		}
	}
	check("exists base.txt", true, 1)
	check("exists base.txt", true, 1)
	check("flaky 1", true, 2)
	tip := m.iso.Ground.Base.Commit
	if err := m.iso.Ground.Repo.Advance(r.ctx, m.iso.Branch(), tip, r.onTop(m, tip, map[string]string{"base.txt": "", "other.txt": "x\n"})); err != nil {
		t.Fatal(err)
	}
	check("exists base.txt", false, 3)
}

// Issue "What real use showed", B.11: what the mission's own check has said of the finished work counts for its end, and the check does not run again; a flaky one, and
// one that has to prove all of the work, do.
func TestFinalCheckIsKnown(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	base := m.iso.Ground.Base.Commit
	tip := r.onTop(m, base, map[string]string{"new.txt": "x\n"})
	if err := m.iso.Ground.Repo.Advance(r.ctx, m.iso.Branch(), base, tip); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command    string
		own, green bool
		proves     bool
		more       int // runs at the end
		proof      centurion.Proof
	}{
		{"exists new.txt", true, true, false, 0, ""},
		{"exists base.txt", false, true, false, 1, ""},
		{"exists none.txt", true, false, false, 2, ""},
		{"flaky 1", true, true, false, 1, ""},
		{"lacks new.txt y", true, true, true, 2, centurion.ProofUnproven},
		{"exists ./new.txt", true, true, true, 3, centurion.ProofProven},
	} {
		var own centurion.Receipt
		var err error
		if c.own {
			if own, err = m.queue.OwnCheck(r.ctx, c.command, tip, true); err != nil || own.Passed != c.green {
				t.Fatalf("%s: %+v, %v", c.command, own, err)
			}
		}
		before := r.shell.times(c.command)
		for range 2 { // the second time what the first said is known, if it was green
			got, err := m.queue.Check(r.ctx, merge.Check{Command: c.command, Agent: "commander", Final: true, Proves: c.proves})
			if err != nil || got.Passed != c.green || !got.Final || got.Proof != c.proof {
				t.Errorf("%s: %+v, %v", c.command, got, err)
			}
			if !c.green {
				break
			}
			equal(t, c.command+" is that of the check before", got.ID == own.ID, c.more == 0)
		}
		equal(t, c.command+" ran at the end", r.shell.times(c.command)-before, c.more)
	}
}

// Issue "What real use showed", B.11: a mission whose check was green on the tree of its last merge ends without running it there again, and counts it.
func TestEndRunsNoCheckTwice(t *testing.T) {
	t.Parallel()
	const whole = "lacks base.txt broken"
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": steps(do(plans("- verify: `"+whole+"`", "- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), complete()),
		"worker":    steps(do(writes("a.txt", "a\n"))),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "verified", m.Verified, 1)
	equal(t, "evidence", m.Evidence, centurion.EvidenceProven)
	equal(t, "runs", r.shell.times(whole), 2) // on the base and on the merged work
	all, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	var finals []string
	for _, x := range all {
		if x.Final && x.Command == whole {
			finals = append(finals, x.Tree)
		}
	}
	tree, err := r.repository().TreeOf(r.ctx, isolation.BranchOf(m.ID))
	if err != nil || len(finals) != 1 || finals[0] != tree {
		t.Errorf("final receipts of %s: %q, want one of %s, %v", whole, finals, tree, err)
	}
}

// A receipt counts for the files that it was made of; what an earlier work of the item has turned green need not be turned green
// again, unless a check was weakened.
func TestProveWork(t *testing.T) {
	t.Parallel()
	tested := "package a\n\nfunc TestA(t *testing.T) {\n\tt.Fatal()\n}\n"
	r, m := idle(t, map[string]string{"base.txt": "base\n", "a_test.go": tested})
	base := m.iso.Ground.Base.Commit
	a := r.onTop(m, base, map[string]string{"a": "1\n"})
	more := r.onTop(m, a, map[string]string{"more": "1\n"})
	less := r.onTop(m, more, map[string]string{"a_test.go": "", "y": "1\n"})
	gone := r.onTop(m, more, map[string]string{"a": "", "z": "1\n"})
	for _, c := range []struct {
		name, command, before, after string
		keeps, passed                bool
		proof                        centurion.Proof
	}{
		{"nothing", "exists a", base, base, false, false, ""},
		{"the work", "exists a", base, a, false, true, centurion.ProofProven},
		{"more of it", "exists a", a, more, false, true, centurion.ProofRegression},
		{"a test fewer", "exists a", more, less, false, true, centurion.ProofUnproven},
		{"the work is gone", "exists a", more, gone, false, false, ""},
		{"the same files again", "exists a", base, a, false, true, centurion.ProofProven},
		{"kept", "exists base.txt", base, a, true, true, centurion.ProofRegression},
		{"not kept", "lacks base.txt x", base, a, false, true, centurion.ProofUnproven},
	} {
		got, err := m.queue.ProveWork(r.ctx, &merge.Work{Agent: "worker", Item: "T1", Keeps: c.keeps}, c.command, c.before, c.after)
		if err != nil || got.Passed != c.passed || got.Proof != c.proof {
			t.Errorf("%s: passed %v, %s (%s), %v", c.name, got.Passed, got.Proof, got.Why, err)
		}
	}
}

// verifying runs a mission to its end and puts it and its task T1 back to where the task's work is being checked.
func (r *rig) verifying() (centurion.Mission, centurion.Task) {
	r.t.Helper()
	rec := r.mission(centurion.MissionOptions{})
	r.merged(rec)
	one := r.task(rec.ID, "T1")
	one.Status = centurion.TaskVerifying
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		was, err := tx.Mission(rec.ID)
		if err != nil {
			return err
		}
		was.Status = centurion.MissionRunning
		if err := tx.PutMission(&was); err != nil {
			return err
		}
		return tx.PutTask(&one)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rec, one
}

// The mission's branch is moved from where it stood and from nowhere else: what was recorded of a merge is taken back, and the work
// stays in the line.
func TestBranchMovedMeanwhile(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, merging())
	rec, one := r.verifying()
	m := r.grounded(rec)
	defer m.drop(nil)
	stale := rec.Base.Commit // others have moved the branch since
	l := &merge.Work{Task: &state.Run{ID: one.ID}, Onto: stale, Next: r.onTop(m, stale, map[string]string{"late": "1\n"})}
	tip := r.git("rev-parse", m.iso.Branch())
	if err := m.queue.Advance(r.ctx, stale, []*merge.Work{l}); err != nil {
		t.Fatal(err)
	}
	if l.Done || l.Landed != nil {
		t.Errorf("it is done: %+v", l)
	}
	equal(t, "landed", len(r.task(rec.ID, "T1").Landed), 1)
	equal(t, "branch", r.git("rev-parse", m.iso.Branch()), tip)
	equal(t, "merges told", r.count(rec.ID, centurion.EventMergeDone), 2)
}

// TRIAL S9: work lands on the branch as the host left it, although an agent's git has moved the branch to a commit of its own; the person
// is told of both commits.
func TestBranchMovedByAnAgent(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	left, err := m.iso.Tip(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for name, moved := range map[string][]string{
		"deleted": {"branch", "-D", m.iso.Branch()},
		"moved":   {"update-ref", "refs/heads/" + m.iso.Branch(), r.onTop(m, left, map[string]string{"evil.txt": "1\n"})},
	} {
		c := r.work(m, map[string]string{name: "1\n"})
		r.git(moved...)
		l := &merge.Work{Agent: "worker", Commit: c}
		if err := m.queue.Land(r.ctx, l); err != nil || l.Back != nil {
			t.Fatal(err, l.Back)
		}
		tip := r.git("rev-parse", m.iso.Branch())
		if tip != l.There || r.git("rev-parse", tip+"^") != left {
			t.Errorf("%s: it landed on %s", name, r.git("rev-parse", tip+"^"))
		}
		told := slices.ContainsFunc(r.events(m.st.ID, centurion.EventMissionUpdated), func(e centurion.Event) bool {
			d, err := event.Decode[event.MissionData](e)
			return err == nil && strings.Contains(d.Note, name+" "+m.iso.Branch()) && strings.Contains(d.Note, left) && strings.Contains(d.Note, moved[2])
		})
		if !told {
			t.Errorf("%s: nobody was told", name)
		}
		left = tip
	}
}

// From the record of a merge on it is done, whoever is cancelled meanwhile: branch and record never part.
func TestMergeIsNotCutOff(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, merging())
	rec, one := r.verifying()
	m := r.grounded(rec)
	defer m.drop(nil)
	tip := r.git("rev-parse", m.iso.Branch())
	l := &merge.Work{Task: &state.Run{ID: one.ID}, Onto: tip, Next: r.onTop(m, tip, map[string]string{"late": "1\n"})}
	ctx, cancel := context.WithCancel(r.ctx)
	told := len(r.events(""))
	var g guard.Group
	g.Go("cancel", func() error {
		r.when(func(all []centurion.Event) bool { return len(all) > told }) // the record of the merge
		cancel()
		return nil
	})
	err := m.queue.Advance(ctx, tip, []*merge.Work{l})
	if gerr := g.Wait(); err != nil || gerr != nil || !l.Done {
		t.Errorf("%v, %v, done %v", err, gerr, l.Done)
	}
	equal(t, "branch", r.git("rev-parse", m.iso.Branch()), l.Next)
	equal(t, "merges told", r.count(rec.ID, centurion.EventMergeDone), 3)
}

// Who has broken a check of the mission is shown what it printed on their own work, and not on that of those behind them.
func TestGuiltyIsShownItsOwnOutput(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return err
		}
		rec.Options.Verify = []string{"exists base.txt"}
		return tx.PutMission(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	at := m.iso.Ground.Base.Commit
	known := func(commit, output string) {
		t.Helper()
		tree, err := m.iso.Ground.Repo.TreeOf(r.ctx, commit)
		if err != nil {
			t.Fatal(err)
		}
		ran := centurion.Receipt{ID: centurion.NewID(centurion.PrefixReceipt), Mission: m.st.ID, Command: "exists base.txt", Tree: tree, Passed: output == "",
			ExitCode: len(output), Output: output}
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutReceipt(&ran) }); err != nil {
			t.Fatal(err)
		}
	}
	known(at, "")
	var chain []*merge.Work
	for i, output := range []string{"", "", "the second is wrong", "the third is worse", "the fourth is worst"} {
		next := r.onTop(m, at, map[string]string{fmt.Sprint("file", i): "x\n"})
		known(next, output)
		chain, at = append(chain, &merge.Work{Agent: "worker", Onto: at, Next: next}), next
	}
	left, err := m.queue.Guard(r.ctx, m.iso.Ground.Base.Commit, chain)
	if err != nil || len(left) != 2 {
		t.Fatalf("%d are left, %v", len(left), err)
	}
	guilty := chain[2]
	if !guilty.Done || guilty.Back == nil {
		t.Fatalf("%+v", guilty)
	}
	has(t, guilty.Back.Text, "the second is wrong")
	for _, x := range []string{"third", "fourth"} {
		if strings.Contains(guilty.Back.Text+guilty.Back.Short, x) {
			t.Errorf("it is shown the output of %s:\n%s", x, guilty.Back.Text)
		}
	}
	for i, l := range chain {
		if i != 2 && l.Done {
			t.Errorf("number %d is sent back as well", i)
		}
	}
}

// Work that a host has merged right before it died is not merged again; a review of the mission's own agent's work counts from
// its last merge on.
func TestLandedOnce(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	if v, err := m.loop.Judge.Look(r.ctx); err != nil || !v.Own.IsZero() {
		t.Errorf("own landing %v, %v", v.Own, err)
	}
	began := time.Now().Add(-time.Second)
	c := r.work(m, map[string]string{"a": "1\n"})
	for i := range 2 {
		l := &merge.Work{Agent: "worker", Item: "T1", Verify: []string{"exists a"}, Commit: worktree.Commit{ID: c.ID, Tree: c.Tree, Parent: c.Parent}}
		if err := m.queue.Land(r.ctx, l); err != nil || l.Back != nil {
			t.Fatal(err, l.Back)
		}
		if (l.Landed != nil) != (i == 0) {
			t.Errorf("time %d: landed %+v", i+1, l.Landed)
		}
	}
	equal(t, "merges told", r.count(m.st.ID, centurion.EventMergeDone), 1)
	if v, err := m.loop.Judge.Look(r.ctx); err != nil || v.Own.Before(began) {
		t.Errorf("own landing %v, %v", v.Own, err)
	}
}
