package orchestrator

import (
	"strings"
	"testing"

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
