package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"centurion"
	"centurion/permission"
	"centurion/provider/scripted"
	"centurion/store"
)

// object is an input or an output of a hook.
type object = map[string]any

// plugin has hooks by name. As a real one does, it sees JSON and changes the output in place.
type plugin struct {
	hooks map[string]func(in, out object) error

	mu    sync.Mutex
	calls []string // hook, agent and whether it has a task and a parent
}

func (p *plugin) Has(hook string) bool { return p.hooks[hook] != nil }

func (p *plugin) Hook(_ context.Context, hook string, input any, output json.RawMessage) (json.RawMessage, []string, error) {
	in, out := object{}, object{}
	given, err := json.Marshal(input)
	if err != nil || json.Unmarshal(given, &in) != nil || json.Unmarshal(output, &out) != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	call := []string{hook, in["agent"].(string)}
	for _, key := range []string{"task", "parentID"} {
		if in[key] != nil {
			call = append(call, key)
		}
	}
	p.calls = append(p.calls, strings.Join(call, " "))
	if err := p.hooks[hook](in, out); err != nil {
		return nil, []string{"guard"}, err
	}
	was := object{}
	_ = json.Unmarshal(output, &was)
	changed, err := json.Marshal(out)
	if again := (object{}); json.Unmarshal(changed, &again) == nil && reflect.DeepEqual(was, again) {
		return output, nil, err
	}
	return changed, []string{"guard"}, err
}

// called lists the different calls of a hook, in order of their text.
func (p *plugin) called(hook string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]bool{}
	for _, c := range p.calls {
		if rest, ok := strings.CutPrefix(c, hook+" "); ok {
			all[rest] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

// hooksOf is a rig with a plugin.
func hooksOf(t *testing.T, p *plugin, cast map[string]script, f func(r *rig)) {
	t.Helper()
	bubble(t, cast, func(r *rig) {
		r.cfg.Hooks = p
		r.restart()
		f(r)
	})
}

// threeLevels is a mission whose planner has a planner, which makes some calls.
func threeLevels(calls scripted.Answer) map[string]script {
	return map[string]script{
		"commander": steps(do(handTo("planner", "", "plan it")), say("I wait")),
		"planner": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "look at it") {
				return steps(calls, say("seen"))(q)
			}
			return steps(do(handTo("planner", "", "look at it")), say("I wait"))(q)
		},
	}
}

// Step 11, point 2: the hooks of tools act in every session of a mission of three levels, each call says for whom; they change arguments and
// results, and a refusal ends the call and stands in its record.
func TestToolHooks(t *testing.T) {
	p := &plugin{hooks: map[string]func(in, out object) error{
		centurion.HookToolBefore: func(in, out object) error {
			given := out["args"].(object)
			switch {
			case in["tool"] != "read":
			case given["filePath"] == "secret.txt":
				return errors.New("guard: not that file")
			case given["filePath"] == "old.txt":
				given["filePath"] = "new.txt"
			case given["filePath"] == "broken.txt":
				out["args"] = object{"path": 1}
			}
			return nil
		},
		centurion.HookToolAfter: func(in, out object) error {
			if in["tool"] == "read" {
				out["output"] = "after " + in["args"].(object)["filePath"].(string) + ": " + out["output"].(string)
			}
			return nil
		},
	}}
	reads := do(call("read", args{"filePath": "old.txt"}), call("read", args{"filePath": "secret.txt"}), call("read", args{"filePath": "broken.txt"}))
	hooksOf(t, p, threeLevels(reads), func(r *rig) {
		r.write("new.txt", "the new text")
		r.write("old.txt", "the old text")
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		got := r.results(m.ID, "read")
		has(t, got[0], "after new.txt", "the new text")
		has(t, got[1], "refused by a plugin: guard: not that file")
		has(t, got[2], "a plugin changed the arguments", "filePath")
		equal(t, "before", p.called(centurion.HookToolBefore), "commander, planner task parentID")
		equal(t, "after", p.called(centurion.HookToolAfter), "commander, planner task parentID")
		var refused []byte
		for _, s := range r.tasks(m.ID) {
			all, err := r.store.Messages(r.ctx, s.Session)
			if err != nil {
				t.Fatal(err)
			}
			for _, msg := range all {
				for _, part := range msg.Parts {
					if part.State != nil && strings.Contains(part.State.Error, "guard") {
						refused, _ = json.Marshal(part.State.Metadata)
					}
				}
			}
		}
		has(t, string(refused), `"action":"deny"`, `guard: not that file`, `"by":"plugin guard"`)
	})
}

