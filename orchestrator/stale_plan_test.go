package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

// ORCH-58: a plan that a reviewer sends whole may be older than what the Commander has changed meanwhile. That stays, item by item and line by
// line, and is said; what the reviewer itself has changed counts, a check as well.
func TestStalePlanOfAReviewer(t *testing.T) {
	const (
		old    = "- [x] T1 One\n- [ ] T2 Two\n  - verify: `old`\n- [ ] T3 Three\n  - verify: `three`"
		better = "- [x] T1 One\n- [ ] T2 Two, and better\n  - verify: `better`\n- [ ] T3 Three\n  - verify: `three`\n- [ ] T5 Five"
	)
	for name, test := range map[string]struct {
		sends string
		plan  string
		told  bool
	}{
		"as it was":            {old, better, true},
		"with an item":         {old + "\n- [ ] T4 Four", better + "\n- [ ] T4 Four", true},
		"with a check":         {strings.ReplaceAll(old, "`three`", "`four`"), strings.ReplaceAll(better, "`three`", "`four`"), true},
		"with the same check":  {strings.ReplaceAll(old, "`old`", "`mine`"), strings.ReplaceAll(better, "`better`", "`mine`"), true},
		"with what it is now":  {strings.ReplaceAll(better, "`better`", "`mine`"), strings.ReplaceAll(better, "`better`", "`mine`"), false},
		"of another one whole": {"- [x] T1 One\n- [ ] T7 Seven", "- [x] T1 One\n- [ ] T7 Seven", false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(barePlan(old)), do(handTo("reviewer", "", "look"), onward), do(barePlan(better)), say("I wait"), say("Well.")),
				"reviewer":  steps(do(barePlan(test.sends)), say("PASS")),
			}, func(r *rig) {
				m := r.mission(centurion.MissionOptions{})
				said := r.results(m.ID, "update_todo")
				equal(t, "plans", len(said), 3)
				for line := range strings.SplitSeq(test.plan, "\n") {
					if !strings.Contains(r.read(todoMD), line+"\n") {
						t.Errorf("%q is not in\n%s", line, r.read(todoMD))
					}
				}
				equal(t, "lines", strings.Count(r.read(todoMD), "\n"), strings.Count(test.plan, "\n")+2)
				equal(t, "told: "+said[2], strings.Contains(said[2], "T2 was changed while you worked, and stays so: Two, and better, verify `"), test.told)
			})
		})
	}
}

// A plan that the Commander sends whole may be an old copy. What is open in it keeps the mark that it has, and that is said: what is done is not
// done again. An item with another title is new work.
func TestOldCopyKeepsMarks(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(barePlan("- [x] T1 One\n- [-] T2 Two\n- [ ] T3 Three\n- [x] T4 Four")), do(work("T3", "slow"), onward),
			after(time.Second, do(barePlan("- [ ] T1 One\n- [ ] T2 Two\n- [ ] T3 Three, and better\n- [ ] T4 Another four\n- [ ] T5 Five"))), say("I wait")),
		"worker": steps(after(time.Minute, say("made"))),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 8})
		said := r.results(m.ID, "update_todo")
		if len(said) < 2 {
			r.dump(m.ID)
			t.Fatal(said)
		}
		has(t, said[1], "T1 stays done, although you sent it as open; to reopen it, set its status to open with items.", "T2 stays cancelled, although you sent it as open",
			"T3 stays running, although you sent it as open.", "[x] T1", "[-] T2", "[~] T3", "[ ] T4", "[ ] T5")
		if strings.Contains(said[1], "T4 stays") || strings.Contains(said[1], "T5 stays") {
			t.Error(said[1])
		}
	})
}
