package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

const (
	o5Workers = 10
	o5AtOnce  = time.Second     // from the ask to its answer
	o5Control = 3 * time.Second // for which a waiting mission is watched: many times as long as the others take
	o5Goal    = "Ask for permission."
	// o5Rules leave shell commands open; an agent of the person asks for what others may do.
	o5Rules = `{"permission": {"bash": {"*": "ask"}}}`
	o5Agent = "---\ndescription: asks before it writes\nmode: subagent\npermission: {edit: ask}\n---\nYou are the Careful. Do what you are told.\n"
)

// o5 lets children ask for permission without anyone there: without a terminal, with each policy, and as an agent that asks by its own
// rules. Every ask is answered at once and the mission ends. A mission told to ask a person proves that a hang would be noticed.
func o5(ctx context.Context, t *T) {
	for _, one := range []struct {
		name  string
		args  []string
		ends  bool
		runs  bool // the requested action is done
		asked bool // and was reported as an ask
	}{
		{"without a policy", nil, true, false, true},
		{"--ask deny", []string{"--ask", "deny"}, true, false, true},
		{"--ask allow", []string{"--ask", "allow"}, true, true, false},
		{"control, --ask ask", []string{"--ask", "ask"}, false, false, true},
	} {
		if ctx.Err() != nil {
			return
		}
		p := t.Project(map[string]string{"opencode.json": o5Rules, "../home/.config/opencode/agents/careful.md": o5Agent})
		p.Serve(scripted.Config{Func: o5Answer, Pace: -1, Chunk: -1})
		c := p.Start(append([]string{"run", "--format", "json", "--model", "custom/m", "--max-per-agent", fmt.Sprint(o5Workers)}, append(one.args, o5Goal)...)...)
		if !one.ends {
			o5Hangs(t, p, c)
			continue
		}
		code := c.Wait(t, waitLimit)
		told := p.Told(c)
		check(t, p, told)
		if code != 0 {
			t.Failf("%s: it ends with %d: %s", one.name, code, lastLines(c.Stderr(), 3))
		}
		o5Ended(t, one.name, told, one.asked)
		done := 0
		for i := range o5Workers {
			if readAll(p.Dir+"/"+o5File(i)) != "" {
				done++
			}
		}
		if want := map[bool]int{true: o5Workers}[one.runs]; done != want {
			t.Failf("%s: %d of %d files were written, want %d", one.name, done, o5Workers, want)
		}
		t.Figure(one.name, fmt.Sprintf("%.1f s", time.Since(c.start).Seconds()))
	}
}

func o5File(i int) string { return item(i) + ".txt" }

// o5Ended checks who answered every ask, and when.
func o5Ended(t *T, name string, told []centurion.Event, asked bool) {
	open := map[string]centurion.Event{}
	longest, answers, ended := time.Duration(0), 0, 0
	for _, e := range told {
		d, err := event.Decode[event.AskData](e)
		switch {
		case e.Type == centurion.EventPermissionAsked && err == nil:
			open[d.ID] = e
		case e.Type == centurion.EventPermissionReplied && err == nil:
			took := e.Time.Sub(open[d.ID].Time.Time)
			longest = max(longest, took)
			delete(open, d.ID)
			answers++
			if d.By != "policy" || d.Answer != "reject" || e.Task == "" {
				t.Failf("%s: %s was answered %s by %s", name, d.Title, d.Answer, d.By)
			}
		case e.Type == centurion.EventTaskCompleted:
			ended++
		}
	}
	want := map[bool]int{true: o5Workers}[asked]
	switch {
	case ended != o5Workers:
		t.Failf("%s: %d of %d tasks are completed", name, ended, o5Workers)
	case answers != want:
		t.Failf("%s: %d asks were answered, want %d", name, answers, want)
	case len(open) > 0:
		t.Failf("%s: %d asks were never answered", name, len(open))
	case longest > o5AtOnce:
		t.Failf("%s: an ask was answered after %s", name, longest)
	}
	if asked {
		t.Figure(name+", longest", longest)
	}
}

// o5Hangs watches a mission that waits for a person: the trial would notice a hang.
func o5Hangs(t *T, p *project, c *process) {
	if !c.Until(t, `"type":"permission.asked"`, waitLimit) {
		t.Failf("control: nobody was asked: %s", lastLines(c.Stderr(), 3))
		return
	}
	select {
	case <-c.done:
		t.Failf("control: it ended with %d although nobody has answered, so that this proves nothing", c.Code())
	case <-time.After(o5Control):
	}
	if strings.Contains(c.Stdout(), string(centurion.EventPermissionReplied)) {
		t.Failf("control: an ask was answered by nobody")
	}
	c.Kill()
	if left := p.gone(goneLimit); len(left) > 0 {
		t.Failf("control: left behind: %q", left)
	}
}

// o5Answer is the model. Half of the workers run a command without a rule, half write as an agent that asks about it.
func o5Answer(r scripted.Request) scripted.Answer {
	if r.Agent() == "commander" {
		if r.Step() > 1 {
			return scripted.Answer{Say: "I wait."}
		}
		var calls []scripted.Call
		for i := range o5Workers {
			agent := "worker"
			if i%2 == 1 {
				agent = "careful"
			}
			calls = append(calls, tool("delegate_task", map[string]any{"agent": agent, "description": "Write " + item(i), "prompt": "You write " + o5File(i) + "."}))
		}
		return scripted.Answer{Say: "I delegate.", Calls: calls}
	}
	if r.Step() > 1 {
		return scripted.Answer{Say: "It was answered."}
	}
	_, rest, _ := strings.Cut(r.First(), "You write ")
	file, _, _ := strings.Cut(rest, ".txt.")
	file += ".txt"
	if r.Agent() == "careful" {
		return scripted.Answer{Say: "I write.", Calls: []scripted.Call{tool("write", map[string]any{"filePath": file, "content": "x\n"})}}
	}
	return scripted.Answer{Say: "I run it.", Calls: []scripted.Call{tool("bash", map[string]any{"command": "echo x > " + file, "description": "Work"})}}
}
