package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/mail"
	"centurion/permission"
	"centurion/provider/scripted"
)

// Step 11, point 2: what plugins make of a prompt and of the tools is made when a conversation begins and after each compaction, and stays
// in between. Each such change stands in the journal with its author.
func TestPluggedAgain(t *testing.T) {
	n := 0
	p := &plugin{hooks: map[string]func(in, out object) error{
		centurion.HookSystem: func(in, out object) error {
			if in["agent"] == "worker" {
				n++
				out["system"] = append(out["system"].([]any), fmt.Sprintf("Round %d.", n))
			}
			return nil
		},
		centurion.HookDefinition: func(in, out object) error {
			if in["toolID"] == "read" && in["agent"] == "worker" {
				out["description"] = fmt.Sprintf("Reads, as of round %d.", n)
				out["parameters"].(object)["properties"].(object)["filePath"].(object)["description"] = "a file of round " + fmt.Sprint(n)
			}
			return nil
		},
	}}
	ask := reads(40)
	var rounds []string
	hooksOf(t, p, map[string]script{
		"commander": steps(do(work("", "read the long file")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			tools := string(q.Field("tools"))
			for i := range 9 {
				if round := fmt.Sprint(i); strings.Contains(q.System(), "Round "+round+".") {
					has(t, tools, "Reads, as of round "+round, "a file of round "+round)
					if len(rounds) == 0 || rounds[len(rounds)-1] != round {
						rounds = append(rounds, round)
					}
				}
			}
			return ask(q)
		},
		"": func(q scripted.Request) scripted.Answer { return say(fmt.Sprintf("All was read so far, up to %d.", n)) },
	}, func(r *rig) {
		r.window(16_000)
		r.longFile()
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "systems", strings.Join(rounds, " ") == strings.Join(strings.Fields("1 2 3 4 5 6 7 8")[:len(rounds)], " "), true)
		equal(t, "systems and compactions", len(rounds), len(r.compacted(m.ID, "worker"))+1)
		if len(rounds) < 2 {
			t.Fatal("there was no compaction")
		}
		var acted []string
		for _, e := range r.events(m.ID, centurion.EventPluginActed) {
			d, err := event.Decode[event.PluginData](e)
			if err != nil || e.Session != r.tasks(m.ID)[0].Session {
				t.Errorf("%+v %v", e, err)
			}
			acted = append(acted, d.Hook+" "+d.By)
		}
		equal(t, "acted", strings.Join(acted, ", "), centurion.HookSystem+" plugin guard, "+centurion.HookDefinition+" plugin guard")
		rec, err := r.store.Session(r.ctx, r.tasks(m.ID)[0].Session)
		if err != nil || strings.Contains(rec.Metadata.System, "Round") || !strings.Contains(rec.Metadata.Prompt(), "Round "+fmt.Sprint(len(rounds))) {
			t.Errorf("%+v %v", rec.Metadata, err)
		}
	})
}

// Step 11, points 1 and 2: so it is when a person has a conversation shortened that rests.
func TestPluggedAtRest(t *testing.T) {
	n := 0
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookSystem: func(_, out object) error {
		n++
		out["system"] = append(out["system"].([]any), fmt.Sprintf("Round %d.", n))
		return nil
	}}}
	x := &servers{}
	x.offer("linear_find")
	hooksOf(t, p, map[string]script{
		"assistant": steps(do(call("read", args{"filePath": "long.txt"})), say("seen"), say("again")),
		"":          func(scripted.Request) scripted.Answer { return say("All was read so far.") },
	}, func(r *rig) {
		r.longFile()
		r.cfg.External = x
		r.restart()
		m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant})
		r.is(m, centurion.MissionCompleted, "")
		x.offer("linear_make")
		if done, err := r.host.Shorten(r.ctx, m.Session, ""); !done || err != nil {
			t.Fatal(done, err)
		}
		r.says(m, "go on")
		all := r.requests("assistant")
		first, last := all[0], all[len(all)-1]
		has(t, first.System(), "Round 1.")
		has(t, last.System(), "Round 2.")
		has(t, strings.Join(first.Tools(), " "), "linear_find")
		has(t, strings.Join(last.Tools(), " "), "linear_make")
		lacks(t, strings.Join(last.Tools(), " "), "linear_find")
	})
}

