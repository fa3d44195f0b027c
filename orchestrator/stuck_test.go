package orchestrator

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// What an agent that says that it is stuck has written counts as done where its check proves it. A check that is green anyway shows nothing: the
// work is not merged, its item is blocked, and the Commander reads why and how it goes on.
func TestStuckWithAGreenCheck(t *testing.T) {
	const why = "STUCK: is there to be a header line or not?"
	for _, c := range []struct {
		name, check, proof string
		writes, shared     bool
		want               string // what is said of it; "" where the item is done
	}{
		{name: "proven", check: "exists a.txt", writes: true},
		{name: "a regression that was asked for", check: "exists go.txt", proof: "  - proof: regression", writes: true},
		{name: "unproven", check: "exists go.txt", writes: true, want: "`exists go.txt` passed, but is unproven (the check is green without the work too"},
		{name: "nothing changed", check: "exists go.txt", want: "has changed no file; that `exists go.txt` passes does not show otherwise"},
		{name: "nothing changed, a regression", check: "exists go.txt", proof: "  - proof: regression", want: "has changed no file"},
		{name: "shared", check: "exists go.txt", writes: true, shared: true, want: "without isolation nothing tells"},
		{name: "shared, nothing changed", check: "exists go.txt", shared: true, want: "without isolation nothing tells"},
		{name: "shared, red", check: "exists b.txt", writes: true, shared: true, want: "its acceptance command fails: `exists b.txt`"},
	} {
		t.Run(c.name, faked(func(t *testing.T) {
			r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
				"commander": steps(do(barePlan("- [ ] T1 One", "  - verify: `"+c.check+"`", c.proof)), do(work("T1", makeA)), say("I wait"), say("I see")),
				"worker": func(q scripted.Request) scripted.Answer {
					if c.writes && q.Step() == 1 {
						return do(writes("a.txt", "half\n"))
					}
					return say(why)
				},
			})
			m := r.mission(centurion.MissionOptions{TrustVerify: true, Isolation: map[bool]string{true: "shared", false: "worktree"}[c.shared]})
			task := r.task(m.ID, "T1")
			equal(t, "returns", r.count(m.ID, centurion.EventTaskReturned), 0)
			if c.want == "" {
				equal(t, "status", task.Status, centurion.TaskCompleted)
				has(t, r.read(todoMD), "[x] T1")
				equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "half")
				return
			}
			if task.Status != centurion.TaskBlocked || task.Error == nil {
				t.Fatalf("it is %s (%v), and its item was merged %d times", task.Status, task.Error, len(task.Landed))
			}
			has(t, task.Error.Message, "its agent says that it is stuck", c.want)
			has(t, task.Result, why)
			has(t, r.read(todoMD), "[!] T1")
			has(t, toldTo(r, m.Session), "Task T1 (worker: do T1) is blocked", c.want, "\nWhat you can do: resume it with what would help, hand it out anew, or ask the person.\n", why)
			if !c.shared {
				equal(t, "merges", len(task.Landed), 0)
				equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "")
			}
		}))
	}
}

// A person who has it tried on is heard: what the agent then ends without the word is merged, and the rest is the Reviewer's.
func TestStuckWithAGreenCheckTriedOn(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": func(q scripted.Request) scripted.Answer {
			if a, yes := again(q); yes {
				return a
			}
			return steps(do(barePlan("- [ ] T1 One", "  - verify: `exists go.txt`")), do(work("T1", makeA)))(q)
		},
		"worker": func(q scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(q.Last(), "no header"):
				return say("made it, without one")
			case q.Step() == 1:
				return do(writes("a.txt", "half\n"))
			}
			return say("STUCK: a header line or not?")
		},
	})
	m := r.start(centurion.MissionOptions{Ask: "ask", TrustVerify: true})
	l := r.live(m.ID)
	ask := r.firstAsk(m.ID, l)
	has(t, ask.Text, "a header line or not?", "passed, but is unproven", "How should it go on?")
	equal(t, "before", r.branchHas(m.ID, "a.txt"), "")
	r.answer(ask.ID, "no header")
	l.settled()
	tasks := r.tasks(m.ID)
	equal(t, "status", tasks[len(tasks)-1].Status, centurion.TaskCompleted)
	equal(t, "on the branch", r.branchHas(m.ID, "a.txt"), "half")
}
