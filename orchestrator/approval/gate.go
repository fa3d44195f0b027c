package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/text"
	"centurion/tools"
	"centurion/workspace"
)

// Caller is the asking conversation.
type Caller struct {
	Agent   string
	Above   []string     // the agents of the conversations above, nearest first
	Current func() error // refuses a superseded attempt
	// Rest calls wait and returns its error. Meanwhile the conversation releases shared resources and its clocks stop. why is published
	// as its task's reason.
	Rest func(ctx context.Context, why string, wait func() error) error
}

// Desk handles the asks of one conversation.
type Desk struct {
	*Approvals
	Caller
}

var (
	_ tools.Gate  = Desk{}
	_ tools.Asker = Desk{}
)

// Ask decides by the rules; where they ask, the mission's policy or a person decides. An error with KindPermission is a refusal.
func (d Desk) Ask(ctx context.Context, call *tools.Call, a tools.Access) error {
	// A workspace at the project's own path has a git directory of its own, and the person's files are not there.
	if a.Script != "" && d.iso.Isolated() && call.Workspace.Dir() != d.cfg.Workspace.Dir() {
		if err := cmp.Or(d.elsewhere(call, a), d.stashes(call, a)); err != nil {
			return err
		}
	}
	decided := d.narrowed(a, call.Workspace)
	told := tools.Decision{Permission: a.Permission, Action: string(decided.Action), Rule: text.When(decided.Level != "", decided.Rule.String()), Level: decided.Level}
	defer func() {
		if call.Decided != nil {
			call.Decided(told)
		}
	}()
	switch decided.Action {
	case permission.Allow:
		if call.Network = !decided.ByDefault(); !call.Network && a.Script != "" {
			call.Connect = d.connects(ctx, *call)
		}
		return nil
	case permission.Deny:
		return refused(a, decided.Reason)
	}
	s := d.hooked(ctx, *call, a)
	call.Touched("permission", s.names)
	switch s.Action {
	case permission.Allow:
		told.Answer, told.By = string(s.Action), s.by
		return nil
	case permission.Deny:
		told.Answer, told.By = string(s.Action), s.by
		return refused(a, s.why)
	}
	rec, err := d.st.Store.Mission(ctx, d.st.ID)
	if err != nil {
		return err
	}
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: d.st.ID, Session: call.Session,
		Task: call.Task, Message: call.Message, Call: call.ID, Permission: a.Permission, Patterns: a.Patterns, Always: a.Always,
		Title: subject(a), Text: decided.Reason, Metadata: a.Metadata, Created: centurion.Now()}
	call.Network = rec.Options.Ask != "deny"
	switch rec.Options.Ask {
	case "allow":
		told.Answer, told.By = "once", state.ByPolicy
		return nil
	case "ask":
		ask, err := d.permitted(ctx, ask, a, call.Workspace)
		told.Answer, told.By = ask.Answer, ask.By
		return err
	}
	told.Answer, told.By = "reject", state.ByPolicy
	if err := d.Refuse(ctx, ask); err != nil {
		return err
	}
	return refused(a, decided.Reason+"; there is no one to ask (--ask deny)")
}

// narrowed decides by the agent's rules and by those of the agents above: what one may not do, it cannot hand on either. What only the
// default rules ask about, the agent's own rules may allow.
func (d Desk) narrowed(a tools.Access, ws *workspace.Workspace) permission.Decision {
	decided := d.decide(d.Agent, a, ws)
	for _, agent := range d.Above {
		if up := d.decide(agent, a, ws); !up.ByDefault() {
			up.Reason += ", for the " + agent + ", which handed this work on"
			decided = decided.Stricter(up)
		}
	}
	return decided
}

// MayStart asks whether work may be delegated to an agent. The rules name the agent, as OpenCode's do for its tool task.
func (d Desk) MayStart(ctx context.Context, call *tools.Call, agent, what string) error {
	return d.Ask(ctx, call, tools.Access{Permission: "task", Patterns: []string{agent}, Always: []string{agent},
		Metadata: map[string]any{"subagent_type": agent, "description": what}})
}

// elsewhere refuses a script that would write to the project's own directory by absolute path although its session works in a checkout:
// the change would be missing there. Scripts that only read follow the rules.
func (d Desk) elsewhere(call *tools.Call, a tools.Access) error {
	if d.place(a, d.cfg.Workspace).Parse(a.Script).ReadOnly {
		return nil
	}
	for _, p := range d.place(a, call.Workspace).Parse(a.Script).Outside {
		if rel, err := filepath.Rel(d.cfg.Workspace.Dir(), filepath.FromSlash(p)); err == nil && filepath.IsLocal(rel) {
			return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("not allowed: %s names %s, which is not where you work", centurion.Clip(a.Script, 200), p),
				Hint: "use relative paths: you work in your own checkout, and the shell starts in it"}
		}
	}
	return nil
}