// Step 11, point 2: what a session is sent and what it answers passes through the hooks; a system prompt is changed once, and its cached prefix
// stays.
func TestRequestHooks(t *testing.T) {
	n := 0
	p := &plugin{hooks: map[string]func(in, out object) error{
		centurion.HookSystem: func(_, out object) error {
			n++
			out["system"] = append(out["system"].([]any), "Speak Latin, the "+string(rune('0'+n))+". time.")
			return nil
		},
		centurion.HookParams: func(_, out object) error {
			out["temperature"], out["maxOutputTokens"] = 0.75, 123
			return nil
		},
		centurion.HookHeaders: func(in, out object) error {
			out["headers"] = object{"X-Plugin": in["agent"].(string), "Bad\nname": "x", "X-Bad": "a\r\nb"}
			return nil
		},
		centurion.HookText: func(in, out object) error {
			out["text"] = strings.ReplaceAll(out["text"].(string), "done", "factum")
			if in["messageID"] == nil || in["partID"] == nil {
				return errors.New("without ids")
			}
			return nil
		},
		centurion.HookShellEnv: func(_, out object) error {
			out["env"] = object{"LATIN": "yes", "B=AD": "x", "NUL": "a\x00b"}
			return nil
		},
	}}
	hooksOf(t, p, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    steps(bash("printenv"), say("done")),
	}, func(r *rig) {
		r.cfg.Rules = permit("bash", "*", permission.Allow)
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for _, agent := range []string{"commander", "worker"} {
			for _, q := range r.requests(agent) {
				has(t, q.System(), "Speak Latin, the ")
				equal(t, "temperature", string(q.Field("temperature")), "0.75")
				equal(t, "header", q.Header.Get("X-Plugin"), agent)
				equal(t, "bad header", q.Header.Get("X-Bad"), "")
			}
			equal(t, "systems of the "+agent, r.requests(agent)[0].System() == r.requests(agent)[1].System(), true)
		}
		equal(t, "result", r.tasks(m.ID)[0].Result, "factum")
		equal(t, "environment", r.results(m.ID, "bash")[0], "LATIN=yes")
	})
}

// Step 11, point 2: a plugin answers what the rules ask about, also for checks; what they deny it does not lift.
func TestAskHook(t *testing.T) {
	for name, test := range map[string]struct {
		says   string
		rule   permission.Action
		result string
	}{
		"it allows":                {"allow", permission.Ask, "(no output)"},
		"it refuses":               {"deny", permission.Ask, "the plugin guard refused it"},
		"it says nothing":          {"ask", permission.Ask, "there is no one to ask"},
		"it says something else":   {"perhaps", permission.Ask, "there is no one to ask"},
		"a denial is not lifted":   {"allow", permission.Deny, "is denied by the rule"},
		"what is allowed, it sees": {"deny", permission.Allow, "(no output)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookAsk: func(in, out object) error {
				if in["type"] == "bash" {
					out["status"] = test.says
				}
				return nil
			}}}
			hooksOf(t, p, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker":    steps(bash("put a.txt x"), say("done")),
			}, func(r *rig) {
				r.cfg.Rules = permit("bash", "*", test.rule)
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				has(t, r.results(m.ID, "bash")[0], test.result)
				asks, err := r.store.Asks(r.ctx, m.ID, false)
				if err != nil || slices.ContainsFunc(asks, func(a store.Ask) bool { return a.Answer == "" }) {
					t.Errorf("%+v %v", asks, err)
				}
			})
		})
	}
}

