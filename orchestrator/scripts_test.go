package orchestrator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"centurion/provider/scripted"
)

func say(text string) scripted.Answer { return scripted.Answer{Say: text} }

func do(calls ...scripted.Call) scripted.Answer { return scripted.Answer{Calls: calls} }

// look is a call of a reviewer, without which its PASS rests on nothing.
var look = call("ls", args{})

// after delays an answer.
func after(d time.Duration, a scripted.Answer) scripted.Answer {
	a.Delay = d
	return a
}

type args map[string]any

func call(name string, a args) scripted.Call {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return scripted.Call{Name: name, Arguments: string(b)}
}

// steps answers with the n-th answer in the n-th step of a session and says "done" from then on. A turn that only delegated may have
// ended by itself: then a text that says so, "I wait", is not asked for any more.
func steps(answers ...scripted.Answer) script {
	return func(r scripted.Request) scripted.Answer {
		n, before := 0, ""
		for _, m := range r.Messages() {
			parked := m.Role == "user" && before == "tool" && !strings.HasPrefix(m.Text, "<status>")
			if m.Role == "assistant" || parked && n < len(answers) && len(answers[n].Calls) == 0 && strings.Contains(answers[n].Say, "wait") {
				n++
			}
			before = m.Role
		}
		if n < len(answers) {
			return answers[n]
		}
		return say("done")
	}
}

// plans writes the plan. What is said to be done needs a check or a review: an item without a check is given one that passes.
func plans(lines ...string) scripted.Call { return barePlan(checked(strings.Join(lines, "\n"))) }

// barePlan writes the plan as it stands, for tests of what no check shows.
func barePlan(lines ...string) scripted.Call {
	return call("update_todo", args{"level": 2, "content": "# Plan\n" + strings.Join(lines, "\n") + "\n"})
}

var itemLine = regexp.MustCompile(`^(\s*)- \[[ xX~!]\] `)

// passes is the check of an item whose check is not what a test is about. It stays green, as the shell knows no such command.
const passes = "  - verify: `passes`"

// checked gives every item of a plan a check that has none, but for those of the reviewer.
func checked(plan string) string {
	var out []string
	lines := strings.Split(plan, "\n")
	for i, line := range lines {
		out = append(out, line)
		m := itemLine.FindStringSubmatch(line)
		if m == nil || strings.Contains(line, "@reviewer") {
			continue
		}
		has := false
		for _, next := range lines[i+1:] {
			if !strings.HasPrefix(next, " ") || itemLine.MatchString(next) {
				break
			}
			has = has || strings.Contains(next, "verify:")
		}
		if !has {
			out = append(out, m[1]+passes)
		}
	}
	return strings.Join(out, "\n")
}

// work hands a task to a worker, for an item or without one.
func work(item, prompt string) scripted.Call { return handTo("worker", item, prompt) }

// onward is a call beside delegations with which their turn goes on.
var onward = call("ls", args{})

func handTo(agent, item, prompt string) scripted.Call {
	a := args{"agent": agent, "description": "do " + item, "prompt": prompt}
	if item != "" {
		a["item"] = item
	}
	return call("delegate_task", a)
}

// many hands out n tasks without items in one answer.
func many(n int) scripted.Answer {
	var calls []scripted.Call
	for i := range n {
		calls = append(calls, work("", fmt.Sprintf("piece %d", i)))
	}
	return do(calls...)
}

var taskName = regexp.MustCompile(`(?m)^(?:Task )?(\w+) (?:".*" )?\((?:worker|reviewer|planner|tester)\b`)

// names returns the names of the tasks that a text tells of: an answer of a tool, a notice.
func names(text string) (all []string) {
	for _, g := range taskName.FindAllStringSubmatch(text, -1) {
		all = append(all, g[1])
	}
	return all
}

// nameIn returns the first of them, or "".
func nameIn(text string) string { return append(names(text), "")[0] }

// firstTask returns the name of the task that a session was told of first.
func firstTask(r scripted.Request) string {
	for _, m := range r.Messages() {
		if name := nameIn(m.Text); name != "" && m.Role != "assistant" {
			return name
		}
	}
	return ""
}

// minutes works for n minutes and then says text. No single request takes long: the provider would take it for a stall.
func minutes(n int, text string) script {
	return func(r scripted.Request) scripted.Answer {
		if r.Step() < n {
			return after(time.Minute, do(call("ls", args{"path": strings.Repeat("./", 1+r.Step()%2)}))) // never twice the same call
		}
		return after(time.Minute, say(text))
	}
}
