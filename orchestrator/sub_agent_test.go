package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/permission"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/tools"
)

// child reports whether a request is a sub-agent's.
func child(q scripted.Request) bool { return strings.HasPrefix(q.First(), "# Your task") }

// family is a cast of one agent, who answers as root says, and its sub-agents, who answer as child says.
func family(root, sub script) map[string]script {
	both := func(q scripted.Request) scripted.Answer {
		if child(q) {
			return sub(q)
		}
		return root(q)
	}
	return map[string]script{"assistant": both, "": both} // with a system prompt of another's words
}

func assistant() centurion.MissionOptions {
	return centurion.MissionOptions{Profile: agents.ProfileAssistant}
}

// sub starts a sub-agent.
func sub(prompt string, more args) scripted.Call {
	a := args{"prompt": prompt}
	maps.Copy(a, more)
	return call("sub_agent", a)
}

// part returns the call of a tool with that prompt, as it is stored.
func (r *rig) part(session, tool string, n int) centurion.Part {
	r.t.Helper()
	messages, err := r.store.Messages(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Type == centurion.PartTool && p.Tool == tool {
				if n--; n < 0 {
					return p
				}
			}
		}
	}
	r.t.Fatalf("there is no call %d of %s", n, tool)
	return centurion.Part{}
}

