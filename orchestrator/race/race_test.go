package race

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"centurion"
)

func TestWinner(t *testing.T) {
	for name, test := range map[string]struct {
		tries []Try
		want  string
	}{
		"none":                             {nil, ""},
		"all work":                         {[]Try{{"a", Working, 0}, {"b", Working, 0}}, ""},
		"the first proof wins":             {[]Try{{"a", Working, 0}, {"b", Proven, 90}}, "b"},
		"a proof beats a smaller change":   {[]Try{{"a", Held, 1}, {"b", Proven, 90}}, "b"},
		"of two proofs the smaller change": {[]Try{{"a", Proven, 9}, {"b", Proven, 3}, {"c", Held, 1}}, "b"},
		"of two equal ones the earlier":    {[]Try{{"a", Out, 0}, {"b", Proven, 3}, {"c", Proven, 3}}, "b"},
		"without a proof others may come":  {[]Try{{"a", Held, 1}, {"b", Working, 0}}, ""},
		"without a proof the smaller one":  {[]Try{{"a", Held, 4}, {"b", Held, 2}, {"c", Out, 1}}, "b"},
		"no change comes last":             {[]Try{{"a", Held, 0}, {"b", Held, 70}}, "b"},
		"no change is better than nothing": {[]Try{{"a", Held, 0}, {"b", Out, 70}}, "a"},
		"what is merged stays so":          {[]Try{{"a", Won, 50}, {"b", Proven, 1}}, "a"},
		"all have failed":                  {[]Try{{"a", Out, 0}, {"b", Out, 5}}, ""},
	} {
		if got := Winner(test.tries); got != test.want {
			t.Errorf("%s: %q wins, want %q", name, got, test.want)
		}
	}
}

// task is a try as it is recorded.
func task(try int, status centurion.TaskStatus, change func(*centurion.Task)) centurion.Task {
	t := centurion.Task{ID: string(rune('a' + try - 1)), Agent: "worker", Item: "T1", Status: status, Race: &centurion.Race{ID: "a", Try: try, Agents: make([]string, 3)}}
	if change != nil {
		change(&t)
	}
	return t
}

func TestTriesAsRecorded(t *testing.T) {
	landed := func(t *centurion.Task) { t.Landed = []centurion.Landed{{Commit: "c1"}} }
	for name, test := range map[string]struct {
		task centurion.Task
		want State
	}{
		"queued":                   {task(1, centurion.TaskQueued, nil), Working},
		"waits for files":          {task(1, centurion.TaskWaiting, nil), Working},
		"held":                     {task(1, centurion.TaskWaiting, func(t *centurion.Task) { t.Race.Held = true }), Held},
		"on its way to the branch": {task(1, centurion.TaskMerging, func(t *centurion.Task) { landed(t); t.Merging = "c1" }), Working},
		"merged, and at work":      {task(1, centurion.TaskRunning, landed), Won},
		"merged, then cancelled":   {task(1, centurion.TaskCancelled, landed), Won},
		"done without a change":    {task(1, centurion.TaskCompleted, nil), Won},
		"failed":                   {task(1, centurion.TaskFailed, nil), Out},
		"blocked":                  {task(1, centurion.TaskBlocked, nil), Out},
	} {
		test.task.Race.Lines = 7
		tries := Tries([]centurion.Task{{ID: "x", Item: "T1"}, {ID: "y", Item: "T1", Race: &centurion.Race{ID: "y"}}, test.task}, "a")
		if want := []Try{{test.task.ID, test.want, 7}}; !slices.Equal(tries, want) {
			t.Errorf("%s: %v, want %v", name, tries, want)
		}
	}
}

// What enters is the try that is named, with its change as it is now; what is merged stays so.
func TestEnter(t *testing.T) {
	tries := []Try{{"a", Working, 1}, {"b", Held, 2}, {"c", Out, 3}, {"d", Won, 4}}
	Enter(tries, "a", 5, true)
	Enter(tries, "b", 6, false)
	Enter(tries, "d", 7, true)
	if want := []Try{{"a", Proven, 5}, {"b", Held, 6}, {"c", Out, 3}, {"d", Won, 4}}; !slices.Equal(tries, want) {
		t.Errorf("%v, want %v", tries, want)
	}
	Enter(tries, "a", 5, false)
	if tries[0].State != Held {
		t.Errorf("a is %v once its checks prove nothing", tries[0].State)
	}
}

// A change is as large as the lines that it adds and removes, and that of a file without lines counts.
func TestLines(t *testing.T) {
	if n := Lines([]centurion.FileChange{{Added: 3, Deleted: 2}, {}, {Deleted: 1}, {Added: 4}}); n != 5+1+1+4 || Lines(nil) != 0 {
		t.Errorf("%d lines", n)
	}
}

// Two tasks belong together as tries of one race, not because neither is of one.
func TestOf(t *testing.T) {
	try := func(id string) centurion.Task { return centurion.Task{Race: &centurion.Race{ID: id}} }
	alone := centurion.Task{}
	if !Of(try("a"), try("a")) || Of(try("a"), try("b")) || Of(alone, try("a")) || Of(try("a"), alone) || Of(alone, alone) {
		t.Error("tries of one race are not told from others")
	}
}

