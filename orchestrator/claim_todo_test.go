package orchestrator

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/workspace/todo"
)

// stop records that a mission stopped at this moment, as the end of its host does.
func (r *rig) stop(id string, how centurion.MissionStatus) {
	r.t.Helper()
	err := r.store.Update(r.ctx, func(tx *store.Tx) error {
		_, err := state.MoveMission(tx, id, how, "interrupted", nil)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// plans returns the names of the plans in the project.
func (r *rig) plans() []string {
	r.t.Helper()
	var names []string
	for _, pattern := range []string{"todo*.md", "archive/todo*.md"} {
		all, err := filepath.Glob(filepath.Join(r.dir, ".opencode", pattern))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, p := range all {
			names = append(names, filepath.Base(p))
		}
	}
	return names
}

// Issue "Truth" 1, design §7: a plan belongs to its mission from the transaction that writes it: also if the mission was interrupted before it
// could tell of the plan. The next mission finds none, and the first one goes on with its own.
func TestPlanIsOwnedOnceWritten(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		first := r.start(centurion.MissionOptions{PlanOnly: true})
		m := newMission(r.ctx, r.host, first)
		_, _, err := m.plan.File.Replace(r.ctx, "# Plan\n- [ ] T1 One\n", false, func(_, _ *todo.Doc) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		r.stop(first.ID, centurion.MissionPaused) // update_todo has not told of it
		r.restart()
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		equal(t, "plans", len(r.plans()), 1)
		equal(t, "plan", slices.Contains(r.plans(), "todo-"+first.ID+".md"), true)
		m2, err := r.host.Run(r.ctx, first.ID)
		if err != nil {
			t.Fatal(err)
		}
		r.is(m2, centurion.MissionPaused, "planned")
		equal(t, "had items", m2.HadItems, true)
	})
}

// Design §7: a plan that no mission owns is put aside, each under a name of its own, and what is told says where. It is carried out
// when the person names it.
func TestPlanOfNobody(t *testing.T) {
	const foreign = "# Theirs\n- [ ] T1 One\n  - verify: `cat a.txt`\n"
	bubble(t, nil, func(r *rig) {
		var aside []string
		for range 2 {
			r.runs = 0
			r.write(todoMD, foreign)
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			equal(t, "what it was", r.read(m.PutAside), foreign)
			has(t, string(r.events(m.ID, centurion.EventMissionStarted)[0].Data), "centurion run --plan "+m.PutAside+" GOAL")
			equal(t, "a plan", m.HadItems, false)
			aside = append(aside, m.PutAside)
		}
		if aside[0] == aside[1] {
			t.Errorf("both were put to %s", aside[0])
		}
		given := r.start(centurion.MissionOptions{Plan: aside[0]})
		equal(t, "plan", r.read(todoMD), foreign)
		equal(t, "what was given", r.read(aside[0]), foreign)
		equal(t, "unasked lines", len(given.Adopted), 1)
		r.runs = 0
		r.is(r.run(given.ID), centurion.MissionBlocked, "T1 One")
		_, err := r.host.Start(r.ctx, "x", centurion.MissionOptions{Plan: ".opencode/nothing.md"})
		equal(t, "kind", centurion.KindOf(err), centurion.KindUsage)
		equal(t, "plan", r.read(todoMD), foreign)
	})
}

// A plan that a person changed by hand is still its mission's; what only a blank file holds is nobody's loss.
func TestPlanEditedByHand(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [ ] T1 One")), say("that is it"))}, func(r *rig) {
		r.write(todoMD, "\n")
		first := r.mission(centurion.MissionOptions{PlanOnly: true})
		r.is(first, centurion.MissionPaused, "planned")
		equal(t, "put aside", first.PutAside, "")
		r.write(todoMD, "# By hand\n- [ ] T1 One\n- [ ] T2 Two\n")
		second := r.start(centurion.MissionOptions{})
		equal(t, "put aside", second.PutAside, "")
		has(t, r.read(".opencode/todo-"+first.ID+".md"), "T2 Two")
	})
}

// S4, issue "Truth" 2: a verify line of a plan that no mission wrote needs a person, also where it plainly reads: nobody there, and it does not
// run, and the item says so; --ask allow is no trust. A rule of the person's, the plan trusted or accepted are their word.
func TestAdoptedVerifyNeedsAPerson(t *testing.T) {
	const theirs = "# Theirs\n- [ ] T1 One @worker\n  - verify: `cat a.txt`\n"
	defaults := permission.Level{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}
	for name, test := range map[string]struct {
		rules []permission.Level
		opts  centurion.MissionOptions
		late  bool   // it was put there while the mission was paused
		trust string // the text that the person trusts
		why   string // empty: it runs
	}{
		"nobody is there":     {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny"}, false, "", "--ask deny"},
		"put there meanwhile": {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny"}, true, "", "--ask deny"},
		"all is allowed":      {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "allow"}, false, "", "--ask allow does not replace"},
		"another is trusted":  {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "allow"}, false, theirs + "\n", "--ask allow does not replace"},
		"a person's rule":     {append([]permission.Level{defaults}, rules(permission.Allow)...), centurion.MissionOptions{Ask: "deny"}, false, "", ""},
		"the plan accepted":   {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny", ShowPlan: true}, false, "", ""},
		"the plan trusted":    {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny"}, false, theirs, ""},
		"trusted meanwhile":   {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny"}, true, theirs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(work("T1", makeA)), say("I wait")), "worker": steps(writeFile("a.txt")),
			}, func(r *rig) {
				r.cfg.Rules = func(string) []permission.Level { return test.rules }
				r.cfg.TrustedPlan = func(text []byte) bool { return string(text) == test.trust }
				r.restart()
				if !test.late {
					r.write(todoMD, theirs)
					test.opts.Plan = todoMD
				}
				m := r.start(test.opts)
				if test.late {
					r.stop(m.ID, centurion.MissionPaused)
					r.write(todoMD, theirs)
				}
				var g guard.Group
				done := r.inBackground(&g, m.ID)
				if test.opts.ShowPlan {
					r.answer(r.waitFor(m.ID, 1)[0].ID, "run")
				}
				m = <-done
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
				equal(t, "it ran", r.shell.times("cat a.txt") > 0, test.why == "")
				if test.why == "" {
					return
				}
				r.is(m, centurion.MissionBlocked, "T1 One")
				has(t, r.task(m.ID, "T1").Error.Message, "`cat a.txt` may not run", "came with the project and is not trusted", test.why)
				has(t, r.read(todoMD), "[!] T1")
				test.trust = r.read(todoMD)
				if err := r.host.Control.Raise(r.ctx, m.ID, test.opts); err != nil {
					t.Error(err)
				}
				rec, err := r.store.Mission(r.ctx, m.ID)
				equal(t, fmt.Sprintf("trusted before a resume, %v", err), strings.Join(rec.Approved, "; "), "cat a.txt")
			})
		})
	}
}
