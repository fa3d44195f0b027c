package tui

import (
	"context"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/event"
	"centurion/event/toast"
)

// A message is sent once, however often enter is pressed meanwhile; it counts as unread until the Commander's own conversation has it.
func TestLineIsSentOnce(t *testing.T) {
	s := newStage().workers()
	w := &letters{}
	m := s.view(t, 100, 40, Options{Writer: w})
	keys(m, "m")
	typed(m, "hello")
	_, send := m.Update(press("enter"))
	_, again := m.Update(press("enter"))
	m.Update(press("x"))
	if run(m, send); again != nil || strings.Join(w.got, "|") != "hello" || !m.unread {
		t.Errorf("written %q, again: %t, unread: %t", w.got, again != nil, m.unread)
	}
	from := len(s.events)
	s.at(centurion.EventMessageCreated, "ses_T1", "tsk_T1", data{"message": "msg_2", "role": "user", "origin": "person", "text": "to a worker"})
	if more(m, s, from); !m.unread {
		t.Error("a message to a worker counts as the one to the Commander")
	}
	from = len(s.events)
	if more(m, s.personSays("hello"), from); m.unread {
		t.Error("it was read and counts as unread")
	}
}

// A terminal of no height is none; one that changes is drawn anew after its first frame; what comes for a dialog that is gone does nothing.
func TestWhatComesLate(t *testing.T) {
	m := asked(centurion.EventPermissionAsked, event.AskData{ID: "per_1", Permission: "bash", Patterns: []string{"ls"}}).view(t, 100, 40, Options{})
	m.Update(tea.WindowSizeMsg{Width: 90})
	if m.w != 100 || m.h != 40 {
		t.Errorf("a terminal of %d × %d", m.w, m.h)
	}
	if _, cmd := m.Update(tea.WindowSizeMsg{Width: 90, Height: 40}); m.frames != 0 || cmd == nil || m.w != 90 || !m.retell {
		t.Errorf("after one frame: %d frames, %d wide, told again: %t", m.frames, m.w, m.retell)
	}
	m.Update(tea.PasteMsg{Content: "once"})
	if string(m.dialog.input.text) != "" {
		t.Errorf("%q is pasted into a permission", string(m.dialog.input.text))
	}
	m.dialog = nil
	m.Update(tea.PasteMsg{Content: "once"})
	if _, cmd := m.Update(planFileMsg{"per_1", "/plan", nil}); cmd != nil {
		t.Error("the editor is opened for a plan that nobody asks about")
	}
	if got := editor(t.Context(), "", "/plan").Args; strings.Join(got[2:], " ") != `vi "$1" sh /plan` {
		t.Errorf("without an editor: %q", got)
	}
}

// The items of a plan are read when its dialog opens.
func TestPlanIsReadForItsDialog(t *testing.T) {
	s := newStage().plan()
	m := newLive(t.Context(), Options{Width: 80, Height: 24, Env: []string{"NO_COLOR=1"}, Plan: func(context.Context) ([]Item, error) { return []Item{{ID: "T9", Title: "From the file"}}, nil }})
	m.feed.events = s.events
	run(m, m.drain())
	if m.refresh(); !strings.Contains(m.content, "T9") {
		t.Errorf("the dialog is\n%s", m.content)
	}
}

// Of several tasks all are shown that need the person or left files; a cost that is not known whole is not shown as if it were.
func TestSeveralAreShown(t *testing.T) {
	s := newStage().workers()
	for _, task := range []string{"T4", "T2"} {
		s.at(centurion.EventPermissionAsked, "ses_"+task, "tsk_"+task, event.AskData{ID: "per_" + task, Permission: "bash", Patterns: []string{"ls"}})
	}
	m := s.view(t, 100, 40, Options{})
	for _, row := range []string{"? T2 worker", "? T4 worker"} {
		if !strings.Contains(m.content, row) {
			t.Errorf("no %q in\n%s", row, m.content)
		}
	}
	var b strings.Builder
	tasks := []centurion.Task{{ID: "tsk_1", Aside: []centurion.Aside{{Dir: "/a", Files: []string{"x"}}}}, {ID: "tsk_2", Aside: []centurion.Aside{{Dir: "/b", Files: []string{"y"}}}}}
	if err := Show(&b, Shown{Mission: &centurion.Mission{ID: "msn_1"}, Tasks: tasks}, ShowOptions{Now: curtain}); err != nil {
		t.Fatal(err)
	}
	if err := Show(&b, Shown{Session: &centurion.Session{ID: "ses_1", Cost: 1, Metadata: centurion.SessionMeta{Unpriced: true}}}, ShowOptions{Now: curtain}); err != nil {
		t.Fatal(err)
	}
	if err := Tasks(&b, sampleTasks(), ShowOptions{Now: curtain, PerAgent: 3}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kept in /a\n", "kept in /b\n", "worker 2/3\n", "  usage     0 tokens · $?\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if got := Doubts([]centurion.Receipt{{Task: "tsk_1", Passed: true}}); len(got) != 0 {
		t.Errorf("a check that was not judged: %v", got)
	}
}

// A toast is one line of its title and its message, the title not twice.
func TestToastLine(t *testing.T) {
	for want, d := range map[string]toast.Toast{"Done · all · of it": {Title: "Done", Message: "all\nof it"}, "all": {Title: "all", Message: "all"}, "only this": {Message: "only this"}} {
		e := centurion.Event{Type: centurion.EventToast, Data: event.Data(d)}
		if got := (&story{}).apply(e); len(got) != 1 || got[0].text != want {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}