// stashes refuses a script that uses git stash in an isolated mission.
func (d Desk) stashes(call *tools.Call, a tools.Access) error {
	if permission.DecideShell([]permission.Level{stashRules()}, a.Script, call.Workspace.Dir(), d.cfg.Home, false).Action != permission.Deny {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindPermission, Msg: "not allowed: " + centurion.Clip(a.Script, 200) +
		" uses git's stash, whose list is one for all checkouts and the person's own directory",
		Hint: "put changes aside in a patch file: git diff > aside.patch && git checkout -- . (new files stay), later git apply aside.patch && rm aside.patch"}
}

// permitted asks a person and waits for the answer. It returns the answered ask.
func (d Desk) permitted(ctx context.Context, ask store.Ask, a tools.Access, ws *workspace.Workspace) (store.Ask, error) {
	err := d.Rest(ctx, "permission: "+centurion.Clip(ask.Title, 80), func() (err error) {
		ask, err = d.Await(ctx, ask, func() bool { return d.narrowed(a, ws).Action == permission.Allow })
		return err
	})
	switch {
	case err != nil:
		return ask, err
	case ask.Answer == "once" || ask.Answer == "always":
		return ask, nil
	case ask.By == state.ByTimeout:
		return ask, refused(a, "no answer came in time (ask_timeout)")
	case ask.Answer == "reject":
		return ask, refused(a, "a person refused it")
	}
	return ask, refused(a, "a person refused it: "+ask.Answer)
}

// Await stores and publishes a permission ask and waits until it is answered, or until allowed reports that an "always" to another ask
// covers it; after the mission's timeout it is rejected. It returns the answered ask.
func (m *Approvals) Await(ctx context.Context, ask store.Ask, allowed func() bool) (store.Ask, error) {
	m.from(ctx, &ask)
	var late <-chan time.Time
	if m.cfg.Timeout > 0 {
		ask.Deadline = centurion.Time{Time: ask.Created.Add(m.cfg.Timeout)}
		t := time.NewTimer(m.cfg.Timeout)
		defer t.Stop()
		late = t.C
	}
	done, over := m.expect(ask.ID)
	defer over()
	if err := m.st.Store.Update(ctx, func(tx *store.Tx) error { return state.PutAsk(tx, ask) }); err != nil {
		return ask, err
	}
	failpoint.Hit(failpoint.AskStored)
	m.st.Notify()
	for looked, waits := -1, true; waits; {
		changed := m.st.Change()
		if n := m.granted(); n != looked {
			if looked = n; allowed() {
				return m.settle(ctx, ask, "once", state.ByAlways)
			}
		}
		select {
		case <-done:
			waits = false
		case <-changed:
		case <-late:
			return m.settle(ctx, ask, "reject", state.ByTimeout)
		case <-ctx.Done():
			// The asking agent has ended. At the end of the mission all asks are closed together.
			_, err := m.settle(context.WithoutCancel(ctx), ask, "reject", state.ByEnd)
			return ask, errors.Join(context.Cause(ctx), err)
		}
	}
	all, err := m.st.Store.Asks(ctx, m.st.ID, false)
	for _, a := range all {
		if a.ID == ask.ID {
			ask = a
		}
	}
	return ask, err
}

// Refuse records an ask that the mission's policy refuses at once, because no person is available.
func (m *Approvals) Refuse(ctx context.Context, ask store.Ask) error {
	ask.By = state.ByPolicy
	m.from(ctx, &ask)
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := state.PutAsk(tx, ask); err != nil {
			return err
		}
		return state.PutAnswer(tx, ask, "reject", state.ByPolicy)
	})
}

// OnlyAsked reports whether a call never ran because its host died during its permission ask.
func (m *Approvals) OnlyAsked(ctx context.Context, call centurion.Part) bool {
	all, err := m.st.Store.Asks(ctx, m.st.ID, false)
	if err != nil {
		return false // then its effects are unknown
	}
	last := ""
	for _, a := range all { // oldest first; an endpoint may restart its call numbers in each answer
		if a.Session == call.SessionID && a.Call == call.CallID && a.Created.Millis() >= call.State.Time.Start {
			last = a.By
		}
	}
	return last == state.ByEnd
}