// spentBy returns what the root of a mission has spent itself and in total, and what the mission says.
func (r *rig) spentBy(mission string) (own, total centurion.Spent, rec centurion.Mission) {
	r.t.Helper()
	rec, err := r.store.Mission(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	sessions, err := r.store.Sessions(r.ctx, mission)
	if err != nil {
		r.t.Fatal(err)
	}
	own, total = centurion.SpentBy(rec.Session, rec, sessions, r.tasks(mission))
	return own, total, rec
}

// adds asserts that the children's spending stands in their parent's total, and that it is all of the mission's.
func (r *rig) adds(mission string) {
	r.t.Helper()
	own, total, rec := r.spentBy(mission)
	var below centurion.Usage
	var ms int64
	for _, t := range r.tasks(mission) {
		below, ms = below.Plus(t.Usage), ms+t.ElapsedMS
	}
	if total.Tokens != rec.Usage.Tokens || total.Usage != own.Usage.Plus(below) || total.ElapsedMS != own.ElapsedMS+ms {
		r.t.Errorf("own %+v, children %+v, total %+v, the mission %+v", own, below, total, rec.Usage)
	}
	if d := total.USD - rec.Usage.USD; d > 1e-9 || d < -1e-9 {
		r.t.Errorf("total %v USD, the mission %v", total.USD, rec.Usage.USD)
	}
	if below.Tokens.Total() == 0 {
		r.t.Error("the children have spent nothing")
	}
}

// SUB-1, C-16: one agent answers. It holds neither plan nor delegation, is told nothing of either, and when its
// turn ends the work is complete, whatever plan lies in the project and whatever its turn left undone.
func TestAssistant(t *testing.T) {
	bubble(t, family(steps(do(call("read", args{"filePath": "a.txt"})), say("It says hello.")), nil), func(r *rig) {
		r.write("a.txt", "hello\n")
		r.write(todoMD, "# Somebody's\n- [ ] T1 Not mine\n- [ ] T1 twice\n")
		r.write(".opencode/summary.md", "old news\n")
		r.cfg.Rules = func(string) []permission.Level { return rules(permission.Allow) }
		r.restart()
		o := assistant()
		o.Verify = []string{"false"}
		began := time.Now()
		m := r.mission(o)
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		equal(t, "summary", m.Summary, "It says hello.")
		equal(t, "requests", len(r.requests("assistant")), 2)
		if d := time.Since(began); d >= DefaultCountdown {
			t.Errorf("it took %v", d)
		}
		q := r.requests("assistant")[0]
		equal(t, "goal", q.First(), "build it")
		equal(t, "tools", strings.Join(q.Tools(), " "),
			"read ls glob grep write edit bash run_background check_background webfetch websearch codesearch ask_user sub_agent")
		equal(t, "plan", r.read(todoMD), "# Somebody's\n- [ ] T1 Not mine\n- [ ] T1 twice\n")
		equal(t, "summary file", r.read(".opencode/summary.md"), "old news\n")
		equal(t, "checks", r.shell.times("false"), 0)
		if all := r.events(m.ID, centurion.EventTodoUpdated); len(all) > 0 {
			t.Errorf("told of a plan: %v", all)
		}
	})
}

// OPAL-10, OPAL-12, OPAL-13, OPAL-67, OPAL-69, OPAL-70, SUB-2, SUB-7, SUB-8, SUB-10, SUB-13, LOOP-51, LOOP-52, C-2, OPAL-83, IKI-1, IKI-3, IKI-7,
// IKI-22, IKI-73, IKI-74, IKI-75: calls of one answer work side by side, each in a session
// below its parent's, with the parent's prompt, model, directory and tools except the one that starts sub-agents: it is
// not in the schema, and a call that is made up is answered like any unknown one. Call ids may come again.
func TestSubAgents(t *testing.T) {
	again := func(prompt string) scripted.Call {
		c := sub(prompt, nil)
		c.ID = "call_1"
		return c
	}
	root := steps(do(again("first: look\n into a.txt"), sub("second", nil)), do(again("third")), say("all done"))
	bubble(t, family(root, func(q scripted.Request) scripted.Answer {
		if q.Step() == 1 {
			return after(20*time.Second, do(call("read", args{"filePath": "a.txt"}), call("sub_agent", args{"prompt": "deeper"}), call("delegate_task", args{"prompt": "x"})))
		}
		return say("it was " + strings.Fields(q.First())[3])
	}), func(r *rig) {
		r.write("a.txt", "hello\n")
		r.restart()
		began := time.Now()
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "nothing to verify")
		if d := time.Since(began); d < 40*time.Second || d > 45*time.Second {
			t.Errorf("it took %v", d)
		}
		got := r.results(m.ID, "sub_agent")[:3]
		slices.Sort(got)
		has(t, strings.Join(got, "\n"), "it was first:\n\n(3 tool calls: read ×1, sub_agent ×1, delegate_task ×1; ", " tokens, $", ", 20s)", "it was second\n", "it was third\n")
		has(t, strings.Join(r.results(m.ID, "sub_agent"), "\n"), "Tool not found: sub_agent")
		has(t, strings.Join(r.results(m.ID, "delegate_task"), "\n"), "Tool not found: delegate_task")
		rootTools := r.requests("assistant")[0].Tools()
		parent, err := r.store.Session(r.ctx, m.Session)
		if err != nil {
			t.Fatal(err)
		}
		var addresses []string
		for _, k := range r.tasks(m.ID) {
			s, err := r.store.Session(r.ctx, k.Session)
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, s.Metadata.Address)
			if s.ParentID != m.Session || s.Agent != "assistant" || s.Directory != m.Directory || *s.Model != *parent.Model {
				t.Errorf("session %+v", s)
			}
		}
		// A child is made of what is known when the call begins: nothing is asked of its parent, whose turn waits for the call.
		for i, k := range r.tasks(m.ID) {
			equal(t, "made at", k.Created.Millis(), r.part(m.Session, "sub_agent", i).State.Time.Start)
		}
		slices.Sort(addresses) // who of those that begin at the same time is first is open
		equal(t, "addresses", strings.Join(addresses, " "), "0/0 0/1 0/2")
		children := slices.DeleteFunc(r.model.Requests(), func(q scripted.Request) bool { return !child(q) })
		if len(children) < 3 {
			t.Fatalf("%d requests of sub-agents", len(children))
		}
		for _, q := range children {
			equal(t, "tools", strings.Join(append(q.Tools(), "sub_agent"), " "), strings.Join(rootTools, " "))
			has(t, q.System(), "You work as a sub-agent", "Surroundings")
			if strings.Contains(q.First(), "first") {
				equal(t, "prompt", q.First(), "# Your task\n\nfirst: look\n into a.txt\n")
			}
		}
		r.adds(m.ID)
	})
}

