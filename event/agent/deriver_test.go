package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"centurion"
	"centurion/event"
)

// journal numbers facts as a store does.
type journal struct{ facts []centurion.Event }

func (j *journal) add(typ centurion.EventType, session, task string, data any) {
	j.facts = append(j.facts, centurion.Event{Seq: int64(len(j.facts) + 1), Type: typ, Mission: "msn_1", Session: session, Task: task, Data: event.Data(data)})
}

type fields = map[string]any

// OPAL-44, OPAL-52, SUB-14, LOOP-84, C-9: whatever the facts, of each session a start is followed by one end before the next
// start, every execution that began ends in between, and nothing is told outside; what is nested names the child and the call.
func TestAnyFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j journal
		j.add(centurion.EventTaskQueued, "", "tsk_1", event.TaskData{Parent: "ses_0", Call: "msg_1/call_1"})
		j.add(centurion.EventTaskQueued, "", "tsk_2", event.TaskData{Parent: "ses_1", Call: "msg_2/call_2"})
		task := map[string]string{"ses_0": "", "ses_1": "tsk_1", "ses_2": "tsk_2"}
		for _, s := range []string{"ses_0", "ses_1", "ses_2"} { // who starts a child was there before
			j.add(centurion.EventSessionCreated, s, task[s], nil)
		}
		for range rapid.IntRange(1, 60).Draw(t, "facts") {
			s := rapid.SampledFrom([]string{"ses_0", "ses_1", "ses_2"}).Draw(t, "session")
			c := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "call")
			switch rapid.IntRange(0, 10).Draw(t, "fact") {
			case 0, 1:
				j.add(centurion.EventMessageCreated, s, task[s], fields{"message": "m", "role": "user"})
			case 2:
				j.add(centurion.EventMessageCreated, s, task[s], fields{"message": "m", "role": "assistant"})
			case 3:
				j.add(centurion.EventMessageUpdated, s, task[s], fields{"message": "m", "finish": rapid.SampledFrom([]string{"stop", "cancelled"}).Draw(t, "finish")})
			case 4:
				j.add(centurion.EventToolStarted, s, task[s], event.ToolData{Tool: "x", Call: c})
			case 5:
				j.add(centurion.EventToolCompleted, s, task[s], event.ToolData{Tool: "x", Call: c})
			case 6:
				j.add(centurion.EventSessionIdle, s, task[s], nil)
			case 7:
				j.add(centurion.EventSessionError, s, task[s], fields{"error": "no"})
			case 8:
				j.add(centurion.EventProviderRetry, s, task[s], fields{})
			case 10: // it names who reads it, and the task of another
				j.add(centurion.EventTaskDelivered, "ses_1", "tsk_2", fields{"status": "completed"})
			case 9:
				if c == "a" {
					j.add(centurion.EventMissionPaused, "ses_0", "", fields{"reason": "enough"})
				}
			}
		}
		j.add(centurion.EventMissionFailed, "ses_0", "", nil)
		working, running := map[string]bool{}, map[string][]string{}
		d := Deriver{Session: "ses_0"}
		for _, f := range j.facts {
			all := d.Apply(f)
			for i, e := range all {
				if last := i == len(all)-1; last != (e.Seq == f.Seq) || !last && e.After != f.Seq-1 {
					t.Fatalf("event %d of %d of fact %d: seq %d, after %d", i, len(all), f.Seq, e.Seq, e.After)
				}
				check(t, e, working, running)
			}
		}
		for s, w := range working {
			if w {
				t.Fatalf("%s works after the end of its mission", s)
			}
		}
	})
}

