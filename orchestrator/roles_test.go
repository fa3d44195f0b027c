package orchestrator

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/tools"
	"centurion/tools/web"
)

// ORCH-15, ORCH-44, ORCH-45, ORCH-46, ORCH-47, ORCH-52, ORCH-53, ORCH-57, S9: who holds what, as it stands in the requests of a real mission.
func TestToolsByRole(t *testing.T) {
	golden := map[string]string{
		"commander": "read ls glob grep write edit bash update_todo update_context delegate_task get_task_result list_tasks cancel_task mission_complete",
		"planner":   "read ls glob grep webfetch websearch codesearch cache_docs update_todo update_context delegate_task",
		"worker":    "read ls glob grep write edit bash run_background check_background webfetch websearch codesearch update_context",
		"reviewer":  "read ls glob grep bash run_background check_background cache_docs update_todo update_context",
	}
	all := golden["commander"] + " run_background check_background webfetch websearch codesearch cache_docs"
	everything := func(r scripted.Request) scripted.Answer {
		if r.Step() > 1 {
			return say("done")
		}
		var calls []scripted.Call
		for name := range strings.FieldsSeq(all) {
			if !strings.Contains(" "+golden[r.Agent()]+" ", " "+name+" ") {
				calls = append(calls, call(name, args{"agent": "worker", "description": "x", "prompt": "x", "task_id": "x", "summary": "x",
					"filePath": "x", "content": "x", "command": "x", "level": 1}))
			}
		}
		return do(calls...)
	}
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "x"), handTo("worker", "", "x"), handTo("reviewer", "", "x")), say("I wait")),
		"planner":   everything, "worker": everything, "reviewer": everything,
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for agent, want := range golden {
			asked := r.requests(agent)
			if len(asked) == 0 {
				t.Fatalf("%s was never asked", agent)
			}
			for _, q := range asked {
				equal(t, agent, strings.Join(q.Tools(), " "), want)
			}
			if agent == "commander" {
				continue
			}
			refused := asked[1].Results()
			equal(t, agent+" refused", len(refused), len(strings.Fields(all))-len(strings.Fields(want)))
			for _, text := range refused {
				has(t, text, "Tool not found: ")
			}
		}
		equal(t, "tasks", len(r.tasks(m.ID)), 3)
	})
}

// ORCH-45, ORCH-46: results and lists are there for who delegated, and a result that was fetched is not told again.
func TestResultsAreFetched(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			first := func() string { return firstTask(r) }
			switch r.Step() {
			case 1:
				return do(work("", "quick"), work("", "slow"), onward)
			case 2:
				return after(time.Second, do(call("list_tasks", args{}), call("get_task_result", args{"task_id": "x" + first()}), call("bash", args{"command": "sleep 9s"})))
			case 3:
				return do(call("get_task_result", args{"task_id": first()}))
			}
			return say("I wait")
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "slow") {
				return after(time.Minute, say("slow result"))
			}
			return after(15*time.Second, say("quick result"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		has(t, r.results(m.ID, "list_tasks")[0], tasks[0].Name(), "running", tasks[1].Name(), "running")
		got := r.results(m.ID, "get_task_result")
		has(t, got[0], "there is no task", "did you mean "+tasks[0].Name())
		has(t, got[1], "is completed after 15s", "quick result") // it was waited for
		asked := r.requests("commander")
		history := 0
		for _, msg := range asked[len(asked)-1].Messages() {
			history += strings.Count(msg.Text, "quick result")
		}
		equal(t, "times the quick result was told", history, 1)
	})
}

// A result that was fetched by its parent is consumed by that.
func TestFetchedResultIsNotToldAgain(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			id := firstTask(r)
			switch r.Step() {
			case 1:
				return do(work("", "quick"), work("", "slow"), onward)
			case 2: // the result comes while this runs: it stands in the answer of the last call
				return do(call("bash", args{"command": "build 10s"}), call("get_task_result", args{"task_id": id}))
			}
			return say("I wait")
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if strings.Contains(r.First(), "slow") {
				return after(time.Minute, say("slow result"))
			}
			return after(time.Second, say("quick result"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		has(t, r.results(m.ID, "get_task_result")[0], "<result>\nquick result")
		asked := r.requests("commander")
		history := 0
		for _, msg := range asked[len(asked)-1].Messages() {
			history += strings.Count(msg.Text, "quick result")
		}
		equal(t, "times it was told", history, 1)
		equal(t, "deliveries told", r.count(m.ID, centurion.EventTaskDelivered), 2)
	})
}

