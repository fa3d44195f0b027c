package orchestrator

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/state"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/verify"
	"centurion/worktree"
)

// nobody is a mission in which nobody does anything, so that a test can.
func nobody() map[string]script {
	return map[string]script{"commander": func(scripted.Request) scripted.Answer { return say("done") }}
}

// Work that is on the branch already, because a host has died right after it had merged it, is not merged again: its check is looked at
// on the branch as it is, and a check that is red there sends it back.
func TestWorkThatIsThereAlready(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, nobody())
	m := r.queued(t, centurion.MissionOptions{})
	work := r.work(m, map[string]string{"a.txt": "a\n"})
	land := func(commit worktree.Commit, verify ...string) *merge.Work {
		t.Helper()
		l := &merge.Work{Agent: "worker", Item: "T1", Verify: verify, Commit: commit}
		if err := m.queue.Land(r.ctx, l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	land(r.work(m, map[string]string{"b.txt": "b\n"})) // so that the branch does not stand where the work began
	first := land(work, "exists a.txt")
	if first.Back != nil || first.Landed == nil {
		t.Fatalf("came back: %+v", first.Back)
	}
	tip := r.git("rev-parse", m.iso.Branch())
	equal(t, "on top of the other", first.Landed.Commit, tip)
	again := land(work, "exists a.txt", "exists b.txt")
	if again.Back != nil || again.Landed != nil || again.There != tip {
		t.Errorf("the second time: back %+v, landed %+v, there %q", again.Back, again.Landed, again.There)
	}
	all, err := r.store.Receipts(r.ctx, m.st.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Command == "exists b.txt" && (x.Commit != "" || !x.Passed) {
			t.Errorf("the check of work that is there names the commit %q: %+v", x.Commit, x)
		}
	}
	red := land(work, "exists c.txt")
	if red.Back == nil || red.There != "" || red.Landed != nil {
		t.Errorf("with a red check: back %+v, there %q, landed %+v", red.Back, red.There, red.Landed)
	}
	equal(t, "the branch", r.git("rev-parse", m.iso.Branch()), tip)
	equal(t, "merges told", r.count(m.st.ID, centurion.EventMergeDone), 2)
}

// What a host before this one has found out counts on, for the same command on the same files and as a check of the mission: neither
// another tree nor what an item's proof says takes its place.
func TestChecksOfAHostBefore(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, nobody())
	m := r.queued(t, centurion.MissionOptions{})
	tip := r.git("rev-parse", m.iso.Branch())
	tree, err := m.iso.Ground.Repo.TreeOf(r.ctx, tip)
	if err != nil {
		t.Fatal(err)
	}
	own := func(command, commit string) centurion.Receipt {
		t.Helper()
		if err := m.queue.Close(r.ctx); err != nil {
			t.Fatal(err)
		}
		m.queue = merge.NewQueue(merge.NewProver(m.st, m.iso, m.plan, m.approvals, &verify.Checker{Runner: r.cfg.Runner}, r.dir, m.sessions.Alone, 1), &m.claims.Registry, m.frozen, r.cfg.Returns) // as of a new host
		got, err := m.queue.OwnCheck(r.ctx, command, commit, true)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := own("exists base.txt", tip)
	runs := r.count(m.st.ID, centurion.EventVerifyStarted)
	if again := own("exists base.txt", tip); again.ID != first.ID || r.count(m.st.ID, centurion.EventVerifyStarted) != runs {
		t.Errorf("it was run again: %+v", again)
	}
	if other := own("lacks base.txt broken", tip); other.ID == first.ID || other.Command != "lacks base.txt broken" {
		t.Errorf("another command: %+v", other)
	}
	without := r.git("commit-tree", "-p", tip, "-m", "empty", r.git("mktree"))
	if gone := own("exists base.txt", without); gone.Passed || gone.ID == first.ID {
		t.Errorf("on other files: %+v", gone)
	}
	// An item's receipt says green, and a red one of the mission is there as well: it is the mission's that counts.
	put := func(x centurion.Receipt) string {
		t.Helper()
		x.Mission, x.Command, x.Tree, x.ID = m.st.ID, "exists x.txt", tree, centurion.NewID(centurion.PrefixReceipt)
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutReceipt(&x) }); err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	put(centurion.Receipt{Item: "T1", Passed: true})
	if got := own("exists x.txt", tip); got.Passed || got.Item != "" {
		t.Errorf("an item's receipt took its place: %+v", got)
	}
	newest := put(centurion.Receipt{Passed: true})
	if got := own("exists x.txt", tip); got.ID != newest {
		t.Errorf("not the newest: %+v", got)
	}
	// Within one host a check of the same files runs once.
	runs = r.count(m.st.ID, centurion.EventVerifyStarted)
	for range 2 {
		if _, err := m.queue.OwnCheck(r.ctx, "lacks base.txt other", tip, true); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "runs of one check", r.count(m.st.ID, centurion.EventVerifyStarted)-runs, 1)
}

