package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/provider/scripted"
)

// S9: a worker whose shell changes its own check, or the mission's, in todo.md changes nothing: what was handed out is run, the file gets it back,
// and the change is told to the Commander and in the journal. With checkouts and without.
func TestWorkerCannotChangeItsCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		isolation string
		to        []string // pairs of replacements in todo.md
	}{
		"ticked":    {"shared", []string{"`exists a.txt`", "`true`", "[~] T1", "[x] T1"}},
		"checkouts": {"", []string{"`exists a.txt`", "`true`"}},
		"shared":    {"shared", []string{"`exists a.txt`", "`true`"}},
		"removed":   {"", []string{"  - verify: `exists a.txt`\n", ""}},
		"weakened":  {"", []string{"  - verify: `exists a.txt`\n", "  - proof: regression\n  - verify: `exists a.txt`\n"}},
		"whole":     {"", []string{"- verify: `lacks b.txt bad`\n", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *rig
			r = inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": steps(do(plans("- verify: `lacks b.txt bad`", "- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", "make a.txt")), say("I wait"), complete()),
				"worker": func(q scripted.Request) scripted.Answer {
					if q.Step() == 1 {
						now := r.read(todoMD)
						changed := strings.NewReplacer(c.to...).Replace(now)
						if changed == now {
							t.Error("nothing to replace in:\n" + now)
						}
						r.write(todoMD, changed)
						return do(writes("b.txt", "bad\n"))
					}
					return say("STUCK: it is done")
				},
			})
			m := r.mission(centurion.MissionOptions{Isolation: c.isolation})
			if m.Status == centurion.MissionCompleted {
				t.Error("the mission is complete")
			}
			all, err := r.store.Receipts(r.ctx, m.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range all {
				if x.Command == "true" {
					t.Errorf("its own check was run: %+v", x)
				}
			}
			now := r.read(todoMD)
			has(t, now, "verify: `exists a.txt`")
			has(t, now, "verify: `lacks b.txt bad`")
			equal(t, "proof in it", strings.Contains(now, "proof:"), false)
			told := 0
			for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
				if d, err := event.Decode[event.MissionData](e); err == nil && strings.Contains(d.Note, "todo.md was changed") {
					told++
				}
			}
			equal(t, "told", told, 1)
			equal(t, "notices", r.told(m.Session, "todo.md was changed by neither"), 1)
			equal(t, "as of the person", r.told(m.Session, "The person has changed the plan"), 0)
		})
	}
}

// S9: where there is a person, they are asked which check counts, before the work is judged: what they agree to is kept for the next host, and
// what they refuse is put back into the file.
func TestPersonDecidesOnChangedCheck(t *testing.T) {
	for answer, c := range map[string]struct {
		runs  string
		never string
	}{"once": {"exists b.txt", "exists a.txt"}, "reject": {"exists a.txt", "exists b.txt"}} {
		t.Run(answer, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", "make it")), say("I wait"), complete()),
				"worker":    steps(do(writes("a.txt", "a\n"), writes("b.txt", "b\n")), after(time.Minute, say("made"))),
			}, func(r *rig) {
				var g guard.Group
				m := r.start(centurion.MissionOptions{Ask: "ask"})
				done := r.inBackground(&g, m.ID)
				time.Sleep(30 * time.Second)
				r.write(todoMD, strings.Replace(r.read(todoMD), "exists a.txt", "exists b.txt", 1))
				ask := r.oneAsk(m.ID)
				has(t, ask.Title, "exists b.txt")
				has(t, ask.Text, "the check of T1, `exists a.txt`, became `exists b.txt`")
				equal(t, "runs before the answer", r.shell.times("exists a.txt")+r.shell.times("exists b.txt"), 0)
				r.answer(ask.ID, answer)
				r.is(<-done, centurion.MissionCompleted, "")
				g.Wait()
				equal(t, "asked", r.count(m.ID, centurion.EventPermissionAsked), 1)
				has(t, r.read(todoMD), c.runs)
				if r.shell.times(c.runs) == 0 || r.shell.times(c.never) != 0 {
					t.Errorf("%d runs of %s, %d of %s", r.shell.times(c.runs), c.runs, r.shell.times(c.never), c.never)
				}
				if frozen := r.task(m.ID, "T1").Frozen; frozen == nil || strings.Join(frozen.Verify, "") != c.runs {
					t.Errorf("stored %+v", frozen)
				}
			})
		})
	}
}

// S9: the frozen check outlives its host, also one that the reviewer has exchanged.
func TestFrozenChecksOutliveTheHost(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"), do(handTo("reviewer", "", "look")), say("I wait"), complete()),
		"worker":    steps(do(writes("a.txt", "a\n"))),
		"reviewer":  steps(do(plans("- [x] T1 One", "  - verify: `exists ./a.txt`")), say("PASS")),
	})
	rec := r.mission(centurion.MissionOptions{})
	r.is(rec, centurion.MissionCompleted, "")
	r.write(todoMD, strings.Replace(r.read(todoMD), "`exists ./a.txt`", "`true`", 1))
	m := newMission(r.ctx, r.host, rec)
	defer m.drop(nil)
	if err := m.frozen.Load(r.ctx); err != nil {
		t.Fatal(err)
	}
	it, ok := m.plan.ItemNow("T1")
	if !ok || strings.Join(it.Verify, "") != "exists ./a.txt" {
		t.Errorf("it is checked by %q", it.Verify)
	}
	if got := m.frozen.Foreign(); len(got) != 1 || got[0].Item != "T1" || got[0].To[0] != "true" {
		t.Errorf("changed: %+v", got)
	}
}
