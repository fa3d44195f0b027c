package orchestrator

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/review"
	"centurion/provider/scripted"
)

// O1: a command that has proved nothing may be replaced by the Commander: that is recorded, the new one runs at once against the merged work, and
// the old receipt stays. It may not ask for less, and nothing else may change.
func TestUnprovenCheckIsReplaced(t *testing.T) {
	t.Parallel()
	const first = "exists go.txt" // green without the work, too
	for name, test := range map[string]struct {
		check    string // at first
		to       []string
		refused  bool
		verified bool // without a review
	}{
		"by one that can fail":              {first, []string{"  - verify: `exists b.txt`"}, false, true},
		"by one that is green again":        {first, []string{"  - verify: `exists ./go.txt`"}, false, false},
		"by one that is red":                {first, []string{"  - verify: `exists c.txt`"}, false, false},
		"by one that can only pass":         {first, []string{"  - verify: `true`"}, true, false},
		"by nothing":                        {first, nil, true, false},
		"by a regression":                   {first, []string{"  - verify: `" + first + "`", "  - proof: regression"}, true, false},
		"by another one, and a regression":  {first, []string{"  - verify: `exists b.txt`", "  - proof: regression"}, true, false},
		"although it was proven":            {"exists b.txt", []string{"  - verify: `exists ./b.txt`"}, true, true},
		"the mission's check beside it":     {first, []string{"  - verify: `exists b.txt`", "- verify: `exists x`"}, true, false},
		"one more, and the old one remains": {first, []string{"  - verify: `" + first + "`", "  - verify: `exists b.txt`"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own, to := "- verify: `exists go.txt`", test.to
			if n := len(to); n > 0 && strings.HasPrefix(to[n-1], "- ") {
				own, to = to[n-1], to[:n-1]
			}
			plan := func(mission, mark string, lines ...string) scripted.Call {
				return call("update_todo", args{"content": strings.Join(append([]string{"# Plan", mission, "- [" + mark + "] T1 One @worker"}, lines...), "\n") + "\n"})
			}
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": func(q scripted.Request) scripted.Answer {
					switch last := q.Last(); {
					case q.Step() == 1:
						return do(plan("- verify: `exists go.txt`", " ", "  - verify: `"+test.check+"`"))
					case q.Step() == 2:
						return do(work("T1", "make b.txt"))
					case q.Step() == 3:
						return do(plan(own, "x", to...))
					case strings.Contains(last, "T1 needs a review"), strings.Contains(last, `"agent":"reviewer","item":"T1"`):
						return do(handTo("reviewer", "T1", "look"))
					case strings.Contains(last, "call mission_complete"):
						return complete()
					}
					return say("I wait")
				},
				"worker":   steps(do(writes("b.txt", "b\n")), say("made it")),
				"reviewer": steps(say("PASS")),
			})
			m := r.mission(centurion.MissionOptions{})
			said := r.results(m.ID, "update_todo")[1]
			equal(t, "refused: "+said, strings.Contains(said, "acceptance commands are not changed once work on them has begun"), test.refused)
			noted := 0
			for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
				if strings.Contains(string(e.Data), "the commander changed what has to be proven: item T1: `"+test.check+"` became ") {
					noted++
				}
			}
			equal(t, "recorded", noted, map[bool]int{false: 1}[test.refused])
			receipts, err := r.store.Receipts(r.ctx, m.ID)
			if err != nil || review.Newest(receipts, "T1", test.check) == nil {
				t.Errorf("the first receipt is gone: %+v, %v", receipts, err)
			}
			reviews := 0
			for _, x := range r.tasks(m.ID) {
				if x.Agent == "reviewer" {
					reviews++
				}
			}
			if test.verified {
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "reviews", reviews, 0)
				equal(t, "verified", m.Verified, 1)
			} else if reviews == 0 && m.Status == centurion.MissionCompleted {
				t.Error("it is complete without a proof and without a review")
			}
			if name == "by one that can fail" {
				has(t, said, "T1: `exists b.txt` passed.")
				if r := review.Newest(receipts, "T1", "exists b.txt"); r == nil || r.Proof != centurion.ProofProven {
					t.Errorf("the new receipt: %+v", r)
				}
				equal(t, "what can be done is told", r.told(m.Session, "send the plan with another command for it (update_todo)"), 1)
			}
		})
	}
}

// The Commander may replace the mission's own check, when it can only pass, by one that can fail, but not by another such one.
func TestMissionCheckBecomesStricter(t *testing.T) {
	t.Parallel()
	for to, refused := range map[string]bool{"exists b.txt": false, "echo ok": true} {
		plan := func(check, mark string) scripted.Call {
			return call("update_todo", args{"content": "# Plan\n- verify: `" + check + "`\n- [" + mark + "] T1 One @worker\n"})
		}
		r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
			"commander": func(q scripted.Request) scripted.Answer {
				switch q.Step() {
				case 1:
					return do(plan("true", " "))
				case 2:
					return do(work("T1", "make b.txt"))
				case 3:
					return do(plan(to, "x"))
				}
				switch last := q.Last(); {
				case strings.Contains(last, "T1 needs a review"), strings.Contains(last, `"agent":"reviewer","item":"T1"`):
					return do(handTo("reviewer", "T1", "look"))
				case strings.Contains(last, "call mission_complete"):
					return complete()
				}
				return say("I wait")
			},
			"worker":   steps(do(writes("b.txt", "b\n")), say("made it")),
			"reviewer": steps(say("PASS")),
		})
		m := r.mission(centurion.MissionOptions{})
		said := r.results(m.ID, "update_todo")[1]
		equal(t, to+" refused: "+said, strings.Contains(said, "acceptance commands are not changed"), refused)
		receipts, err := r.store.Receipts(r.ctx, m.ID)
		ran := slices.ContainsFunc(receipts, func(r centurion.Receipt) bool { return r.Command == to })
		if err != nil || ran == refused {
			t.Errorf("%s ran: %v, %v", to, ran, err)
		}
	}
}