// An agent that takes a conversation over is given what plugins make of its own beginning, not what they made of the last one's.
func TestPluggedForAnotherAgent(t *testing.T) {
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookSystem: func(in, out object) error {
		out["system"] = append(out["system"].([]any), fmt.Sprintf("Made for %v.", in["agent"]))
		return nil
	}}}
	hooksOf(t, p, map[string]script{"looker": func(scripted.Request) scripted.Answer { return say("looked") }}, func(r *rig) {
		r.looking()
		m := r.mission(assistant())
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "go on", Agent: "looker"}); err != nil {
			t.Fatal(err)
		}
		r.is(r.live(m.ID).wait(), centurion.MissionCompleted, "")
		system := r.requests("looker")[0].System()
		has(t, system, "Made for looker.")
		lacks(t, system, "Made for assistant.")
	})
}

// Step 11, point 2: who changed a call's arguments or result, or the environment of its command, stands in its record, and who answered for a
// person.
func TestCallNamesPlugins(t *testing.T) {
	p := &plugin{hooks: map[string]func(in, out object) error{
		centurion.HookToolBefore: func(in, out object) error {
			if in["tool"] == "read" {
				out["args"].(object)["filePath"] = "a.txt"
			}
			return nil
		},
		centurion.HookToolAfter: func(in, out object) error {
			if in["tool"] == "bash" {
				out["title"] = "a command"
			}
			return nil
		},
		centurion.HookShellEnv: func(_, out object) error {
			out["env"].(object)["A"] = "b"
			return nil
		},
		centurion.HookAsk: func(in, out object) error {
			if strings.Contains(in["title"].(string), "put c.txt") {
				return errors.New("the plugin guard has a say in this, and cannot be asked")
			}
			out["status"] = "allow"
			return nil
		},
	}}
	hooksOf(t, p, map[string]script{
		"commander": steps(do(call("read", args{"filePath": "b.txt"}), call("ls", args{}), call("bash", args{"command": "put a.txt x", "description": "a"}), call("bash", args{"command": "put c.txt x", "description": "c"})), say("done")),
	}, func(r *rig) {
		r.write("a.txt", "a")
		r.cfg.Rules = permit("bash", "*", permission.Ask)
		r.restart()
		m := r.mission(centurion.MissionOptions{Ask: "allow"})
		all, err := r.store.Messages(r.ctx, m.Session)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, msg := range all {
			for _, part := range msg.Parts {
				if part.State != nil {
					by, _ := json.Marshal(part.State.Metadata["plugins"])
					decided, _ := json.Marshal(part.State.Metadata["permission"])
					said := ""
					if strings.Contains(string(decided), `"by":"plugin guard"`) {
						said = strings.Join(slices.DeleteFunc([]string{"allow", "deny"}, func(s string) bool { return !strings.Contains(string(decided), `"answer":"`+s+`"`) }), "")
					}
					got = append(got, strings.TrimSpace(part.Tool+" "+string(by)+" "+said))
				}
			}
		}
		equal(t, "records", strings.Join(got, "; "), `read {"arguments":["guard"]}; ls null; bash {"environment":["guard"],"permission":["guard"],"result":["guard"]} allow; bash {"permission":["guard"]} deny`)
		has(t, strings.Join(r.results(m.ID, "bash"), "\n"), "has a say in this, and cannot be asked")
	})
}

// Step 11, point 2: plugins get what a person or another agent writes once, at any depth, before the first request that has it, and may change
// its texts.
func TestMessageHook(t *testing.T) {
	var seen []string
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookMessage: func(in, out object) error {
		parts := out["parts"].([]any)
		first := parts[0].(object)
		words := first["text"].(string)
		seen = append(seen, in["agent"].(string)+" "+text(words))
		if strings.Contains(words, "look at it") {
			out["parts"] = append(parts, object{"type": "text", "text": "In Latin."})
		}
		first["text"] = strings.Replace(words, "build it", "build it well", 1)
		return nil
	}}}
	hooksOf(t, p, threeLevels(do(look)), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		for _, q := range r.requests("commander") {
			has(t, q.First(), "build it well")
		}
		latin := 0
		for _, q := range r.requests("planner") {
			latin += strings.Count(q.First(), "In Latin.")
		}
		equal(t, "requests in Latin", latin, 2)
		equal(t, "messages", len(seen), 3)
		var acted []string
		for _, e := range r.events(m.ID, centurion.EventPluginActed) {
			d, _ := event.Decode[event.PluginData](e)
			acted = append(acted, d.Hook+" "+d.By)
			if msg, err := r.store.Message(r.ctx, e.Session, d.Message); err != nil || !msg.Heard {
				t.Errorf("%+v %v", msg, err)
			}
		}
		equal(t, "acted", strings.Join(acted, ", "), "chat.message plugin guard, chat.message plugin guard, chat.message plugin guard") // the goal is in the planner's, too
	})
}

