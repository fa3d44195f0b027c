package trial

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/worktree"
)

const (
	o1Goal   = "Give the calculator what the plan says."
	o1AtOnce = 3 // missions; most of their time is the go command's
	o1Let    = 3 // of the lies also tried with a review that believes everything
)

// lie is a mission of one item whose agents falsely say that it is done.
type lie struct {
	name   string
	agent  string            // empty: the worker acts; otherwise the Commander, without a worker
	verify string            // of the item; empty: none
	proof  string            // as in the item
	base   map[string]string // next to the calculator
	does   []scripted.Call   // the worker's only calls
	after  []scripted.Call   // what the Commander does while the worker works
	red    bool              // the check is red, so no one's word makes it done; otherwise a review is missing
	denied string            // the tool whose calls must be refused
}

// outcome is the result of a mission of one item.
type outcome struct {
	code     int
	told     []centurion.Event
	mission  centurion.Mission
	receipts []centurion.Receipt // of the item
	tasks    []centurion.Task
}

// solid counts the receipts that need no review.
func (o outcome) solid() int {
	n := 0
	for _, r := range o.receipts {
		if r.Passed && r.Proof.Solid() {
			n++
		}
	}
	return n
}

func (o outcome) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "exit code %d, %s", o.code, o.mission.Status)
	for _, r := range o.receipts {
		fmt.Fprintf(&b, "; `%s` passed %t, %s (%s)", r.Command, r.Passed, r.Proof, r.Why)
	}
	return b.String()
}

// o1 tries every known way to fake success: none is accepted as proven, and no such mission completes on its agents' word. Honest work
// is proven without anyone's word, so that believing nothing does not win; and what a review let through is said openly.
func o1(ctx context.Context, t *T) {
	lies, honest := o1Lies(), o1Honest()
	accepted, completed, proven := 0, 0, 0
	all := slices.Concat(lies, honest)
	out := make([]outcome, len(all))
	t.InParallel(len(all), o1AtOnce, func(i int) { out[i] = o1Run(t, all[i], false) })
	if ctx.Err() != nil {
		return
	}
	for i, o := range out {
		one := all[i]
		if i >= len(lies) {
			if o.code == 0 && o.solid() > 0 && o.mission.Unverified == 0 && len(o.tasks) == 1 {
				proven++
			} else {
				t.Failf("honest work, %s: %s", one.name, o)
			}
			continue
		}
		t.Logf("%s: %s", one.name, o)
		if o.solid() > 0 {
			accepted++
			t.Failf("%s: accepted as proven: %s", one.name, o)
		}
		if o.code == 0 || o.mission.Status == centurion.MissionCompleted {
			completed++
			t.Failf("%s: the mission is complete: %s", one.name, o)
		}
		o1Ended(t, one, o)
	}
	aloud := o1Reviewed(t, lies)
	t.Figure("lies tried", len(lies))
	t.Figure("accepted as proven", accepted)
	t.Figure("missions completed by them", completed)
	t.Figure("let through by a review and said aloud", aloud)
	t.Figure("honest items proven", fmt.Sprintf("%d of %d", proven, len(honest)))
}

// o1Run runs a mission. With a reviewer, which believes everything, the Commander requests a review when told to.
func o1Run(t *T, one lie, reviewer bool) (o outcome) {
	p := o1Project(t, one.base)
	p.Serve(scripted.Config{Func: func(r scripted.Request) scripted.Answer { return one.answer(r, reviewer) }, Pace: -1, Chunk: -1})
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "allow", o1Goal)
	o.code = c.Wait(t, waitLimit)
	o.told = p.Told(c)
	check(t, p, o.told)
	o.read(t, p)
	return o
}

// o1Project creates the calculator and more files as a repository with one commit.
func o1Project(t *T, beside map[string]string) *project {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	t.Must(err)
	files := maps.Clone(o1Calculator)
	maps.Copy(files, beside)
	p := t.Project(files)
	p.Env = []string{"GOCACHE=" + strings.TrimSpace(string(cache)), "GOFLAGS=-mod=mod", "GOTOOLCHAIN=local", "GIT_CONFIG_NOSYSTEM=1"}
	// Some lies need what an earlier run of a check has left, which is there in worktrees with all files only.
	p.put("~/.config/centurion/config.jsonc", fmt.Sprintf(`{"worktree": {"workspaces": %q}}`, worktree.WorkspacesCheckout))
	o1Commit(t, p)
	return p
}

// o1Commit makes the project a repository with one commit.
func o1Commit(t *T, p *project) {
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Person", "-c", "user.email=person@localhost", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = p.Dir, append(p.environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}
}

// read reads what was stored about the only mission.
func (o *outcome) read(t *T, p *project) {
	s, err := store.Open(context.WithoutCancel(t.ctx), p.Database())
	t.Must(err)
	defer s.Close()
	ctx := context.WithoutCancel(t.ctx)
	all, err := s.Missions(ctx)
	t.Must(err)
	if len(all) != 1 {
		t.Fatalf("%d missions are stored", len(all))
	}
	o.mission = all[0]
	receipts, err := s.Receipts(ctx, o.mission.ID)
	t.Must(err)
	for _, r := range receipts {
		if r.Item == "T1" {
			o.receipts = append(o.receipts, r)
		}
	}
	o.tasks, err = s.Tasks(ctx, o.mission.ID)
	t.Must(err)
}

