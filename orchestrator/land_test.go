package orchestrator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/provider/scripted"
	"centurion/worktree"
)

// inRepo makes a rig whose project is a real repository, whose shell is not, and in which what no check proves has to be reviewed.
func inRepo(t testing.TB, files map[string]string, cast map[string]script) *rig {
	t.Helper()
	r := newRig(t, cast)
	r.initRepo(files)
	home := t.TempDir()
	r.cfg.Worktrees = func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: r.dir, Home: home, Runner: r.shell})
	}
	r.cfg.Countdown = 20 * time.Millisecond
	r.restart()
	return r
}

// initRepo makes the project a git repository with one commit of files.
func (r *rig) initRepo(files map[string]string) {
	r.t.Helper()
	r.git("init", "-q", "-b", "main")
	for name, text := range files {
		r.write(name, text)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "first")
}

// grounded returns a mission of a repository as a host that works on it has it, without running it.
func (r *rig) grounded(rec centurion.Mission) *mission {
	r.t.Helper()
	repo, err := r.cfg.Worktrees(r.ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	ready := make(chan struct{})
	close(ready)
	m := newMission(r.ctx, r.host, rec)
	m.iso.Ground = &isolation.Ground{Repo: repo, Ready: ready, Base: *rec.Base}
	return m
}

// branchHas returns a file of the mission's branch, "" if it is not there.
func (r *rig) branchHas(mission, name string) string {
	r.t.Helper()
	if r.git("ls-tree", "-r", "--name-only", isolation.BranchOf(mission), "--", name) == "" {
		return ""
	}
	return r.git("show", isolation.BranchOf(mission)+":"+name)
}

// A worker's file stands on the mission's branch behind its check, red without it and green with it; the person's
// directory is as it was.
func TestWorkIsMerged(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), complete()),
		"worker":    steps(do(writes("a.txt", "a\n")), say("made a")),
	})
	m := r.mission(centurion.MissionOptions{})
	if t.Failed() || m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "a")
	if _, err := os.Stat(filepath.Join(r.dir, "a.txt")); err == nil {
		t.Error("it stands in the person's directory")
	}
	equal(t, "status", r.git("status", "--porcelain"), "")
	one := r.task(m.ID, "T1")
	if len(one.Landed) != 1 || one.Checkout != nil {
		t.Fatalf("landed: %+v, checkout %+v", one.Landed, one.Checkout)
	}
	has(t, r.git("log", "-1", "--format=%B", isolation.BranchOf(m.ID)), "T1 ", "made a", "Mission: "+m.ID, "Task: "+one.ID, "Agent: worker")
	merged := r.events(m.ID, centurion.EventMergeDone)
	equal(t, "merges told", len(merged), 1)
	d, err := event.Decode[event.MergeData](merged[0])
	if err != nil || d.Commit != one.Landed[0].Commit || len(d.Files) != 1 || merged[0].Task != one.ID {
		t.Errorf("told: %+v of %s, %v", d, merged[0].Task, err)
	}
	receipts, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil || len(receipts) != 2 {
		t.Fatalf("receipts: %+v, %v", receipts, err)
	}
	equal(t, "proof", receipts[0].Proof, centurion.ProofProven)
	told, err := event.Decode[event.VerifyData](r.events(m.ID, centurion.EventVerifyPassed)[0])
	if err != nil || told.Proof != centurion.ProofProven || told.FailureLine == "" || told.FailureLine != receipts[0].FailureLine || told.Early {
		t.Errorf("told of the proof: %+v, %v", told, err)
	}
	equal(t, "guarded", receipts[0].Commit, one.Landed[0].Commit)
	equal(t, "final", receipts[1].Final, true)
	equal(t, "verified", m.Verified, 1)
	has(t, r.requests("commander")[2].Last(), "is completed", "Integrated as "+one.Landed[0].Commit[:8]+": added a.txt, +1 -0", "Check `exists a.txt` passed: proven")
	equal(t, "branches that are left", r.git("branch", "--list", "centurion/*", "--format=%(refname:short)"), isolation.BranchOf(m.ID))
}

