package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
)

type object = map[string]any

// plugged has hooks by name, which change their outputs in place as those of plugins do.
type plugged struct {
	hooks map[string]func(in, out object)
	asked []string
}

func (p *plugged) Has(hook string) bool { return p.hooks[hook] != nil }

func (p *plugged) Hook(_ context.Context, hook string, input any, output json.RawMessage) (json.RawMessage, []string, error) {
	var in, was, out object
	given, err := json.Marshal(input)
	if err := errors.Join(err, json.Unmarshal(given, &in), json.Unmarshal(output, &was), json.Unmarshal(output, &out)); err != nil {
		panic(err)
	}
	p.asked = append(p.asked, fmt.Sprintf("%s %v %v %v", hook, in["agent"], in["model"], in["messageID"] != nil))
	p.hooks[hook](in, out)
	if reflect.DeepEqual(was, out) {
		return output, nil, nil
	}
	changed, err := json.Marshal(out)
	return changed, []string{"one", "two"}, err
}

// acted lists what the journal says of plugins.
func (r *rig) acted() (all []string) {
	for _, e := range r.events(centurion.EventPluginActed) {
		var d struct{ Hook, By, Message string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, strings.TrimSpace(fmt.Sprint(d.Hook, " ", d.By, " ", d.Message != "")))
	}
	return all
}

func withHooks(t *testing.T, script func(scripted.Request) scripted.Answer, hooks map[string]func(in, out object)) (*rig, *plugged) {
	t.Helper()
	r, p := newRig(t, script), &plugged{hooks: hooks}
	r.cfg.Hooks = p
	r.reopen()
	return r, p
}

// Step 11, point 2: what plugins may change of a turn is changed in what is sent and kept, is noted once for each hook, and a message is
// passed to them once.
func TestHooksOfATurn(t *testing.T) {
	r, p := withHooks(t, inOrder(scripted.Answer{Say: "first"}, scripted.Answer{Say: "second"}), map[string]func(in, out object){
		centurion.HookMessage: func(_, out object) {
			parts := out["parts"].([]any)
			parts[0].(object)["text"] = parts[0].(object)["text"].(string) + " Well."
			out["parts"] = append(parts, object{"type": "text", "text": "In Latin.", "synthetic": true})
		},
		centurion.HookParams: func(_, out object) { out["temperature"], out["maxOutputTokens"] = 0.5, 77 },
		centurion.HookHeaders: func(_, out object) {
			out["headers"] = object{"X-Good": "1", "": "2", "X Bad": "3", "X-Line": "a\r\nb", "X:Y": "4", "X-Null": "a\x00"}
		},
		centurion.HookText: func(_, out object) { out["text"] = strings.ToUpper(out["text"].(string)) },
	})
	r.turn()
	q := r.model.Requests()[0]
	if q.Header.Get("X-Good") != "1" || q.Header.Get("X-Line")+q.Header.Get("X-Null") != "" {
		t.Errorf("sent with %v", q.Header)
	}
	if q.First() != goal+" Well.\n\nIn Latin." && q.First() != goal+" Well.\nIn Latin." {
		t.Errorf("asked %q", q.First())
	}
	m := r.messages()
	if parts := m[0].Parts; len(parts) != 2 || !m[0].Heard || parts[0].Text != goal+" Well." || parts[1].Text != "In Latin." || !parts[1].Synthetic || parts[1].ID == "" {
		t.Errorf("kept %+v", m[0])
	}
	if r.last().Text() != "FIRST" {
		t.Errorf("the answer is %q", r.last().Text())
	}
	want := "chat.message plugin one, two true; chat.params plugin one, two false; chat.headers plugin one, two false; experimental.text.complete plugin one, two false"
	if got := strings.Join(r.acted(), "; "); got != want {
		t.Errorf("noted %s, want %s", got, want)
	}
	const by = " worker map[id:scripted providerID:test] "
	want = "chat.message" + by + "true; chat.params" + by + "false; chat.headers" + by + "false; experimental.text.complete" + by + "true"
	if got := strings.Join(p.asked, "; "); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	p.asked = nil
	r.say("more")
	r.reopen()
	r.turn()
	if n := strings.Count(strings.Join(p.asked, "; "), centurion.HookMessage); n != 1 {
		t.Errorf("%d messages were passed of one that is new", n)
	}
	if m := r.messages(); m[0].Parts[0].Text != goal+" Well." || r.last().Text() != "SECOND" {
		t.Errorf("kept %+v", m)
	}
	was := len(r.acted())
	r.say("and more")
	r.turn()
	if noted := r.acted()[was:]; len(noted) != 1 || !strings.HasPrefix(noted[0], centurion.HookMessage) {
		t.Errorf("noted again: %q", noted)
	}
}