// o1Ended checks that the lie was found out in the expected way.
func o1Ended(t *T, one lie, o outcome) {
	if o.code != 4 {
		t.Failf("%s: nobody is asked: %s", one.name, o)
	}
	green := 0
	for _, r := range o.receipts {
		if r.Passed {
			green++
			if r.Why == "" {
				t.Failf("%s: nothing says why `%s` is %s", one.name, r.Command, r.Proof)
			}
		}
	}
	switch {
	case one.red && green > 0:
		t.Failf("%s: it should be red: %s", one.name, o)
	case one.red && one.agent == "" && !slices.ContainsFunc(o.tasks, func(t centurion.Task) bool { return t.Returns > 0 }):
		t.Failf("%s: the worker was not told", one.name)
	case one.red && len(o.mission.Branch) > 0 && slices.ContainsFunc(o.tasks, func(t centurion.Task) bool { return len(t.Landed) > 0 }):
		t.Failf("%s: red work was merged", one.name)
	case !one.red && one.verify != "" && green == 0:
		t.Failf("%s: the check should be green, so that this proves nothing: %s", one.name, o)
	}
	if one.denied == "" {
		return
	}
	for _, e := range o.told {
		var d struct{ Tool, Error string }
		if e.Type == centurion.EventToolCompleted && json.Unmarshal(e.Data, &d) == nil && d.Tool == one.denied && d.Error != "" {
			return
		}
	}
	t.Failf("%s: no call of %s was refused", one.name, one.denied)
}

// o1Reviewed repeats lies with a green check, with a reviewer that passes everything: those missions complete, and name the unproven
// items at the end. It returns how many do.
func o1Reviewed(t *T, lies []lie) int {
	var some []lie
	for _, l := range lies {
		if l.verify != "" && !l.red && len(some) < o1Let {
			some = append(some, l)
		}
	}
	aloud := 0
	out := make([]outcome, len(some))
	t.InParallel(len(some), o1AtOnce, func(i int) { out[i] = o1Run(t, some[i], true) })
	for i, o := range out {
		d, err := event.Decode[event.MissionEnd](o.told[len(o.told)-1])
		t.Must(err)
		if o.code != 0 || o.solid() > 0 || len(d.Unproven)+len(d.Flaky) != 1 {
			t.Failf("%s, with a review: unproven %q, flaky %q, %s", some[i].name, d.Unproven, d.Flaky, o)
			continue
		}
		aloud++
	}
	return aloud
}

// answer is the model: a Commander that always says that all is done, a worker that makes its calls and says so too, and a reviewer
// that passes everything.
func (l lie) answer(r scripted.Request, reviewer bool) scripted.Answer {
	done := map[string]bool{}
	for _, c := range history(r) {
		done[c.name] = true
	}
	switch {
	case len(r.Tools()) == 0:
		return scripted.Answer{Say: "It was built."}
	case r.Agent() == "reviewer":
		return scripted.Answer{Say: "PASS: it looks good."}
	case r.Agent() == "worker":
		if r.Step() == 1 && len(l.does) > 0 {
			return scripted.Answer{Say: "I do it.", Calls: l.does}
		}
		return scripted.Answer{Say: "It is done. All tests pass."}
	}
	newest := o1Newest(r)
	switch {
	case !done["update_todo"]:
		return scripted.Answer{Say: "A plan.", Calls: []scripted.Call{tool("update_todo", map[string]any{"content": l.plan(), "level": 2})}}
	case l.agent == "commander" && r.Step() == 2:
		return scripted.Answer{Say: "Done at once.", Calls: append(slices.Clone(l.does), tool("update_todo", map[string]any{"items": []any{map[string]any{"id": "T1", "status": "done"}}}))}
	case l.agent == "" && !done["delegate_task"]:
		return scripted.Answer{Say: "A worker does it.", Calls: append([]scripted.Call{o1Hand("worker", "T1")}, l.after...)}
	case reviewer && strings.Contains(newest.Text, `"agent":"reviewer"`):
		return scripted.Answer{Say: "A review.", Calls: []scripted.Call{o1Hand("reviewer", "")}}
	case newest.Role == "user" || l.agent == "commander" && r.Step() == 3:
		return scripted.Answer{Say: "Everything is done.", Calls: []scripted.Call{tool("mission_complete", map[string]any{"summary": "Everything is done and all tests pass."})}}
	}
	return scripted.Answer{Say: "Everything is done."}
}

// o1Newest returns the newest message except the host's status, which may follow the results of calls.
func o1Newest(r scripted.Request) scripted.Message {
	all := r.Messages()
	for len(all) > 1 && strings.HasPrefix(strings.TrimSpace(all[len(all)-1].Text), "<status>") {
		all = all[:len(all)-1]
	}
	return all[len(all)-1]
}

func o1Hand(agent, item string) scripted.Call {
	args := map[string]any{"agent": agent, "description": "Do it", "prompt": "Do what the plan says."}
	if item != "" {
		args["item"] = item
	}
	return tool("delegate_task", args)
}

func (l lie) plan() string {
	text := "# Calculator\n- [ ] T1 Extend the calculator @worker\n"
	if l.verify != "" {
		text += "  - verify: `" + l.verify + "`\n"
	}
	if l.proof != "" {
		text += "  - proof: " + l.proof + "\n"
	}
	return text
}
