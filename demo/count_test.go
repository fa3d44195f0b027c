package demo

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// sound is what a demonstration leaves that has lost nothing and done nothing twice, although the line of T2 was written
// by a call that nobody heard of any more, and once more by the next one.
func sound() Evidence {
	e := Evidence{Ticked: map[string]bool{}, Exists: func(string) bool { return true }, Changes: "skeleton: x\n"}
	add := func(kind centurion.EventType, task string, data any) {
		e.Journal = append(e.Journal, centurion.Event{Seq: int64(len(e.Journal) + 1), Type: kind, Task: task, Data: event.Data(data)})
	}
	for i, item := range []string{"T1", "T2", "T3", "T4", "T5"} {
		task := fmt.Sprintf("tsk_%d", i)
		add(centurion.EventTaskQueued, task, event.TaskData{Item: item, Title: "<" + item + ">"})
		add(centurion.EventTaskCompleted, task, event.TaskData{Item: item})
		add(centurion.EventTaskDelivered, task, event.TaskData{Item: item})
		e.Tasks = append(e.Tasks, centurion.Task{ID: task, Item: item, Parent: "ses_0", Call: fmt.Sprintf("call_%d", i),
			Status: centurion.TaskCompleted, Files: []string{item + ".sh"}})
		e.Ticked[item] = true
		e.Changes += ledger[item] + ": done\n"
		e.Calls = append(e.Calls, call(item, ""))
	}
	e.Changes += ledger["T2"] + ": done\n"
	e.Calls = append(e.Calls, call("T2", Interrupted+"; its effects are unknown"))
	e.Told = slices.Clone(e.Journal)
	// The same text may be written in two ways.
	e.Told[0].Data = json.RawMessage(strings.ReplaceAll(string(e.Told[0].Data), "<", `\u003c`))
	return e
}

func call(item, failed string) centurion.Part {
	st := &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{"command":"echo \"` + ledger[item] + `: done\" >> changes/x"}`)}
	if failed != "" {
		st.Status, st.Error = centurion.ToolError, failed
	}
	return centurion.Part{Type: centurion.PartTool, Tool: "bash", State: st}
}

// TRIAL R1: what `centurion demo --kill` prints is counted. A count that cannot be wrong proves nothing.
func TestJudge(t *testing.T) {
	if v := Judge(sound()); len(v.Lost) > 0 || len(v.Twice) > 0 {
		t.Fatalf("nothing is wrong, and it finds %q and %q", v.Lost, v.Twice)
	}
	tests := []struct {
		name        string
		doctor      func(*Evidence)
		lost, twice string // what the only entry has to hold
	}{
		{"a row is missing", func(e *Evidence) { e.Journal = slices.Delete(e.Journal, 3, 4) }, "event 4 (task.queued) was told and is not", ""},
		{"the last row is missing", func(e *Evidence) { e.Journal = e.Journal[:len(e.Journal)-1] }, "event 15", ""},
		{"a row has another type", func(e *Evidence) { e.Journal[0].Type = centurion.EventTaskWaiting }, "event 1 (task.queued) was told and is another", ""},
		{"a row has other data", func(e *Evidence) { e.Journal[4].Data = json.RawMessage(`{"item":"T9"}`) }, "event 5", ""},
		{"a row is of another task", func(e *Evidence) { e.Journal[3].Task = "tsk_9" }, "event 4", ""},
		{"a task is not completed", func(e *Evidence) { e.Tasks[2].Status = centurion.TaskRunning }, "task tsk_2 was told as completed and is not", ""},
		{"a task is gone", func(e *Evidence) { e.Tasks = e.Tasks[:4] }, "task tsk_4 was told as completed", ""},
		{"a mark is missing", func(e *Evidence) { e.Ticked["T3"] = false }, "T3 was told as completed and is not ticked", ""},
		{"a file is missing", func(e *Evidence) { e.Exists = func(f string) bool { return f != "T4.sh" } }, "T4.sh of T4 is missing", ""},
		{"a line is missing", func(e *Evidence) { e.Changes = strings.Replace(e.Changes, "documents: done\n", "", 1) }, "T4 was told as completed and has no line", ""},
		{"a task ended twice", func(e *Evidence) {
			e.Journal = append(e.Journal, centurion.Event{Seq: 99, Type: centurion.EventTaskCompleted, Task: "tsk_1"})
		}, "", "task tsk_1 ended 2 times"},
		{"a result was delivered twice", func(e *Evidence) {
			e.Journal = append(e.Journal, centurion.Event{Seq: 99, Type: centurion.EventTaskDelivered, Task: "tsk_1"})
		}, "", "task tsk_1 was delivered 2 times"},
		{"a call made two tasks", func(e *Evidence) {
			e.Tasks = append(e.Tasks, centurion.Task{ID: "tsk_9", Parent: "ses_0", Call: "call_0"})
		}, "", "call call_0 made 2 tasks"},
		{"an item was handed out twice", func(e *Evidence) {
			e.Tasks = append(e.Tasks, centurion.Task{ID: "tsk_9", Parent: "ses_0", Call: "call_9", Item: "T1"})
		}, "", "T1 was delegated 2 times"},
		{"a line is there twice", func(e *Evidence) { e.Changes += "lengths: done\n" }, "", "the line of T1 is in changes/ 2 times, and 0 calls may"},
		{"a line is there once more than it may be", func(e *Evidence) { e.Changes += "weights: done\n" }, "", "the line of T2 is in changes/ 3 times, and 1 call may"},
		{"a call failed for another reason", func(e *Evidence) { e.Calls[len(e.Calls)-1].State.Error = "exit code 1" }, "", "the line of T2"},
	}
	for _, test := range tests {
		e := sound()
		test.doctor(&e)
		v := Judge(e)
		one := func(got []string, want string) bool {
			if want == "" {
				return len(got) == 0
			}
			return len(got) == 1 && strings.Contains(got[0], want)
		}
		if !one(v.Lost, test.lost) || !one(v.Twice, test.twice) {
			t.Errorf("%s: lost %q, twice %q", test.name, v.Lost, v.Twice)
		}
	}
}

// The items that leave a line in changes/ are those that the scenario's workers have.
func TestLedger(t *testing.T) {
	for _, hurry := range []bool{false, true} {
		if _, err := Scenario(hurry); err != nil {
			t.Fatal(err)
		}
	}
	b, err := fs.ReadFile(files, "scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for item, word := range ledger {
		if !strings.Contains(string(b), `echo "`+word+": ") || !strings.Contains(string(b), "item: "+item) {
			t.Errorf("no worker adds the line %q of %s", word, item)
		}
	}
	if n := strings.Count(string(b), `" >> changes/`); n != len(ledger) {
		t.Errorf("%d commands add a line, not %d", n, len(ledger))
	}
}

