package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// ORCH-5, O1: a review that begins when the mission has changed nothing shows nothing. With a check that passed it is enough for the end, as of
// an item that only looks; without one the Commander is told what there is to do.
func TestReviewOfNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		check    string // of the item, or ""
		agent    string // whose T2 is a review of it, or ""
		evidence centurion.Evidence
		refused  bool
	}{
		"without a check":          {"", "", centurion.EvidenceNone, true},
		"a check that passed":      {"\n  - verify: `exists go.txt`", "", centurion.EvidenceChecked, false},
		"a check that only passes": {"\n  - verify: `true`", "", centurion.EvidenceNone, true},
		"by a review item":         {"\n  - verify: `exists go.txt`", "\n- [ ] T2 Look @reviewer\n  - after: T1", centurion.EvidenceChecked, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := "T1"
			if test.agent != "" {
				item = "T2"
			}
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					return steps(do(barePlan("- [ ] T1 One"+test.check+test.agent)), do(work("T1", "look around")), say("I wait"), do(handTo("reviewer", item, "look at it")), say("I wait"),
						complete(), do(call("update_todo", args{"items": []args{{"id": "T1", "status": "cancelled", "note": "nothing to do"}}})), complete())(q)
				},
				"worker":   steps(say("it is there")),
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			r.is(m, centurion.MissionCompleted, "")
			has(t, r.requests("reviewer")[0].First(), "# What was changed\n\nNothing: ")
			equal(t, "told", r.told(m.Session, "Nothing had been changed when it began: its PASS alone shows nothing."), 1)
			said := strings.Join(r.results(m.ID, "mission_complete"), "\n")
			equal(t, "refused: "+said, strings.Contains(said, "a review had nothing to look at. Have the work done; "), test.refused)
			equal(t, "evidence", m.Evidence, test.evidence)
			equal(t, "reviewed", len(m.Reviewed), 0)
		})
	}
}