// What plugins leave of a message is used if it is a text of a bounded size, and what they leave out no model gets.
func TestMessagesThatPluginsMake(t *testing.T) {
	for name, x := range map[string]struct {
		make func(parts []any) []any
		want string // what the model is asked
	}{
		"nothing is left": {func([]any) []any { return []any{} }, goal},
		"blank":           {func(p []any) []any { p[0].(object)["text"] = " \n"; return p }, goal},
		"too much":        {func(p []any) []any { p[0].(object)["text"] = strings.Repeat("x", 256<<10+1); return p }, goal},
		"as much as may":  {func(p []any) []any { p[0].(object)["text"] = strings.Repeat("x", 256<<10); return p }, strings.Repeat("x", 256<<10)},
		"another instead": {func([]any) []any { return []any{object{"type": "text", "text": "other"}} }, "other"},
		"of another type": {func(p []any) []any { return append(p, object{"type": "reasoning", "text": "no"}) }, goal},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := withHooks(t, inOrder(), map[string]func(in, out object){centurion.HookMessage: func(_, out object) { out["parts"] = x.make(out["parts"].([]any)) }})
			r.turn()
			if got := r.model.Requests()[0].First(); got != x.want {
				t.Errorf("asked %.60q (%d bytes), want %.60q", got, len(got), x.want)
			}
			changed := x.want != goal || name == "of another type"
			if (len(r.acted()) == 1) != changed || !r.messages()[0].Heard {
				t.Errorf("noted %q, heard %v", r.acted(), r.messages()[0].Heard)
			}
		})
	}
}

// The history of a request is as plugins want it if a provider would take it; the stored one stays, and one note says what was not used.
func TestHistoryThatPluginsMake(t *testing.T) {
	const note = "what a plugin made of a conversation (experimental.chat.messages.transform) is not used: no provider would take it"
	for name, x := range map[string]struct {
		make  func(all []any) []any
		want  string
		notes int
	}{
		"changed":           {func(all []any) []any { all[0].(object)["parts"].([]any)[0].(object)["text"] = "new"; return all }, "new", 0},
		"nothing":           {func([]any) []any { return nil }, goal, 1},
		"only the answer":   {func(all []any) []any { return all[max(0, len(all)-2) : max(0, len(all)-2)+1] }, "", -1},
		"ends in an answer": {func(all []any) []any { return all[:min(2, len(all))] }, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := withHooks(t, inOrder(), map[string]func(in, out object){centurion.HookMessages: func(_, out object) { out["messages"] = x.make(out["messages"].([]any)) }})
			r.turn()
			r.say("again")
			r.turn()
			q := r.model.Requests()[1]
			if x.want != "" && q.First() != x.want {
				t.Errorf("asked %q, want %q", q.First(), x.want)
			}
			var notes []string
			for _, e := range r.events(centurion.EventMissionUpdated) {
				var d struct{ Note string }
				_ = json.Unmarshal(e.Data, &d)
				notes = append(notes, d.Note)
			}
			if want := max(x.notes, -x.notes); len(notes) != want || want > 0 && notes[0] != note {
				t.Errorf("told %q", notes)
			}
			if m := r.messages(); m[0].Text() != goal {
				t.Errorf("the stored history was changed: %q", m[0].Text())
			}
		})
	}
}

// A plugin may ask for shorter answers, and for longer ones only where there is no limit: the rest of the window is planned with.
func TestAnswersThatPluginsBound(t *testing.T) {
	for _, x := range []struct{ own, wanted, sent int }{{100, 77, 77}, {100, 100, 100}, {100, 500, 100}, {100, 0, 100}, {0, 500, 500}} {
		r, _ := withHooks(t, inOrder(), map[string]func(in, out object){centurion.HookParams: func(_, out object) { out["maxOutputTokens"] = x.wanted }})
		r.cfg.MaxOut = x.own
		r.reopen()
		r.turn()
		q := r.model.Requests()[0]
		if got := string(q.Field("max_tokens")) + string(q.Field("max_completion_tokens")); got != fmt.Sprint(x.sent) {
			t.Errorf("own %d, wanted %d: sent %s", x.own, x.wanted, got)
		}
	}
}

// The person's words stay told apart from the host's in a history that went through a plugin, whose format knows no origins.
func TestOriginsInAHistoryOfPlugins(t *testing.T) {
	r, _ := withHooks(t, inOrder(), map[string]func(in, out object){centurion.HookMessages: func(in, out object) {
		out["messages"].([]any)[0].(object)["parts"].([]any)[0].(object)["text"] = "new"
	}})
	if err := r.Say(t.Context(), centurion.OriginHost, "A task has ended."); err != nil {
		t.Fatal(err)
	}
	r.say("Stop it.")
	r.turn()
	if got, want := r.model.Requests()[0].First(), "new\n\nA task has ended.\n\nFrom the person:\nStop it."; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// All that plugins want a summary to have is asked for, before the record.
func TestSummaryThatPluginsWant(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(40, 1500))
	r.cfg.Window = 16000
	r.cfg.Hooks = &plugged{hooks: map[string]func(in, out object){centurion.HookCompacting: func(_, out object) { out["context"] = []any{"One.", "Two."} }}}
	r.reopen()
	r.turn()
	if len(model.summed) != 1 || !strings.HasPrefix(model.summed[0].Messages[0].Text, "One.\n\nTwo.\n\nThe record:\n\n") {
		t.Errorf("asked for %d summaries, %.200v", len(model.summed), model.summed)
	}
}

