package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/retention"
	"centurion/server"
	"centurion/store"
	"centurion/workspace"
)

// Events are told of what was asked for only, from the journal and while they are followed, however long they are.
func TestEventsAreSelected(t *testing.T) {
	p := newProject(t) // whose two events have numbers 1 and 2
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		_, err1 := tx.Append(centurion.Event{Type: centurion.EventTaskStarted, Mission: p.mission.ID, Task: "tsk_b", Session: "ses_b"})
		_, err2 := tx.Append(centurion.Event{Type: centurion.EventTaskStarted, Mission: "msn_b", Task: "tsk_c", Session: "ses_c",
			Data: event.Data(event.MissionData{Note: strings.Repeat("long ", 1<<16)})})
		return errors.Join(err1, err2)
	}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, p.local)
	for _, api := range []server.API{p.local, c} {
		for name, tt := range map[string]struct {
			q    server.EventQuery
			want []int64
		}{
			"all":       {server.EventQuery{}, []int64{1, 2, 3, 4}},
			"after":     {server.EventQuery{After: 2}, []int64{3, 4}},
			"a mission": {server.EventQuery{Mission: p.mission.ID}, []int64{1, 2, 3}},
			"a session": {server.EventQuery{Session: "ses_b"}, []int64{3}},
			"a task":    {server.EventQuery{Task: p.task.ID}, []int64{2}},
		} {
			for _, follow := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				q := tt.q
				q.Follow = follow
				var got []int64
				for e, err := range api.Events(ctx, q) {
					if err != nil {
						t.Fatal(err)
					}
					if got = append(got, e.Seq); follow && len(got) == len(tt.want) {
						break
					}
				}
				cancel()
				if !slices.Equal(got, tt.want) {
					t.Errorf("%T, %s, follow %v: %v, want %v", api, name, follow, got, tt.want)
				}
			}
		}
	}
}

// Deltas come only to who asks for them.
func TestFollowWithoutDeltas(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	var got []centurion.EventType
	for e, err := range c.Events(t.Context(), server.EventQuery{Mission: p.mission.ID, After: 1, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Type); len(got) > 1 {
			break
		}
		p.hub.Publish(centurion.Event{Type: centurion.EventDelta, After: 2, Mission: p.mission.ID, Data: event.Data(event.DeltaData{Delta: "x"})})
		if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Append(centurion.Event{Type: centurion.EventTodoUpdated, Mission: p.mission.ID})
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []centurion.EventType{centurion.EventTaskQueued, centurion.EventTodoUpdated}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// The actions of a task are told by its id, and a task that was not begun yet has none.
func TestAgentViewOfATask(t *testing.T) {
	p := newProject(t)
	waiting := p.task
	waiting.ID, waiting.Session = centurion.NewID(centurion.PrefixTask), ""
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutTask(&waiting) }); err != nil {
		t.Fatal(err)
	}
	p.facts(t)
	got, err := collect(p.local.Events(t.Context(), server.EventQuery{View: server.ViewAgent, Task: p.task.ID}))
	if err != nil || len(got) == 0 || got[0].Type != "agent_start" || got[0].Session != p.session.ID {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = collect(p.local.Events(t.Context(), server.EventQuery{View: server.ViewAgent, Task: waiting.ID}))
	if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "has no session yet") {
		t.Errorf("a task that waits: %v", err)
	}
}

// A task that was removed from the store is read from the project's archive.
func TestTaskOfTheArchive(t *testing.T) {
	p := newProject(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if err := ws.AppendJSON(retention.Dir+"/tasks-2026-01-02.jsonl", []byte(`{"id":"tsk_old1","mission":"msn_1","title":"Old work"}`)); err != nil {
		t.Fatal(err)
	}
	p.local.Archive = ws
	if got, err := p.local.Task(t.Context(), "tsk_old1"); err != nil || got.Title != "Old work" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := p.local.Task(t.Context(), "tsk_none"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a task that is nowhere: %v", err)
	}
}

// A mission that runs is told with what it waits for, its open asks and a person who has stopped its turn, and with the time since its
// newest answer.
func TestStanding(t *testing.T) {
	p := newProject(t)
	p.mission.ElapsedMS, p.mission.Updated = 1000, centurion.Time{Time: time.Now().Add(-time.Hour)}
	for status, want := range map[centurion.MissionStatus]struct {
		asks   int
		reason string
	}{
		centurion.MissionRunning: {1, "stopped by the person: enough; it is idle until someone writes to it or resumes the mission"},
		centurion.MissionPaused:  {0, ""},
	} {
		p.mission.Status, p.mission.Reason, p.session.Metadata.Aborted = status, "", "enough"
		if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return errors.Join(tx.PutMission(&p.mission), tx.PutSession(&p.session)) }); err != nil {
			t.Fatal(err)
		}
		m, err := p.local.Mission(t.Context(), p.mission.ID)
		all, lerr := p.local.Missions(t.Context())
		if err != nil || lerr != nil || m.Asks != want.asks || m.Reason != want.reason || all[0].Asks != want.asks || all[0].Reason != want.reason {
			t.Errorf("%s: %d asks, %q; in the list %d, %q; %v, %v", status, m.Asks, m.Reason, all[0].Asks, all[0].Reason, err, lerr)
		}
		if alive := status.Alive(); alive && (m.DurationMS < 3_601_000 || m.DurationMS > 7_200_000) || !alive && m.DurationMS != 1000 {
			t.Errorf("%s: it has run for %d ms", status, m.DurationMS)
		}
	}
}