// check takes one event into account.
func check(t *rapid.T, e centurion.Event, working map[string]bool, running map[string][]string) {
	if e.Type.EndsMission() {
		return
	}
	if e.Session != "ses_0" {
		t.Fatalf("an event of %q", e.Session)
	}
	s, typ, data := "ses_0", e.Type, e.Data
	for typ == SubAgentEvent {
		var v SubAgentData
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"ses_1": "ses_0 call_1", "ses_2": "ses_1 call_2"}[v.Sub]; want != s+" "+v.ParentCall {
			t.Fatalf("%s of %s by %q in %s", v.Event.Type, v.Sub, v.ParentCall, s)
		}
		s, typ, data = v.Sub, v.Event.Type, v.Event.Data
	}
	var v struct{ Call string }
	if typ == ToolStart || typ == ToolEnd {
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
	}
	at := slices.Index(running[s], v.Call)
	switch {
	case typ == Start:
		if working[s] {
			t.Fatalf("%s begins twice", s)
		}
		working[s] = true
		return
	case !working[s]:
		t.Fatalf("%s of %s, which does nothing", typ, s)
	case typ == ToolStart && at >= 0, typ == ToolEnd && at < 0:
		t.Fatalf("%s of a call that runs: %v", typ, at >= 0)
	case typ == ToolStart:
		running[s] = append(running[s], v.Call)
	case typ == ToolEnd:
		running[s] = slices.Delete(running[s], at, at+1)
	case typ == Error:
		if len(running[s]) > 0 {
			t.Fatalf("%s ends while %v runs", s, running[s])
		}
		working[s] = false
	case typ == End:
		working[s], running[s] = false, nil // a turn that ended had all its results; these facts need not
	}
}

