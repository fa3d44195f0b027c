package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
)

// Evidence is what a killed demonstration has left, and what it had reported before. All of it is read after the last host has ended.
type Evidence struct {
	Told    []centurion.Event // every complete line with a sequence number that any host wrote
	Journal []centurion.Event // of the state file, in order
	Tasks   []centurion.Task
	Calls   []centurion.Part // every tool call of every conversation
	Ticked  map[string]bool  // the items of the plan, and whether they are ticked
	Exists  func(file string) bool
	Changes string // the files in changes/, where every piece of work adds a line
}

// Verdict lists in words what was lost or done twice. Both must be empty.
type Verdict struct {
	Lost, Twice []string
}

// ledger maps each item to the start of its line in changes/.
var ledger = map[string]string{"T1": "lengths", "T2": "weights", "T3": "temperatures", "T4": "documents", "T5": "command"}

// Interrupted is the answer to a call whose outcome a restart has lost: it may have run.
const Interrupted = "interrupted by a restart"

// Judge compares what was reported with what is there. Lost means a line that differs from the journal, or work reported as done whose
// mark, file or line in changes/ is missing. Done twice means a task that ended or was delivered twice, two tasks made by one call, or
// a line in changes/ without a first call or one answered as interrupted.
func Judge(e Evidence) Verdict {
	var v Verdict
	v.told(e)
	v.work(e)
	v.repeated(e)
	v.lines(e)
	return v
}

func (v *Verdict) lose(format string, a ...any) { v.Lost = append(v.Lost, fmt.Sprintf(format, a...)) }

func (v *Verdict) repeat(format string, a ...any) {
	v.Twice = append(v.Twice, fmt.Sprintf(format, a...))
}

// told looks up every line in the journal.
func (v *Verdict) told(e Evidence) {
	rows := make(map[int64]centurion.Event, len(e.Journal))
	for _, r := range e.Journal {
		rows[r.Seq] = r
	}
	for _, t := range e.Told {
		r, ok := rows[t.Seq]
		switch {
		case !ok:
			v.lose("event %d (%s) was told and is not in the journal", t.Seq, t.Type)
		case r.Type != t.Type || r.Task != t.Task || r.Session != t.Session || !same(r.Data, t.Data):
			v.lose("event %d (%s) was told and is another one in the journal", t.Seq, t.Type)
		}
	}
}

// same reports whether two texts are the same JSON, in spite of different escapes.
func same(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// work looks for the results of the tasks reported as completed.
func (v *Verdict) work(e Evidence) {
	tasks := map[string]centurion.Task{}
	for _, t := range e.Tasks {
		tasks[t.ID] = t
	}
	told := map[string]bool{}
	for _, ev := range e.Told {
		if ev.Type != centurion.EventTaskCompleted || told[ev.Task] {
			continue
		}
		told[ev.Task] = true
		t, ok := tasks[ev.Task]
		if !ok || t.Status != centurion.TaskCompleted {
			v.lose("task %s was told as completed and is not", ev.Task)
			continue
		}
		if t.Item != "" && !e.Ticked[t.Item] {
			v.lose("%s was told as completed and is not ticked in the plan", t.Item)
		}
		for _, f := range t.Files {
			if !e.Exists(f) {
				v.lose("%s of %s is missing", f, t.Item)
			}
		}
		if word := ledger[t.Item]; word != "" && count(e.Changes, word) == 0 {
			v.lose("%s was told as completed and has no line in changes/", t.Item)
		}
	}
}

// repeated looks for tasks that ended, were delivered or were made more than once.
func (v *Verdict) repeated(e Evidence) {
	type fact struct {
		task, what string
	}
	seen := map[fact]int{}
	for _, r := range e.Journal {
		switch r.Type {
		case centurion.EventTaskCompleted, centurion.EventTaskFailed, centurion.EventTaskCancelled:
			seen[fact{r.Task, "ended"}]++
		case centurion.EventTaskDelivered:
			seen[fact{r.Task, "was delivered"}]++
		}
	}
	for f, n := range seen {
		if n > 1 {
			v.repeat("task %s %s %s", f.task, f.what, centurion.Count(n, "time"))
		}
	}
	made, items := map[[2]string]int{}, map[string]int{}
	for _, t := range e.Tasks {
		made[[2]string{t.Parent, t.Call}]++
		items[t.Item]++
	}
	for call, n := range made {
		if n > 1 {
			v.repeat("call %s made %s", call[1], centurion.Count(n, "task"))
		}
	}
	for item, n := range items {
		if item != "" && n > 1 {
			v.repeat("%s was delegated %s", item, centurion.Count(n, "time"))
		}
	}
	slices.Sort(v.Twice)
}

// lines counts the lines in changes/. A call answered as interrupted may have written one, and its agent knows that.
func (v *Verdict) lines(e Evidence) {
	for _, item := range slices.Sorted(maps.Keys(ledger)) {
		word := ledger[item]
		maybe := 0
		for _, p := range e.Calls {
			if p.State != nil && strings.Contains(string(p.State.Input), word+":") && strings.Contains(string(p.State.Input), ">> changes/") &&
				strings.Contains(p.State.Error, Interrupted) {
				maybe++
			}
		}
		if n := count(e.Changes, word); n > 1+maybe {
			v.repeat("the line of %s is in changes/ %s, and %s may have been repeated", item, centurion.Count(n, "time"), centurion.Count(maybe, "call"))
		}
	}
}

// count counts the lines that start with a word and a colon.
func count(text, word string) (n int) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, word+":") {
			n++
		}
	}
	return n
}

// Score returns how much an event advances a mission: work that is not repeated after a kill. The kills are spread over it.
func Score(e centurion.Event) int {
	switch e.Type {
	case centurion.EventTaskCompleted:
		return 1
	case centurion.EventToolCompleted:
		// Tasks are delegated all at once, which is one step, not eight.
		if d, err := event.Decode[event.ToolData](e); err == nil && d.Error == "" && d.Tool != "delegate_task" {
			return 1
		}
	}
	return 0
}

// Whole is the score of an uninterrupted mission.
const Whole = 43
