package centurion

import (
	"slices"
	"strings"
)

// Race is the part of a task in a race: several tasks try one item at the same time, and the work of one is merged.
type Race struct {
	ID     string   `json:"id"`              // of its first task
	Try    int      `json:"try"`             // which of Agents this task is, from 1
	Agents []string `json:"agents"`          // one for each try
	Held   bool     `json:"held,omitempty"`  // waiting: its checks pass, but prove too little to decide the race
	Lines  int      `json:"lines,omitempty"` // that held work adds and removes
	Lost   bool     `json:"lost,omitempty"`  // another try was merged; its own work stays on its branch
}

// Lost reports whether another task's work was merged in place of this one's.
func (t Task) Lost() bool { return t.Race != nil && t.Race.Lost }

// Holder is the name under which the task holds files: the tries of a race are one holder, as at most one is merged.
func (t Task) Holder() string {
	t.Race = nil
	return t.Name()
}

// TaskNamed returns the newest task with a name, ignoring case. An item names its newest task, too, but no try that has lost.
func TaskNamed(tasks []Task, name string) (Task, bool) {
	for _, t := range slices.Backward(tasks) {
		if name != "" && (strings.EqualFold(t.Name(), name) || strings.EqualFold(t.Item, name) && !t.Lost()) {
			return t, true
		}
	}
	return Task{}, false
}