// returns are the facts of a task's returns: the cause, what it is about, and how often it had come back then. "" is the mission's own agent.
func (r *rig) returns(mission, task string) []string {
	r.t.Helper()
	var out []string
	for _, e := range r.events(mission, centurion.EventTaskReturned) {
		d, err := event.Decode[event.ReturnData](e)
		if err != nil || d.Reason == "" {
			r.t.Fatalf("the return %s is not told: %v", e.Data, err)
		}
		slices.Sort(d.Files)
		if e.Task == task {
			out = append(out, fmt.Sprintf("%s %s %d", d.Cause, strings.Join(d.Files, ", ")+d.Command, d.Returns))
		}
	}
	return out
}

// dump shows what became of a mission, for a test that fails.
func (r *rig) dump(mission string) {
	for _, x := range r.tasks(mission) {
		r.t.Logf("task %s %s %s: %s %s %+v\n%s", x.ID, x.Agent, x.Item, x.Status, x.Reason, x.Error, x.Result)
	}
	for _, e := range r.events(mission) {
		switch e.Type {
		case centurion.EventVerifyFailed, centurion.EventVerifyPassed, centurion.EventMergeDone, centurion.EventMergeConflict, centurion.EventMissionUpdated, centurion.EventQuestionAsked:
			r.t.Logf("%s %s %s", e.Type, e.Task, e.Data)
		}
	}
	for _, q := range r.model.Requests() {
		r.t.Logf("--- %s: %s", q.Agent(), q.Last())
	}
}

// O4: work that turns a green check of the mission red is not merged, also in a crowd: only the guilty comes back.
func TestNoGreenCheckTurnsRed(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	plan := []string{"- verify: `lacks base.txt broken`", "- verify: `holds base.txt later`"}
	var hand []scripted.Call
	for i, n := range names {
		id := "T" + string(rune('1'+i))
		plan = append(plan, "- [ ] "+id+" "+n, "  - verify: `exists "+n+".txt`")
		hand = append(hand, work(id, "make "+n+".txt"))
	}
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch {
			case q.Step() == 1:
				return do(plans(plan...))
			case q.Step() == 2:
				return do(hand...)
			case strings.Contains(q.Last(), "call mission_complete"):
				return do(sh("put base.txt later"), call("mission_complete", args{"summary": "built"}))
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			n := q.First()[strings.Index(q.First(), "make ")+5:][:1]
			switch {
			case q.Step() == 1 && n == "d":
				return do(writes("d.txt", "d\n"), sh("put base.txt broken"))
			case q.Step() == 1:
				return do(writes(n+".txt", n+"\n"))
			case strings.Contains(q.Last(), "breaks a check"):
				return do(sh("put base.txt base"))
			}
			return say("made " + n)
		},
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	for i, n := range names {
		one := r.task(m.ID, "T"+string(rune('1'+i)))
		want := 0
		if n == "d" {
			want = 1
		}
		equal(t, "returns of "+n, one.Returns, want)
		equal(t, "returns of "+n+" told", strings.Join(r.returns(m.ID, one.ID), "; "), strings.Repeat("guard lacks base.txt broken 1", want))
		equal(t, "on the branch", r.branchHas(m.ID, n+".txt"), n)
	}
	for c := range strings.FieldsSeq(r.git("rev-list", isolation.BranchOf(m.ID))) {
		if strings.Contains(r.git("show", c+":base.txt"), "broken") {
			t.Errorf("the branch was broken at %s", c)
		}
	}
	equal(t, "merges told", r.count(m.ID, centurion.EventMergeDone), 9)
	receipts := map[string]centurion.Receipt{}
	all, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if receipts[x.ID] = x; x.Early && x.Passed {
			t.Errorf("a green check is kept as early: %+v", x)
		}
	}
	red := map[bool]int{}
	for _, e := range r.events(m.ID, centurion.EventVerifyFailed) {
		d, err := event.Decode[event.VerifyData](e)
		if early := strings.Contains(d.Command, "later"); err != nil || d.Early != early {
			t.Errorf("a red check is told as early: %v, want %v (%+v, %v)", d.Early, early, d, err)
		} else if receipts[d.Receipt].Early != early {
			t.Errorf("a red check is kept as early: %v, want %v", !early, early)
		}
		red[d.Early]++
	}
	if red[true] == 0 || red[false] == 0 {
		t.Errorf("red checks: %v", red)
	}
}

