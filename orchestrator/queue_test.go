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
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/worktree"
)

// merging is a mission whose two items change one file each, the second behind the first.
func merging() map[string]script {
	return map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(plans("- verify: `lacks a.txt broken`", "- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - verify: `exists b.txt`", "  - after: T1"))
			case q.Step() == 2:
				return do(work("T1", makeA), work("T2", "make b.txt"))
			case strings.Contains(q.Last(), "call mission_complete"):
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() > 1 {
				return say("made it")
			}
			if strings.Contains(q.First(), "make b.txt") {
				return do(writes("b.txt", "b\n"))
			}
			return do(writes("a.txt", "a\n"))
		},
	}
}

// merged asserts that each item's work is on the branch, once, and was told once.
func (r *rig) merged(m centurion.Mission) {
	r.t.Helper()
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(r.t, "a.txt", r.branchHas(m.ID, "a.txt"), "a")
	equal(r.t, "b.txt", r.branchHas(m.ID, "b.txt"), "b")
	equal(r.t, "commits", r.git("rev-list", "--count", "main.."+isolation.BranchOf(m.ID)), "2")
	equal(r.t, "merges told", r.count(m.ID, centurion.EventMergeDone), 2)
	for _, t := range r.tasks(m.ID) {
		if len(t.Landed) != 1 {
			r.t.Errorf("task %s has landed %d times", t.Item, len(t.Landed))
		}
	}
	equal(r.t, "verified", m.Verified, 2)
	equal(r.t, "unproven", len(m.Unproven), 0)
	equal(r.t, "branches that are left", r.git("branch", "--list", "centurion/*", "--format=%(refname:short)"), isolation.BranchOf(m.ID))
}

// A mission that merges and whose host goes away, at any row of its journal, goes on to the same end: no work is lost, and none is merged
// twice.
func TestMergingSurvivesStops(t *testing.T) {
	t.Parallel()
	whole := inRepo(t, map[string]string{"go.txt": "go\n"}, merging())
	whole.merged(whole.mission(centurion.MissionOptions{}))
	rows := whole.store.LastSeq()
	for n := rows / 4; n < rows; n += stride(rows / 5) {
		t.Run(fmt.Sprint("at row ", n), func(t *testing.T) {
			t.Parallel()
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, merging())
			m := r.start(centurion.MissionOptions{})
			ctx, cancel := context.WithCancelCause(r.ctx)
			var g guard.Group
			g.Go("stop", func() error { return r.at(ctx, n, func() { cancel(centurion.ErrShutdown) }) })
			m = r.runIn(ctx, m.ID)
			cancel(nil)
			g.Wait()
			r.model.AllowRewinds()
			r.restart()
			if m.Status != centurion.MissionCompleted {
				m = r.run(m.ID)
			}
			r.merged(m)
		})
	}
}

// What a host that died has recorded of a merge is put right by looking at the branch: one that did not happen is forgotten, one that
// did is told.
func TestLandingsAreMended(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, merging())
	rec := r.mission(centurion.MissionOptions{})
	r.merged(rec)
	one, two := r.task(rec.ID, "T1"), r.task(rec.ID, "T2")
	r.git("checkout", "-q", "-b", "elsewhere")
	r.git("commit", "-q", "--allow-empty", "-m", "never merged")
	lost := r.git("rev-parse", "HEAD")
	after := r.git("rev-parse", "main")
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		one.Landed, one.Merging = append(one.Landed, centurion.Landed{Commit: lost, Before: after, Time: centurion.Now()}), lost
		two.Landed, two.Merging = append(two.Landed, centurion.Landed{Commit: after, Before: after, Time: centurion.Now()}), after // an ancestor, never told
		if err := tx.PutTask(&one); err != nil {
			return err
		}
		return tx.PutTask(&two)
	})
	if err != nil {
		t.Fatal(err)
	}
	m := r.grounded(rec)
	defer m.drop(nil)
	for range 2 { // the second time there is nothing left to do
		if err := m.queue.Repair(r.ctx); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "landed of the one that was lost", len(r.task(rec.ID, "T1").Landed), 1)
	equal(t, "landed of the one that was there", len(r.task(rec.ID, "T2").Landed), 2)
	equal(t, "merges told", r.count(rec.ID, centurion.EventMergeDone), 3)
}