// OPAL-46, OPAL-47, C-6: a piece of text is told at once with the number of the fact before it, thoughts apart; where pieces
// were lost a gap stands; and what a tool prints is no text.
func TestDeltas(t *testing.T) {
	d := Deriver{Session: "ses_0"}
	d.Apply(centurion.Event{Seq: 1, Type: centurion.EventTaskQueued, Task: "tsk_1", Data: event.Data(event.TaskData{Parent: "ses_0", Call: "msg_1/call_1"})})
	for _, c := range []struct {
		session, task string
		data          event.DeltaData
		want          string
	}{
		{"ses_0", "", event.DeltaData{Message: "m", Part: "p", Field: "text", Delta: "hi"}, `message_delta ses_0 {"message":"m","part":"p","delta":"hi"}`},
		{"ses_0", "", event.DeltaData{Message: "m", Part: "p", Field: "reasoning", Delta: "hm"}, `thinking_delta ses_0 {"message":"m","part":"p","delta":"hm"}`},
		{"ses_0", "", event.DeltaData{Message: "m", Part: "p", Field: "progress", Delta: "hm"}, ``},
		{"ses_1", "tsk_1", event.DeltaData{Message: "m", Part: "p", Field: "text", Delta: "hi"},
			`sub_agent_event ses_0 {"parent_call_id":"call_1","sub_session_id":"ses_1","event":{"type":"message_delta","data":{"message":"m","part":"p","delta":"hi"}}}`},
		{"ses_9", "", event.DeltaData{Message: "m", Part: "p", Field: "text", Delta: "hi"}, ``},
		{"", "", event.DeltaData{Gap: true}, `gap ses_0 {}`},
	} {
		var all []string
		for _, e := range d.Apply(centurion.Event{After: 7, Type: centurion.EventDelta, Session: c.session, Task: c.task, Data: event.Data(c.data)}) {
			all = append(all, fmt.Sprintf("%s %s %s", e.Type, e.Session, e.Data))
			if e.After != 7 || e.Seq != 0 {
				t.Errorf("%s has seq %d, after %d", all, e.Seq, e.After)
			}
		}
		if got := strings.Join(all, "\n"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// LOOP-84, LOOP-85: the end, an error and a compaction say so to whoever looks for nothing else.
func TestEndsAndCompactions(t *testing.T) {
	var j journal
	j.add(centurion.EventSessionCreated, "ses_0", "", event.SessionData{Agent: "commander", Address: "0/"})
	j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": "m1", "role": "user", "text": "go"})
	j.add(centurion.EventCompacted, "ses_0", "", event.CompactedData{Message: "m2", Reason: event.CompactedAuto, Before: 9, After: 3})
	j.add(centurion.EventMessageUpdated, "ses_0", "", fields{"message": "m3", "finish": "stop", "text": "done"})
	j.add(centurion.EventSessionIdle, "ses_0", "", nil)
	j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": "m4", "role": "user", "text": "on"})
	j.add(centurion.EventSessionError, "ses_0", "", fields{"error": "no such model", "kind": "model_not_found"})
	var d Deriver
	var got []string
	for _, f := range j.facts {
		for _, e := range d.Apply(f) {
			if e.Session != "ses_0" {
				t.Errorf("%s is told of session %q", e.Type, e.Session)
			}
			got = append(got, fmt.Sprintf("%d %s %s", e.Seq, e.Type, e.Data))
		}
	}
	want := []string{
		`2 agent_start {"agent":"commander","address":"0/","text":"go"}`,
		`3 compact {"message":"m2","reason":"auto","before":9,"after":3}`,
		`4 turn_end {"message":{"id":"m3","role":"assistant","text":"done","finish":"stop","tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}},"tool_calls":[]}`,
		`5 agent_end {"text":"done","finish":"stop","messages":[{"id":"m1","role":"user","text":"go"},{"id":"m3","role":"assistant","text":"done","finish":"stop","tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}}],"done":true}`,
		`6 agent_start {"agent":"commander","address":"0/","text":"on"}`,
		`7 error {"reason":"no such model","kind":"model_not_found","done":true}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if d.Working("ses_0") || d.Newest("ses_0") != "m4" {
		t.Error("it works after its end")
	}
}

// OPAL-51: the end repeats the newest 64 messages since the start, and none of the turn before.
func TestEndRepeatsTheNewest(t *testing.T) {
	var j journal
	var want []string
	j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": "before", "role": "user"})
	j.add(centurion.EventSessionIdle, "ses_0", "", nil)
	for i := range 70 {
		id := fmt.Sprint("m", i)
		j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": id, "role": "user"})
		if want = append(want, id); len(want) > 64 {
			want = want[1:]
		}
	}
	j.add(centurion.EventSessionIdle, "ses_0", "", nil)
	var d Deriver
	var end EndData
	for _, f := range j.facts {
		for _, e := range d.Apply(f) {
			if e.Type != End {
				continue
			}
			end = EndData{}
			if err := json.Unmarshal(e.Data, &end); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got []string
	for _, m := range end.Messages {
		got = append(got, m.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("it repeats %q, want %q", got, want)
	}
}

// OPAL-50, OPAL-52, OPAL-53: where a mission stops, the calls that run end first, children end before those who started them,
// and what failed has an error and no result.
func TestCloseFromBelow(t *testing.T) {
	var j journal
	j.add(centurion.EventTaskQueued, "", "tsk_1", event.TaskData{Parent: "ses_0", Call: "msg_1/call_1"})
	j.add(centurion.EventTaskQueued, "", "tsk_2", event.TaskData{Parent: "ses_1", Call: "msg_2/call_2"})
	for _, s := range [][2]string{{"ses_0", ""}, {"ses_1", "tsk_1"}, {"ses_2", "tsk_2"}} {
		j.add(centurion.EventMessageCreated, s[0], s[1], fields{"message": "m", "role": "user"})
		j.add(centurion.EventToolStarted, s[0], s[1], event.ToolData{Tool: "x", Call: "c"})
	}
	j.add(centurion.EventToolCompleted, "ses_2", "tsk_2", event.ToolData{Tool: "x", Call: "c", Error: "no", Output: "half of it"})
	j.add(centurion.EventMissionPaused, "ses_0", "", fields{"reason": "enough"})
	var d Deriver
	var got []string
	for _, f := range j.facts {
		for _, e := range d.Apply(f) {
			depth, typ, data := 0, e.Type, e.Data
			for typ == SubAgentEvent {
				var v SubAgentData
				if err := json.Unmarshal(data, &v); err != nil {
					t.Fatal(err)
				}
				depth, typ, data = depth+1, v.Event.Type, v.Event.Data
			}
			if typ == ToolEnd || typ == Error {
				got = append(got, fmt.Sprintf("%d %s %s", depth, typ, data))
			}
		}
	}
	const end, failed = `tool_execution_end {"name":"x","result":"","call":"c","error":"the mission is paused: enough"}`,
		`error {"reason":"the mission is paused: enough","kind":"cancelled","done":true}`
	want := []string{`2 tool_execution_end {"name":"x","result":"","call":"c","error":"no"}`, "2 " + failed, "1 " + end, "1 " + failed, "0 " + end, "0 " + failed}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// LOOP-84: what a turn says of its calls, a wait for the provider and a step of a session of another mission, with where and when it was.
func TestTurn(t *testing.T) {
	var j journal
	j.add(centurion.EventSessionCreated, "ses_0", "", event.SessionData{Agent: "worker", Address: "0/1", Title: "Write it"})
	j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": "m1", "role": "user", "origin": "host", "text": "go"})
	j.add(centurion.EventProviderRetry, "ses_0", "", event.RetryData{Attempt: 2, WaitMS: 500, Reason: "rate_limit", Error: "429"})
	j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": "m2", "role": "assistant", "text": "not yet"})
	j.add(centurion.EventToolStarted, "ses_0", "", event.ToolData{Tool: "read", Call: "c1", Input: json.RawMessage(`{"path":"a"}`)})
	j.add(centurion.EventToolStarted, "ses_0", "", event.ToolData{Tool: "ls", Call: "c2"})
	j.add(centurion.EventToolStarted, "ses_0", "", event.ToolData{Tool: "ls", Call: "c2"})
	j.add(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "read", Call: "c1", Output: "text"})
	j.add(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "bash", Call: "c3", Error: "refused"})
	j.add(centurion.EventMessageUpdated, "ses_0", "", fields{"message": "m2", "finish": "tool-calls", "cost": 0.5, "tool_calls": []fields{{"call": "c1", "tool": "read"}}})
	j.add(centurion.EventMessageUpdated, "ses_0", "", fields{"message": "m3", "finish": "cancelled", "text": "half"})
	j.add(centurion.EventMessageUpdated, "ses_0", "", fields{"message": "m3", "finish": "error", "text": "half"})
	j.add(centurion.EventMessageUpdated, "ses_0", "", fields{"message": "m3", "repaired": true, "text": "half"})
	j.add(centurion.EventRewound, "ses_0", "", fields{"to": "m1"})
	j.add(centurion.EventMissionPaused, "", "", nil)
	other := &j.facts[len(j.facts)-1]
	other.Mission = "msn_2"
	j.add(centurion.EventSessionError, "ses_0", "", fields{"error": "no", "kind": "network", "message": "m4"})
	j.add(centurion.EventProviderRetry, "ses_0", "", event.RetryData{Attempt: 3})
	j.add(centurion.EventSessionIdle, "ses_0", "", nil)
	var d Deriver
	var got []string
	for i := range j.facts {
		f := &j.facts[i]
		f.Time = centurion.Now()
		for _, e := range d.Apply(*f) {
			got = append(got, fmt.Sprintf("%d %s %s", e.Seq, e.Type, e.Data))
			if e.Mission != f.Mission || !e.Time.Equal(f.Time.Time) {
				t.Errorf("%s of %q at %v", e.Type, e.Mission, e.Time)
			}
		}
		if f.Seq == 9 {
			if all := d.Running("ses_0"); len(all) != 1 || all[0] != (Call{Call: "c2", Name: "ls"}) || d.Running("ses_9") != nil || !d.Working("ses_0") || d.Working("ses_9") || d.Newest("ses_9") != "" {
				t.Errorf("running: %+v", all)
			}
		}
	}
	want := []string{
		`2 agent_start {"agent":"worker","address":"0/1","title":"Write it","text":"go"}`,
		`3 retrying {"attempt":2,"wait_ms":500,"reason":"rate_limit","error":"429"}`,
		`5 tool_execution_start {"name":"read","args":{"path":"a"},"call":"c1"}`,
		`6 tool_execution_start {"name":"ls","args":{},"call":"c2"}`,
		`8 tool_execution_end {"name":"read","result":"text","call":"c1"}`,
		`0 tool_execution_start {"name":"bash","args":{},"call":"c3"}`,
		`9 tool_execution_end {"name":"bash","result":"","call":"c3","error":"refused"}`,
		`10 turn_end {"message":{"id":"m2","role":"assistant","finish":"tool-calls","tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"cost":0.5},"tool_calls":[{"call":"c1","name":"read"}]}`,
		`14 session.rewound {"to":"m1"}`,
		`15 mission.paused {}`,
		`0 tool_execution_end {"name":"ls","result":"","call":"c2","error":"no"}`,
		`16 error {"reason":"no","kind":"network","message":"m4","done":true}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What an end repeats of a conversation is at most the newest messages, with who wrote them; a gap says when it was, for the shown session.
func TestEndAndGap(t *testing.T) {
	var j journal
	j.add(centurion.EventSessionCreated, "ses_0", "", event.SessionData{Agent: "worker"})
	for i := range MaxMessages + 2 {
		j.add(centurion.EventMessageCreated, "ses_0", "", fields{"message": fmt.Sprint("m", i), "role": "user", "origin": "host", "text": "go"})
	}
	j.add(centurion.EventSessionIdle, "ses_0", "", fields{"finish": "stop"})
	d := Deriver{Session: "ses_0"}
	var all []centurion.Event
	for _, f := range j.facts {
		all = append(all, d.Apply(f)...)
	}
	last := all[len(all)-1]
	end, err := event.Decode[EndData](last)
	if err != nil || last.Type != End || len(end.Messages) != MaxMessages || end.Messages[0] != (Message{ID: "m2", Role: centurion.RoleUser, Origin: centurion.OriginHost, Text: "go"}) {
		t.Errorf("%v, %s with %d messages: %+v", err, last.Type, len(end.Messages), end.Messages[0])
	}
	gap := centurion.Event{After: 5, Time: centurion.MillisTime(1000), Type: centurion.EventDelta, Mission: "msn_1", Data: event.Data(event.DeltaData{Gap: true})}
	got := d.Apply(gap)
	if len(got) != 1 || got[0].After != 5 || got[0].Time != gap.Time || got[0].Type != Gap || got[0].Mission != "msn_1" || got[0].Session != "ses_0" || string(got[0].Data) != "{}" {
		t.Errorf("a gap: %+v", got)
	}
	gap.Data = []byte(`[]`)
	if got = d.Apply(gap); len(got) != 0 {
		t.Errorf("a delta of another form: %+v", got)
	}
}

// A session's end with its mission says why, if anybody did, and a task without a parent starts no nesting.
func TestClosedByTheMission(t *testing.T) {
	for data, want := range map[string]string{`{}`: "the mission is paused", `{"reason":"enough"}`: "the mission is paused: enough"} {
		var j journal
		j.add(centurion.EventTaskQueued, "", "tsk_1", event.TaskData{Call: "m/c"})
		j.add(centurion.EventMessageCreated, "ses_1", "tsk_1", fields{"message": "m", "role": "assistant", "text": "not a prompt"})
		j.add(centurion.EventMissionPaused, "ses_0", "", json.RawMessage(data))
		var d Deriver
		var got []string
		for _, f := range j.facts {
			for _, e := range d.Apply(f) {
				got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Session, e.Data))
			}
		}
		if want := []string{"agent_start ses_1 {}", `error ses_1 {"reason":"` + want + `","kind":"cancelled","done":true}`, "mission.paused ses_0 " + data}; !slices.Equal(got, want) {
			t.Errorf("got %q\nwant %q", got, want)
		}
	}
}

// Working reports whether a session is between its agent_start and the end of that.
func (d *Deriver) Working(id string) bool { s := d.sessions[id]; return s != nil && s.working }

// Running returns the calls of a session that have begun and not ended, oldest first.
func (d *Deriver) Running(id string) []Call {
	if s := d.sessions[id]; s != nil {
		return slices.Clone(s.running)
	}
	return nil
}

// Newest returns the id of the newest message of a session that was told, or "".
func (d *Deriver) Newest(id string) string {
	if s := d.sessions[id]; s != nil {
		return s.newestMessage
	}
	return ""
}

// What a task does whose parent's session was never told is nested in that session once, and belongs to no task.
func TestParentNeverTold(t *testing.T) {
	d := Deriver{Session: "ses_0"}
	d.tasks = map[string]origin{"tsk_1": {session: "ses_0", call: "call_1"}}
	got := d.tell(&session{id: "ses_1", task: "tsk_1"}, centurion.Event{Mission: "msn_1"}, MessageDelta, fields{})
	if len(got) != 1 || got[0].Session != "ses_0" || got[0].Task != "" || got[0].Type != SubAgentEvent {
		t.Errorf("%+v", got)
	}
}
