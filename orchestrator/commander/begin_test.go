package commander

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// loopOf is the loop of a recorded mission, with a permission and a question that are open.
func loopOf(t *testing.T, m centurion.Mission) (l *Loop, end context.CancelCauseFunc) {
	t.Helper()
	st := storetest.Open(t)
	m.ID, m.Session = "msn_1", "ses_0"
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&m), tx.PutSession(&centurion.Session{ID: "ses_0", Metadata: centurion.SessionMeta{Mission: m.ID, Address: "0/"}}))
		for _, kind := range []string{store.AskPermission, store.AskQuestion} {
			err = errors.Join(err, tx.PutAsk(&store.Ask{ID: "ask_" + kind, Type: kind, Mission: m.ID, Session: "ses_0"}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	shared := state.New(ctx, end, st, m, nil)
	return &Loop{Mission: shared, Plan: plan.New(shared, nil, nil, ws.Todo(), nil), Confined: &centurion.Confinement{Way: "full"}, Ending: func() {}}, end
}

// told lists what the journal has of a mission: each event with its status and reason.
func told(t *testing.T, l *Loop) string {
	t.Helper()
	events, err := l.Mission.Store.Events(t.Context(), store.EventQuery{Mission: "msn_1"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range events {
		var d event.MissionData
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(e.Type, " ", d.Status, " ", d.Reason)))
	}
	return strings.Join(all, ", ")
}

// A mission that had stopped plans again until it has a plan, and forgets its failed checks and what was reverted; one whose host went away
// continues as it was, and its permissions are asked again.
func TestBegin(t *testing.T) {
	t.Parallel()
	const alone = agents.ProfileAssistant
	for name, c := range map[string]struct {
		mission centurion.Mission
		again   string
		want    string // status, runs, reopened checks, whether something is reverted
		told    string
		open    int // asks
	}{
		"the first run":        {centurion.Mission{Status: centurion.MissionPlanning}, "", "planning 1 2 true", "", 2},
		"its host went away":   {centurion.Mission{Status: centurion.MissionRunning, Runs: 1}, "", "running 2 2 true", "permission.replied, mission.resumed running its host went away", 1},
		"a full disk":          {centurion.Mission{Status: centurion.MissionRunning, Runs: 1}, "there is space", "running 2 2 true", "permission.replied, mission.resumed running there is space", 1},
		"resumed with a plan":  {centurion.Mission{Status: centurion.MissionPaused, Runs: 1, HadItems: true}, "", "running 2 0 false", "mission.resumed running", 2},
		"resumed without one":  {centurion.Mission{Status: centurion.MissionPaused, Runs: 1}, "", "planning 2 0 false", "mission.resumed planning", 2},
		"after it failed":      {centurion.Mission{Status: centurion.MissionFailed, Runs: 1}, "", "running 2 0 false", "mission.resumed running", 2},
		"a run that goes on":   {centurion.Mission{Status: centurion.MissionPaused, Runs: 1, Options: centurion.MissionOptions{Profile: alone}}, "", "running 2 0 false", "mission.resumed running", 2},
		"what cannot continue": {centurion.Mission{Status: centurion.MissionCancelled, Runs: 1}, "", "conflict", "", 2},
	} {
		c.mission.Reopened, c.mission.Reverted = 2, []centurion.Reverted{{}}
		l, _ := loopOf(t, c.mission)
		l.Again = c.again
		rec, err := l.Begin(t.Context())
		got := string(centurion.KindOf(err))
		if err == nil {
			now, err := l.Mission.Store.Mission(t.Context(), "msn_1")
			got = fmt.Sprint(now.Status, " ", now.Runs, " ", now.Reopened, " ", len(now.Reverted) > 0)
			if err != nil || rec.Runs != now.Runs || rec.Status != now.Status || now.Confinement == nil || now.Confinement.Way != "full" {
				t.Errorf("%s: returned %+v, stored %+v; %v", name, rec, now, err)
			}
		}
		var asks []store.Ask
		err = l.Mission.Store.Update(t.Context(), func(tx *store.Tx) (err error) {
			asks, err = tx.OpenAsks("msn_1")
			return err
		})
		if is := told(t, l); got != c.want || is != c.told || len(asks) != c.open || err != nil || err == nil && l.resumed != (strings.HasPrefix(c.told, "mission.resumed") || c.want == "conflict") {
			t.Errorf("%s: %s, told %q, %d asks are open, resumed %t; %v", name, got, is, len(asks), l.resumed, err)
		}
	}
}

// The verdict is recorded after all that belongs to it; not if the mission is handed over, has stopped already, or was written to meanwhile.
func TestFinish(t *testing.T) {
	t.Parallel()
	done, paused := Verdict{Status: centurion.MissionCompleted, Reason: "why"}, Verdict{Status: centurion.MissionPaused, Reason: "why", Hint: "do that"}
	handedOver := paused
	handedOver.Err = centurion.ErrHandover
	for name, c := range map[string]struct {
		status centurion.MissionStatus
		v      Verdict
		cause  error // why the work ended
		mail   bool
		over   bool
		want   string
		told   string
	}{
		"complete":          {centurion.MissionRunning, done, nil, false, false, "completed why", "permission.replied, question.answered, mission.completed  why"},
		"written to":        {centurion.MissionRunning, done, nil, true, false, "running", ""},
		"paused, with mail": {centurion.MissionRunning, paused, nil, true, false, "paused why (do that)", "permission.replied, mission.paused  why (do that)"},
		"at a limit":        {centurion.MissionRunning, paused, nil, false, true, "paused why (do that)", "budget.exceeded, permission.replied, mission.paused  why (do that)"},
		"handed over":       {centurion.MissionRunning, handedOver, nil, false, false, "running", ""},
		"by its context":    {centurion.MissionRunning, paused, centurion.ErrHandover, false, false, "running", ""},
		"stopped already":   {centurion.MissionCancelled, paused, nil, false, false, "cancelled", ""},
	} {
		l, end := loopOf(t, centurion.Mission{Status: c.status, ElapsedMS: 1000})
		ending := 0
		l.Ending = func() { ending++ }
		if c.over {
			_ = l.Mission.AtLimit(budget.Rounds)
		}
		if c.cause != nil {
			end(c.cause)
		}
		if c.mail {
			if err := l.Mission.Store.Update(t.Context(), func(tx *store.Tx) error {
				return tx.PutDelivery(&store.Delivery{ID: "del_1", Mission: "msn_1", Session: "ses_0", Origin: centurion.OriginPerson})
			}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := l.Finish(c.v)
		now, serr := l.Mission.Store.Mission(t.Context(), "msn_1")
		got := strings.TrimSpace(string(now.Status) + " " + now.Reason)
		unread := c.mail && c.v.Status == centurion.MissionCompleted
		if is := told(t, l); got != c.want || is != c.told || serr != nil || errors.Is(err, mail.ErrUnread) != unread || err != nil && !unread || ending != 1 || now.ElapsedMS < 1000 {
			t.Errorf("%s: %s after %d ms, told %q; %v, %v", name, got, now.ElapsedMS, is, err, serr)
		}
	}
}
