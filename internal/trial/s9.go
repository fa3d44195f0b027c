package trial

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"centurion"
	"centurion/provider/scripted"
	"centurion/worktree"
)

// s9Calls are what agents have no right to, by role. @ is the id of another worker's task, ! the directory of its checkout.
var s9Calls = map[string][]scripted.Call{
	"worker": {
		tool("delegate_task", map[string]any{"agent": "worker", "description": "more", "prompt": "more"}), tool("mission_complete", map[string]any{"summary": "done"}),
		tool("update_todo", map[string]any{"items": []map[string]any{{"id": "T1", "status": "done"}}}), tool("cancel_task", map[string]any{"task": "@"}),
		tool("get_task_result", map[string]any{"task": "@"}), tool("list_tasks", nil), tool("sub_agent", map[string]any{"prompt": "more"}), tool("call_agent", map[string]any{"agent": "commander", "prompt": "more"}),
		tool("write", map[string]any{"filePath": "!/planted.txt", "content": "evil"}), tool("bash", map[string]any{"command": "echo evil > !/planted.txt"}),
		tool("bash", map[string]any{"command": "git update-ref refs/heads/main $(git commit-tree 'HEAD^{tree}' -p HEAD -m evil)"}), tool("bash", map[string]any{"command": "git branch -f main HEAD~1"}),
		tool("bash", map[string]any{"command": "sed -i 's/verify:.*/verify: `true`/; s/\\[.\\]/[x]/' .opencode/todo.md"}), tool("write", map[string]any{"filePath": ".opencode/todo.md", "content": "- [x] T1\n"}),
		tool("check_background", map[string]any{"id": "@"}), tool("ask_user", map[string]any{"question": "May I?"}),
	},
	"reviewer": {
		tool("delegate_task", map[string]any{"agent": "worker", "description": "more", "prompt": "more"}), tool("mission_complete", map[string]any{"summary": "done"}),
		tool("write", map[string]any{"filePath": "planted.txt", "content": "evil"}), tool("edit", map[string]any{"filePath": "main.txt", "oldString": "text", "newString": "evil"}),
		tool("cancel_task", map[string]any{"task": "@"}),
	},
	"planner": {
		tool("delegate_task", map[string]any{"agent": "worker", "description": "more", "prompt": "more"}), tool("mission_complete", map[string]any{"summary": "done"}),
		tool("write", map[string]any{"filePath": "planted.txt", "content": "evil"}), tool("cancel_task", map[string]any{"task": "@"}),
	},
}

// s9 lets agents of each role use what is not theirs: tools of the Commander, others' tasks and checkouts, the person's branch and the plan.
func s9(ctx context.Context, t *T) {
	t.outside(func() {
		for _, kind := range workspaces {
			s9Run(t, kind)
		}
	})
}

func s9Run(t *T, workspaces string) {
	p := t.Project(map[string]string{"main.txt": "text\n", personRules: `{"permission": {"bash": "allow"}}`})
	p.gitInitWith(workspaces, "")
	head := p.git("rev-parse", "main")
	refused, tried := s9Serve(p, workspaces == worktree.WorkspacesOverlay)
	c := p.Start("run", "--format", "json", "--model", "custom/m", "--ask", "deny", "--sandbox", "require", "--isolation", "worktree", "Work on it.")
	if c.Wait(t, waitLimit) == 2 {
		t.NotPossible("not enforced here: %s", lastLines(c.Stderr(), 2))
	}
	told := p.Told(c)
	completed, tasks := 0, 0
	for _, e := range told {
		switch e.Type {
		case centurion.EventMissionCompleted:
			completed++
		case centurion.EventTaskStarted:
			tasks++
		}
	}
	if got := p.git("rev-parse", "main"); got != head {
		t.Failf("main was moved from %s to %s", head, got)
	}
	if names, _ := filepath.Glob(filepath.Join(p.Dir, "planted*")); len(names) > 0 || strings.Contains(p.git("ls-tree", "-r", "--name-only", "main"), "planted") {
		t.Failf("planted: %s", names)
	}
	if plan := readAll(filepath.Join(p.Dir, ".opencode/todo.md")); strings.Contains(plan, "[x] T1") || strings.Contains(plan, "verify: `true`") {
		t.Failf("the plan was forged: %s", plan)
	}
	t.Figure(workspaces+": calls", tried())
	t.Figure("refused or without effect", refused())
	if completed > 0 {
		t.Failf("the mission was ended by an agent that may not")
	}
	all := 0
	for _, calls := range s9Calls {
		all += len(calls)
	}
	if tried() < all || refused() < tried() {
		t.Failf("%d of %d calls were made, %d refused; %d tasks: %s", tried(), all, refused(), tasks, lastLines(c.Stderr(), 3))
	}
}

