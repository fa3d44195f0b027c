package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/loop"
	"centurion/provider/scripted"
)

// goes starts a mission with a goal and runs it to its end.
func (r *rig) goes(goal string, opts centurion.MissionOptions) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Start(r.ctx, goal, opts)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.run(m.ID)
}

// evidence asserts what a mission has as evidence, also in its last event.
func (r *rig) evidence(m centurion.Mission, want centurion.Evidence) {
	r.t.Helper()
	all := r.events(m.ID)
	d, err := event.Decode[event.MissionEnd](all[len(all)-1])
	if err != nil || m.Evidence != want || d.Evidence != want {
		r.t.Errorf("evidence %q, in the last event %q (%v); want %q", m.Evidence, d.Evidence, err, want)
	}
}

// A command that the goal names is run at the end, however the mission's own agent ends it: a red one is told, and no such mission is
// complete. The shell's command "sh …" of these tests is its own: "sh false it" fails.
func TestGoalCheck(t *testing.T) {
	for name, last := range map[string]scripted.Answer{"by text": say("already done"), "by mission_complete": complete()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(scripted.Request) scripted.Answer { return last }}, func(r *rig) {
				m := r.goes("Build it, so that `false it` passes.", centurion.MissionOptions{})
				r.is(m, centurion.MissionBlocked, "The final checks have failed 4 times")
				equal(t, "runs of the check", r.shell.times("false it"), 4)
				has(t, r.requests("commander")[1].Last(), "the final check failed: `false it` ended with exit code")
			})
		})
	}
	t.Run("green", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			m := r.goes("Build it, so that `test it` passes.", centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			r.evidence(m, centurion.EvidenceChecked)
			equal(t, "requests", len(r.model.Requests()), 1)
		})
	})
	t.Run("may not run", func(t *testing.T) {
		bubble(t, nil, func(r *rig) {
			r.asksForShell()
			r.is(r.goes("Build it, so that `test it` passes.", centurion.MissionOptions{Ask: "deny"}), centurion.MissionBlocked, "the acceptance command `test it` may not run")
			equal(t, "runs", r.shell.times("test it"), 0)
		})
	})
}

// O7: an end with neither change nor check is questioned once, however it comes; a second one is accepted, and called what it is.
func TestBareEndIsQuestionedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		steps    []scripted.Answer
		evidence centurion.Evidence
		asked    int
		told     bool
	}{
		"text, and the same again":   {[]scripted.Answer{say("done"), say("it needs none")}, centurion.EvidenceNone, 2, true},
		"a claim, and the same":      {[]scripted.Answer{complete(), complete()}, centurion.EvidenceNone, 2, true},
		"a claim, then text":         {[]scripted.Answer{complete(), say("it needs none")}, centurion.EvidenceNone, 2, true},
		"text, then a check":         {[]scripted.Answer{say("done"), completeWith("test it")}, centurion.EvidenceChecked, 2, true},
		"a check at once":            {[]scripted.Answer{completeWith("test it")}, centurion.EvidenceChecked, 1, false},
		"a check that can only pass": {[]scripted.Answer{completeWith("true"), completeWith("true")}, centurion.EvidenceNone, 2, true},
		"a red check, then another":  {[]scripted.Answer{completeWith("false it"), completeWith("test it")}, centurion.EvidenceChecked, 2, false},
		"a change":                   {[]scripted.Answer{do(call("write", args{"filePath": "a.txt", "content": "a\n"})), say("done")}, centurion.EvidenceNone, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(q scripted.Request) scripted.Answer { return tt.steps[min(q.Turn, len(tt.steps))-1] }
			bubble(t, map[string]script{"commander": answer}, func(r *rig) {
				m := r.goes("build it", centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				r.evidence(m, tt.evidence)
				asked := slices.DeleteFunc(r.model.Requests(), func(q scripted.Request) bool { return q.Agent() != "commander" })
				equal(t, "requests", len(asked), tt.asked)
				equal(t, "questioned", strings.Contains(asked[len(asked)-1].Last(), loop.BareWord), tt.told)
			})
		})
	}
}

// What the mission's own agent still changes because of a message that came during the final checks is checked, too.
func TestWorkAfterTheFinalChecksIsChecked(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(say("done"), do(writes("a.txt", "bad\n")), say("that, too"), do(writes("a.txt", "good\n")), say("now it is right")),
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{Verify: []string{"build 1m", "lacks a.txt bad"}})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		r.send(m.ID, "0/", "write a.txt, too", false)
		r.is(<-done, centurion.MissionCompleted, "")
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		equal(t, "a.txt", strings.TrimSpace(r.read("a.txt")), "good")
		equal(t, "runs of the first check", r.shell.times("build 1m"), 3)
	})
}

// A check that the Commander has given and that is red keeps the mission from an end by text, and by a check that can only pass, too. That one
// is never kept.
func TestGivenCheckStays(t *testing.T) {
	for name, next := range map[string]scripted.Answer{"text": say("all is done"), "true": completeWith("true")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
				if q.Step() == 1 {
					return completeWith("false it")
				}
				return next
			}}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionBlocked, "The final checks have failed 4 times")
				equal(t, "kept", m.Check, "false it")
			})
		})
	}
}

// Where proof is required, an end without evidence blocks the mission; resumed, it ends with a check. The assistant is held to it, too.
func TestRequireProof(t *testing.T) {
	answer := say("done")
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if strings.Contains(q.Last(), loop.BareWord) {
			return answer
		}
		return say("done")
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{RequireProof: true})
		r.is(m, centurion.MissionBlocked, "proof is required")
		r.evidence(m, centurion.EvidenceNone)
		answer = completeWith("test it")
		if m = r.run(m.ID); m.Status != centurion.MissionCompleted || m.Evidence != centurion.EvidenceChecked {
			t.Errorf("resumed: %s (%s), %s", m.Status, m.Reason, m.Evidence)
		}
	})
	for goal, want := range map[string]centurion.MissionStatus{"What is it?": centurion.MissionBlocked, "Make `test it` pass": centurion.MissionCompleted, "Make `false it` pass": centurion.MissionBlocked} {
		t.Run(goal, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				m := r.goes(goal, centurion.MissionOptions{RequireProof: true, Profile: "assistant"})
				r.is(m, want, "")
			})
		})
	}
}
