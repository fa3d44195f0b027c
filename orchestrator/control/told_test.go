package control

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/store"
)

// Who ends what cannot be ended, or changes what does not run, is told why and what to do; what is ended without a reason has one.
func TestEndsAreTold(t *testing.T) {
	t.Parallel()
	type end func(*Desk, context.Context, string, string) error
	resize := func(d *Desk, ctx context.Context, id, _ string) error { return d.Resize(ctx, id, 1, 1) }
	look := func(d *Desk, ctx context.Context, id, _ string) error { _, err := d.State(ctx, id); return err }
	conflict := func(op, msg, hint string) error {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: msg, Hint: hint}
	}
	const running, paused, completed = centurion.MissionRunning, centurion.MissionPaused, centurion.MissionCompleted
	for name, c := range map[string]struct {
		is     centurion.MissionStatus
		end    end
		id     string
		reason string
		want   error
		why    string // of the mission
		task   string // why the first task was cancelled
	}{
		"abort, paused":      {paused, (*Desk).Abort, "msn_1", "", conflict("abort", "nothing to abort: mission msn_1 is paused", "see: centurion show msn_1"), "was", ""},
		"abort, complete":    {completed, (*Desk).Abort, "msn_1", "", conflict("abort", "nothing to abort: mission msn_1 is completed", "see: centurion show msn_1"), "was", ""},
		"pause, complete":    {completed, (*Desk).Pause, "msn_1", "", conflict("change mission msn_1", "it is completed and cannot become paused", ""), "was", ""},
		"resize":             {paused, resize, "msn_1", "", conflict("resize mission", "mission msn_1 is not running", "give the limits when it goes on: centurion resume msn_1 --max-workers N"), "was", ""},
		"look":               {paused, look, "tsk_3", "", conflict("look at session", "task tsk_3 has no session yet", "see what it waits for: centurion show tsk_3"), "was", ""},
		"pause":              {running, (*Desk).Pause, "msn_1", "", nil, "paused by a person", ""},
		"pause for a reason": {running, (*Desk).Pause, "msn_1", "lunch", nil, "lunch", ""},
		"stop":               {running, (*Desk).Stop, "msn_1", "", nil, "stopped by a person", ""},
		"stop for a reason":  {running, (*Desk).Stop, "msn_1", "lunch", nil, "lunch", ""},
		"stop a task":        {paused, (*Desk).Stop, "tsk_1", "", nil, "was", "stopped by a person"},
		"cancel":             {paused, (*Desk).Cancel, "msn_1", "", nil, "cancelled by a person", "cancelled by a person"},
		"cancel a task":      {paused, (*Desk).Cancel, "tsk_1", "no use", nil, "was", "no use"},
	} {
		t.Run(name, func(t *testing.T) {
			d := stopped(t, centurion.Mission{Status: c.is, Reason: "was"}, family...)
			if err := c.end(d, t.Context(), c.id, c.reason); !reflect.DeepEqual(err, c.want) {
				t.Errorf("%+v, want %+v", err, c.want)
			}
			m, err := d.Store.Mission(t.Context(), "msn_1")
			one, terr := d.Store.Task(t.Context(), "tsk_1")
			said := ""
			if one.Error != nil {
				said = one.Error.Message
			}
			if err != nil || terr != nil || m.Reason != c.why || said != c.task {
				t.Errorf("the mission: %q, want %q; its task: %q, want %q; %v, %v", m.Reason, c.why, said, c.task, err, terr)
			}
		})
	}
}

// What a session is and has spent is told whole, with its children and what it has not read.
func TestStateIsWhole(t *testing.T) {
	t.Parallel()
	d := stopped(t, centurion.Mission{Status: centurion.MissionPaused, Reason: "why"}, family...)
	if err := d.Store.Update(t.Context(), func(tx *store.Tx) error {
		rec, err := tx.Session("ses_1")
		if err != nil {
			return err
		}
		rec.Tokens, rec.Cost, rec.Metadata.Unpriced = centurion.Tokens{Input: 5}, 0.5, true
		child, err := tx.Task("tsk_4")
		if err != nil {
			return err
		}
		child.Agent, child.Title, child.Reason = "reviewer", "four", "well"
		return errors.Join(tx.PutSession(&rec), tx.PutTask(&child), tx.PutDelivery(&store.Delivery{ID: "dlv_1", Mission: "msn_1", Session: "ses_1", Text: "x"}),
			tx.PutMessage(&centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleUser}), tx.PutMessage(&centurion.Message{ID: "msg_2", SessionID: "ses_1", Role: centurion.RoleAssistant}))
	}); err != nil {
		t.Fatal(err)
	}
	want := State{Session: "ses_1", Address: "0/1", Mission: "msn_1", Task: "tsk_1", Agent: "worker", Model: "p/m", Activity: agent.Stopped, Reason: "why", Calls: []agent.RunningCall{}, Queued: 1,
		Children: []Child{{Task: "tsk_2", Session: "ses_2", Status: centurion.TaskQueued}, {Task: "tsk_4", Session: "ses_4", Agent: "reviewer", Title: "four", Status: centurion.TaskCompleted, Reason: "well"}},
		Newest:   "msg_2", Messages: 2, Tokens: centurion.Tokens{Input: 5}, Cost: 0.5, Unpriced: true}
	if got, err := StoredState(t.Context(), d.Store, "ses_1"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
}

// Another model is for the sessions that have the mission's own, and only if it is another.
func TestRaiseOfAModel(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"q/n": "q/n", "": "p/m", "p/m": "p/m"} {
		d := stopped(t, centurion.Mission{Status: centurion.MissionPaused, Options: centurion.MissionOptions{Model: "p/m"}}, family...)
		if err := d.Raise(t.Context(), "msn_1", centurion.MissionOptions{Model: given}); err != nil {
			t.Fatal(err)
		}
		m, err := d.Store.Mission(t.Context(), "msn_1")
		rec, serr := d.Store.Session(t.Context(), "ses_1")
		if err != nil || serr != nil || m.Options.Model != want || rec.Model.Provider+"/"+rec.Model.ID != want {
			t.Errorf("%q: %s, and a session %+v; %v, %v", given, m.Options.Model, rec.Model, err, serr)
		}
	}
}
