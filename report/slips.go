package report

import (
	"cmp"
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// slip describes an agent's mistake that it was told of at once: an interrupted answer, a refused call, returned work, a review that
// found faults. For other events then is empty.
func slip(d Data, e centurion.Event, i int) (what, then string) {
	switch e.Type {
	case centurion.EventMessageUpdated:
		if m := view.Read(e); m.Finish == "length" {
			return "an answer was cut off because it was too long",
				text.If(m.Calls > 0, "what it called in it was not run, and it was told so", "it continued in another answer")
		}
	case centurion.EventTaskReturned:
		if r, err := view.Decode(e); err == nil && r.Cause != returnedCheck && r.Cause != returnedConflict {
			return "its work was not merged: " + whyReturned(r), "sent back; " + fate(d, e, i)
		}
	case centurion.EventToolCompleted:
		t := view.Read(e)
		switch {
		case t.Error.Text == "":
		case t.Tool == "mission_complete":
			return "mission_complete was refused: " + strings.TrimPrefix(t.Error.Text, "not complete; missing:\n- "), "it continued; " + fate(d, centurion.Event{}, i)
		case strings.Contains(t.Error.Text, " is working on"):
			why, _, _ := strings.Cut(t.Error.Text, ", which")
			return "a call of " + t.Tool + " was refused: " + why + ", which another agent was working on", refusedFile(d, e.Task, why)
		}
	case centurion.EventTaskCancelled:
		if d.Branches[e.Task] != "" { // otherwise nothing of it is left to mention
			k := view.Read(e)
			return "it was cancelled" + text.When(k.TaskError() != nil, ": "+k.Error.Message), stopped(d, e)
		}
	case centurion.EventTaskCompleted:
		t := view.Read(e)
		first, rest, _ := strings.Cut(strings.TrimSpace(t.Result), "\n")
		switch doneBut(t) {
		case foundFaults:
			return "the review found faults: " + cmp.Or(firstLine(rest), first), reviewedLater(d, t.Item, i)
		case noVerdict:
			return "the review said neither PASS nor FAIL: " + first, reviewedLater(d, t.Item, i)
		case sawNothing:
			return "the review said PASS without having looked at anything", reviewedLater(d, t.Item, i)
		}
		return didNothing(d, e)
	}
	return "", ""
}

// refusedFile describes what happened to a file that a call could not write; why begins with its path.
func refusedFile(d Data, task, why string) string {
	path, _, _ := strings.Cut(why, " belongs to ")
	for _, t := range d.Tasks {
		changed := slices.Clone(t.Files)
		for _, l := range t.Landed {
			changed = append(changed, centurion.Paths(l.Files)...)
		}
		if t.ID == task && slices.ContainsFunc(changed, func(f string) bool { return strings.HasSuffix(path, f) }) {
			return "it changed the file at another time"
		}
	}
	return "the file was not touched"
}

// didNothing describes a task that completed without changing a file or proving anything by its check, such as one that ran no test.
func didNothing(d Data, e centurion.Event) (what, then string) {
	t := d.task(e)
	if t == nil || t.Item == "" || t.Reviews || t.Agent == reviewer || len(t.Files)+len(t.Landed) > 0 {
		return "", ""
	}
	var last *centurion.Receipt
	for k := range d.Receipts {
		if r := &d.Receipts[k]; r.Task == t.ID && r.Proof != "" {
			last = later(last, r)
		}
	}
	if last == nil || last.Proof.Solid() {
		return "", ""
	}
	what = "it changed no file, and its check proves nothing: " + short(last.Command, maxCommand) + suffix(": ", strings.Join(because(*last), "; "))
	if _, ok := d.Reviews[t.Item]; ok {
		return what, "a review of its item has passed"
	}
	if o := d.doneAfter(t, true); o != "" {
		return what, o
	}
	return what, "it counts as completed; nothing shows that its item is done"
}

// doneAfter says which later task has done the item of a task; "" if none has. If it had to change something, only one that did counts.
func (d Data) doneAfter(t *centurion.Task, changed bool) string {
	i := slices.IndexFunc(d.Tasks, func(o centurion.Task) bool { return o.ID == t.ID })
	for _, o := range d.Tasks[i+1:] {
		if t.Item != "" && o.Item == t.Item && o.Status == centurion.TaskCompleted && (!changed || len(o.Landed)+len(o.Files) > 0) {
			return "its item was done by another task: " + cmp.Or(o.Title, o.ID)
		}
	}
	return ""
}

// foundFaults is the reason of a review that did not pass.
const foundFaults = "found faults"

// reviewer is the agent whose answer is a verdict.
const reviewer = "reviewer"

// The reasons of a review that does not count: neither PASS nor FAIL, or a PASS that rests on nothing.
const (
	noVerdict  = "no verdict"
	sawNothing = "looked at nothing"
)

// doneBut is how a completed task ended without achieving its purpose, in the words of `show`: a review that did not pass. It is empty
// for all others.
func doneBut(t view.Fact) string {
	if t.Agent != reviewer {
		return ""
	}
	if slices.Contains([]string{foundFaults, noVerdict, sawNothing}, t.Reason) {
		return t.Reason // it was derived from the whole answer, which may be cut here
	}
	return text.When(centurion.RulingOf(t.Result) == centurion.RulingFail, foundFaults)
}

// The causes of a return that the failed check and the conflict tell already.
const (
	returnedCheck    = "check"
	returnedConflict = "conflict"
)

// whyReturned says in one line why work was returned.
func whyReturned(r view.Fact) string {
	files := strings.Join(r.Files, ", ")
	known := map[string]string{
		returnedCheck:    "its check failed" + suffix(": ", r.Command),
		returnedConflict: "it does not fit to what others have merged" + suffix(": ", files),
		"markers":        "it had conflict markers in " + files,
		"files":          "it changed files that others were working on: " + files,
		"guard":          "it broke a check of the mission that was green before it" + suffix(": ", r.Command),
		"stuck":          "its agent said that it was stuck, and a person had it tried on",
		"question":       "it had changed nothing and ended with a question that no one reads",
		"verdict":        "its answer said neither PASS nor FAIL",
		"hollow":         "its tests tell nothing of its work" + suffix(": ", r.Command),
	}
	return cmp.Or(known[r.Cause], firstLine(r.Reason), sentAgain)
}

// reviewedLater describes what happened to an item after a review found faults in it.
func reviewedLater(d Data, item string, i int) string {
	for _, later := range d.Events[i+1:] {
		if later.Type != centurion.EventTaskCompleted || item == "" {
			continue
		}
		if t := view.Read(later); t.Agent == reviewer && t.Item == item && doneBut(t) == "" {
			return "fixed: a later review of it passed"
		}
	}
	return "its item stayed open; " + fate(d, centurion.Event{}, i)
}

// stopped describes how a failed, blocked or cancelled task ended, and where its unmerged work is.
func stopped(d Data, e centurion.Event) string {
	then := strings.TrimPrefix(string(e.Type), "task.") + suffix("; what it changed and was not merged stands on the branch ", d.Branches[e.Task])
	if t := d.task(e); t != nil {
		then += suffix("; ", d.doneAfter(t, false))
	}
	return then
}

// redLine is the most informative line of a failed check's output: the first that names a fault, otherwise the last.
func redLine(output string) string {
	last := ""
	for l := range strings.Lines(output) {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		last = l
		if strings.Contains(l, ":") && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			return l
		}
	}
	return last
}

func firstLine(s string) string {
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(l), "-*")); l != "" {
			return l
		}
	}
	return ""
}