// A command that several items and the mission name is run once on the finished work, and counts once.
func TestSameCommandCountsOnce(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": steps(do(plans("- verify: `exists base.txt`", "- [ ] T1 One", "  - verify: ` exists a.txt`", "- [ ] T2 Two", "  - verify: `exists a.txt`", "  - after: T1")),
			do(work("T1", makeA)), say("I wait"), do(mark("T2", "done")), say("I wait"), complete()),
		"worker": steps(do(writes("a.txt", "a\n"))),
	})
	m := r.mission(centurion.MissionOptions{Verify: []string{"exists base.txt", "exists base.txt "}})
	r.is(m, centurion.MissionCompleted, "")
	equal(t, "verified", m.Verified, 2)
	all, err := r.store.Receipts(r.ctx, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	var final []string
	for _, x := range all {
		if x.Final {
			final = append(final, x.Command)
		}
	}
	slices.Sort(final)
	if want := []string{"exists a.txt", "exists base.txt"}; !slices.Equal(final, want) {
		t.Errorf("final checks %q, want %q", final, want)
	}
}

// The finished work is checked as it is: what was green on other files, or as an item's check, does not count for it, and what was red once is
// asked again. What was green at its end on the same files is not.
func TestFinalCheckIsOfTheseFiles(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, nobody())
	m := r.queued(t, centurion.MissionOptions{})
	tree, err := m.iso.Ground.Repo.TreeOf(r.ctx, r.git("rev-parse", m.iso.Branch()))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		before  centurion.Receipt
		command string
		passed  bool
		again   bool
	}{
		"green on other files":    {centurion.Receipt{Final: true, Passed: true, Tree: r.git("mktree")}, "exists a.txt", false, true},
		"green for an item":       {centurion.Receipt{Item: "T1", Passed: true, Tree: tree}, "exists b.txt", false, true},
		"green by another":        {centurion.Receipt{Final: true, Passed: true, Tree: tree, Command: "exists base.txt"}, "exists c.txt", false, true},
		"red before":              {centurion.Receipt{Final: true, Tree: tree}, "lacks base.txt broken", true, true},
		"green on the same files": {centurion.Receipt{Final: true, Passed: true, Tree: tree}, "exists d.txt", true, false},
	} {
		x := test.before
		x.ID, x.Mission, x.Command = centurion.NewID(centurion.PrefixReceipt), m.st.ID, cmp.Or(x.Command, test.command)
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutReceipt(&x) }); err != nil {
			t.Fatal(err)
		}
		got, err := m.queue.Check(r.ctx, merge.Check{Command: test.command, Agent: "commander", Final: true})
		if err != nil || got.Passed != test.passed || (got.ID != x.ID) != test.again || !got.Final {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What an item's earlier work has proven lets its later work pass with a check that stays green, but not work that weakens checks; and what the plan
// said when work on an item began is what counts: a command that came into its place proves nothing.
func TestProofOfLaterWork(t *testing.T) {
	t.Parallel()
	const test = "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tif A() != 1 {\n\t\tt.Error(A())\n\t}\n}\n"
	r := inRepo(t, map[string]string{"a_test.go": test}, nobody())
	m := r.queued(t, centurion.MissionOptions{})
	tip := r.git("rev-parse", m.iso.Branch())
	earlier := centurion.Receipt{ID: centurion.NewID(centurion.PrefixReceipt), Mission: m.st.ID, Item: "T1", Passed: true, Proof: centurion.ProofProven}
	const green, red = "lacks a_test.go wrong", "exists b.go"
	earlier.Command = green
	if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutReceipt(&earlier) }); err != nil {
		t.Fatal(err)
	}
	weaker := strings.Replace(test, "t.Error(A())", "t.Log(A())", 1)
	for name, c := range map[string]struct {
		item, command, given string
		files                map[string]string
		want                 centurion.Proof
		why                  string
	}{
		"proven before":             {"T1", green, green, map[string]string{"b.go": "package a\n"}, centurion.ProofRegression, "earlier work"},
		"another item":              {"T2", green, green, map[string]string{"c.go": "package a\n"}, centurion.ProofUnproven, ""},
		"with a check weakened":     {"T1", green, green, map[string]string{"d.go": "package a\n", "a_test.go": weaker}, centurion.ProofUnproven, ""},
		"the command of before":     {"T3", red, red, map[string]string{"b.go": "package a\n"}, centurion.ProofProven, ""},
		"a command in its place":    {"T4", red, "exists c.go", map[string]string{"b.go": "package a\n\n"}, centurion.ProofUnproven, "it was `exists c.go`"},
		"an agent without any task": {"T5", red, "", map[string]string{"b.go": "package a\n\n\n"}, centurion.ProofProven, ""},
	} {
		l := &merge.Work{Agent: "worker", Item: c.item, Verify: []string{c.command}, Given: []string{c.given}}
		if c.given != "" {
			task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.st.ID, Status: centurion.TaskRunning}
			if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&task) }); err != nil {
				t.Fatal(err)
			}
			l.Task = &state.Run{ID: task.ID}
		}
		got, err := m.queue.ProveWork(r.ctx, l, c.command, tip, r.work(m, c.files).ID)
		if err != nil || got.Proof != c.want || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %q because %q, weakened %q, %v; want %q", name, got.Proof, got.Why, got.Weakened, err, c.want)
		}
	}
}