// The end of a race is told once: by the try that is merged, however the others end, otherwise by the last.
func TestReports(t *testing.T) {
	won := task(1, centurion.TaskCompleted, nil)
	for name, test := range map[string]struct {
		tasks []centurion.Task
		told  string
	}{
		"one fails, others work":    {[]centurion.Task{task(1, centurion.TaskFailed, nil), task(2, centurion.TaskRunning, nil)}, ""},
		"one wins":                  {[]centurion.Task{won, task(2, centurion.TaskCancelled, nil), task(3, centurion.TaskRunning, nil)}, "a"},
		"all fail":                  {[]centurion.Task{task(1, centurion.TaskFailed, nil), task(2, centurion.TaskBlocked, nil)}, "ab"},
		"the others end before him": {[]centurion.Task{task(1, centurion.TaskRunning, func(t *centurion.Task) { t.Landed = make([]centurion.Landed, 1) }), task(2, centurion.TaskCancelled, nil)}, "a"},
	} {
		var told strings.Builder
		for _, one := range test.tasks {
			if Reports(test.tasks, one) {
				told.WriteString(one.ID)
			}
		}
		if told.String() != test.told {
			t.Errorf("%s: %q are told, want %q", name, told.String(), test.told)
		}
	}
	if !Reports(nil, centurion.Task{}) {
		t.Error("a task without a race is not told")
	}
}

func TestLost(t *testing.T) {
	tasks := []centurion.Task{task(1, centurion.TaskRunning, nil), task(2, centurion.TaskCompleted, nil)}
	if err := LostBy(tasks, "a", "b"); err != nil {
		t.Error(err)
	}
	err := LostBy(tasks, "a", "a")
	if _, ok := errors.AsType[*LostError](err); !ok || centurion.KindOf(err) != centurion.KindCancelled || !strings.Contains(err.Error(), "T1/2 (worker)") {
		t.Errorf("%v", err)
	}
	if err := LostBy(tasks[:1], "a", "a"); err != nil {
		t.Error(err)
	}
}

// Whatever tries do, in whatever order, in batches of any size, and if a merge fails at the last moment: exactly one is merged if one ever
// could be, and nothing that could be merged waits for ever.
func TestExactlyOneIsMerged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tasks := make([]centurion.Task, rapid.IntRange(2, 5).Draw(rt, "tries"))
		for i := range tasks {
			tasks[i] = task(i+1, centurion.TaskRunning, nil)
		}
		living := func() (out []int) {
			for i, k := range tasks {
				if !k.Status.Ended() && k.Status != centurion.TaskWaiting {
					out = append(out, i)
				}
			}
			return out
		}
		merged := 0
		// enter is a batch of the queue; it reports whether one was merged.
		enter := func(batch []int) {
			tries := Tries(tasks, "a")
			for _, i := range batch {
				if LostBy(tasks, "a", tasks[i].ID) != nil {
					tasks[i].Status, tasks[i].Race.Lost = centurion.TaskCancelled, true
					continue
				}
				proven := rapid.Bool().Draw(rt, "proven")
				Enter(tries, tasks[i].ID, rapid.IntRange(0, 3).Draw(rt, "lines"), proven)
			}
			winner := Winner(tries)
			for _, i := range batch {
				switch {
				case tasks[i].Status.Ended():
				case tasks[i].ID == winner:
					if rapid.IntRange(0, 4).Draw(rt, "breaks a check of the mission") > 0 {
						tasks[i].Landed, tasks[i].Status = make([]centurion.Landed, 1), centurion.TaskCompleted
						merged++
					}
				case slices.ContainsFunc(batch, func(o int) bool { return tasks[o].ID == winner }): // it stays in the line
				default:
					tasks[i].Status, tasks[i].Race.Held = centurion.TaskWaiting, true
				}
			}
		}
		// wake lets held work go on that has nothing to wait for any more.
		wake := func() {
			for i := range tasks {
				if k := &tasks[i]; k.Race.Held && (LostBy(tasks, "a", k.ID) != nil || Winner(Tries(tasks, "a")) == k.ID) {
					k.Status, k.Race.Held = centurion.TaskRunning, false
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			wake()
			in := living()
			if len(in) == 0 {
				break
			}
			n := rapid.IntRange(1, len(in)).Draw(rt, "batch")
			if rapid.IntRange(0, 3).Draw(rt, "fails") == 0 {
				tasks[in[n-1]].Status = centurion.TaskFailed
				continue
			}
			enter(rapid.Permutation(in).Draw(rt, "order")[:n])
		}
		could := merged > 0 || slices.ContainsFunc(tasks, func(k centurion.Task) bool { return !k.Status.Ended() })
		for range 100 { // from here on no try fails
			wake()
			if in := living(); len(in) > 0 {
				enter(in)
			}
		}
		for _, k := range tasks {
			if k.Status == centurion.TaskWaiting {
				rt.Fatalf("%s waits for ever: %v", k.ID, Tries(tasks, "a"))
			}
		}
		if could && merged != 1 || merged > 1 {
			rt.Fatalf("%d were merged: %v", merged, Tries(tasks, "a"))
		}
	})
}