func (r *recording) Prompt(_ context.Context, p mail.Post) (mail.Reply, error) {
	r.calls = append(r.calls, fmt.Sprint("prompt ", p.To, " ", p.Text, " ", p.Origin))
	return mail.Reply{}, nil
}

func (r *recording) Send(_ context.Context, p mail.Post) (mail.Posted, error) {
	r.calls = append(r.calls, fmt.Sprint("send ", p.To, " ", p.Text, " ", p.Origin))
	return mail.Posted{}, nil
}

func (r *recording) Expand(_ context.Context, id, reason string) error {
	r.calls = append(r.calls, "expand "+id+" "+reason)
	return nil
}

func (r *recording) State(_ context.Context, id string) (control.State, error) {
	r.calls = append(r.calls, "state "+id)
	return control.State{}, nil
}

// Who has the token writes as a person, whatever else a message says of its author.
func TestWritersArePersons(t *testing.T) {
	r, ctx := &recording{}, t.Context()
	c := connect(t, r)
	post := mail.Post{To: "x", Text: "hi", Origin: centurion.OriginHost}
	for want, call := range map[string]func() error{
		"prompt x hi person": func() error { _, err := c.Prompt(ctx, post); return err },
		"send x hi person":   func() error { _, err := c.Send(ctx, post); return err },
		"expand x why":       func() error { return c.Expand(ctx, "x", "why") },
		"state x":            func() error { _, err := c.State(ctx, "x"); return err },
	} {
		r.calls = nil
		if err := call(); err != nil || !slices.Equal(r.calls, []string{want}) {
			t.Errorf("%q, want %q, %v", r.calls, want, err)
		}
	}
}

// A mission that cannot be worked on is told so to who starts or resumes it.
func TestLaunchFails(t *testing.T) {
	p, b := hosting(t)
	p.local.Work = refusing{b}
	if _, err := p.local.Start(t.Context(), "x", centurion.MissionOptions{Model: "custom/m"}); !errors.Is(err, errBegun) {
		t.Errorf("a start: %v", err)
	}
	if _, err := p.local.Resume(t.Context(), p.mission.ID, centurion.MissionOptions{}); !errors.Is(err, errBegun) {
		t.Errorf("a resume: %v", err)
	}
	p.mission.Status = centurion.MissionBlocked
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&p.mission) }); err != nil {
		t.Fatal(err)
	}
	if got, err := p.local.Send(t.Context(), mail.Post{To: "0/", Mission: p.mission.ID, Text: "go on"}); !errors.Is(err, errBegun) || got.Working {
		t.Errorf("an answer: %+v, %v", got, err)
	}
	p.local.Work = nil
	if got, err := p.local.Send(t.Context(), mail.Post{To: "0/", Mission: p.mission.ID, Text: "go on"}); err != nil || got.Working {
		t.Errorf("without a worker: %+v, %v", got, err)
	}
}

// Whoever gives up waiting for a host is told why they gave up, and an answer that is none is not taken for one.
func TestClientGivesUp(t *testing.T) {
	p := newProject(t)
	c := connect(t, p.local)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrBudget)
	if _, err := c.Missions(ctx); err != centurion.ErrBudget {
		t.Errorf("a read: %v", err)
	}
	for _, err := range c.Events(ctx, server.EventQuery{}) {
		if err != centurion.ErrBudget {
			t.Errorf("events: %v", err)
		}
	}
	nobody := &server.Local{Store: p.store}
	for name, err := range map[string]error{
		"tidy": func() error { _, err := nobody.Tidy(t.Context(), retention.TidyOptions{}); return err }(),
		"path": nobody.Expand(t.Context(), p.task.ID, ""),
	} {
		if centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), name) {
			t.Errorf("%s without a host: %v", name, err)
		}
	}
	if err := c.Cancel(t.Context(), p.mission.ID[:len(p.mission.ID)-3], ""); err != nil {
		t.Errorf("a mission's prefix: %v", err)
	}
	if m, err := p.local.Mission(t.Context(), p.mission.ID); err != nil || m.Status != centurion.MissionCancelled {
		t.Errorf("the mission is %s, %v", m.Status, err)
	}
}