// ORCH-118, ORCH-119, ORCH-122, C-5: a synchronous call returns the result itself; after five minutes the task goes on in the background.
func TestSynchronousDelegation(t *testing.T) {
	sync := func(prompt string) scripted.Call {
		return call("delegate_task", args{"agent": "worker", "description": "d", "prompt": prompt, "background": false})
	}
	for name, test := range map[string]struct {
		takes int // minutes
		says  string
		told  int // times the commander is told beside the call
	}{
		"in time":  {4, "<result>\nmade", 0},
		"too long": {10, "has not ended after 5m and continues in the background", 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(sync("x"), sync("y")), say("I wait")),
				"worker":    minutes(test.takes, "made"),
			}, func(r *rig) {
				began := time.Now()
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				equal(t, "took", time.Since(began).Round(time.Second), time.Duration(test.takes)*time.Minute)
				for _, said := range r.results(m.ID, "delegate_task") {
					has(t, said, test.says)
				}
				equal(t, "notices", r.told(m.Session, "is completed"), 2*test.told)
			})
		})
	}
}

// ORCH-15, ORCH-44, ORCH-121, C-2: a planner delegates in its turn, at one depth more, to planners only, which look and report: nobody who
// writes works below it. Its helpers hand nothing on. It is not finished before its own tasks are, and gives its slot back while it waits for them.
func TestPlannerDelegates(t *testing.T) {
	sync := call("delegate_task", args{"agent": "planner", "description": "d", "prompt": "third", "background": false})
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "look around")), say("I wait")),
		"planner": func(q scripted.Request) scripted.Answer {
			if !strings.Contains(q.First(), "look around") {
				return steps(do(handTo("planner", "", "too deep")), after(time.Minute, say("seen: - [ ] T1 a list that is no plan")))(q)
			}
			return steps(do(handTo("reviewer", "", "no"), work("", "no"), sync, sync), do(handTo("planner", "", "first"), handTo("planner", "", "second")),
				say("I wait for them"), say("all looked at"))(q)
		},
	}, func(r *rig) {
		r.cfg.Workers = 1
		r.restart()
		began := time.Now()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "took", time.Since(began).Round(time.Second), 4*time.Minute)
		tasks := r.tasks(m.ID)
		equal(t, "tasks", len(tasks), 5)
		equal(t, "result", tasks[0].Result, "all looked at")
		said := strings.Join(r.results(m.ID, "delegate_task"), "\n")
		has(t, said, "the planner may not delegate to the reviewer", "the planner may not delegate to the worker", "it may delegate to: planner")
		deep := 0
		sessions, _ := r.store.Sessions(r.ctx, m.ID)
		for _, s := range sessions {
			if s.Agent == agents.Worker {
				t.Errorf("a worker has the address %s", s.Metadata.Address)
			}
			if strings.Count(s.Metadata.Address, "/") == 2 {
				deep++
			}
		}
		equal(t, "helpers", deep, 4)
		equal(t, "a helper's list is the plan", m.HadItems, false)
		for _, q := range r.requests("planner") {
			equal(t, "offered to delegate: "+q.First(), slices.Contains(q.Tools(), "delegate_task"), strings.Contains(q.First(), "look around"))
		}
		for _, q := range r.requests("commander") {
			if strings.Contains(q.Last(), "seen") {
				t.Error("the commander was told what the planner is told")
			}
		}
		waited := r.events(m.ID, centurion.EventTaskWaiting)
		if len(waited) == 0 || waited[0].Task != tasks[0].ID {
			t.Errorf("waits that were told: %v", waited)
		}
	})
}

// A parent that ends before its children leaves their results to the mission.
func TestOrphansReportToTheMission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			id := firstTask(r)
			return steps(do(handTo("planner", "", "look around"), onward), do(call("bash", args{"command": "sleep 30s"}), call("cancel_task", args{"task_id": id})), say("I wait"))(r)
		},
		"planner": func(r scripted.Request) scripted.Answer {
			switch {
			case strings.Contains(r.First(), "slow"):
				return after(time.Minute, say("slow result"))
			case strings.Contains(r.First(), "quick"):
				return after(time.Second, say("quick result"))
			}
			return steps(do(handTo("planner", "", "quick"), handTo("planner", "", "slow")), after(time.Minute, say("I think")))(r) // what is quick comes meanwhile
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "the planner", r.tasks(m.ID)[0].Status, centurion.TaskCancelled)
		asked := r.requests("commander")
		var text strings.Builder
		for _, msg := range asked[len(asked)-1].Messages() {
			text.WriteString(msg.Text)
		}
		has(t, text.String(), "quick result")
		has(t, text.String(), "slow result")
		deliveries, _ := r.store.Deliveries(r.ctx, m.ID)
		for _, d := range deliveries {
			if d.Taken.IsZero() {
				t.Errorf("never told: %+v", d)
			}
		}
	})
}

