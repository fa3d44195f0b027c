package orchestrator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/loop"
	"centurion/orchestrator/commander"
	"centurion/provider/scripted"
	"centurion/recovery"
)

// ORCH-84, ORCH-85: how often a session is recovered, and how far apart its attempts are, is what was configured.
func TestConfiguredRecovery(t *testing.T) {
	cut := func(scripted.Request) scripted.Answer {
		return scripted.Answer{Say: "this is cut off", Cut: scripted.CutHalf}
	}
	bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": cut}, func(r *rig) {
		r.cfg.Recovery = recovery.Policy{MaxAttempts: 2, Cooldown: 7 * time.Second}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		one := r.tasks(m.ID)[0]
		equal(t, "status", one.Status, centurion.TaskFailed)
		equal(t, "requests", len(r.requests("worker")), 3)
		equal(t, "took", one.Ended.Sub(one.Started.Time).Round(time.Second), 14*time.Second)
	})
}

// ORCH-88, ORCH-91: the countdown is as long as was configured, and is told so; so are the rounds without progress after which
// another approach is asked for, and a person.
func TestConfiguredContinuation(t *testing.T) {
	bubble(t, map[string]script{"commander": stuck(99)}, func(r *rig) {
		r.cfg.Countdown, r.cfg.NewApproach, r.cfg.GiveUp = 9*time.Second, 1, 2
		r.restart()
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionBlocked, "no progress in 2 rounds")
		equal(t, "took", time.Since(began).Round(time.Second), 18*time.Second+commander.StuckFor)
		told := r.events(m.ID, centurion.EventMissionUpdated)
		has(t, string(told[len(told)-1].Data), `"countdown_ms":9000`)
		asked := r.requests("commander")
		equal(t, "requests", len(asked), 4)
		has(t, asked[3].Last(), continued, "different approach")
	})
	equal(t, "rounds by default", loop.DefaultNewApproach*10+loop.DefaultGiveUp, 35)
}

// ORCH-119, C-5: a synchronous delegation waits as long as was configured, a shorter time than by default or a longer one, and
// says how long it was.
func TestConfiguredWait(t *testing.T) {
	for _, test := range []struct {
		wait, takes int // minutes
		says        string
	}{
		{2, 4, "has not ended after 2m and continues in the background"},
		{8, 7, "<result>\nmade"},
		{8, 9, "has not ended after 8m and continues in the background"},
	} {
		t.Run(fmt.Sprint(test.takes, " of ", test.wait), func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(call("delegate_task", args{"agent": "worker", "description": "d", "prompt": "x", "background": false})), say("I wait")),
				"worker":    minutes(test.takes, "made"),
			}, func(r *rig) {
				r.cfg.Await = time.Duration(test.wait) * time.Minute
				r.restart()
				began := time.Now()
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(time.Duration(min(test.wait, test.takes))*time.Minute - time.Second)
				equal(t, "requests while it waits", len(r.requests("commander")), 1)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if len(r.requests("commander")) < 2 {
					t.Errorf("it still waits after %s", time.Since(began))
				}
				r.is(l.settled(), centurion.MissionCompleted, "")
				has(t, r.results(m.ID, "delegate_task")[0], test.says)
			})
		})
	}
}

// ORCH-127, ORCH-128, ORCH-129, ORCH-133, ORCH-141, ORCH-142, C-14: how long a session and a record are kept, and how many, is
// what was configured.
func TestConfiguredRetention(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		r.cfg.Retention, r.cfg.ArchiveFailedAfter, r.cfg.ArchiveAfter, r.cfg.KeepTasks = time.Minute, 2*time.Minute, 3*time.Minute, 4
		r.restart()
		n := 0
		m, _ := r.past(centurion.MissionCompleted, 5, func(t *centurion.Task) {
			if n++; n == 5 {
				t.Status = centurion.TaskFailed
			}
		})
		defer r.cleans()()
		for at, want := range []struct{ dropped, lines, kept int }{{0, 0, 5}, {5, 0, 5}, {5, 1, 4}, {5, 5, 4}} {
			time.Sleep(time.Second)
			synctest.Wait()
			equal(t, fmt.Sprint("sessions dropped after ", at, " min"), r.count(m.ID, centurion.EventSessionDeleted), want.dropped)
			equal(t, fmt.Sprint("lines of the archive after ", at, " min"), len(r.archiveLines()), want.lines)
			equal(t, fmt.Sprint("tasks kept after ", at, " min"), len(r.tasks(m.ID)), want.kept)
			time.Sleep(59 * time.Second)
		}
	})
}

// ORCH-117, ORCH-138, ORCH-140: how often it is looked, after which silence a session has stalled, and for how long an attempt
// may work is what was configured.
func TestConfiguredAudit(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		worker script
		kind   centurion.Kind
		took   time.Duration
		stalls int
	}{
		"a time to live": {func(c *Config) { c.SessionTTL = 10 * time.Minute }, minutes(1000, "never"), centurion.KindTimeout, 10 * time.Minute, 0},
		"a stall": {func(c *Config) { c.StallTimeout, c.Recovery.MaxAttempts = time.Minute, 1 },
			nil, centurion.KindStall, 2*time.Minute + 5*time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": test.worker}, func(r *rig) {
				test.change(&r.cfg)
				r.cfg.PollInterval = 5 * time.Second
				r.restart()
				if test.worker == nil {
					r.hangs("worker", 99)
				}
				m := r.mission(centurion.MissionOptions{})
				one := r.tasks(m.ID)[0]
				if one.Error == nil || one.Error.Kind != test.kind {
					t.Errorf("error %+v", one.Error)
				}
				took := one.Ended.Sub(one.Started.Time)
				if took < test.took || took > test.took+11*time.Second {
					t.Errorf("it took %s, want %s", took, test.took)
				}
				equal(t, "stalls", r.count(m.ID, centurion.EventTaskStalled), test.stalls)
				if n, most := r.host.auditor.Polls(), int64(took/(5*time.Second))+1; n > most || n < most-2 {
					t.Errorf("%d polls in %s", n, took)
				}
			})
		})
	}
}

// ORCH-110: a person's message that comes between failures is read with the next attempt and ends no row of them.
func TestPersonsMessageDoesNotReset(t *testing.T) {
	bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return status(500)(1) }}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		r.send(m.ID, "0/", "what is wrong?", false)
		time.Sleep(10 * time.Second)
		r.send(m.ID, "0/", "go on!", false)
		r.is(l.settled(), centurion.MissionFailed, "")
		equal(t, "waits", r.waits(m.ID, centurion.EventProviderRetry), "1: 5s, 2: 10s, 3: 20s")
		equal(t, "told", r.heard(m.Session), "what is wrong?|go on!")
	})
}
