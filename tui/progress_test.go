package tui

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/progress"
	"centurion/event/toast"
)

// ORCH-94, ORCH-96, ORCH-98: the live view has the consolidated list's counts and slots on one line, and marks a new task that
// does nothing yet.
func TestLiveList(t *testing.T) {
	l := toast.List{Tasks: sampleTasks(), Slots: 5, PerAgent: 3}
	if got, want := slots(l), "Running (2): [1/6] · Queued (2) · Slots: 2/5 · worker 2/3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s := newStage().start().task("T1", "worker", "Parse them", true)
	b := &Board{PerAgent: 3}
	for _, e := range s.events {
		b.Apply(e)
	}
	show := func(later time.Duration) string {
		return strings.Join(frame{board: b, now: s.now.Add(later), width: 80, height: 20}.lines(), "\n")
	}
	if got := show(3 * time.Second); !strings.Contains(got, "Parse them  ← NEW") || !strings.Contains(got, "Running (1): [0/1] · Slots: 1/50 · worker 1/3") {
		t.Error(got)
	}
	if got := show(5 * time.Second); strings.Contains(got, "NEW") {
		t.Error(got)
	}
}

func toastEvent(x toast.Toast) centurion.Event {
	return centurion.Event{Type: centurion.EventToast, After: 3, Time: centurion.Time{Time: curtain}, Mission: "msn_1", Data: event.Data(x)}
}

// ORCH-126: the live view shows the newest toast as its last line for as long as it says; it is no fact and changes no board.
func TestLiveToast(t *testing.T) {
	now := curtain
	m := newLive(t.Context(), Options{Env: []string{"NO_COLOR=1", "TERM=xterm"}, Width: 80, Height: 24, Now: func() time.Time { return now }})
	s := newStage().start().at(centurion.EventMissionUpdated, "ses_0", "", data{"countdown_ms": 60_000})
	m.feed.events = append(s.events, toastEvent(toast.Toast{Title: "Tasks", Message: "one\x1b[2J\ntwo", Variant: toast.Info, Duration: 3000}),
		toastEvent(toast.Toast{Message: "Task failed: x (2s)", Variant: toast.Error, Duration: 8000}))
	m.Update(tickMsg(now))
	last := func() string { l := strings.Split(m.content, "\n"); return l[len(l)-1] }
	if got := last(); got != "  » Task failed: x (2s)" {
		t.Errorf("the last line is %q in\n%s", got, m.content)
	}
	if !strings.Contains(m.content, "continues in 1m00s") {
		t.Errorf("the toast has ended the countdown:\n%s", m.content)
	}
	now = now.Add(8 * time.Second)
	m.Update(tickMsg(now))
	if strings.Contains(m.content, "»") {
		t.Errorf("it stays:\n%s", m.content)
	}
	if f := toastFact(toastEvent(toast.Toast{Title: "Tasks", Message: "one\x1b[2J\ntwo"})); f.text != "Tasks · one · two" {
		t.Errorf("several lines: %q", f.text)
	}
}

// A toast is coloured by its variant: what was cancelled is no failure.
func TestToastTones(t *testing.T) {
	for v, want := range map[toast.Variant]tone{toast.Info: dim, toast.Success: good, toast.Warning: warn, toast.Error: bad, "odd": dim} {
		if got := toastFact(toastEvent(toast.Toast{Message: "m", Variant: v})).tone; got != want {
			t.Errorf("%s has the tone %d", v, got)
		}
	}
}

// ORCH-20: snapshots as a table.
func TestProgress(t *testing.T) {
	var b strings.Builder
	all := []progress.Snapshot{
		{Step: 1, Tokens: centurion.Tokens{Input: 2100}, Cost: 0.012, ElapsedMS: 4000},
		{Step: 12, Todo: event.TodoCounts{Open: 2, Running: 1, Done: 3, Cancelled: 4}, Running: 1, Tokens: centurion.Tokens{Input: 1_200_000}, Unpriced: true, ElapsedMS: 125_000},
	}
	if err := Progress(&b, all, ShowOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = `STEP     TODO  RUNNING   TOKENS      COST  ELAPSED
   1        -        0     2.1k    $0.012       4s
  12      3/6        1     1.2M        $?    2m05s
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// ORCH-134: notices as lines, with their time.
func TestNotices(t *testing.T) {
	var b strings.Builder
	if err := Notices(&b, []centurion.Event{toastEvent(toast.Toast{Title: "Mission started", Message: "Mend it"})}, ShowOptions{Now: curtain}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != "12:03:07 » Mission started · Mend it\n" {
		t.Errorf("got %q", got)
	}
}
