package orchestrator

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/pulse"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/workspace"
)

// What is not configured has its default, what is configured stays, and the sessions of a mission get it under its name.
func TestDefaultsOfAHost(t *testing.T) {
	t.Parallel()
	figures := func(c Config) string {
		return fmt.Sprint(c.Workers, c.PerAgent, c.Checks, c.Countdown, c.Returns, c.Await, c.GateWait, c.DiskWait, c.PollInterval, c.StallTimeout, c.SessionTTL, c.SubAgentIdle)
	}
	var c Config
	c.complete()
	equal(t, "by default", figures(c), fmt.Sprint(50, 10, max(2, runtime.NumCPU()), 2*time.Second, 3, 5*time.Minute, 5*time.Second, time.Minute, time.Second, 5*time.Minute, time.Hour, 2*time.Minute))
	equal(t, "trusted plans", c.TrustedPlan([]byte("x")), false)
	equal(t, "rules", fmt.Sprint(c.Rules("worker")), fmt.Sprint([]permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}))
	if c.Publish != nil || c.Watch == nil || c.Cast.Owner() != "commander" || c.cast(agents.ProfileAssistant).Owner() != "assistant" || c.cast(agents.ProfileMission) != c.Cast || c.cast("") != c.Cast {
		t.Errorf("%+v", c)
	}
	c.Look(t.Context())
	own := Config{Workers: 1, PerAgent: 2, Checks: 3, Countdown: 4, Returns: 5, Await: 6, GateWait: 7, DiskWait: 8, PollInterval: 9, StallTimeout: 10, SessionTTL: 11, SubAgentIdle: 12}
	want := figures(own)
	own.complete()
	equal(t, "as configured", figures(own), want)
	equal(t, "limits of a mission", fmt.Sprint((&inForce{Config: own}).width(centurion.MissionOptions{MaxWorkers: 7}).MaxWorkers, (&inForce{Config: own}).width(centurion.MissionOptions{}).MaxWorkers, (&inForce{Config: own}).width(centurion.MissionOptions{}).MaxPerAgent), "7 1 2")

	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	published := 0
	own.Workspace, own.Buffer, own.EveryEvent, own.Policies = ws, 99, true, map[string]session.Policy{"worker": ""}
	own.Publish = publisher(func(centurion.Event) { published++; panic("broken") })
	got := own.agentConfig()
	if got.GateWait != 7 || got.Await != 6 || got.Poll != 9 || got.Limits != (pulse.Limits{Silent: 10, Worked: 11}) || got.Session.Root != ws.Dir() || got.Session.Buffer != 99 || !got.Session.EveryEvent || len(got.Policies) != 1 {
		t.Errorf("%+v", got)
	}
	if got.Session.Publish(centurion.Event{}); published != 1 {
		t.Error("what is said is not published")
	}
}

// Another configuration is for what begins from then on: a mission keeps the one with which it began to run. It may be read before each start.
func TestRenewedConfiguration(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			return after(time.Minute, steps(do(work("", "x")), say("I wait"), say("well"))(q))
		},
		"worker": steps(say("made")),
	}, func(r *rig) {
		var looks atomic.Int32
		r.cfg.Look = func(context.Context) { looks.Add(1) }
		r.restart()
		before := r.start(centurion.MissionOptions{})
		l := r.live(before.ID)
		time.Sleep(10 * time.Second)
		if n := looks.Load(); n < 2 {
			t.Errorf("the configuration was looked at %d times", n)
		}
		cfg := r.cfg
		cfg.Version, cfg.Model, cfg.TaskBudget = "newer", r.host.cfg().Model, centurion.TaskBudget{ToolCalls: 7}
		r.host.Renew(cfg)
		later := r.start(centurion.MissionOptions{})
		r.is(l.settled(), centurion.MissionCompleted, "")
		r.runs = 0 // of the later one
		r.is(r.live(later.ID).settled(), centurion.MissionCompleted, "")
		for _, m := range []centurion.Mission{before, later} {
			version, calls := "test", 0
			if m.ID == later.ID {
				version, calls = "newer", 7
			}
			task := r.tasks(m.ID)[0]
			for _, id := range []string{m.Session, task.Session} {
				rec, err := r.store.Session(r.ctx, id)
				if err != nil || rec.Version != version {
					t.Errorf("%s of %s began with %q, %v", id, m.ID, rec.Version, err)
				}
			}
			equal(t, "budget of its task", task.Budget.ToolCalls, calls)
		}
	})
}
