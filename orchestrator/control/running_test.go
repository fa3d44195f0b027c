package control

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
)

// underWay is a desk whose mission runs, with nothing of it open yet.
func underWay(t *testing.T, tasks ...centurion.Task) (*Desk, *Mission) {
	t.Helper()
	d := stopped(t, centurion.Mission{Status: centurion.MissionRunning}, tasks...)
	rec, err := d.Store.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	m := &Mission{State: state.New(t.Context(), nil, d.Store, rec, nil), Sessions: &agent.Sessions{}, Slots: slots.New(9, slots.Caps{}).Pool(6, 3)}
	d.Running = func(id string) *Mission { return map[string]*Mission{"msn_1": m}[id] }
	return d, m
}

// Where a task, or the mission's own agent, works is asked of the mission that runs, and otherwise of the project.
func TestExpand(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{"tsk_2": "tsk_2", "ses_1": "tsk_1", "msn_1": "", "ses_0": ""} {
		var asked []string
		d := stopped(t, centurion.Mission{Status: centurion.MissionPaused}, family...)
		d.Expanding = func(_ context.Context, mission, task string) error {
			asked = append(asked, mission+" "+task)
			return errors.New("no")
		}
		if err := d.Expand(t.Context(), id, ""); err == nil || !slices.Equal(asked, []string{"msn_1 " + want}) {
			t.Errorf("%s, at rest: %q, %v", id, asked, err)
		}
		d, m := underWay(t, family...)
		asked = nil
		m.Expand = func(_ context.Context, task string) error {
			asked = append(asked, task)
			return errors.New("no")
		}
		if err := d.Expand(t.Context(), id, ""); err == nil || !slices.Equal(asked, []string{want}) {
			t.Errorf("%s, under way: %q, %v", id, asked, err)
		}
	}
	if err := stopped(t, centurion.Mission{}).Expand(t.Context(), "tsk_9", ""); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("of nothing: %v", err)
	}
}

// A mission whose own agent is not open yet has no turn that could be ended: who asks for it waits a while, and then hears that it has to be
// asked again.
func TestAbortOfAMissionJustBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, _ := underWay(t, family...)
		if err := d.Abort(t.Context(), "msn_1", ""); err == nil || err.Error() != "abort: mission msn_1 has only just begun" || centurion.HintOf(err) != "try again" {
			t.Errorf("%v (%s)", err, centurion.HintOf(err))
		}
		for id, want := range map[string]struct {
			kind centurion.Kind
			took time.Duration
		}{"msn_1": {centurion.KindConflict, beginning}, "ses_0": {centurion.KindConflict, beginning}, "tsk_4": {centurion.KindConflict, 0}, "tsk_9": {centurion.KindNotFound, 0}} {
			began := time.Now()
			if err := d.Abort(t.Context(), id, ""); centurion.KindOf(err) != want.kind || time.Since(began) != want.took {
				t.Errorf("%s: %v after %s, want %+v", id, err, time.Since(began), want)
			}
		}
	})
}

// A mission that has only just begun is stopped as soon as it runs, because its record alone would not keep it from going on; one that does not come
// to that is stopped in its record. One at rest is not waited for, and has nothing to abort.
func TestStopOfAMissionJustBegun(t *testing.T) {
	t.Parallel()
	const late = 20 * beginningPoll
	for name, c := range map[string]struct {
		is, becomes centurion.MissionStatus
		runs        bool
		took        time.Duration
	}{
		"it runs":       {centurion.MissionPlanning, centurion.MissionPlanning, true, late},
		"it never runs": {centurion.MissionPlanning, centurion.MissionPaused, false, starting},
		"it is running": {centurion.MissionRunning, centurion.MissionPaused, false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := stopped(t, centurion.Mission{Status: c.is})
			var ended, dropped []string
			has := make(chan struct{})
			m := &Mission{Stopped: has, Drop: func(cause error) {
				dropped = append(dropped, string(centurion.KindOf(cause))+" "+cause.Error())
				close(has)
			}}
			began := time.Now()
			d.Ended = func(id string) { ended = append(ended, "ended "+id) }
			d.Running = func(string) *Mission {
				if c.runs && time.Since(began) >= late {
					return m
				}
				return nil
			}
			err := d.Pause(t.Context(), "msn_1", "why")
			took := time.Since(began)
			rec, rerr := d.Store.Mission(t.Context(), "msn_1")
			want := []string{"ended "}
			if c.runs {
				want = []string{"interrupted why"}
			}
			if err != nil || rerr != nil || took != c.took || rec.Status != c.becomes || !slices.Equal(append(dropped, ended...), want) || !c.runs && rec.Reason != "why" {
				t.Errorf("%s: %v, %v after %s; %s, %q; %q, %q", name, err, rerr, took, rec.Status, rec.Reason, dropped, ended)
			}
			if began = time.Now(); !c.runs {
				if err := d.Abort(t.Context(), "msn_1", ""); err == nil || err.Error() != "abort: nothing to abort: mission msn_1 is paused" || centurion.HintOf(err) != "see: centurion show msn_1" || time.Since(began) > 0 {
					t.Errorf("%s: to abort: %v (%s) after %s", name, err, centurion.HintOf(err), time.Since(began))
				}
			}
		})
	}
}

// A task that has ended, but whose goroutine still lives, is stopped with its family: it may be writing.
func TestStopReachesWhatStillRuns(t *testing.T) {
	t.Parallel()
	d, m := underWay(t, family...)
	m.State.Add(&state.Run{ID: "tsk_4"})
	to, _, err := d.find(t.Context(), "tsk_1")
	if err != nil {
		t.Fatal(err)
	}
	living, err := d.livingBelow(t.Context(), to)
	if want := []string{"tsk_1", "tsk_2", "tsk_3", "tsk_4"}; err != nil || !slices.Equal(living, want) {
		t.Errorf("%s, %v; want %s", living, err, want)
	}
}

