package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
)

// "always" to one call answers the others that wait and that it covers, and no others.
func TestAlwaysAnswersWaitingCalls(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(work("", "build 1s"), work("", "build 2s"), work("", "build 3s && rm b")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			for _, script := range []string{"build 1s", "build 2s", "build 3s && rm b"} {
				if q.Step() == 1 && strings.Contains(q.First(), script) {
					return bash(script)
				}
			}
			return say("done")
		},
	}, func(r *rig) {
		r.asksForShell()
		m := r.start(centurion.MissionOptions{Ask: "ask"})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		asks := r.open(m.ID)
		if len(asks) != 3 {
			t.Fatalf("%d ask: %+v", len(asks), asks)
		}
		slices.SortFunc(asks, func(a, b store.Ask) int { return strings.Compare(a.Title, b.Title) })
		equal(t, "always", strings.Join(asks[0].Always, "; "), "build *")
		r.answer(asks[0].ID, "always")
		last := r.oneAsk(m.ID)
		equal(t, "still asks", last.Title, "build 3s && rm b")
		r.answer(last.ID, "reject")
		r.is(l.settled(), centurion.MissionCompleted, "")
		all, err := r.store.Asks(r.ctx, m.ID, false)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b store.Ask) int { return strings.Compare(a.Title, b.Title) })
		equal(t, "who answered the one that was covered", all[1].By+" "+all[1].Answer, "always once")
		slices.Sort(r.shell.ran)
		equal(t, "runs", strings.Join(r.shell.ran, "; "), "build 1s; build 2s")
	})
}