// What the mission's own agent writes is merged before its workers begin, and guarded as theirs is.
func TestOwnWorkIsMerged(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(plans("- verify: `lacks base.txt broken`", "- [ ] T1 One", "  - verify: `holds a.txt b`", "- [ ] T2 Two", "  - verify: `exists own.txt`")),
				do(writes("a.txt", "a\n"), sh("put base.txt broken")),
				do(work("T1", "add b")),
				do(sh("put base.txt base")),
				do(work("T1", "add b")), do(writes("own.txt", "own\n"), mark("T2", "done")), say("I wait"), complete())(q)
		},
		"worker": steps(do(call("read", args{"filePath": "a.txt"})), do(writes("a.txt", "a\nb\n"))),
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), "a\nb")
	equal(t, "own.txt", r.branchHas(m.ID, "own.txt"), "own")
	has(t, r.results(m.ID, "delegate_task")[0], "cannot be merged yet", "breaks a check of the mission", "base.txt is wrong")
	if told := r.returns(m.ID, ""); len(told) == 0 || !strings.HasPrefix(told[0], "guard ") {
		t.Errorf("its return is told as %q", told)
	}
	equal(t, "verified", m.Verified, 2)
	equal(t, "tasks", len(r.tasks(m.ID)), 1)
}

// A check that is green without the work proves nothing: the mission ends only behind a review, which is given the goal,
// the diff and what the check is worth.
func TestUnprovenNeedsReview(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(plans("- [ ] T1 One", "  - verify: `true`", "- [ ] T2 Two", "  - verify: `exists b.txt`", "- [ ] T3 Look @reviewer", "  - after: T1"))
			case 2:
				return do(work("T1", makeA), work("T2", "make b.txt"))
			case 3, 5, 7:
				return say("I wait")
			case 4, 8:
				return complete()
			case 6:
				return do(handTo("reviewer", "T3", "look at it"))
			}
			return complete()
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
		"reviewer": steps(say("PASS: it is what was asked for")),
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	has(t, r.results(m.ID, "mission_complete")[0], "item T3 (Look) is open", "item T1 (One): unproven", `delegate_task {"agent":"reviewer","item":"T3",`)
	equal(t, "notices that name what mends it", r.told(m.Session, `That proves too little. Have it reviewed: delegate_task {"agent":"reviewer","item":"T3",`), 1)
	if strings.Contains(r.results(m.ID, "mission_complete")[0], "item T2 (Two):") {
		t.Error("a proven item was asked for")
	}
	asked := r.requests("reviewer")[0].First()
	has(t, asked, "# The goal of the mission", "build it", "# What was changed", "item T1 (git diff", "added a.txt", "+a", "# Checks that the host ran", "T1: `true`: exit code 0, unproven")
	has(t, asked, "Your review covers T1; the diff below is theirs. See the rest with: git diff ")
	if strings.Contains(asked, "made it") || strings.Contains(asked, "b.txt\n+++") {
		t.Errorf("the reviewer is told too much:\n%s", asked)
	}
	equal(t, "verified", m.Verified, 3)
	equal(t, "unproven", strings.Join(m.Unproven, " "), "T1")
	by := r.task(m.ID, "T3").ID
	equal(t, "reviewed", fmt.Sprint(m.Reviewed), "map[T1:0/2 T3:0/2]")
	ends := r.events(m.ID, centurion.EventMissionCompleted)
	has(t, string(ends[len(ends)-1].Data), `"unproven":["T1"]`, `"reviewed":{"T1":{"task":"`+by+`","item":"T3","address":"0/2"},"T3":{"task":"`+by+`","item":"T3","address":"0/2"}}`)
}

// What is unproven and planned to be reviewed is not offered for a review of its own; who may exchange its check is said.
func TestUnprovenIsReviewedLater(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `true`", "- [ ] T2 Two", "  - verify: `exists a.txt`", "- [ ] T3 Look @reviewer", "  - after: T1, T2")),
			do(work("T1", "make b.txt")), say("I wait"), do(work("T2", makeA)), say("I wait"), do(handTo("reviewer", "T3", "look at it")), say("I wait"), complete()),
		"worker": func(q scripted.Request) scripted.Answer {
			name := q.First()[strings.Index(q.First(), "make ")+5:][:1]
			return steps(do(writes(name+".txt", name+"\n")), say("made it"))(q)
		},
		"reviewer": steps(say("PASS")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	has(t, r.results(m.ID, "update_todo")[0], "T1's check `true` can only pass and proves nothing.")
	equal(t, "notices", r.told(m.Session, "That proves too little, but T3 reviews it after T2; or have it fixed"), 1)
	equal(t, "who may exchange the check", r.told(m.Session, "send the plan with another command for it (update_todo): it runs at once"), 1)
	equal(t, "offers of another review", r.told(m.Session, "Have it reviewed"), 0)
}