// room is how many sessions begin at once, in all and of one agent.
func room(t *testing.T, p *slots.Pool) (all, one int) {
	t.Helper()
	begin := func(agent string) {
		if _, err := p.Launch(t.Context(), p.Join(agent), func(context.Context) (centurion.ModelRef, error) { return centurion.ModelRef{}, nil }); err != nil {
			t.Fatal(err)
		}
		all++
	}
	for ; !p.Full("one"); one++ {
		begin("one")
	}
	for name := "a"; !p.Full(name); name += "a" {
		begin(name)
	}
	return all, one
}

// New limits count at once and are kept; a limit that is not given stays.
func TestResize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ workers, perAgent, wantAll, wantAgent int }{{5, 0, 5, 2}, {0, 1, 4, 1}, {5, 1, 5, 1}} {
		d, m := underWay(t)
		if err := d.Resize(t.Context(), "msn_1", c.workers, c.perAgent); err != nil {
			t.Fatal(err)
		}
		rec, err := d.Store.Mission(t.Context(), "msn_1")
		if err != nil || rec.Options.MaxWorkers != c.workers || rec.Options.MaxPerAgent != c.perAgent {
			t.Errorf("kept %+v, %v", rec.Options, err)
		}
		if err := d.Resize(t.Context(), "msn_1", 0, 0); err != nil {
			t.Fatal(err)
		}
		if now, err := d.Store.Mission(t.Context(), "msn_1"); err != nil || now.Options.MaxWorkers != c.workers || now.Options.MaxPerAgent != c.perAgent {
			t.Errorf("nothing is given, kept %+v, %v", now.Options, err)
		}
		if all, one := room(t, m.Slots); all != c.wantAll || one != c.wantAgent {
			t.Errorf("%+v: %d at once, %d of one agent", c, all, one)
		}
	}
}

// To resume a mission that was only to be planned is to accept its plan, with the checks in it. A plan whose text a person has trusted is
// accepted as well; a plan that an agent has brought is not.
func TestRaiseAcceptsThePlan(t *testing.T) {
	t.Parallel()
	const text = "# Plan\n- [ ] T1 One\n  - verify: `make`\n"
	for name, c := range map[string]struct {
		mission  centurion.Mission
		text     string
		trusted  bool
		accepted bool
		approved []string
		kind     centurion.Kind
	}{
		"planned":         {centurion.Mission{HadItems: true, Options: centurion.MissionOptions{PlanOnly: true}}, text, false, true, []string{"make"}, ""},
		"not planned yet": {centurion.Mission{Options: centurion.MissionOptions{PlanOnly: true}}, text, false, false, nil, ""},
		"brought along":   {centurion.Mission{HadItems: true, Adopted: []string{"make"}}, text, false, false, nil, ""},
		"trusted":         {centurion.Mission{HadItems: true, Adopted: []string{"make"}}, text, true, false, []string{"make"}, ""},
		"its own":         {centurion.Mission{HadItems: true}, text, true, false, nil, ""},
		"not to be read":  {centurion.Mission{HadItems: true, Options: centurion.MissionOptions{PlanOnly: true}}, "\xff", false, false, nil, centurion.KindUsage},
	} {
		ws, err := workspace.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		if err := ws.WriteFile(ws.Todo().Path(), []byte(c.text)); err != nil {
			t.Fatal(err)
		}
		c.mission.Status, c.mission.Todo = centurion.MissionPaused, ws.Todo().Path()
		d := stopped(t, c.mission)
		d.Workspace, d.TrustedPlan = ws, func(b []byte) bool { return c.trusted && string(b) == text }
		err = d.Raise(t.Context(), "msn_1", centurion.MissionOptions{})
		m, merr := d.Store.Mission(t.Context(), "msn_1")
		if centurion.KindOf(err) != c.kind || merr != nil || m.Accepted != c.accepted || !slices.Equal(m.Approved, c.approved) || m.Options.PlanOnly != (c.kind != "") {
			t.Errorf("%s: accepted %v, approved %q, only planned %v; %v, %v", name, m.Accepted, m.Approved, m.Options.PlanOnly, err, merr)
		}
	}
}

// Who resumes a mission waits until it is at work, until it will not be, or for a limited time.
func TestAwaitResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, test := range map[string]struct {
			alive, about, want time.Duration // when it is at work and is no more about to be, and the time of the wait
		}{
			"begins":       {2 * time.Second, time.Minute, 2 * time.Second},
			"fails before": {time.Minute, time.Second, time.Second},
			"hangs":        {time.Minute, time.Minute, beginning},
			"has begun":    {0, time.Minute, 0},
		} {
			status := centurion.MissionPaused
			if test.alive == 0 {
				status = centurion.MissionRunning
			}
			d := stopped(t, centurion.Mission{Status: status})
			timer := time.AfterFunc(test.alive, func() {
				_ = d.Store.Update(context.Background(), func(tx *store.Tx) error {
					return tx.PutMission(&centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning})
				})
			})
			start := time.Now()
			err := d.AwaitResumed(t.Context(), "msn_1", func() bool { return time.Since(start) < test.about })
			if got := time.Since(start).Round(time.Second); err != nil || got != test.want {
				t.Errorf("%s: it waited %v, %v", name, got, err)
			}
			timer.Stop()
			synctest.Wait()
		}
	})
}
