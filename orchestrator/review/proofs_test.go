package review

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace/todo"
)

func viewOf(t *testing.T, text string, tasks []centurion.Task, receipts ...centurion.Receipt) View {
	t.Helper()
	doc, err := todo.Parse([]byte("# P\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return View{Plan: plan.View{Doc: doc}, Tasks: tasks, Receipts: receipts, MayReview: true, Mission: centurion.Mission{Isolation: centurion.IsolationWorktree}}
}

// looked is a review that began at a time.
func looked(item, said string, began int, of bool) centurion.Task {
	return centurion.Task{ID: "tsk_r", Agent: "reviewer", Item: item, Status: centurion.TaskCompleted, Result: said, Started: at(began), Ended: at(began + 1), Reviews: of}
}

func green(item, command string, p centurion.Proof) centurion.Receipt {
	return centurion.Receipt{Item: item, Command: command, Passed: true, Proof: p}
}

// proofOf is what T1 rests on, "" if it is not done: why; proof; reviewed, blank, left; evidence; verified.
func proofOf(t *testing.T, v View, name string) (got string) {
	t.Helper()
	for _, w := range v.Proofs() {
		if w.Item.ID != "T1" {
			continue
		}
		how := ""
		switch {
		case w.Reviewed:
			how = "reviewed " + w.By.ID
		case w.Blank:
			how = "blank"
		case w.Left != "":
			how = "left " + w.Left
		}
		got = fmt.Sprintf("%s;%s;%s;%s;%v", w.Why, w.Proof, how, centurion.Strongest([]centurion.Evidence{w.Evidence, centurion.EvidenceNone}), w.Verified())
		if v.InDoubt("T1") == w.Verified() || v.InDoubt("T9") {
			t.Errorf("%s: in doubt %v, another %v", name, v.InDoubt("T1"), v.InDoubt("T9"))
		}
	}
	return got
}

const (
	one, checked, review       = "- [x] T1 One\n", "- [x] T1 One\n  - verify: `a`\n", "- [x] T1 Look @reviewer\n"
	noCheck, notRun, notPassed = "it has no verify command", "unproven: `a` was never run against its work", "it is a review that has not passed since the files that it judges were changed"
)

// What each done item rests on: why its checks do not do, what reviews say, and what that is worth. A review of nothing that was changed is worth
// as much as its reason; a review that is itself an item needs none.
func TestProofs(t *testing.T) {
	t.Parallel()
	changed, idle := work("T1", centurion.TaskCompleted, 10, 9), work("T1", centurion.TaskCompleted, 10)
	failed, unchanged := work("T1", centurion.TaskFailed, 10), looked("T1", "PASS", 11, true)
	unchanged.Unchanged = true
	const reason = "PASS: the file was as it had to be already"
	for name, c := range map[string]struct {
		text     string
		tasks    []centurion.Task
		receipts []centurion.Receipt
		shared   bool
		want     string // see proofOf
	}{
		"open":                        {"- [ ] T1 One\n", nil, nil, false, ""},
		"a group":                     {"- [x] T1 One\n  - [x] T2 Two\n", nil, nil, false, ""},
		"no check":                    {one, []centurion.Task{changed}, nil, false, noCheck + ";;;none;false"},
		"a check that was not run":    {checked, []centurion.Task{changed}, nil, false, notRun + ";unproven;;none;false"},
		"a proof":                     {checked, []centurion.Task{changed}, []centurion.Receipt{green("T1", "a", centurion.ProofProven)}, false, ";;;proven;true"},
		"a proof, and a review":       {checked, []centurion.Task{changed, looked("T1", "PASS", 11, true)}, []centurion.Receipt{green("T1", "a", centurion.ProofProven)}, false, ";;;proven;true"},
		"a proof, and once more":      {checked, []centurion.Task{changed}, []centurion.Receipt{green("T1", "a", centurion.ProofProven), green("T1", "a", centurion.ProofRegression)}, false, ";;;proven;true"},
		"only a regression":           {checked, []centurion.Task{changed}, []centurion.Receipt{green("T2", "a", centurion.ProofProven), green("T1", "b", centurion.ProofProven), green("T1", "a", centurion.ProofRegression)}, false, ";;;checked;true"},
		"unproven since":              {checked, []centurion.Task{changed}, []centurion.Receipt{green("T1", "a", centurion.ProofProven), green("T1", "a", centurion.ProofUnproven)}, false, "unproven: `a`: nothing shows that the check can fail;unproven;;checked;false"},
		"one of two is proven":        {strings.Replace(checked, "`a`", "`a`\n  - verify: `b`", 1), []centurion.Task{changed}, []centurion.Receipt{green("T1", "a", centurion.ProofProven), green("T1", "b", centurion.ProofRegression)}, false, ";;;checked;true"},
		"reviewed":                    {one, []centurion.Task{changed, looked("T1", "PASS", 11, true)}, nil, false, noCheck + ";;reviewed tsk_r;reviewed;true"},
		"its check was not run":       {checked, []centurion.Task{changed, looked("T1", "PASS", 11, true)}, nil, false, notRun + ";unproven;reviewed tsk_r;reviewed;true"},
		"nothing changed":             {one, []centurion.Task{idle, looked("T1", "PASS", 11, true)}, nil, false, noCheck + ";;blank;none;false"},
		"for seven words":             {one, []centurion.Task{idle, looked("T1", "PASS 2 3 4 5 6 7", 11, true)}, nil, false, noCheck + ";;blank;none;false"},
		"for eight words":             {one, []centurion.Task{idle, looked("T1", "PASS 2 3 4 5 6 7 8", 11, true)}, nil, false, noCheck + ";;reviewed tsk_r;reviewed;true"},
		"with a check":                {checked, []centurion.Task{idle, looked("T1", reason, 11, true)}, []centurion.Receipt{green("T1", "a", centurion.ProofUnproven)}, false, "unproven: `a`: nothing shows that the check can fail;unproven;blank;checked;true"},
		"in one directory":            {one, []centurion.Task{idle, looked("T1", "PASS", 11, true)}, nil, true, noCheck + ";;reviewed tsk_r;reviewed;true"},
		"the agent itself":            {one, []centurion.Task{looked("", "PASS", 11, false)}, nil, false, noCheck + ";;reviewed tsk_r;reviewed;true"},
		"another item's work is idle": {"- [x] T1 One\n- [x] T2 Two\n", []centurion.Task{changed, work("T2", centurion.TaskCompleted, 10), looked("T1", "PASS", 11, true)}, nil, false, noCheck + ";;reviewed tsk_r;reviewed;true"},
		"proven without a change":     {checked, []centurion.Task{idle, looked("T1", "PASS", 11, true)}, []centurion.Receipt{green("T1", "a", centurion.ProofProven)}, false, ";;;proven;true"},
		"proven, and nothing seen":    {checked, []centurion.Task{changed, unchanged}, []centurion.Receipt{green("T1", "a", centurion.ProofProven)}, false, ";;;proven;true"},
		"another item's work is not":  {"- [x] T1 One\n- [x] T2 Two\n", []centurion.Task{idle, work("T2", centurion.TaskCompleted, 10, 9), looked("T1", "PASS", 11, true)}, nil, false, noCheck + ";;blank;none;false"},
		"idle, and cancelled then":    {one, []centurion.Task{idle, work("T1", centurion.TaskCancelled, 10), looked("T1", "PASS", 11, true)}, nil, false, noCheck + ";;blank;none;false"},
		"only judged":                 {one, []centurion.Task{looked("T1", "FAIL", 11, true)}, nil, false, noCheck + ";;;none;false"},
		"by the reviewer at last":     {one, []centurion.Task{changed, looked("T1", "FAIL", 11, false)}, nil, false, noCheck + ";;;none;false"},
		"it looked at nothing":        {one, []centurion.Task{changed, unchanged}, nil, false, noCheck + ";;blank;none;false"},
		"it gave up":                  {one, []centurion.Task{failed}, nil, false, "its task T1 is failed;;left T1;none;false"},
		"it gave up, and is reviewed": {one, []centurion.Task{failed, looked("T1", "PASS", 11, true)}, nil, false, "its task T1 is failed;;left T1;none;false"},
		"a review":                    {review, []centurion.Task{looked("T1", "PASS", 11, false)}, nil, false, notPassed + ";;reviewed tsk_r;reviewed;true"},
		"one that was not begun":      {review, nil, nil, false, notPassed + ";;;none;false"},
		"one that found faults":       {review, []centurion.Task{looked("T1", "FAIL", 11, false)}, nil, false, notPassed + ";;;none;false"},
		"one by its agent only":       {one, []centurion.Task{looked("T1", "FAIL", 11, false)}, nil, false, notPassed + ";;;none;false"},
		"one by its agent at first":   {one, []centurion.Task{looked("T1", "FAIL", 5, false), changed}, nil, false, noCheck + ";;;none;false"},
		"one with a check":            {strings.Replace(checked, "One", "One @reviewer", 1), nil, []centurion.Receipt{green("T1", "a", centurion.ProofProven)}, false, ";;;proven;true"},
		"one that looked at nothing": {review, []centurion.Task{func() centurion.Task { x := looked("T1", "PASS", 11, false); x.Unchanged = true; return x }()}, nil, false,
			";;blank;none;true"},
	} {
		v := viewOf(t, c.text, c.tasks, c.receipts...)
		if c.shared {
			v.Mission.Isolation = centurion.IsolationShared
		}
		got := proofOf(t, v, name)
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
	}
}

// A review that has found faults would find them again until work was done since: by another task, or by the mission's own agent.
func TestNext(t *testing.T) {
	t.Parallel()
	const text = "- [x] T1 One\n- [ ] T2 Look @reviewer\n  - after: T1\n- [ ] T3 Three\n"
	rejects := looked("T2", "FAIL: a.go", 11, false)
	later := func(change func(*centurion.Task)) centurion.Task {
		x := work("T3", centurion.TaskFailed, 20)
		change(&x)
		return x
	}
	living := work("T3", centurion.TaskRunning, 20)
	living.Ended = centurion.Time{}
	for name, c := range map[string]struct {
		tasks []centurion.Task
		own   int
		want  string
	}{
		"nothing begun":            {nil, 0, "[T2 T3] []"},
		"faults":                   {[]centurion.Task{rejects}, 0, "[T3] [T2]"},
		"faults, and older work":   {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), rejects}, 0, "[T3] [T2]"},
		"work since":               {[]centurion.Task{rejects, later(func(*centurion.Task) {})}, 0, "[T2 T3] []"},
		"work as it ended":         {[]centurion.Task{rejects, later(func(x *centurion.Task) { x.Ended = at(12) })}, 0, "[T3] [T2]"},
		"it runs":                  {[]centurion.Task{rejects, living}, 0, "[] [T2]"},
		"merged, and at work":      {[]centurion.Task{rejects, work("T3", centurion.TaskRunning, 20, 19)}, 0, "[] [T2]"},
		"another review found too": {[]centurion.Task{rejects, later(func(x *centurion.Task) { x.Agent, x.Result, x.Status = "reviewer", "FAIL", centurion.TaskCompleted })}, 0, "[] [T2 T3]"},
		"the agent's own work":     {[]centurion.Task{rejects}, 13, "[T2 T3] []"},
		"the agent's older work":   {[]centurion.Task{rejects}, 12, "[T3] [T2]"},
		"of an item's work":        {[]centurion.Task{looked("T2", "FAIL: a.go", 11, true)}, 0, "[T2 T3] []"},
		"passed":                   {[]centurion.Task{looked("T2", "PASS", 11, false)}, 0, "[T2 T3] []"},
	} {
		v := viewOf(t, text, c.tasks)
		v.Own = at(c.own).Time
		start, failed := v.Next()
		if got := fmt.Sprint(start, failed); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A task's work is reviewed by a review that passed since, or is itself one.
func TestHasPassed(t *testing.T) {
	t.Parallel()
	done, pass, fail := work("T1", centurion.TaskCompleted, 10, 9), looked("T1", "PASS", 11, true), looked("T1", "FAIL", 11, true)
	none := done
	none.Item = ""
	v := viewOf(t, "- [x] T1 One\n", nil)
	for name, c := range map[string]struct {
		p     plan.View
		task  centurion.Task
		tasks []centurion.Task
		want  bool
	}{
		"not yet":           {v.Plan, done, []centurion.Task{done}, false},
		"passed":            {v.Plan, done, []centurion.Task{done, pass}, true},
		"found faults":      {v.Plan, done, []centurion.Task{done, fail}, false},
		"the review itself": {v.Plan, pass, []centurion.Task{pass}, true},
		"a review of it":    {v.Plan, fail, []centurion.Task{done, fail}, false},
		"no item":           {v.Plan, none, []centurion.Task{none, looked("", "PASS", 11, false)}, false},
		"no plan":           {plan.View{}, pass, []centurion.Task{pass}, false},
	} {
		if got := HasPassed(c.p, c.task, c.tasks); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Work got its state with its last merge, unless that only brought back what was reverted: a verdict counts after a redo as before the undo.
func TestWorkEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		landed []centurion.Landed
		want   int
	}{
		"no merge":              {nil, 50},
		"two":                   {[]centurion.Landed{{Time: at(1)}, {Time: at(2)}}, 2},
		"two, and back again":   {[]centurion.Landed{{Time: at(1)}, {Time: at(2)}, {Time: at(8), Reverts: true}, {Time: at(9), Restores: true}}, 2},
		"one":                   {[]centurion.Landed{{Time: at(1)}}, 1},
		"reverted":              {[]centurion.Landed{{Time: at(1)}, {Time: at(2), Reverts: true}}, 2},
		"and restored":          {[]centurion.Landed{{Time: at(1)}, {Time: at(2), Reverts: true}, {Time: at(3), Restores: true}}, 1},
		"twice":                 {[]centurion.Landed{{Time: at(1)}, {Time: at(2), Reverts: true}, {Time: at(3), Restores: true}, {Time: at(4), Reverts: true}, {Time: at(5), Restores: true}}, 1},
		"restored, then worked": {[]centurion.Landed{{Time: at(1)}, {Time: at(2), Reverts: true}, {Time: at(3), Restores: true}, {Time: at(4)}}, 4},
		"nothing before it":     {[]centurion.Landed{{Time: at(1), Reverts: true}, {Time: at(2), Restores: true}}, 2},
	} {
		if got := WorkEnded(centurion.Task{Landed: c.landed, Ended: at(50)}); !got.Equal(at(c.want).Time) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A mission is bare when nothing shows that it is done and it either has no plan or its person wants a proof.
func TestBare(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		items, require, shown, want bool
	}{
		"no plan": {false, false, false, true}, "no plan, but a check": {false, false, true, false}, "a plan": {true, false, false, false},
		"a plan, and proof is wanted": {true, true, false, true}, "a check, and proof is wanted": {true, true, true, false},
	} {
		v := View{Mission: centurion.Mission{HadItems: c.items, Check: "make", Options: centurion.MissionOptions{RequireProof: c.require}}}
		if c.shown {
			v.Receipts = []centurion.Receipt{{Command: "make", Final: true, Passed: true, Proof: centurion.ProofProven}}
		}
		if got := v.Bare(t.TempDir()); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Without a plan the strongest check of the finished work counts, of the first source that has one: the goal, the agent's own, the
// configuration's with the plan's. The newest run of each counts, and only one of the finished work.
func TestEvidenceOfChecks(t *testing.T) {
	t.Parallel()
	final := func(command string, passed bool, p centurion.Proof) centurion.Receipt {
		return centurion.Receipt{Command: command, Passed: passed, Proof: p, Final: true}
	}
	for name, c := range map[string]struct {
		check, text string
		receipts    []centurion.Receipt
		want        centurion.Evidence
	}{
		"its own":            {"mine", "", []centurion.Receipt{final("mine", true, ""), final("make", true, centurion.ProofProven)}, centurion.EvidenceChecked},
		"the configured":     {"mine", "", []centurion.Receipt{final(" make ", true, centurion.ProofProven)}, centurion.EvidenceProven},
		"another command's":  {"", "", []centurion.Receipt{final("other", true, centurion.ProofProven)}, centurion.EvidenceNone},
		"of an item's work":  {"", "", []centurion.Receipt{green("T1", "make", centurion.ProofProven)}, centurion.EvidenceNone},
		"the newest":         {"", "", []centurion.Receipt{final("make", true, centurion.ProofProven), final("make", false, "")}, centurion.EvidenceNone},
		"the plan's":         {"", "- verify: `whole`\n", []centurion.Receipt{final("whole", true, centurion.ProofProven)}, centurion.EvidenceProven},
		"the strongest":      {"", "- verify: `whole`\n", []centurion.Receipt{final("whole", true, centurion.ProofProven), final("make", true, "")}, centurion.EvidenceProven},
		"one of the goal's":  {"mine", "", []centurion.Receipt{final("sh test.sh", true, ""), final("mine", true, centurion.ProofProven)}, centurion.EvidenceChecked},
		"nothing of anybody": {"", "", nil, centurion.EvidenceNone},
	} {
		v := viewOf(t, c.text, nil, c.receipts...)
		v.Mission.Check, v.Mission.Options.Verify, v.Mission.Goal = c.check, []string{"make"}, "Build it, so that `sh test.sh` passes"
		if c.text == "" {
			v.Plan.Doc = nil
		}
		if got := v.Evidence(t.TempDir()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A command of the goal is a check if its program is there to be run, or is a file that the mission may still make.
func TestGoalChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run.sh": 0o700, "read.sh": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	windows := runtime.GOOS == "windows" // where a file's mode does not tell
	for command, want := range map[string]bool{
		"sh test.sh": true, "no-such-program-at-all test": false, "./run.sh": true, "./read.sh": windows, "./sub": false, "./missing.sh": true,
		filepath.Join(dir, "run.sh"): true, filepath.Join(dir, "read.sh"): windows,
	} {
		if got := GoalChecks("Make it so that `"+command+"` passes.", dir); len(got) > 0 != want || want && got[0] != command {
			t.Errorf("%s: %q, want %v", command, got, want)
		}
	}
}

// What is counted of a plan: the done items by what shows them, who has reviewed which, and the cancelled ones.
func TestCount(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t)
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutSession(&centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_1", Address: "0/2"}})
	})
	if err != nil {
		t.Fatal(err)
	}
	review := looked("T2", "PASS", 11, true)
	review.Session = "ses_2"
	v := viewOf(t, "- [x] T1 a\n  - verify: `a`\n- [x] T2 b\n- [x] T3 c\n  - verify: `c`\n- [x] T4 d\n  - verify: `d`\n- [-] T5 e\n- [-] T6 f\n  - [-] T7 g\n- [x] T8 h\n",
		[]centurion.Task{work("T2", centurion.TaskCompleted, 10, 9), review}, green("T1", "a", centurion.ProofProven), green("T3", "c", centurion.ProofFlaky))
	want := centurion.Tally{Verified: 2, Unverified: 3, Flaky: []string{"T3"}, Unproven: []string{"T4"}, CancelledItems: []string{"T5", "T7"},
		Reviewed: map[string]centurion.PassedBy{"T2": {Task: "tsk_r", Item: "T2", Address: "0/2"}}}
	if got := v.Count(t.Context(), st); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is judged is read whole: the tasks, the receipts and when the mission's own agent last put work on its branch.
func TestRead(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	m := centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning, Landed: []centurion.Landed{{Commit: "c", Time: at(7)}}}
	err := s.Update(t.Context(), func(tx *store.Tx) error {
		r := green("T1", "make", centurion.ProofProven)
		r.ID, r.Mission = "rcp_1", m.ID
		return errors.Join(tx.PutMission(&m), tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: m.ID, Item: "T1"}), tx.PutReceipt(&r))
	})
	if err != nil {
		t.Fatal(err)
	}
	v, err := Read(t.Context(), s, m.ID, plan.View{})
	if err != nil || v.Mission.ID != m.ID || len(v.Tasks) != 1 || len(v.Receipts) != 1 || !v.Own.Equal(at(7).Time) {
		t.Errorf("%+v, %v", v, err)
	}
}