// So is a merge of the mission's own agent, of which its row tells.
func TestOwnLandingIsMended(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"there": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, m := idle(t, map[string]string{"base.txt": "base\n"})
			c := r.work(m, map[string]string{"a": "1\n"})
			before, err := m.iso.Tip(r.ctx)
			if err != nil {
				t.Fatal(err)
			}
			own := centurion.Landed{Commit: c.ID, Before: before, Time: centurion.Now()}
			if _, err := m.st.Record(r.ctx, func(rec *centurion.Mission) { rec.Landed, rec.Merging = []centurion.Landed{own}, own.Commit }); err != nil {
				t.Fatal(err)
			}
			if there {
				if err := m.iso.Ground.Repo.Advance(r.ctx, m.iso.Branch(), before, c.ID); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := m.queue.Repair(r.ctx); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := r.store.Mission(r.ctx, m.st.ID)
			if err != nil || rec.Merging != "" || len(rec.Landed) != map[bool]int{true: 1}[there] || rec.OwnLanding().IsZero() == there {
				t.Errorf("merging %q, landed %+v, %v", rec.Merging, rec.Landed, err)
			}
			told := r.events(m.st.ID, centurion.EventMergeDone)
			equal(t, "merges told", len(told), len(rec.Landed))
			for _, e := range told {
				if d, err := event.Decode[event.MergeData](e); err != nil || d.Commit != c.ID || !slices.Equal(d.Files, []string{"a"}) {
					t.Errorf("told %+v, %v", d, err)
				}
			}
		})
	}
}

// What has to be proven is not changed by those whose work it judges: only the reviewer may, and that is told.
func TestChecksAreFrozen(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(plans("- [ ] T1 One", "  - verify: `exists b.txt`")),
				do(work("T1", makeA)), say("I wait"), do(plans("- [x] T1 One", "  - verify: `true`")), do(handTo("reviewer", "", "change it")), say("I wait"), complete())(q)
		},
		"worker":   steps(do(writes("b.txt", "b\n"))),
		"reviewer": steps(do(plans("- [x] T1 One", "  - verify: `exists go.txt`")), say("PASS")),
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	said := r.results(m.ID, "update_todo")
	has(t, said[2], "not changed once work on them has begun", "item T1: `exists b.txt` became `true`", "reviewer")
	told := 0
	for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
		if strings.Contains(string(e.Data), "the reviewer changed what has to be proven") {
			told++
		}
	}
	equal(t, "told", told, 1)
}

// A check that the reviewer has exchanged is run at once, against the work of its own item and no other, and whoever delegated the
// review is told of the change and of what the new check is worth.
func TestExchangedCheckRunsAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ check, worth string }{
		"proven":            {"exists b.txt", "`exists b.txt` passed: proven."},
		"by another's work": {"exists a.txt", "`exists a.txt` passed: unproven, the check is green without the work too."},
		"red":               {"exists c.txt", "`exists c.txt` fails on the work."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - verify: `true`", "- [ ] T2 Two", "  - verify: `exists a.txt`")), do(work("T1", "make b.txt"), work("T2", makeA)), say("I wait"),
					do(handTo("reviewer", "", "look")), say("I wait"), complete()),
				"worker": func(q scripted.Request) scripted.Answer {
					if strings.Contains(q.First(), "make b.txt") {
						return steps(do(writes("b.txt", "b\n")), say("made it"))(q)
					}
					return steps(do(writes("a.txt", "a\n")), say("made it"))(q)
				},
				"reviewer": steps(do(plans("- [x] T1 One", "  - verify: `"+test.check+"`", "- [x] T2 Two", "  - verify: `exists a.txt`")), say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			equal(t, "notices of the change", r.told(m.Session, "It changed the check of T1 from `true` to `"+test.check+"`; "+test.worth), 1)
			review := r.tasks(m.ID)[2]
			equal(t, "recorded with the review", len(review.Exchanged), 1)
			equal(t, "of item", review.Exchanged[0].Item, "T1")
			has(t, r.results(m.ID, "update_todo")[1], "T1: `"+test.check+"`")
		})
	}
}

// BenchmarkMerge is one task's commit on its way to the mission's branch, with its proof (three runs of a command that costs nothing) and one
// check of the mission.
func BenchmarkMerge(b *testing.B) {
	r := inRepo(b, map[string]string{"go.txt": "go\n"}, map[string]script{"commander": func(scripted.Request) scripted.Answer { return say("done") }})
	rec := r.mission(centurion.MissionOptions{Verify: []string{"exists go.txt"}})
	m := newMission(r.ctx, r.host, rec)
	defer m.drop(nil)
	repo, err := r.cfg.Worktrees(r.ctx)
	if err != nil {
		b.Fatal(err)
	}
	ready := make(chan struct{})
	close(ready)
	m.iso.Ground = &isolation.Ground{Repo: repo, Ready: ready}
	if err := repo.Advance(r.ctx, m.iso.Branch(), "", r.git("rev-parse", "main")); err != nil && centurion.KindOf(err) != centurion.KindConflict {
		b.Fatal(err)
	}
	m.iso.Ground.Base.Commit = r.git("rev-parse", "main")
	at, n := m.iso.Ground.Base.Commit, 0
	for b.Loop() {
		n++
		name := fmt.Sprintf("f%d.txt", n)
		b.StopTimer()
		tree, err := repo.With(r.ctx, at, map[string][]byte{name: []byte("x\n")})
		if err != nil {
			b.Fatal(err)
		}
		commit := r.git("-c", "user.name=t", "-c", "user.email=t@x", "commit-tree", "-p", at, "-m", "work", tree)
		b.StartTimer()
		l := &merge.Work{Agent: "worker", Item: name, Verify: []string{"exists " + name}, Commit: worktree.Commit{ID: commit, Parent: at}}
		if err := m.queue.Land(r.ctx, l); err != nil || l.Back != nil {
			b.Fatal(err, l.Back)
		}
	}
	if err := m.queue.Close(r.ctx); err != nil {
		b.Fatal(err)
	}
}