// What leaves a message without a text, or makes too much of it, is not used.
func TestMessageHookUnusable(t *testing.T) {
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookMessage: func(_, out object) error {
		parts := out["parts"].([]any)
		if first := parts[0].(object); strings.Contains(first["text"].(string), "too long") {
			first["text"] = strings.Repeat("x", 300<<10)
		} else {
			out["parts"] = parts[1:]
		}
		return nil
	}}}
	hooksOf(t, p, map[string]script{"assistant": steps(say("yes"), say("yes"), say("yes"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant})
		r.says(m, "this is too long")
		all := r.requests("assistant")
		has(t, all[0].Last(), "build it")
		has(t, all[1].Last(), "this is too long")
		equal(t, "acted", r.count(m.ID, centurion.EventPluginActed), 0)
	})
}

func text(s string) string { return strings.Join(strings.Fields(centurion.Clip(s, 60)), " ") }

// Step 11, point 2: plugins change what a slash command makes of the first message and of a later one; its files stay.
func TestCommandHook(t *testing.T) {
	var seen []object
	p := &plugin{hooks: map[string]func(in, out object) error{centurion.HookCommand: func(in, out object) error {
		seen = append(seen, in)
		switch in["arguments"] {
		case "nothing":
			out["parts"] = []any{}
		case "failing":
			out["parts"] = []any{}
			return errors.New("no")
		default:
			out["parts"] = append([]any{object{"type": "text", "text": "In Latin, " + in["arguments"].(string) + "."}}, out["parts"].([]any)[1:]...)
		}
		return nil
	}}}
	hooksOf(t, p, map[string]script{"assistant": steps(say("yes"), say("yes"), say("yes"), say("yes"))}, func(r *rig) {
		r.seeing()
		typed := func(args string) *centurion.Typed { return &centurion.Typed{Command: "translate", Arguments: args} }
		m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant, Typed: typed("please"), Files: []centurion.File{pictureOf(t, "a.png", 10, 11)}})
		for _, args := range []string{"again", "nothing", "failing"} {
			if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: "translate " + args, Typed: typed(args)}); err != nil {
				t.Fatal(err)
			}
			r.runs++
			equal(t, "status", r.run(m.ID).Status, centurion.MissionCompleted)
		}
		all := r.requests("assistant")
		has(t, all[0].Last(), "In Latin, please.")
		lacks(t, all[0].Last(), "build it")
		has(t, all[1].Last(), "In Latin, again.")
		has(t, all[2].Last(), "translate nothing")
		has(t, all[3].Last(), "translate failing")
		stored, err := r.store.Messages(r.ctx, m.Session)
		if err != nil || len(centurion.FilesOf(stored[0].Parts)) != 1 {
			t.Errorf("%+v %v", stored[0], err)
		}
		if len(seen) != 4 || seen[0]["command"] != "translate" || seen[0]["agent"] != "assistant" || seen[1]["sessionID"] != m.Session || seen[1]["mission"] != m.ID {
			t.Errorf("%v", seen)
		}
		equal(t, "acted", r.count(m.ID, centurion.EventPluginActed), 2)
	})
}

// Step 11, point 2: each hook of a session acts in all three levels of a mission, and says for which session, mission, task and parent.
func TestHooksAtEveryLevel(t *testing.T) {
	hooks := []string{centurion.HookToolBefore, centurion.HookToolAfter, centurion.HookMessages, centurion.HookSystem, centurion.HookText,
		centurion.HookParams, centurion.HookHeaders, centurion.HookMessage, centurion.HookDefinition}
	seen := map[string]map[string]string{} // by hook and session: its parent
	p := &plugin{hooks: map[string]func(in, out object) error{}}
	var missions []string
	for _, hook := range hooks {
		seen[hook] = map[string]string{}
		p.hooks[hook] = func(in, _ object) error {
			parent, _ := in["parentID"].(string)
			if (parent != "") != (in["task"] != nil) {
				t.Errorf("%s: a task without a parent, or the reverse: %v", hook, in)
			}
			seen[hook][in["sessionID"].(string)] = parent
			missions = append(missions, in["mission"].(string))
			return nil
		}
	}
	hooksOf(t, p, threeLevels(do(look)), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		want := map[string]string{m.Session: ""}
		for _, task := range r.tasks(m.ID) {
			rec, err := r.store.Session(r.ctx, task.Session)
			if err != nil {
				t.Fatal(err)
			}
			want[task.Session] = rec.ParentID
		}
		equal(t, "levels", len(want), 3)
		for _, hook := range hooks {
			if !maps.Equal(seen[hook], want) {
				t.Errorf("%s: sessions and their parents are %v, want %v", hook, seen[hook], want)
			}
		}
		if slices.ContainsFunc(missions, func(id string) bool { return id != m.ID }) {
			t.Errorf("missions: %v", missions)
		}
	})
}
