package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

// R3: a host that takes over from one that died says in the journal what it has repaired, and one that takes over an orderly stop says
// nothing.
func TestRecoverySaysWhatItRepaired(t *testing.T) {
	for way, want := range map[string][]string{
		byKill:     {"after a restart: marks corrected: T2; tasks started again: T1"},
		byShutdown: nil,
	} {
		t.Run(way, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "x")), say("I wait"), say("I wait")),
				"worker":    steps(after(time.Minute, say("made"))),
			}, func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				l := r.live(m.ID)
				time.Sleep(30 * time.Second)
				if way == byKill { // as if the mark had been set and its task's end had come between
					r.write(todoMD, strings.Replace(r.read(todoMD), "- [ ] T2", "- [~] T2", 1))
				}
				l.goAway(way)
				l = r.live(m.ID)
				time.Sleep(10 * time.Second)
				var got []string
				for _, note := range r.notes(m.ID) {
					if strings.HasPrefix(note, "after a restart") {
						got = append(got, note)
					}
				}
				equal(t, "notes", strings.Join(got, "\n"), strings.Join(want, "\n"))
				l.goAway(byShutdown)
			})
		})
	}
}
