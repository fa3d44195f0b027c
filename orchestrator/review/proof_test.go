package review

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/plan"
	"centurion/workspace/todo"
)

// What shows that an item is done: a solid receipt of every command, the newest of each; where there are no trees, that it has one.
func TestDoubt(t *testing.T) {
	t.Parallel()
	r := func(item, command string, passed bool, p centurion.Proof) centurion.Receipt {
		return centurion.Receipt{Item: item, Command: command, Passed: passed, Proof: p}
	}
	two := []string{"a", " b "}
	for name, c := range map[string]struct {
		verify   []string
		receipts []centurion.Receipt
		shared   bool
		why      string // "" for no doubt
		proof    centurion.Proof
	}{
		"no command":         {nil, nil, false, "it has no verify command", ""},
		"never run":          {two[:1], nil, false, "`a` was never run", centurion.ProofUnproven},
		"another item's":     {two[:1], []centurion.Receipt{r("T2", "a", true, centurion.ProofProven)}, false, "`a` was never run", centurion.ProofUnproven},
		"the end's":          {two[:1], []centurion.Receipt{{Item: "T1", Command: "a", Passed: true, Proof: centurion.ProofProven, Final: true}}, false, "`a` was never run", centurion.ProofUnproven},
		"proven":             {two, []centurion.Receipt{r("T1", "a", true, centurion.ProofProven), r("T1", "b", true, centurion.ProofRegression)}, false, "", ""},
		"one of two":         {two, []centurion.Receipt{r("T1", "a", true, centurion.ProofProven)}, false, "`b` was never run", centurion.ProofUnproven},
		"red last":           {two[:1], []centurion.Receipt{r("T1", "a", true, centurion.ProofProven), r("T1", "a", false, "")}, false, "`a` failed when it was run last", centurion.ProofUnproven},
		"proven last":        {two[:1], []centurion.Receipt{r("T1", "a", true, centurion.ProofUnproven), r("T1", "a", true, centurion.ProofProven)}, false, "", ""},
		"unproven last":      {two[:1], []centurion.Receipt{r("T1", "a", true, centurion.ProofProven), r("T1", "a", true, centurion.ProofUnproven)}, false, "nothing shows that the check can fail", centurion.ProofUnproven},
		"flaky":              {two[:1], []centurion.Receipt{r("T1", "a", true, centurion.ProofFlaky)}, false, "flaky: `a`", centurion.ProofFlaky},
		"green only":         {two[:1], []centurion.Receipt{r("T1", "a", true, "")}, false, "nothing shows", ""},
		"without trees":      {two, nil, true, "", ""},
		"none without trees": {nil, nil, true, "it has no verify command", ""},
	} {
		why, proof := Unproven(todo.Item{ID: "T1", Verify: c.verify}, c.receipts, !c.shared)
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) || proof != c.proof {
			t.Errorf("%s: %q, %q", name, why, proof)
		}
	}
}

func at(s int) centurion.Time { return centurion.Time{Time: time.Unix(int64(s), 0)} }

// work is a task of a worker that began five seconds before it ended.
func work(item string, status centurion.TaskStatus, ended int, landed ...int) centurion.Task {
	x := centurion.Task{ID: "tsk_" + item, Agent: "worker", Item: item, Status: status, Started: at(ended - 5), Ended: at(ended)}
	for _, l := range landed {
		x.Landed = append(x.Landed, centurion.Landed{Time: at(l)})
	}
	return x
}

// merged is work that has merged a file.
func merged(item string, ended int, file string) centurion.Task {
	x := work(item, centurion.TaskCompleted, ended, ended-1)
	x.Landed[0].Files = []centurion.FileChange{{Path: file}}
	return x
}

