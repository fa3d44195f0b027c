package approval

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/sandbox"
	"centurion/store"
	"centurion/tools"
)

// What writes to the host's files is refused however it is called; what reads them, and what writes elsewhere, is not.
func TestHostRules(t *testing.T) {
	t.Parallel()
	levels := []permission.Level{hostRules()}
	for _, writer := range []string{"tee", "cp x", "mv x", "rm", "ln -s x", "install x", "truncate -s 0", "touch", "dd if=x", "rsync x", "sed -i s/a/b/", "perl -pi -e s/a/b/", "perl -i -pe s/a/b/"} {
		for place, denied := range map[string]bool{".opencode": true, ".opencode/todo.md": true, "todo.md": false} {
			if d := permission.DecideShell(levels, writer+" "+place, "/p", "/home/u", false); (d.Action == permission.Deny) != denied {
				t.Errorf("%s %s: %s (%s)", writer, place, d.Action, d.Reason)
			}
		}
	}
	for script, denied := range map[string]bool{"cat .opencode/todo.md": false, "make": false, "make && rm .opencode/todo.md": true} {
		if d := permission.DecideShell(levels, script, "/p", "/home/u", false); (d.Action == permission.Deny) != denied {
			t.Errorf("%s: %s (%s)", script, d.Action, d.Reason)
		}
	}
	for path, want := range map[string]permission.Action{".opencode/todo.md": permission.Deny, "todo.md": permission.Allow} {
		if d := permission.Decide(levels, "edit", []string{path}); d.Action != want {
			t.Errorf("edit %s: %s", path, d.Action)
		}
	}
}

// plugins answer an ask, and keep what they were asked.
type plugins struct {
	status string // "" leaves it as it is
	err    error
	asked  string
}

func (p *plugins) Has(hook string) bool { return hook == centurion.HookAsk }

func (p *plugins) Hook(_ context.Context, _ string, input any, output json.RawMessage) (json.RawMessage, []string, error) {
	b, err := json.Marshal(input)
	p.asked = string(b) + string(output)
	if p.status != "" {
		output = json.RawMessage(`{"status":"` + p.status + `"}`)
	}
	return output, []string{"one", "two"}, errors.Join(p.err, err)
}

func refusal(why string) error {
	return &centurion.Error{Kind: centurion.KindPermission, Msg: "not allowed: bash make x (" + why + ")", Hint: "try another approach, or report that it needs a permission rule or --ask allow"}
}

// What becomes of an ask is told with the rule that decided and who answered; a plugin is told all of it, and what nobody is there to
// answer is recorded whole.
func TestAskIsRecorded(t *testing.T) {
	t.Parallel()
	const input = `{"sessionID":"ses_2","agent":"worker","mission":"msn_1","task":"tsk_1","type":"bash","pattern":["make x"],"messageID":"msg_1","callID":"call_1","title":"make x","metadata":{"a":"b"}}{"status":"ask"}`
	for name, c := range map[string]struct {
		policy string
		action permission.Action
		hook   plugins
		want   tools.Decision // but for the permission, the rule and its level
		err    string         // why it is refused
		asked  bool           // the plugins are
		kept   bool           // an ask is recorded
	}{
		"allowed":            {"ask", permission.Allow, plugins{}, tools.Decision{Action: "allow"}, "", false, false},
		"denied":             {"allow", permission.Deny, plugins{status: "allow"}, tools.Decision{Action: "deny"}, "rule", false, false},
		"a plugin allows":    {"deny", permission.Ask, plugins{status: "allow"}, tools.Decision{Action: "ask", Answer: "allow", By: "plugin one, two"}, "", true, false},
		"a plugin denies":    {"allow", permission.Ask, plugins{status: "deny"}, tools.Decision{Action: "ask", Answer: "deny", By: "plugin one, two"}, "the plugin one, two refused it", true, false},
		"a plugin fails":     {"allow", permission.Ask, plugins{err: errors.New("broken")}, tools.Decision{Action: "ask", Answer: "deny", By: "plugin one, two"}, "broken", true, false},
		"a plugin leaves it": {"allow", permission.Ask, plugins{}, tools.Decision{Action: "ask", Answer: "once", By: "policy"}, "", true, false},
		"nobody is there":    {"deny", permission.Ask, plugins{}, tools.Decision{Action: "ask", Answer: "reject", By: "policy"}, "rule; there is no one to ask (--ask deny)", true, true},
	} {
		rules := level("opencode.json", c.action)
		m := deciding(t, centurion.Mission{Options: centurion.MissionOptions{Ask: c.policy}}, map[string][]permission.Level{"worker": rules})
		m.iso, m.cfg.Hooks = &isolation.Checkouts{}, &c.hook
		if err := m.st.Store.Update(t.Context(), func(tx *store.Tx) error {
			return errors.Join(tx.PutSession(&centurion.Session{ID: "ses_0", Agent: "commander", Metadata: centurion.SessionMeta{Address: "0/"}}),
				tx.PutSession(&centurion.Session{ID: "ses_1", ParentID: "ses_0", Agent: "planner", Metadata: centurion.SessionMeta{Address: "0/0"}}),
				tx.PutSession(&centurion.Session{ID: "ses_2", ParentID: "ses_1", Agent: "worker", Metadata: centurion.SessionMeta{Address: "0/0/0"}}))
		}); err != nil {
			t.Fatal(err)
		}
		var told tools.Decision
		call := &tools.Call{Workspace: m.cfg.Workspace, Session: "ses_2", Agent: "worker", Task: "tsk_1", Message: "msg_1", ID: "call_1", Decided: func(d tools.Decision) { told = d }}
		a := tools.Access{Permission: "bash", Patterns: []string{"make x"}, Always: []string{"make *"}, Script: "make x", Metadata: map[string]any{"a": "b"}}
		err := Desk{Approvals: m, Caller: Caller{Agent: "worker"}}.Ask(t.Context(), call, a)
		rule := m.decide("worker", a, m.cfg.Workspace)
		c.want.Permission, c.want.Level, c.want.Rule = "bash", "opencode.json", rule.Rule.String()
		if told != c.want {
			t.Errorf("%s: told %+v, want %+v", name, told, c.want)
		}
		why := c.err
		if len(why) >= 4 && why[:4] == "rule" {
			why = rule.Reason + why[4:]
		}
		if c.err == "" && err != nil || c.err != "" && !reflect.DeepEqual(err, refusal(why)) {
			t.Errorf("%s: %+v, want %+v", name, err, refusal(why))
		}
		if (c.hook.asked == input) != c.asked || !c.asked && c.hook.asked != "" {
			t.Errorf("%s: the plugins were asked %s", name, c.hook.asked)
		}
		all, err := m.st.Store.Asks(t.Context(), "msn_1", false)
		if err != nil || (len(all) == 1) != c.kept {
			t.Fatalf("%s: recorded %+v, %v", name, all, err)
		}
		if c.kept {
			got := all[0]
			want := store.Ask{ID: got.ID, Created: got.Created, Answered: got.Answered, Type: store.AskPermission, Mission: "msn_1", Session: "ses_2", Task: "tsk_1", Message: "msg_1", Call: "call_1", Permission: "bash",
				Patterns: a.Patterns, Always: a.Always, Title: "make x", Text: rule.Reason, Metadata: a.Metadata, Answer: "reject", By: "policy", Agent: "worker", Address: "0/0/0", Line: "commander 0/ › planner 0/0"}
			if got.Created.IsZero() || got.Answered.IsZero() || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: recorded\n%+v\nwant\n%+v", name, got, want)
			}
		}
	}
}

