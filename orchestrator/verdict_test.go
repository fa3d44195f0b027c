package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

// The end of a mission that is not complete tells how many of its items are proven all the same.
func TestBlockedMissionCountsProof(t *testing.T) {
	faked(func(t *testing.T) {
		r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
			"commander": steps(do(barePlan("- [ ] T1 One", "  - verify: `exists a.txt`", "- [ ] T2 Two", "  - verify: `exists go.txt`", "- [ ] T3 Three")),
				do(work("T1", makeA), work("T2", "b.txt"), work("T3", "x")), say("I wait"), say("I see")),
			"worker": func(q scripted.Request) scripted.Answer {
				item := map[bool]string{true: "a.txt", false: "b.txt"}[strings.Contains(q.First(), makeA)]
				switch {
				case strings.Contains(q.First(), "\n\nx\n"):
					return say("STUCK: no")
				case q.Step() == 1:
					return do(writes(item, "a\n"))
				}
				return say("made it")
			},
		})
		m := r.mission(centurion.MissionOptions{TrustVerify: true})
		r.is(m, centurion.MissionBlocked, "T3")
		last := r.events(m.ID, centurion.EventMissionBlocked)
		if len(last) != 1 {
			t.Fatalf("%d ends", len(last))
		}
		d, err := event.Decode[event.MissionEnd](last[0])
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "verified", d.Verified, 1)
		equal(t, "unverified", d.Unverified, 1)
		equal(t, "unproven", len(d.Unproven), 1)
	})(t)
}
