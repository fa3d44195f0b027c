package review

import (
	"testing"
	"time"

	"centurion"
	"centurion/workspace/todo"
)

// What a mission has as evidence: the weakest of its items; without items, what the strongest check of the first source says that names one.
func TestMissionGrade(t *testing.T) {
	const n, c, r, p = centurion.EvidenceNone, centurion.EvidenceChecked, centurion.EvidenceReviewed, centurion.EvidenceProven
	type all = []centurion.Evidence
	for _, tt := range []struct {
		name     string
		items    all
		checks   []all // of the goal, of the Commander, of the configuration
		reviewed bool
		want     centurion.Evidence
	}{
		{"nothing", nil, nil, false, n},
		{"a review of all", nil, nil, true, r},
		{"all items proven", all{p, p}, nil, false, p},
		{"one of them by a review", all{p, r}, nil, false, r},
		{"one of them only checked", all{p, c, r}, nil, false, c},
		{"one of them by nothing", all{p, n}, []all{{p}}, true, n},
		{"the goal's check", nil, []all{{p}, nil, nil}, false, p},
		{"the better of two of the goal", nil, []all{{c, p}, nil, nil}, false, p},
		{"the goal's before the Commander's own", nil, []all{{c}, {p}, {p}}, false, c},
		{"the Commander's before the project's", nil, []all{nil, {n}, {c}}, false, n},
		{"the project's", nil, []all{nil, nil, {c}}, false, c},
		{"an empty check and a review", nil, []all{{n}, nil, nil}, true, r},
		{"a proof and a review", nil, []all{{p}, nil, nil}, true, p},
	} {
		if got := missionGrade(tt.items, tt.checks, tt.reviewed); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// What a receipt shows: nothing where its command can only pass, where no test ran, where checks were weakened, or where it is flaky.
func TestGrade(t *testing.T) {
	green := func(r centurion.Receipt) centurion.Receipt { r.Passed = true; return r }
	for name, tt := range map[string]struct {
		r    centurion.Receipt
		want centurion.Evidence
	}{
		"red":          {centurion.Receipt{Command: "make test", Proof: centurion.ProofProven}, centurion.EvidenceNone},
		"green":        {green(centurion.Receipt{Command: "make test"}), centurion.EvidenceChecked},
		"proven":       {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofProven}), centurion.EvidenceProven},
		"regression":   {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofRegression}), centurion.EvidenceChecked},
		"unproven":     {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofUnproven}), centurion.EvidenceChecked},
		"flaky":        {green(centurion.Receipt{Command: "make test", Proof: centurion.ProofFlaky}), centurion.EvidenceNone},
		"true":         {green(centurion.Receipt{Command: "true"}), centurion.EvidenceNone},
		"or true":      {green(centurion.Receipt{Command: "make test || true"}), centurion.EvidenceNone},
		"no test":      {green(centurion.Receipt{Command: "go test -run X", Output: "testing: warning: no tests to run\nok  \tx\t0.1s [no tests to run]\n"}), centurion.EvidenceNone},
		"no test, run": {green(centurion.Receipt{Command: "go test", Runs: []centurion.CheckRun{{Kind: centurion.RunGreen, Passed: true, Empty: "no tests"}}}), centurion.EvidenceNone},
		"weakened":     {green(centurion.Receipt{Command: "make test", Weakened: []string{"x"}}), centurion.EvidenceNone},
	} {
		if got := grade(tt.r); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// A review of everything counts if it began after all work had ended, and not if it only ended after that.
func TestWholeReviewed(t *testing.T) {
	t.Parallel()
	now := centurion.Now()
	at := func(s int) centurion.Time { return centurion.Time{Time: now.Add(time.Duration(s) * time.Second)} }
	work := centurion.Task{ID: "tsk_1", Agent: "worker", Status: centurion.TaskCompleted, Created: at(0), Started: at(0), Ended: at(10), Files: []string{"a"}, Landed: []centurion.Landed{{Time: at(10)}}}
	earlier := centurion.Task{ID: "tsk_0", Agent: "worker", Status: centurion.TaskCompleted, Ended: at(4), Files: []string{"b"}}
	review := centurion.Task{ID: "tsk_2", Agent: "reviewer", Status: centurion.TaskCompleted, Result: "PASS", Created: at(5), Ended: at(20)}
	for _, test := range []struct {
		began int
		item  string
		said  string
		want  bool
	}{{5, "", "PASS", false}, {11, "", "PASS", true}, {11, "T1", "PASS", false}, {11, "", "FAIL", false}} {
		review.Started, review.Item, review.Result = at(test.began), test.item, test.said
		if got := (View{Tasks: []centurion.Task{work, earlier, review}}).wholeReviewed(); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// A plan is worth as much as its weakest item, and one with nothing but reviews as much as these.
func TestEvidenceOfAPlan(t *testing.T) {
	t.Parallel()
	at := func(s int64) centurion.Time { return centurion.Time{Time: time.Unix(s, 0)} }
	said := func(result string) centurion.Task {
		return centurion.Task{ID: "r", Item: "T9", Agent: "reviewer", Status: centurion.TaskCompleted, Started: at(3), Ended: at(4), Result: result}
	}
	green := centurion.Receipt{Command: "make test", Passed: true, Final: true, Proof: centurion.ProofProven}
	for name, test := range map[string]struct {
		plan string
		task centurion.Task
		want centurion.Evidence
	}{
		"no plan":                   {"", centurion.Task{}, centurion.EvidenceProven},
		"only a review that passed": {"- [x] T9 Look @reviewer\n", said("PASS"), centurion.EvidenceReviewed},
		"only one without verdict":  {"- [x] T9 Look @reviewer\n", said("fine"), centurion.EvidenceNone},
		"an item and its review":    {"- [x] T1 One\n- [x] T9 Look @reviewer\n", said("PASS"), centurion.EvidenceReviewed},
		"a review of another item":  {"- [x] T1 One\n- [x] T2 Two\n- [x] T9 Look @reviewer\n  - after: T2\n", said("PASS"), centurion.EvidenceNone},
		"an item without a check":   {"- [x] T1 One\n", centurion.Task{}, centurion.EvidenceNone},
		"an item that is open":      {"- [ ] T1 One\n", centurion.Task{}, centurion.EvidenceProven},
	} {
		v := View{Mission: centurion.Mission{Options: centurion.MissionOptions{Verify: []string{"make test"}}}, Receipts: []centurion.Receipt{green}, Tasks: []centurion.Task{test.task}}
		if test.plan != "" {
			doc, err := todo.Parse([]byte("# P\n" + test.plan))
			if err != nil {
				t.Fatal(err)
			}
			v.Plan.Doc = doc
		}
		if got := v.Evidence(t.TempDir()); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := (View{Unread: centurion.ErrShutdown}).Evidence(t.TempDir()); got != centurion.EvidenceNone {
		t.Errorf("a plan that cannot be read: %s", got)
	}
}