// A plugin refuses or allows a check of the plan that the rules ask about.
func TestAskHookForChecks(t *testing.T) {
	for says, status := range map[string]centurion.MissionStatus{"allow": centurion.MissionCompleted, "deny": centurion.MissionBlocked} {
		t.Run(says, func(t *testing.T) {
			p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookAsk: func(_, out object) error {
				out["status"] = says
				return nil
			}}}
			hooksOf(t, p, map[string]script{
				"commander": steps(do(barePlan("- [ ] T1 Build it @worker\n  - verify: `put ok.txt x`"), work("T1", "build it")), say("I wait")),
				"worker":    steps(do(call("write", args{"filePath": "a.txt", "content": "a"})), say("done")),
			}, func(r *rig) {
				r.cfg.Rules = permit("bash", "*", permission.Ask)
				r.restart()
				m := r.mission(centurion.MissionOptions{})
				if m.Status != status {
					t.Errorf("%s, %s", m.Status, m.Reason)
				}
			})
		})
	}
}

// Step 11, point 2: a plugin says what a summary is to keep, and may ask for it in its own words.
func TestCompactingHook(t *testing.T) {
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookCompacting: func(_, out object) error {
		out["context"], out["prompt"] = append(out["context"].([]any), "Keep the word XYZZY."), "You sum up."
		return nil
	}}}
	ask := reads(40)
	var asked []string
	hooksOf(t, p, map[string]script{
		"commander": steps(do(work("", "read the long file")), say("I wait")),
		"worker":    ask,
		"": func(q scripted.Request) scripted.Answer {
			asked = append(asked, q.System()+" "+q.Last())
			return say("All was read so far.")
		},
	}, func(r *rig) {
		r.window(16_000)
		r.longFile()
		r.is(r.mission(centurion.MissionOptions{}), centurion.MissionCompleted, "")
		if len(asked) == 0 {
			t.Fatal("no summary was asked for")
		}
		has(t, asked[0], "You sum up.", "Keep the word XYZZY.", "The record:")
		equal(t, "for", p.called(centurion.HookCompacting), "worker task parentID")
	})
}

// Step 11, point 2: plugins change a copy of the history before each request; the stored one stays, and one that no provider would take is
// dropped with one notice.
func TestMessagesHook(t *testing.T) {
	for name, test := range map[string]struct {
		hook    func(in, out object) error
		want    string
		notices int
	}{
		"a text is changed": {func(_, out object) error {
			first := out["messages"].([]any)[0].(object)
			first["parts"].([]any)[0].(object)["text"] = "Build it well."
			return nil
		}, "Build it well.", 0},
		"the first message is gone": {func(_, out object) error {
			all := out["messages"].([]any)
			out["messages"] = all[1:]
			return nil
		}, "build it", 1},
		"all are gone": {func(_, out object) error {
			out["messages"] = []any{}
			return nil
		}, "build it", 1},
		"it throws": {func(_, out object) error {
			out["messages"] = []any{}
			return errors.New("no")
		}, "build it", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookMessages: test.hook}}
			hooksOf(t, p, map[string]script{"commander": steps(do(call("ls", args{})), do(call("read", args{"filePath": "a.txt"})), say("done"))}, func(r *rig) {
				r.write("a.txt", "a")
				m := r.mission(centurion.MissionOptions{})
				r.is(m, centurion.MissionCompleted, "")
				all := r.requests("commander")
				for _, q := range all {
					has(t, q.First(), test.want)
				}
				stored, err := r.store.Messages(r.ctx, m.Session)
				if err != nil || stored[0].Parts[0].Text != "build it" {
					t.Errorf("stored: %+v %v", stored[0], err)
				}
				notices := 0
				for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
					if strings.Contains(string(e.Data), "no provider would take it") {
						notices++
					}
				}
				equal(t, "notices", notices, test.notices)
			})
		})
	}
}