// What cannot be delegated is refused with what would have worked.
func TestDelegationRefused(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(
			do(work("T1", "too early")),
			do(plans("- [ ] T1 One", "- [x] T2 Two", "- [ ] G1 Group", "  - [ ] S1 Sub", "- [ ] T4 Four")),
			do(handTo("wroker", "", "x"), handTo("commander", "", "x"), work("T11", "x"), work("T2", "x"), work("G1", "x"), work("T4", "slow"), work("T4", "again")),
			do(plans("- [ ] T9 Another")),
			do(plans("- [x] T1 One", "- [~] T4 Four")), say("I wait")),
		"worker": func(scripted.Request) scripted.Answer { return after(time.Minute, say("made")) },
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		said := r.results(m.ID, "delegate_task")
		for i, want := range []string{"there is no todo list yet", `did you mean "worker"?`, "may not delegate to the commander", "did you mean T1?",
			"item T2 is done", "a group", "You will be told", "item T4 is already being worked on"} {
			has(t, said[i], want)
		}
		has(t, r.results(m.ID, "update_todo")[1], "the new list has no item T4, which is being worked on")
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		if _, err := r.host.Start(r.ctx, "x", centurion.MissionOptions{Agent: "comander"}); centurion.KindOf(err) != centurion.KindUsage || centurion.HintOf(err) != `did you mean "commander"?` {
			t.Errorf("unknown agent: %v, %s", err, centurion.HintOf(err))
		}
		if _, err := r.host.Start(r.ctx, "", centurion.MissionOptions{}); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("no goal: %v", err)
		}
	})
}

// Endpoints that count their calls anew in every answer still make a task with each.
func TestRepeatedCallIDs(t *testing.T) {
	handOut := func(prompt string) scripted.Answer {
		c := work("", prompt)
		c.ID = "call_0"
		return do(c)
	}
	bubble(t, map[string]script{"commander": steps(handOut("one"), handOut("two"), say("I wait"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		tasks := r.tasks(m.ID)
		if len(tasks) != 2 || tasks[0].Prompt != "one" || tasks[1].Prompt != "two" {
			t.Errorf("tasks %+v", tasks)
		}
	})
}

// R2, R3: a delegation that is repeated because its host died finds its own task, also when that is done and its item ticked by then.
func TestRepeatedDelegationOfADoneItem(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One")), do(work("T1", "x")), say("I wait"), do(call("bash", args{"command": "build 100s"})), complete()),
		"worker":    steps(say("made")),
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		synctest.Wait() // the Commander's turn stands in its command
		before := r.tasks(m.ID)
		if len(before) != 1 || before[0].Status != centurion.TaskCompleted {
			t.Fatalf("tasks %+v", before)
		}
		message, id, _ := strings.Cut(before[0].Call, "/")
		running := r.host.running(m.ID)
		d := running.opener.Tools.Delegator(running.loop.Root)
		want := tools.Delegation{Agent: "worker", Item: "T1", Prompt: "x"}
		got, err := d.Delegate(r.ctx, &tools.Call{Message: message, ID: id, Workspace: r.ws}, want)
		if err != nil || got.ID != before[0].ID {
			t.Errorf("the repeated call: %s, %v", got.ID, err)
		}
		if _, err := d.Delegate(r.ctx, &tools.Call{Message: message, ID: "another", Workspace: r.ws}, want); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("another call: %v", err)
		}
		equal(t, "tasks", len(r.tasks(m.ID)), 1)
		r.is(l.wait(), centurion.MissionCompleted, "")
	})
}

// ORCH-48, ORCH-51: what a host is given for the network is what its sessions' tools use, and the rules stand before it.
func TestWebReachesTheTools(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(handTo("planner", "", "look it up"), handTo("worker", "", "look it up")), say("I wait")),
		"planner":   steps(do(call("cache_docs", args{"action": "list"}), call("webfetch", args{"url": "https://denied.example/x"})), say("done")),
		"worker":    steps(do(call("webfetch", args{"url": "http://127.0.0.1:9/x"})), say("done")),
	}, func(r *rig) {
		r.cfg.Web = web.New(web.Config{Docs: web.NewDocs(r.ws, 0)})
		r.cfg.Rules = func(string) []permission.Level {
			return append(rules(permission.Allow), permission.Level{Name: "person", Rules: []permission.Rule{
				{Permission: "webfetch", Pattern: "https://denied.example/*", Action: permission.Deny}}})
		}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		planner := r.requests("planner")[1].Results()
		has(t, planner[0], "no page is kept")
		has(t, planner[1], "not allowed: webfetch https://denied.example/x")
		has(t, r.requests("worker")[1].Results()[0], "not in the public network")
	})
}

// ORCH-49, ORCH-50: a search for which nobody has configured an engine is offered to nobody.
func TestSearchWithoutEngine(t *testing.T) {
	for _, c := range []struct {
		name, want string
		engines    web.Search
	}{
		{"none", "webfetch", web.Search{}},
		{"for the web", "webfetch websearch", web.Search{Brave: "k"}},
		{"for code", "webfetch codesearch", web.Search{GitHub: "k"}},
		{"for both", "webfetch websearch codesearch", web.Search{SearXNG: "http://localhost:8080"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(handTo("worker", "", "x")), say("I wait")),
				"worker":    steps(say("done")),
			}, func(r *rig) {
				r.cfg.Web = web.New(web.Config{Docs: web.NewDocs(r.ws, 0), Search: c.engines})
				r.restart()
				r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
				equal(t, "tools", strings.Join(r.requests("worker")[0].Tools(), " "),
					"read ls glob grep write edit bash run_background check_background "+c.want+" update_context")
			})
		})
	}
}