// Who has changed what requests begin with is noted when it was not so before, for each hook.
func TestPluggedIsNotedOnce(t *testing.T) {
	one, two := map[string][]string{"a": {"x"}, "b": {"y"}}, map[string][]string{"a": {"x"}, "b": {"x", "y"}}
	for name, x := range map[string]struct {
		was, now *centurion.Plugged
		want     []string
	}{
		"nobody":     {nil, nil, nil},
		"the first":  {nil, &centurion.Plugged{By: one}, []string{"a plugin x false", "b plugin y false"}},
		"the same":   {&centurion.Plugged{By: one}, &centurion.Plugged{By: one}, nil},
		"others":     {&centurion.Plugged{By: one}, &centurion.Plugged{By: two}, []string{"a plugin x false", "b plugin x, y false"}},
		"nobody now": {&centurion.Plugged{By: one}, nil, nil},
	} {
		r := newRig(t, inOrder())
		rec := r.record()
		rec.Metadata.Plugged = x.now
		if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return session.Plugged(tx, &rec, x.was) }); err != nil {
			t.Fatal(err)
		}
		if got := r.acted(); !slices.Equal(got, x.want) {
			t.Errorf("%s: noted %q, want %q", name, got, x.want)
		}
	}
}

// typed is a runner of commands that prints and ends as it is told.
type typed struct {
	given centurion.Command
	res   centurion.CommandResult
	err   error
	end   func()
	live  chan string // gets what a watcher was told while it ran
	told  string
}

func (c *typed) Run(_ context.Context, cmd centurion.Command) (centurion.CommandResult, error) {
	c.given = cmd
	if c.end != nil {
		c.end()
	}
	_, _ = cmd.Output.Write([]byte("live\n"))
	c.told = <-c.live
	return c.res, c.err
}

// A person's command stands in the conversation as a call that the model has not made: both messages whole, and the facts in their order.
func TestShell(t *testing.T) {
	for name, x := range map[string]struct {
		run    typed
		cancel bool
		status centurion.ToolStatus
		said   string
	}{
		"well":  {typed{res: centurion.CommandResult{Output: "a\x1b[1mb\n", ExitCode: 2}}, false, centurion.ToolCompleted, "ab\nexit code 2"},
		"ended": {typed{res: centurion.CommandResult{Output: "half\n"}, err: context.Canceled}, true, centurion.ToolCompleted, "half\n\n(the person has ended it)"},
		"fails": {typed{err: &centurion.Error{Op: "run", Kind: centurion.KindConfig, Msg: "no shell", Hint: "install one"}}, false, centurion.ToolError, "no shell. install one"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, inOrder())
			run := x.run
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if x.cancel {
				run.end = cancel
			}
			r.cfg.Call.Runner = &run
			run.live = make(chan string, 1)
			r.cfg.Publish = func(e centurion.Event) { run.live <- string(e.Data) }
			got, err := session.Shell(ctx, r.cfg, r.record(), "make x")
			if err != nil {
				t.Fatal(err)
			}
			if run.given.Script != "make x" || run.given.Dir != "/project" || !run.given.Network || run.given.Timeout.Hours() != 1 {
				t.Errorf("ran %+v", run.given)
			}
			m := r.messages()
			u, a := m[len(m)-2], m[len(m)-1]
			call := a.Parts[0]
			if u.Role != centurion.RoleUser || u.Origin != centurion.OriginHost || u.Text() != "The person has run this command:" || !u.Parts[0].Synthetic || u.Agent != "worker" || u.Model.ID != ref.ID {
				t.Errorf("the person's: %+v", u)
			}
			if a.ID != got.ID || a.ParentID != u.ID || a.Finish != centurion.FinishStop || a.Time.Completed == 0 || a.Path.Cwd != "/project" || a.Path.Root != "/project" || a.Agent != "worker" ||
				call.Tool != "bash" || call.CallID != "call_"+call.ID || string(call.State.Input) != `{"command":"make x"}` || call.State.Status != x.status || call.State.Time.End == 0 {
				t.Errorf("the call: %+v %+v", a, call.State)
			}
			if text, _ := call.State.Result(); text != x.said || !strings.Contains(run.told, `"field":"output"`) || !strings.Contains(run.told, `"delta":"live\n"`) {
				t.Errorf("it says %q, and live %q", text, run.told)
			}
			if x.status == centurion.ToolCompleted && (call.State.Metadata["exit"] != float64(x.run.res.ExitCode) || call.State.Metadata["output"] == "") {
				t.Errorf("for clients %v", call.State.Metadata)
			}
			var facts []string
			for _, e := range r.events()[len(r.events())-6:] {
				facts = append(facts, string(e.Type))
			}
			if want := "message.created message.created tool.started tool.completed message.updated session.idle"; strings.ReplaceAll(strings.Join(facts, " "), "tool.failed", "tool.completed") != want {
				t.Errorf("told %q, want %s", facts, want)
			}
		})
	}
}
