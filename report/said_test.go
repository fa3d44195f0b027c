package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
)

// What the person wrote is told with its time, whom it was for and when it was read; so is who asked, for which task.
func TestWhatThePersonWrote(t *testing.T) {
	t.Parallel()
	sent := func(sec int, task, session, address, text string) centurion.Event {
		return fact(sec, centurion.EventMessageQueued, task, session, event.QueuedData{Address: address, Origin: centurion.OriginPerson, Text: text})
	}
	read := func(sec int, task, session, agent string, origin centurion.Origin, text string) centurion.Event {
		return fact(sec, centurion.EventMessageCreated, task, session, map[string]any{"agent": agent, "origin": origin, "role": "user", "text": text})
	}
	ask := event.AskData{ID: "que_1", Type: "question", Text: "With a header line?", AskFrom: event.AskFrom{Agent: "worker", Address: "0/2"}}
	reply := ask
	reply.Answer, reply.By = "no", "person"
	d := Data{Mission: centurion.Mission{ID: "m", Session: "ses_root", Status: centurion.MissionCompleted, Started: at(0), Updated: at(99)}, Now: at(99),
		Tasks: []centurion.Task{{ID: "tsk_1", Item: "T1", Title: "one", Agent: "worker"}, {ID: "tsk_2", Item: "T2", Title: "two", Agent: "tester"}},
		Events: []centurion.Event{
			fact(0, centurion.EventMissionStarted, "", "ses_root", event.MissionData{}),
			fact(0, centurion.EventSessionCreated, "", "ses_root", event.SessionData{Agent: "commander"}),
			read(0, "", "ses_root", "commander", centurion.OriginPerson, "the goal"),
			sent(1, "tsk_1", "ses_1", "0/0", "total: N cards"),
			sent(2, "", "ses_root", "0/", "yes"),
			sent(3, "tsk_1", "ses_1", "0/0", "yes"),
			sent(4, "tsk_2", "", "", "before it began"),
			read(5, "tsk_1", "ses_1", "worker", centurion.OriginHost, "total: N cards"), // what the host says is none of it
			read(6, "tsk_1", "ses_1", "worker", centurion.OriginPerson, "total: N cards"),
			read(7, "tsk_1", "ses_1", "worker", centurion.OriginPerson, "yes"),
			read(8, "", "ses_root", "commander", centurion.OriginPerson, "This was written to tsk_2, which had ended before it could read it:\n\nbefore it began"),
			fact(10, centurion.EventQuestionAsked, "tsk_2", "ses_2", ask), fact(40, centurion.EventQuestionAnswered, "tsk_2", "ses_2", reply),
			fact(99, centurion.EventMissionCompleted, "", "ses_root", event.MissionEnd{})}}
	r := New(d)
	want := []Said{{Time: at(1), Text: "total: N cards", Agent: "worker", Address: "0/0", Task: "T1 one", Read: at(6)},
		{Time: at(2), Text: "yes", Agent: "commander", Address: "0/"},
		{Time: at(3), Text: "yes", Agent: "worker", Address: "0/0", Task: "T1 one", Read: at(7)},
		{Time: at(4), Text: "before it began", Agent: "tester", Task: "T2 two", Read: at(8)}}
	if d := cmp.Diff(want, r.Messages); d != "" {
		t.Error(d)
	}
	var md, page bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"- 2026-03-01 09:00:01 UTC to worker 0/0 · T1 one: total: N cards (read at 2026-03-01 09:00:06 UTC)\n",
		"to commander 0/: yes (not read)\n",
		"question of worker 0/2 · T2 two: With a header line? → **no**, by person, after 30s\n"} {
		if !strings.Contains(md.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, md.String())
		}
	}
	for _, cell := range []string{"total: N cards", "worker 0/0 · T1 one", "not read", "worker 0/2 · T2 two"} {
		if !strings.Contains(page.String(), cell) {
			t.Errorf("the page lacks %q", cell)
		}
	}
}