// s9Serve serves a model whose Commander delegates to each role and whose agents make the calls of their role. In overlays, what commands do to
// branches and below the project's path has no effect on the person's: it is looked for there.
func s9Serve(p *project, overlay bool) (refused, tried func() int) {
	var mu sync.Mutex
	results := map[string][]past{}
	p.Serve(scripted.Config{Pace: -1, Chunk: -1, Func: func(r scripted.Request) scripted.Answer {
		done := history(r)
		calls, role := s9Calls[r.Agent()], r.Agent()
		switch {
		case len(r.Tools()) == 0:
			return scripted.Answer{Say: "It was done."}
		case role == "commander" && len(done) == 0:
			plan := "# Plan\n- [ ] T1 Work @worker\n  - files: made.txt\n  - verify: `test -s never.txt`\n"
			all := []scripted.Call{tool("update_todo", map[string]any{"level": 2, "content": plan}), tool("delegate_task", map[string]any{"agent": "worker", "item": "T1", "description": "Work", "prompt": "Work."})}
			for _, agent := range []string{"planner", "reviewer"} {
				all = append(all, tool("delegate_task", map[string]any{"agent": agent, "description": "Look", "prompt": "Look."}))
			}
			return scripted.Answer{Calls: all}
		case role == "commander":
			return scripted.Answer{Say: "I wait."}
		}
		mu.Lock()
		if len(done) > len(results[role]) {
			results[role] = done
		}
		mu.Unlock()
		if len(done) >= len(calls) {
			return scripted.Answer{Say: "It is done. Verdict: PASS"}
		}
		call := calls[len(done)]
		call.Arguments = strings.NewReplacer("@", "w1", "!", p.Dir).Replace(call.Arguments)
		return scripted.Answer{Calls: []scripted.Call{call}}
	}})
	count := func(what func(past) bool) int {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for role, all := range results {
			for _, call := range all[:min(len(all), len(s9Calls[role]))] {
				if what(call) {
					n++
				}
				if !s9Refused(call) {
					p.t.Logf("%s %s %s: %s", role, call.name, centurion.Clip(call.args, 100), centurion.Clip(call.result, 160))
				}
			}
		}
		return n
	}
	refusedOrNot := func(call past) bool {
		own := strings.Contains(call.args, `"git `) || strings.Contains(call.args, "planted.txt")
		return s9Refused(call) || overlay && call.name == "bash" && own
	}
	return func() int { return count(refusedOrNot) }, func() int { return count(func(past) bool { return true }) }
}

// s9Refused reports whether a call was refused or had nothing to act upon.
func s9Refused(call past) bool {
	for _, sign := range []string{"no tool", "not found", "not allowed", "may not", "does not", "cannot", "refused", "unknown", "is not written", "you have no", "exit code", "denied",
		"created planted.txt"} { // the project's path is that of its own checkout, whose work is not merged
		if strings.Contains(strings.ToLower(call.result), sign) {
			return true
		}
	}
	return false
}