// SUB-4, SUB-5, SUB-6, SUB-16, OPAL-68, OPAL-89: what a call names replaces what the parent has, and nothing else.
func TestSubAgentOverrides(t *testing.T) {
	root := steps(do(sub("read only", args{"tools": []string{"grep", "read"}, "model": "other/cheap", "system_prompt": "You look and say what you see."})), say("done"))
	bubble(t, family(root, steps(do(call("write", args{"filePath": "b.txt", "content": "x"})), say("seen"))), func(r *rig) {
		client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
		cheap := centurion.ModelRef{Provider: "other", ID: "cheap"}
		other := provider.New(provider.Endpoint{Model: cheap, BaseURL: scripted.URL, HTTP: r.http})
		r.cfg.Model = func(name string) (Model, error) {
			if name == "other/cheap" {
				return Model{Client: other, Ref: cheap, Price: &centurion.Price{Input: 1}}, nil
			}
			return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 100}}, nil
		}
		r.restart()
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "")
		n := 0
		for _, q := range r.model.Requests() {
			if !child(q) {
				equal(t, "model of the parent", string(q.Field("model")), `"scripted"`)
				continue
			}
			n++
			equal(t, "tools", strings.Join(q.Tools(), " "), "read grep")
			equal(t, "model", string(q.Field("model")), `"cheap"`)
			has(t, q.System(), "You look and say what you see.\n\nSurroundings\n")
			if strings.Contains(q.System(), "Assistant") || !strings.HasPrefix(q.System(), "You look") {
				t.Error(q.System())
			}
		}
		equal(t, "requests of the child", n, 2)
		has(t, strings.Join(r.results(m.ID, "write"), ""), "Tool not found: write")
		if _, err := os.Stat(filepath.Join(r.dir, "b.txt")); err == nil {
			t.Error("it has written")
		}
		meta := r.part(m.Session, "sub_agent", 0).State.Metadata
		equal(t, "metadata", fmt.Sprint(meta["model"]), "map[modelID:cheap providerID:other]")
		r.adds(m.ID)
	})
}

// SUB-3, SUB-16: a call that names what there is not starts nothing and is told what would be right.
func TestSubAgentRefused(t *testing.T) {
	bad := do(sub("x", args{"tools": []string{"read", "wite"}}), sub("x", args{"tools": []string{"sub_agent"}}), sub("x", args{"tools": []string{}}),
		sub("x", args{"model": "nobody/there"}), sub(" ", nil), call("sub_agent", args{"tools": []string{"read"}}))
	bubble(t, family(steps(bad, say("done")), nil), func(r *rig) {
		client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
		r.cfg.Model = func(name string) (Model, error) {
			if name == "nobody/there" {
				return Model{}, &centurion.Error{Op: "find model", Kind: centurion.KindUsage, Msg: `there is no provider "nobody"`, Hint: "the providers are scripted"}
			}
			return Model{Client: client, Ref: ref}, nil
		}
		r.restart()
		m := r.mission(assistant())
		got := r.results(m.ID, "sub_agent")
		for i, want := range [][]string{
			{`a sub-agent cannot have the tool "wite". did you mean "write"? it may have read, ls, glob, grep, write, edit, bash, `},
			{`a sub-agent cannot have the tool "sub_agent". `, "it may have read, ls"},
			{"tools is an empty list", "leave tools out for all of them"},
			{`there is no provider "nobody"`, "the providers are scripted"},
			{"the prompt is empty"},
			{"prompt"},
		} {
			has(t, got[i], want...)
		}
		equal(t, "tasks", len(r.tasks(m.ID)), 0)
	})
}

// SUB-8: a sub-agent has the configured budget of a task: when that is used up it fails, its parent is told and goes on.
func TestSubAgentBudget(t *testing.T) {
	bubble(t, family(steps(do(sub("look", nil)), say("done without it")), func(scripted.Request) scripted.Answer {
		return do(call("ls", args{}))
	}), func(r *rig) {
		r.cfg.TaskBudget = centurion.TaskBudget{Rounds: 3, ToolCalls: 9}
		r.restart()
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "summary", m.Summary, "done without it")
		k := r.tasks(m.ID)[0]
		equal(t, "its budget", k.Budget, r.cfg.TaskBudget)
		equal(t, "its requests", k.Rounds, 3)
		has(t, r.results(m.ID, "sub_agent")[0], "the sub-agent failed (budget): ", "the task's own budget of 3 requests is used up", "What it had done: 3 tool calls")
		equal(t, "requests in all", m.Rounds, 5)
		r.adds(m.ID)
	})
}