// queued makes a mission that merges, with nobody at work in it.
func (r *rig) queued(t testing.TB, opts centurion.MissionOptions) *mission {
	t.Helper()
	rec := r.mission(opts)
	m := newMission(r.ctx, r.host, rec)
	t.Cleanup(func() { m.drop(nil) })
	repo, err := r.cfg.Worktrees(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	close(ready)
	m.iso.Ground = &isolation.Ground{Repo: repo, Ready: ready}
	m.iso.Ground.Base.Commit = r.git("rev-parse", "main")
	if err := repo.Advance(r.ctx, m.iso.Branch(), "", m.iso.Ground.Base.Commit); err != nil && centurion.KindOf(err) != centurion.KindConflict {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.queue.Close(r.ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

// work makes a commit of files on the mission's base.
func (r *rig) work(m *mission, files map[string]string) worktree.Commit {
	r.t.Helper()
	with := map[string][]byte{}
	for name, text := range files {
		with[name] = []byte(text)
	}
	base := m.iso.Ground.Base.Commit
	tree, err := m.iso.Ground.Repo.With(r.ctx, base, with)
	if err != nil {
		r.t.Fatal(err)
	}
	return worktree.Commit{ID: r.git("commit-tree", "-p", base, "-m", "work", tree), Tree: tree, Parent: base}
}

// A crowd is merged together: the mission's own checks run once on its end, halving finds who breaks one, and who conflicts with
// another of the crowd gets a turn of its own. Nobody else is sent back.
func TestCrowdIsHalved(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n", "x.txt": "x\n"}, map[string]script{"commander": func(scripted.Request) scripted.Answer { return say("done") }})
	m := r.queued(t, centurion.MissionOptions{Verify: []string{"lacks base.txt broken"}})
	var all []*merge.Work
	for i, files := range []map[string]string{{"a": "1"}, {"b": "1"}, {"base.txt": "broken\n"}, {"base.txt": "better\n"}, {"x.txt": "one\n"}, {"x.txt": "two\n"}, {"c": "1"}} {
		all = append(all, &merge.Work{Agent: "worker", Item: fmt.Sprint("T", i+1), Commit: r.work(m, files)})
	}
	all[4].Verify = []string{"lacks base.txt broken"} // red behind the one that breaks it, through no fault of its own
	release, err := m.queue.Hold(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var g guard.Group
	for i, l := range all {
		g.Go(l.Item, func() error { return m.queue.Land(r.ctx, l) })
		for n := -1; n <= i; time.Sleep(time.Millisecond) {
			n = m.queue.Waiting()
		}
	}
	release()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, what := range map[int]string{2: "Your work breaks a check of the mission that was green before it", 5: "does not fit"} {
		if l := all[i]; l.Back == nil || !strings.Contains(l.Back.Text, what) || l.Landed != nil {
			t.Errorf("%s came back with %+v, landed %+v", l.Item, l.Back, l.Landed)
		}
	}
	for i, l := range all {
		if i != 2 && i != 5 && (l.Back != nil || l.Landed == nil) {
			t.Errorf("%s came back: %+v", l.Item, l.Back)
		}
	}
	equal(t, "commits", r.git("rev-list", "--count", "main.."+m.iso.Branch()), "5")
	equal(t, "base.txt", r.git("show", m.iso.Branch()+":base.txt"), "better")
	equal(t, "x.txt", r.git("show", m.iso.Branch()+":x.txt"), "one")
}

// A host that goes on looks first at what the one before it has recorded of merges that never were.
func TestLandingsAreMendedAtTheStart(t *testing.T) {
	t.Parallel()
	var stop context.CancelCauseFunc
	cast := merging()
	worker := cast["worker"]
	cast["worker"] = func(q scripted.Request) scripted.Answer {
		if stop != nil && strings.Contains(q.First(), "make b.txt") {
			stop(centurion.ErrHandover)
			stop = nil
			return after(50*time.Millisecond, say("never heard"))
		}
		return worker(q)
	}
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, cast)
	m := r.start(centurion.MissionOptions{})
	ctx, end := context.WithCancelCause(r.ctx)
	stop = end
	if _, err := r.host.Run(ctx, m.ID); err != nil {
		t.Fatal(err)
	}
	never := r.git("commit-tree", "-p", "main", "-m", "never merged", "main^{tree}")
	one := r.task(m.ID, "T1")
	equal(t, "landed", len(one.Landed), 1)
	one.Landed, one.Merging = append(one.Landed, centurion.Landed{Commit: never, Before: one.Landed[0].Commit, Time: centurion.Now()}), never
	if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&one) }); err != nil {
		t.Fatal(err)
	}
	r.model.AllowRewinds()
	r.restart()
	r.merged(r.run(m.ID))
}
