package review

import (
	"maps"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/workspace/todo"
)

// A review covers the items that its own comes after; one that comes after none covers all, and without a plan only its own item is
// known. What the person has merged is nobody's later work.
func TestReviewed(t *testing.T) {
	t.Parallel()
	at := func(s int) centurion.Time { return centurion.Time{Time: time.Unix(int64(s), 0)} }
	doc, err := todo.Parse([]byte("# P\n- [x] T1 a @worker\n- [x] T2 b @worker\n- [x] T3 c @reviewer\n  - after: T1\n- [x] T4 own @worker\n"))
	if err != nil {
		t.Fatal(err)
	}
	done := func(id, item, agent string, from, to int, result string) centurion.Task {
		return centurion.Task{ID: id, Item: item, Agent: agent, Status: centurion.TaskCompleted, Started: at(from), Ended: at(to), Result: result}
	}
	tasks := []centurion.Task{done("w1", "T1", "worker", 1, 2, ""), done("w2", "T2", "worker", 1, 3, ""), done("r3", "T3", "reviewer", 4, 5, "PASS"),
		done("bad", "", "reviewer", 6, 7, "FAIL")}
	all := done("all", "", "reviewer", 8, 9, "PASS")
	own := centurion.Mission{Landed: []centurion.Landed{{Time: at(1)}, {Time: at(7)}}, Merged: &centurion.Merged{Time: at(99)}}
	for _, c := range []struct {
		name  string
		doc   *todo.Doc
		tasks []centurion.Task
		want  map[string]string
	}{
		{"by the item after it", doc, tasks, map[string]string{"T1": "r3", "T3": "r3"}},
		{"by one of all", doc, append(tasks, all), map[string]string{"T1": "r3", "T2": "all", "T3": "r3", "T4": "all"}},
		{"worked on since", doc, append(tasks, done("w1b", "T1", "worker", 6, 7, "")), map[string]string{"T3": "r3"}},
		{"without the plan", nil, tasks, map[string]string{"T3": "r3"}},
	} {
		got := map[string]string{}
		for item, by := range Reviewed(c.doc, []string{"T1", "T2", "T3", "T4"}, c.tasks, own) {
			got[item] = by.ID
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A review that found faults is not offered again until something was done since: by a worker, or by the mission's own agent.
func TestReviewThatFoundFaults(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# P\n- [x] T1 a @worker\n- [ ] T2 b @reviewer\n  - after: T1\n"))
	if err != nil {
		t.Fatal(err)
	}
	task := func(item, agent string, ended int64, result string) centurion.Task {
		return centurion.Task{ID: item + agent, Item: item, Agent: agent, Status: centurion.TaskCompleted, Ended: centurion.MillisTime(ended), Result: result}
	}
	fail := []centurion.Task{task("T1", "worker", 1000, ""), task("T2", "reviewer", 5000, "FAIL: it is wrong")}
	for name, c := range map[string]struct {
		v      View
		failed bool
	}{
		"nothing since":      {View{Tasks: fail}, true},
		"own work before it": {View{Tasks: fail, Own: time.UnixMilli(4000)}, true},
		"own work since":     {View{Tasks: fail, Own: time.UnixMilli(6000)}, false},
		"a worker since":     {View{Tasks: append(fail[:1:1], task("T1", "mender", 6000, ""), fail[1])}, false},
	} {
		c.v.Plan = plan.View{Doc: doc}
		start, failed := c.v.Next()
		if (len(failed) == 1) != c.failed || (len(start) == 1) == c.failed {
			t.Errorf("%s: may start %q, found faults %q", name, start, failed)
		}
	}
}

// Where nothing was changed for a done item, that is said once.
func TestBlankReviewIsSaidOnce(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# P\n- [x] T1 a @worker\n  - verify: `true`\n- [x] T2 b @worker\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int) centurion.Time { return centurion.Time{Time: time.Unix(int64(s), 0)} }
	v := View{MayReview: true, Plan: plan.View{Doc: doc}, Mission: centurion.Mission{Isolation: centurion.IsolationWorktree},
		Receipts: []centurion.Receipt{{ID: "rcp_1", Item: "T1", Command: "true", Passed: true, Proof: centurion.ProofUnproven, Why: "nothing was changed"}},
		Tasks: []centurion.Task{{ID: "w1", Item: "T1", Agent: "worker", Status: centurion.TaskCompleted, Started: at(1), Ended: at(2)},
			{ID: "r1", Agent: "reviewer", Status: centurion.TaskCompleted, Started: at(3), Ended: at(4), Result: "PASS", Unchanged: true}}}
	missing := v.Unreviewed()
	if len(missing) == 0 || !strings.Contains(missing[0], "unproven: `true`: nothing was changed, so a review had nothing to look at") {
		t.Errorf("%q", missing)
	}
	for _, text := range missing {
		if strings.Count(text, "nothing was changed") > 1 {
			t.Error(text)
		}
	}
}

// The work on an item ends with the last end of its tasks, whichever of them that is; a review that was itself that work counts while it passes and is
// not undone. Reviews of the work and cancelled tasks that merged nothing are no work, and without tasks the mission's own agent has done it.
func TestWorkOn(t *testing.T) {
	t.Parallel()
	own := at(50).Time
	reviews := looked("T1", "PASS", 20, true)
	rejects, passes, undone := looked("T1", "FAIL: a.go", 20, false), looked("T1", "PASS", 30, false), looked("T1", "PASS", 40, false)
	undone.ID, undone.Undone = "tsk_u", at(45)
	for name, c := range map[string]struct {
		tasks  []centurion.Task
		last   int // 0 for the zero time
		itself string
	}{
		"no task":              {nil, 50, ""},
		"another item's":       {[]centurion.Task{work("T2", centurion.TaskCompleted, 10)}, 50, ""},
		"the later one first":  {[]centurion.Task{work("T1", centurion.TaskCompleted, 12), work("T1", centurion.TaskFailed, 10)}, 12, ""},
		"the later one last":   {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), work("T1", centurion.TaskCompleted, 12, 11)}, 11, ""},
		"cancelled":            {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), work("T1", centurion.TaskCancelled, 12)}, 10, ""},
		"cancelled, merged":    {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), work("T1", centurion.TaskCancelled, 13, 12)}, 12, ""},
		"reviewed":             {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), reviews}, 10, ""},
		"itself a review":      {[]centurion.Task{passes}, 0, "tsk_r"},
		"one that was undone":  {[]centurion.Task{undone}, 0, ""},
		"one that found fault": {[]centurion.Task{work("T1", centurion.TaskCompleted, 10), rejects}, 10, ""},
	} {
		last, itself := workOn("T1", c.tasks, own)
		got := ""
		if itself != nil {
			got = itself.ID
		}
		if c.last == 0 && !last.IsZero() || c.last != 0 && !last.Equal(at(c.last).Time) || got != c.itself {
			t.Errorf("%s: ended %s, %q", name, last, got)
		}
	}
}