// A review counts for what it covers, if it has passed and began after the work had ended.
func TestWhichReviewCovers(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("- [x] T1 a\n- [x] T2 b\n- [x] T3 look @reviewer\n  - after: T1\n- [x] T4 other\n- [x] T5 look at all @reviewer\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := plan.View{Doc: doc}
	look := func(item, answer string, began int) centurion.Task {
		return centurion.Task{Agent: "reviewer", Item: item, Status: centurion.TaskCompleted, Result: answer, Started: at(began), Ended: at(began + 1)}
	}
	done := work("T1", centurion.TaskCompleted, 10, 9)
	undone, early := look("T3", "PASS", 11), look("T1", "PASS", 8)
	undone.Undone, early.Reviews = at(12), true
	failed := look("T3", "PASS", 11)
	failed.Status = centurion.TaskFailed
	for name, c := range map[string]struct {
		item  string
		tasks []centurion.Task
		own   int
		want  bool
	}{
		"none":                        {"T1", []centurion.Task{done}, 0, false},
		"it covers it":                {"T1", []centurion.Task{done, look("T3", "PASS: fine", 11)}, 0, true},
		"it covers all":               {"T1", []centurion.Task{done, look("T5", "PASS", 11)}, 0, true},
		"of no item":                  {"T1", []centurion.Task{done, look("", "PASS", 11)}, 0, true},
		"it covers another":           {"T2", []centurion.Task{work("T2", centurion.TaskCompleted, 10, 9), look("T3", "PASS", 11)}, 0, false},
		"it found faults":             {"T1", []centurion.Task{done, look("T3", "**FAIL**: a.go is wrong", 11)}, 0, false},
		"it was undone":               {"T1", []centurion.Task{done, undone}, 0, false},
		"its own, older than it":      {"T1", []centurion.Task{early, done}, 0, false},
		"its file changed since":      {"T1", []centurion.Task{merged("T1", 10, "a"), look("T3", "PASS", 11), merged("T4", 20, "a")}, 0, false},
		"another file changed since":  {"T1", []centurion.Task{merged("T1", 10, "a"), look("T3", "PASS", 11), merged("T4", 20, "b")}, 0, true},
		"what it judged has changed":  {"T3", []centurion.Task{merged("T1", 10, "a"), look("T3", "PASS", 11), merged("T4", 20, "a")}, 0, false},
		"what it did not judge has":   {"T3", []centurion.Task{merged("T1", 10, "a"), look("T3", "PASS", 11), merged("T4", 20, "b")}, 0, true},
		"it did not end":              {"T1", []centurion.Task{done, failed}, 0, false},
		"older than the work":         {"T1", []centurion.Task{look("T3", "PASS", 8), done}, 0, false},
		"as the work ended":           {"T1", []centurion.Task{done, look("T3", "PASS", 9)}, 0, true},
		"newer work":                  {"T1", []centurion.Task{done, look("T3", "PASS", 11), work("T1", centurion.TaskCompleted, 20, 19)}, 0, false},
		"newer work without a merge":  {"T1", []centurion.Task{done, look("T3", "PASS", 11), work("T1", centurion.TaskFailed, 20)}, 0, false},
		"cancelled before it merged":  {"T1", []centurion.Task{done, look("T3", "PASS", 11), work("T1", centurion.TaskCancelled, 20)}, 0, true},
		"cancelled after it merged":   {"T1", []centurion.Task{done, look("T3", "PASS", 11), work("T1", centurion.TaskCancelled, 20, 18)}, 0, false},
		"others' newer work":          {"T1", []centurion.Task{done, look("T3", "PASS", 11), work("T4", centurion.TaskCompleted, 20, 19)}, 30, true},
		"it is a review itself":       {"T3", []centurion.Task{look("T3", "PASS", 11)}, 0, true},
		"and has found faults":        {"T3", []centurion.Task{look("T3", "FAIL", 11)}, 0, false},
		"the agent's own work":        {"T4", []centurion.Task{look("", "PASS", 11)}, 10, true},
		"the agent's own newer work":  {"T4", []centurion.Task{look("", "PASS", 11)}, 12, false},
		"its own work, never covered": {"T4", []centurion.Task{look("T3", "PASS", 11)}, 0, false},
	} {
		var m centurion.Mission
		if c.own > 0 {
			m.Landed = []centurion.Landed{{Time: at(c.own)}}
		}
		if got := reviewed(c.item, c.tasks, passedIn(p, c.tasks), m); (got != nil) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Of several reviews of everything the newest counts, and one that names the item more than each of them.
func TestNewestReview(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("- [x] T1 a\n- [x] T2 look @reviewer\n  - after: T1\n"))
	if err != nil {
		t.Fatal(err)
	}
	look := func(item string, began int) centurion.Task {
		return centurion.Task{ID: fmt.Sprint("tsk_", began), Agent: "reviewer", Item: item, Status: centurion.TaskCompleted, Result: "PASS", Started: at(began), Ended: at(began + 1)}
	}
	tasks := []centurion.Task{work("T1", centurion.TaskCompleted, 10, 9), look("", 11), look("", 13)}
	for want, tasks := range map[string][]centurion.Task{"tsk_13": tasks, "tsk_12": append([]centurion.Task{look("T2", 12)}, tasks...)} {
		if got := reviewed("T1", tasks, passedIn(plan.View{Doc: doc}, tasks), centurion.Mission{}); got == nil || got.ID != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}

// An item whose newest task gave up is not done by a review while nothing of it was merged, and nothing else since.
func TestLeftUndone(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("- [x] T1 a\n- [x] T2 b\n"))
	if err != nil {
		t.Fatal(err)
	}
	review := centurion.Task{Agent: "reviewer", Item: "T1", Reviews: true, Status: centurion.TaskCompleted, Result: "PASS", Started: at(30), Ended: at(40)}
	for name, c := range map[string]struct {
		tasks  []centurion.Task
		own    int
		shared bool
		left   bool
	}{
		"blocked":                    {tasks: []centurion.Task{work("T1", centurion.TaskBlocked, 10)}, left: true},
		"failed":                     {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10)}, left: true},
		"and reviewed":               {tasks: []centurion.Task{work("T1", centurion.TaskBlocked, 10), review}, left: true},
		"completed":                  {tasks: []centurion.Task{work("T1", centurion.TaskCompleted, 10)}},
		"cancelled":                  {tasks: []centurion.Task{work("T1", centurion.TaskCancelled, 10)}},
		"then completed":             {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10), work("T1", centurion.TaskCompleted, 20)}},
		"merged before":              {tasks: []centurion.Task{work("T1", centurion.TaskCompleted, 5, 5), work("T1", centurion.TaskFailed, 10)}},
		"another did it since":       {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10), work("T2", centurion.TaskCompleted, 20, 19)}},
		"another ended since":        {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10), work("T2", centurion.TaskCompleted, 14, 14)}, left: true},
		"another merged before":      {tasks: []centurion.Task{work("T2", centurion.TaskCompleted, 9, 9), work("T1", centurion.TaskFailed, 10)}, left: true},
		"the agent did it itself":    {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10)}, own: 11},
		"the agent's work is older":  {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10)}, own: 9, left: true},
		"no task":                    {},
		"all write in one directory": {tasks: []centurion.Task{work("T1", centurion.TaskFailed, 10)}, shared: true},
	} {
		v := View{Plan: plan.View{Doc: doc}, Tasks: c.tasks, Own: at(c.own).Time, MayReview: true,
			Mission: centurion.Mission{Isolation: map[bool]string{true: centurion.IsolationShared, false: centurion.IsolationWorktree}[c.shared]}}
		w := v.Proofs()[0]
		if (w.Left != "") != c.left || c.left && (w.Verified() || !strings.Contains(strings.Join(v.Unreviewed(), "\n"), "; nothing of it was merged, so it is not done: resume T1 or")) {
			t.Errorf("%s: %+v, %q", name, w, v.Unreviewed())
		}
	}
}
