package tui

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/agent"
)

// agentView plays what three sessions do: the Commander, its child and a second one beside it, and that one's own child.
func agentView() iter.Seq2[centurion.Event, error] {
	var d agent.Deriver
	var all []centurion.Event
	add := func(typ centurion.EventType, session, task string, v any) {
		all = append(all, d.Apply(centurion.Event{Seq: int64(len(all) + 1), Type: typ, Mission: "msn_1", Session: session, Task: task, Data: event.Data(v)})...)
	}
	begin := func(session, task, name, address, text string) {
		add(centurion.EventSessionCreated, session, task, event.SessionData{Agent: name, Address: address})
		add(centurion.EventMessageCreated, session, task, data{"message": "m", "role": "user", "text": text})
	}
	answer := func(session, task, text, finish string) {
		add(centurion.EventMessageUpdated, session, task, data{"message": "m", "finish": finish, "text": text})
	}
	begin("ses_0", "", "commander", "0/", "build it")
	answer("ses_0", "", "I hand it over.", "tool-calls")
	add(centurion.EventToolStarted, "ses_0", "", event.ToolData{Tool: "delegate_task", Call: "c1", Input: []byte(`{"agent":"worker"}`)})
	add(centurion.EventTaskQueued, "", "tsk_1", event.TaskData{Parent: "ses_0", Call: "m/c1"})
	add(centurion.EventTaskQueued, "", "tsk_2", event.TaskData{Parent: "ses_0", Call: "m/c1"})
	begin("ses_1", "tsk_1", "worker", "0/0", "make\na.txt")
	answer("ses_1", "tsk_1", "Alone I need no name.", "stop")
	begin("ses_2", "tsk_2", "planner", "0/1", "make a plan")
	answer("ses_2", "tsk_2", "Now each says who it is: \x1b[31mred\x1b[0m", "tool-calls")
	add(centurion.EventToolStarted, "ses_1", "tsk_1", event.ToolData{Tool: "write", Call: "w1", Input: []byte(`{"filePath":"a.txt"}`)})
	add(centurion.EventToolCompleted, "ses_1", "tsk_1", event.ToolData{Tool: "write", Call: "w1", Output: "written\nwhole"})
	add(centurion.EventTaskQueued, "", "tsk_3", event.TaskData{Parent: "ses_2", Call: "m/p1"})
	begin("ses_3", "tsk_3", "worker", "0/1/0", "look")
	add(centurion.EventToolStarted, "ses_3", "tsk_3", event.ToolData{Tool: "read", Call: "r1", Input: []byte(`{"filePath":"b.txt"}`)})
	add(centurion.EventToolCompleted, "ses_3", "tsk_3", event.ToolData{Tool: "read", Call: "r1", Error: "b.txt does not exist"})
	add(centurion.EventSessionError, "ses_3", "tsk_3", data{"error": "cancelled"})
	add(centurion.EventSessionIdle, "ses_1", "tsk_1", nil)
	add(centurion.EventProviderRetry, "ses_2", "tsk_2", event.RetryData{WaitMS: 1500, Error: "429"})
	add(centurion.EventSessionIdle, "ses_2", "tsk_2", nil)
	add(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "delegate_task", Call: "c1", Output: "told"})
	add(centurion.EventCompacted, "ses_0", "", event.CompactedData{Before: 9000, After: 300})
	add(centurion.EventSessionIdle, "ses_0", "", nil)
	add(centurion.EventMissionCompleted, "ses_0", "", nil)
	return func(yield func(centurion.Event, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// OPAL-57, SUB-15: what children do stands inside of a border, nested as they are, and with a name where two work beside each
// other. Nothing of a text reaches the terminal as a command to it.
func TestAgents(t *testing.T) {
	var out strings.Builder
	if err := RunAgents(t.Context(), &out, agentView()); err != nil {
		t.Fatal(err)
	}
	golden(t, "agents", out.String())
}

func TestAgentsEnd(t *testing.T) {
	broken := errors.New("gone")
	err := RunAgents(t.Context(), &strings.Builder{}, func(yield func(centurion.Event, error) bool) { yield(centurion.Event{}, broken) })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