// A task without changes merges nothing; what an agent that is not to write has changed stays on its branch.
func TestWhatIsNotMerged(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return steps(do(barePlan("- [ ] T1 One\n  - verify: `exists go.txt`")), do(work("T1", "look around")), say("I wait"), do(handTo("reviewer", "", "look at it")), say("I wait"), complete())(q)
		},
		"reviewer": steps(do(sh("put sneaky.txt x")), say("PASS")),
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "merges", r.count(m.ID, centurion.EventMergeDone), 0)
	equal(t, "sneaky.txt", r.branchHas(m.ID, "sneaky.txt"), "")
	has(t, r.tasks(m.ID)[1].Result, "PASS", "was not merged", "sneaky.txt")
	equal(t, "commits", r.git("rev-list", "--count", "main.."+isolation.BranchOf(m.ID)), "0")
}

// What is unproven wakes who delegated it at once, and goes to a worker again when it is handed out: it is open by that.
func TestUnprovenIsMended(t *testing.T) {
	t.Parallel()
	told := 0
	var r *rig
	r = inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch last := q.Last(); {
			case q.Step() == 1:
				return do(plans("- [ ] T1 One", "  - verify: `lacks a.txt wrong`", "- [ ] T2 Two", "  - verify: `exists b.txt`"))
			case q.Step() == 2:
				return do(work("T1", makeA), work("T2", "make b.txt"))
			case strings.Contains(last, "That proves too little"):
				if told++; told == 1 {
					return do(work("T1", "make c.txt"))
				}
				return do(handTo("reviewer", "T1", "look at it"))
			case strings.Contains(last, "call mission_complete"):
				return complete()
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			name := q.First()[strings.Index(q.First(), "make ")+5:][:1]
			if q.Step() > 1 {
				return say("made it")
			}
			a := do(writes(name+".txt", name+"\n"))
			if name == "b" { // the other one is handed out again first
				r.when(func(all []centurion.Event) bool { return count(all, centurion.EventTaskQueued) > 2 })
			}
			return a
		},
		"reviewer": steps(say("PASS")),
	})
	m := r.mission(centurion.MissionOptions{})
	if m.Status != centurion.MissionCompleted {
		r.dump(m.ID)
	}
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "verified", m.Verified, 2)
	tasks := r.tasks(m.ID)
	equal(t, "tasks", len(tasks), 4)
	equal(t, "reviews", tasks[3].Reviews, true)
	if !tasks[2].Created.Before(tasks[1].Ended.Time) {
		t.Error("nobody was woken before the other task had ended")
	}
}

// Whoever comes after somebody else in the same file is told what was done there, and a session that goes on only what is new.
func TestSameFilesAreHandedOver(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"x.txt": "\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(plans("- [ ] T1 One", "  - files: *.txt", "  - verify: `holds x.txt one`", "- [ ] T2 Two", "  - files: x.txt", "  - verify: `holds x.txt two`", "- [ ] T3 Three"))
			case 2:
				return do(work("T1", "write one"))
			case 4:
				return do(work("T2", "write two"))
			case 6:
				id := nameIn(q.Last())
				return do(call("delegate_task", args{"agent": "worker", "description": "d", "prompt": "look once more", "resume": id}))
			case 8:
				return do(mark("T3", "done"))
			}
			return say("I wait")
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.First(), "write one") && q.Step() == 1:
				return do(sh("put x.txt one"))
			case q.Step() == 1:
				return do(sh("put x.txt one two"))
			}
			return say("it is written")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	two := r.task(m.ID, "T2")
	said := r.results(m.ID, "update_todo")[0]
	has(t, said, "T1 and T2 share x.txt: they run one after the other.")
	seen := false
	for _, q := range r.requests("worker") {
		if q.Session == two.Session && strings.Contains(q.Last(), "look once more") {
			seen = true
			has(t, q.First(), "# Who has changed your files before you", "- T1 do T1 changed x.txt: it is written")
			has(t, q.Last(), "# Your task continues", "Your files stand at ", "Read files again")
			for _, old := range []string{"# Item", "changed x.txt", "# The goal"} {
				if strings.Contains(q.Last(), old) {
					t.Errorf("%q is told twice:\n%s", old, q.Last())
				}
			}
		}
	}
	if !seen {
		r.dump(m.ID)
		t.Error("no session went on")
	}
}