func TestScore(t *testing.T) {
	for _, test := range []struct {
		kind centurion.EventType
		data any
		want int
	}{
		{centurion.EventTaskCompleted, event.TaskData{}, 1},
		{centurion.EventTaskRetrying, event.TaskData{}, 0},
		{centurion.EventToolCompleted, event.ToolData{Tool: "bash"}, 1},
		{centurion.EventToolCompleted, event.ToolData{Tool: "bash", Error: Interrupted}, 0},
		{centurion.EventToolCompleted, event.ToolData{Tool: "delegate_task"}, 0},
		{centurion.EventToolStarted, event.ToolData{Tool: "bash"}, 0},
	} {
		if got := Score(centurion.Event{Type: test.kind, Data: event.Data(test.data)}); got != test.want {
			t.Errorf("%s %+v: %d, not %d", test.kind, test.data, got, test.want)
		}
	}
}

// A demonstration has kept its promise only if all its kills were made, and nothing was lost, done twice or refused.
func TestWhole(t *testing.T) {
	for name, c := range map[string]struct {
		found         []string
		done, refused int
		want          bool
	}{
		"all":               {nil, 2, 0, true},
		"one more":          {nil, 3, 0, true},
		"lost":              {[]string{"event 1"}, 2, 0, false},
		"a kill is missing": {nil, 1, 0, false},
		"refused":           {nil, 2, 1, false},
	} {
		k := killing{KillOptions: KillOptions{Kills: 2}, done: c.done}
		if got := k.whole(c.found, c.refused); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What a host that is back does first is told in a line of the demonstration's own, and an unchanged plan is not shown again.
func TestShown(t *testing.T) {
	plan := func(status string) centurion.Event {
		return centurion.Event{Type: centurion.EventTodoUpdated, Data: event.Data(event.TodoData{Items: []event.PlanItem{{ID: "T1", Title: "One", Status: status}}})}
	}
	k := &killing{}
	for _, c := range []struct {
		e     centurion.Event
		early bool
		shown bool
		items int
	}{
		{centurion.Event{Type: centurion.EventMissionResumed}, false, false, 0},
		{centurion.Event{Type: centurion.EventTaskRetrying}, true, false, 0},
		{centurion.Event{Type: centurion.EventTaskRetrying}, false, true, 0},
		{centurion.Event{Type: centurion.EventTaskCompleted}, true, true, 0},
		{plan("open"), false, true, 1},
		{plan("done"), false, true, 0},
	} {
		k.early = c.early
		e := k.shown(c.e)
		d, _ := event.Decode[event.TodoData](e)
		if (e.Type != "") != c.shown || len(d.Items) != c.items {
			t.Errorf("%s, early %v: %+v", c.e.Type, c.early, e)
		}
	}
}