// A task whose work a host had merged before it was killed is proven once more, and nothing is new then. What is said of it is what its work was
// worth: that it has weakened checks is not forgotten.
func TestProofOfMergedWork(t *testing.T) {
	t.Parallel()
	const other = "package a\n\nimport \"testing\"\n\nfunc TestOther(t *testing.T) {}\n"
	for name, c := range map[string]struct {
		work map[string]string
		want centurion.Proof
		why  string
	}{
		"honest": {map[string]string{"b.go": "package a\n"}, centurion.ProofProven, ""},
		"a liar": {map[string]string{"b.go": "package a\n", "other_test.go": "package a\n"}, centurion.ProofUnproven, "checks were weakened"},
	} {
		r := inRepo(t, map[string]string{"a.go": "package a\n", "other_test.go": other}, nobody())
		m := r.queued(t, centurion.MissionOptions{})
		before := r.git("rev-parse", m.iso.Branch())
		work := r.work(m, c.work)
		done := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.st.ID, Item: "T1", Status: centurion.TaskMerging,
			Landed: []centurion.Landed{{Commit: work.ID, Before: before}}}
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&done) }); err != nil {
			t.Fatal(err)
		}
		later := r.git("commit-tree", "-p", work.ID, "-m", "another", r.git("rev-parse", work.ID+"^{tree}"))
		l := &merge.Work{Agent: "worker", Item: "T1", Verify: []string{"exists b.go"}}
		got, err := m.queue.ProveWork(r.ctx, l, "exists b.go", later, later)
		if err != nil || got.Proof != c.want || !strings.Contains(got.Why, c.why) || (len(got.Weakened) > 0) != (c.why != "") {
			t.Errorf("%s: %q because %q, weakened %q, %v; want %q", name, got.Proof, got.Why, got.Weakened, err, c.want)
		}
	}
}