// SUB-11, SUB-10: the log of a sub-agent's tool calls stands in the metadata of its parent's call, in their order and by
// call id, and a long answer is cut with a pointer to the whole.
func TestSubAgentReport(t *testing.T) {
	long := strings.Repeat("word ", 10_000)
	bubble(t, family(steps(do(sub("look", nil)), say("done")), steps(
		do(call("write", args{"filePath": "b.txt", "content": strings.Repeat("x", 5000)}), call("read", args{"filePath": "none"})), say(long))), func(r *rig) {
		m := r.mission(assistant())
		r.is(m, centurion.MissionCompleted, "")
		k := r.tasks(m.ID)[0]
		p := r.part(m.Session, "sub_agent", 0)
		if len(p.State.Output) > 26<<10 {
			t.Errorf("%d bytes", len(p.State.Output))
		}
		has(t, p.State.Output, "word word", "… (24576 of ", "the whole: centurion show "+k.Session, "(2 tool calls: write ×1, read ×1; 1 file changed; ")
		b, err := json.Marshal(p.State.Metadata["log"])
		var log []tools.SubCall
		if err = errors.Join(err, json.Unmarshal(b, &log)); err != nil || len(log) != 2 {
			t.Fatalf("%s: %v", b, err)
		}
		w := r.part(k.Session, "write", 0)
		if log[0].ID != w.CallID || log[0].Tool != "write" || len(log[0].Args) > 300 || log[0].Result == "" || log[0].Error != "" {
			t.Errorf("%+v", log[0])
		}
		if log[1].Tool != "read" || log[1].Args != `{"filePath":"none"}` || log[1].Error == "" {
			t.Errorf("%+v", log[1])
		}
		equal(t, "files", fmt.Sprint(p.State.Metadata["files"]), "[b.txt]")
	})
}

// LOOP-61: at no moment does a reader find a child's spending in its mission and not in its parent's total, or the other
// way round.
func TestSubAgentSpendsAtomically(t *testing.T) {
	var r *rig
	var mission string
	looked := 0
	look := func() {
		for range 50 {
			before, err := r.store.Mission(r.ctx, mission)
			if err != nil {
				r.t.Error(err)
				return
			}
			sessions, err := r.store.Sessions(r.ctx, mission)
			if err != nil {
				r.t.Error(err)
				return
			}
			now, err := r.store.Mission(r.ctx, mission)
			if err != nil || before.Rounds != now.Rounds {
				continue // somebody wrote in between
			}
			looked++
			if _, total := centurion.SpentBy(now.Session, now, sessions, nil); total.Tokens != now.Usage.Tokens {
				r.t.Errorf("the mission says %+v, its sessions %+v", now.Usage.Tokens, total.Tokens)
			}
			return
		}
	}
	root := steps(do(sub("one", nil), sub("two", nil), sub("three", nil)), say("done"))
	bubble(t, family(root, func(q scripted.Request) scripted.Answer {
		if q.Step() < 6 {
			return after(time.Duration(q.Step())*time.Second, do(call("ls", args{})))
		}
		return say("fine")
	}), func(rg *rig) {
		r = rg
		l := r.live(r.start(assistant()).ID)
		mission = l.id
		for range 40 {
			time.Sleep(510 * time.Millisecond)
			look()
		}
		m := l.settled()
		r.is(m, centurion.MissionCompleted, "")
		if looked < 20 {
			t.Errorf("looked %d times only", looked)
		}
		r.adds(m.ID)
	})
}

// OPAL-11, C-2: a mission's four do not start sub-agents, nor does the assistant delegate: each profile has its own
// way, and nobody of the other.
func TestProfilesApart(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(handTo("assistant", "", "x"), sub("x", nil)), say("done"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		has(t, r.results(m.ID, "delegate_task")[0], `there is no agent "assistant"`)
		has(t, r.results(m.ID, "sub_agent")[0], "Tool not found: sub_agent")
		for _, o := range []centurion.MissionOptions{{Profile: "asistant"}, {Profile: "assistant", Agent: "worker"}, {Profile: "assistant", PlanOnly: true}, {Profile: "assistant", Level: 2}} {
			if _, err := r.host.Start(r.ctx, "x", o); centurion.KindOf(err) != centurion.KindUsage {
				t.Errorf("%+v: %v", o, err)
			}
		}
	})
}
