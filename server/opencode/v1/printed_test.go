package v1

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// Issue "Real OpenCode clients": what a running command has printed is shown in its part, to clients that come later as well, until it
// has ended.
func TestPrintedIsShown(t *testing.T) {
	x := newRig(t)
	next := x.listen("/event")
	asked := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: x.root.ID, Role: centurion.RoleAssistant, ParentID: centurion.NewID(centurion.PrefixMessage), Agent: "commander",
		Model: centurion.ModelRef{Provider: "custom", ID: "m"}, Path: centurion.MessagePath{Cwd: "/", Root: "/"}, Time: centurion.MessageTime{Created: 6}}
	run := centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: x.root.ID, MessageID: asked.ID, Type: centurion.PartTool, Tool: "bash", CallID: "c2",
		State: &centurion.ToolState{Status: centurion.ToolRunning, Input: json.RawMessage(`{}`), Metadata: map[string]any{"of": "it"}, Time: centurion.PartTime{Start: 7}}}
	x.fact(centurion.EventToolStarted, x.root.ID, "", event.ToolData{Tool: "bash", Call: "c2", Message: asked.ID, Part: run.ID}, func(tx *store.Tx) error {
		if err := tx.PutMessage(&asked); err != nil {
			return err
		}
		return tx.PutPart(&run)
	})
	for _, want := range []string{"part bash pending", "part bash running"} {
		if got := brief(next()); got != want {
			t.Fatalf("told %s, want %s", got, want)
		}
	}
	print := func(text string) {
		x.hub.Publish(centurion.Event{Type: centurion.EventDelta, Session: x.root.ID, Time: centurion.Now(), After: x.store.LastSeq(),
			Data: event.Data(event.DeltaData{Message: asked.ID, Part: run.ID, Field: "output", Delta: text})})
	}
	whole := func(e told) string {
		state, _ := e.Properties["part"].(map[string]any)["state"].(map[string]any)
		return fmt.Sprint(state["status"], state["metadata"])
	}
	print("one\n\x1b[31mtwo")
	if got, want := whole(next()), "runningmap[of:it output:one\ntwo]"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	print("\nthree")
	if got, want := whole(next()), "runningmap[of:it output:one\ntwo\nthree]"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	if _, body := x.ask("GET", "/session/"+x.root.ID+"/message/"+asked.ID, ""); !strings.Contains(body, `"output":"one\ntwo\nthree"`) {
		t.Errorf("a client that comes later reads %s", body)
	}
	print(strings.Repeat("x", event.MaxPrinted))
	if got := whole(next()); strings.Contains(got, "three") || len(got) > event.MaxPrinted+100 {
		t.Errorf("%d bytes are shown", len(got))
	}
	run.State = &centurion.ToolState{Status: centurion.ToolCompleted, Input: run.State.Input, Time: centurion.PartTime{Start: 7, End: 8}}
	x.fact(centurion.EventToolCompleted, x.root.ID, "", event.ToolData{Tool: "bash", Call: "c2", Message: asked.ID, Part: run.ID}, func(tx *store.Tx) error { return tx.PutPart(&run) })
	print("late")
	x.fact(centurion.EventSessionAborted, x.root.ID, "", nil, nil)
	for _, want := range []string{"part bash completed", "status idle"} {
		if got := brief(next()); got != want {
			t.Fatalf("told %s, want %s", got, want)
		}
	}
}