// Who answers what cannot be answered is told why, and what to do.
func TestAnswerIsRefused(t *testing.T) {
	t.Parallel()
	m := deciding(t, centurion.Mission{}, nil)
	if err := m.st.Store.Update(t.Context(), func(tx *store.Tx) error {
		done := store.Ask{ID: "que_2", Type: store.AskQuestion, Mission: "msn_1"}
		return errors.Join(tx.PutAsk(&store.Ask{ID: "que_1", Type: store.AskQuestion, Mission: "msn_1", Call: "c1"}), tx.PutAsk(&store.Ask{ID: "per_1", Type: store.AskPermission, Mission: "msn_1"}),
			state.PutAnswer(tx, done, "blue", state.ByTimeout), state.PutAnswer(tx, store.Ask{ID: "que_3", Type: store.AskQuestion, Mission: "msn_1"}, "red", ""))
	}); err != nil {
		t.Fatal(err)
	}
	refused := func(kind centurion.Kind, msg, hint string) error {
		return &centurion.Error{Op: "answer", Kind: kind, Msg: msg, Hint: hint}
	}
	for _, c := range []struct {
		ask, answer string
		want        error
	}{
		{"que_1", " ", refused(centurion.KindUsage, "the answer is empty", "give a text, or the number of a choice")},
		{"que_2", "red", refused(centurion.KindNotFound, "que_2 was answered already by timeout: blue", "see what waits with: centurion asks")},
		{"que_3", "red", refused(centurion.KindNotFound, "que_3 was answered already by a person: red", "see what waits with: centurion asks")},
		{"que_9", "red", refused(centurion.KindNotFound, "nothing waits for an answer under que_9", "it may have been answered already; see what waits with: centurion asks")},
		{"per_1", "once", refused(centurion.KindConflict, "mission msn_1 is not running", "resume it, then answer: centurion resume msn_1")},
	} {
		if err := Answer(t.Context(), m.st.Store, c.ask, c.answer, sandbox.Peer{}, func(string) *Approvals { return nil }); !reflect.DeepEqual(err, c.want) {
			t.Errorf("%s: %+v, want %+v", c.ask, err, c.want)
		}
	}
	err := NoChoice([]string{"a", "b"}, "3")
	if want := (&centurion.Error{Kind: centurion.KindUsage, Msg: "there is no choice 3; the question has 2 choices"}); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("%+v", err)
	}
	m.cfg.Price = func(model string) *centurion.Price {
		if model != "p/m" {
			return nil
		}
		return &centurion.Price{Input: 1, Output: 10, CacheRead: 0.1}
	}
	low, high := m.Estimate("p/m", 2)
	if none, nothing := m.Estimate("p/n", 2); low < 0.0507 || low > 0.0509 || high < 0.8799 || high > 0.8801 || none != 0 || nothing != 0 {
		t.Errorf("from %v to %v; without a price from %v to %v", low, high, none, nothing)
	}
}