// An item is shown by its weakest command. What a command has proven of earlier work counts while it passes, and not when it shows nothing any more.
func TestItemGrade(t *testing.T) {
	t.Parallel()
	proven, kept, unproven := green("T1", "a", centurion.ProofProven), green("T1", "a", centurion.ProofRegression), green("T1", "a", centurion.ProofUnproven)
	weakened, red, others := kept, kept, green("T2", "a", centurion.ProofProven)
	weakened.Weakened, red.Passed = []string{"x"}, false
	for name, c := range map[string]struct {
		receipts []centurion.Receipt
		want     centurion.Evidence
	}{
		"never run":           {nil, centurion.EvidenceNone},
		"proven":              {[]centurion.Receipt{proven}, centurion.EvidenceProven},
		"kept":                {[]centurion.Receipt{kept}, centurion.EvidenceChecked},
		"proven, then kept":   {[]centurion.Receipt{proven, kept}, centurion.EvidenceProven},
		"proven of another":   {[]centurion.Receipt{others, kept}, centurion.EvidenceChecked},
		"proven, then hollow": {[]centurion.Receipt{proven, unproven}, centurion.EvidenceChecked},
		"proven, then less":   {[]centurion.Receipt{proven, weakened}, centurion.EvidenceNone},
		"proven, then red":    {[]centurion.Receipt{proven, red}, centurion.EvidenceNone},
	} {
		if got := itemGrade("T1", []string{"a"}, c.receipts); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	if got := itemGrade("T1", []string{"a", "b"}, []centurion.Receipt{proven, green("T1", "b", centurion.ProofRegression)}); got != centurion.EvidenceChecked {
		t.Errorf("of two commands: %s", got)
	}
}
