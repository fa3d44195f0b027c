package demo

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"centurion"
)

// What is lost is counted once for each thing, whatever else is lost; what was done twice is told in the order of its words. Tasks without an item are each
// their own.
func TestJudgeSeveral(t *testing.T) {
	e := sound()
	done := centurion.Event{Seq: 2, Type: centurion.EventTaskCompleted, Task: "tsk_0", Data: e.Journal[1].Data}
	e.Told = append(e.Told, done) // by two hosts
	e.Tasks[0].Files = []string{"a", "b", "c"}
	e.Exists = func(f string) bool { return f != "b" && f != "c" && f != "T4.sh" }
	e.Ticked["T1"] = false
	e.Told = append([]centurion.Event{{Seq: 1, Type: centurion.EventTaskQueued, Task: "tsk_0", Data: e.Journal[0].Data}}, e.Told...)
	e.Tasks = append(e.Tasks, centurion.Task{ID: "tsk_7", Parent: "ses_0", Call: "call_7"}, centurion.Task{ID: "tsk_8", Parent: "ses_0", Call: "call_8"},
		centurion.Task{ID: "tsk_9", Parent: "ses_0", Call: "call_9", Item: "T5"}, centurion.Task{ID: "tsk_10", Parent: "ses_0", Call: "call_9", Item: "T3"})
	e.Changes += ledger["T3"] + ": done\n" + ledger["T5"] + ": done\n" + ledger["T5"] + "s: another word\n"
	v := Judge(e)
	if want := []string{"T1 was told as completed and is not ticked in the plan", "b of T1 is missing", "c of T1 is missing", "T4.sh of T4 is missing"}; !slices.Equal(v.Lost, want) {
		t.Errorf("lost\n%q, want\n%q", v.Lost, want)
	}
	want := []string{"T3 was delegated 2 times", "T5 was delegated 2 times", "call call_9 made 2 tasks"}
	for _, item := range []string{"T3", "T5"} {
		want = append(want, fmt.Sprintf("the line of %s is in changes/ 2 times, and 0 calls may have been repeated", item))
	}
	if !slices.Equal(v.Twice, want) {
		t.Errorf("twice\n%q, want\n%q", v.Twice, want)
	}
}

// What a scenario in a hurry leaves out are all the pauses that are for spectators, and nothing else.
func TestPauses(t *testing.T) {
	b, err := files.ReadFile("scenario.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hurried := pauses.ReplaceAll(b, nil)
	if n := bytes.Count(b, []byte("\n    delay: ")); n == 0 || bytes.Count(b, []byte("\n")) != bytes.Count(hurried, []byte("\n"))+n || bytes.Contains(hurried, []byte("    delay: ")) {
		t.Errorf("of %d pauses some are left, or more than they is left out", n)
	}
}
