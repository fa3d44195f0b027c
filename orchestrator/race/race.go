// Package race decides which of several tries of one item is merged. It is pure: its callers run the checks, merge, and end the others.
package race

import (
	"cmp"
	"fmt"
	"slices"

	"centurion"
)

// State is how far a try is, in the order in which tries are preferred.
type State int

// The states of a try.
const (
	Out     State = iota // it has ended without being merged
	Working              // it works, or its work goes back to it
	Held                 // its work may be merged, but its checks do not prove it
	Proven               // its work may be merged, and its checks prove it
	Won                  // its work is merged
)

// Try is the work of one task on the item.
type Try struct {
	Task  string // its id
	State State
	Lines int // added and removed; 0 if nothing was changed
}

// Winner returns the task whose work is merged, now or earlier, or "" while that is open. The first proven work wins, and of several the
// smallest change, then the earlier try. Without a proof it is the smallest change of those that may be merged, as soon as no other try
// works. A try that changed nothing comes last.
func Winner(tries []Try) string {
	if len(tries) == 0 {
		return ""
	}
	best := slices.MinFunc(tries, func(a, b Try) int {
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(a.none(), b.none()), cmp.Compare(a.Lines, b.Lines))
	})
	works := slices.ContainsFunc(tries, func(t Try) bool { return t.State == Working })
	if best.State <= Working || best.State == Held && works {
		return ""
	}
	return best.Task
}

// none is 1 if the try has changed nothing.
func (t Try) none() int {
	if t.Lines == 0 {
		return 1
	}
	return 0
}

// merged returns the task of a race whose work is merged, if that is decided.
func merged(tries []Try) (task string, ok bool) {
	i := slices.IndexFunc(tries, func(t Try) bool { return t.State == Won })
	if i < 0 {
		return "", false
	}
	return tries[i].Task, true
}

// Of reports whether two tasks are tries of the same race.
func Of(a, b centurion.Task) bool { return a.Race != nil && b.Race != nil && a.Race.ID == b.Race.ID }

// Tries returns the tries of a race as they are recorded. Work that is on its way to the branch has not won yet.
func Tries(tasks []centurion.Task, id string) (out []Try) {
	for _, t := range tasks {
		if t.Race == nil || t.Race.ID != id {
			continue
		}
		try := Try{Task: t.ID, State: Working, Lines: t.Race.Lines}
		switch {
		case len(t.Landed) > 0 && t.Merging == "", t.Status == centurion.TaskCompleted:
			try.State = Won
		case t.Status.Ended():
			try.State = Out
		case t.Race.Held:
			try.State = Held
		}
		out = append(out, try)
	}
	return out
}

// Enter says of a try that its work may be merged now, and whether its checks prove it.
func Enter(tries []Try, task string, lines int, proven bool) {
	for i := range tries {
		if t := &tries[i]; t.Task == task && t.State != Won {
			t.Lines, t.State = lines, Held
			if proven {
				t.State = Proven
			}
		}
	}
}

// Lines is the size of a change: the lines that it adds and removes. A changed file without lines, as a binary one, counts as one.
func Lines(files []centurion.FileChange) (n int) {
	for _, f := range files {
		n += max(1, f.Added+f.Deleted)
	}
	return n
}

// Reports reports whether the end of a try is told: that of the one that is merged, otherwise that of the last. tasks has its end.
func Reports(tasks []centurion.Task, t centurion.Task) bool {
	if t.Race == nil {
		return true
	}
	tries := Tries(tasks, t.Race.ID)
	if won, ok := merged(tries); ok {
		return won == t.ID
	}
	return !slices.ContainsFunc(tries, func(o Try) bool { return o.State != Out })
}

// LostError ends a task because the work of another try is merged. It is no failure.
type LostError struct{ Err *centurion.Error }

func (e *LostError) Error() string { return e.Err.Error() }
func (e *LostError) Unwrap() error { return e.Err }

// LostBy returns the error that ends a try of a race when another one is merged, and nil before.
func LostBy(tasks []centurion.Task, race, own string) error {
	won, ok := merged(Tries(tasks, race))
	if i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == won }); ok && won != own {
		return Lost(tasks[i])
	}
	return nil
}

// Lost is the end of the other tries of a race.
func Lost(winner centurion.Task) error {
	return &LostError{&centurion.Error{Kind: centurion.KindCancelled,
		Msg: fmt.Sprintf("the race was won by %s (%s), whose work is integrated; this work is kept on its branch", winner.Name(), winner.Agent)}}
}
