package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/permission"
	"centurion/store"
	"centurion/text"
	"centurion/tools"
	"centurion/trust"
)

// acceptance is the subject of an ask that is not about a setup command.
const acceptance = "acceptance command"

// MayCheck asks whether an acceptance command may run. Commands accepted with the plan may; others follow the rules for shell commands.
func (m *Approvals) MayCheck(ctx context.Context, command, agent, task string) error {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	if accepted(rec, command) {
		m.setOnline(command)
		return nil
	}
	return m.MayRun(ctx, rec, command, agent, task, acceptance)
}

// accepted reports whether an acceptance command was accepted with the plan or given by the person.
func accepted(rec centurion.Mission, command string) bool {
	return rec.Options.TrustVerify || slices.Contains(rec.Approved, command) || slices.Contains(rec.Options.Verify, command) && !rec.Options.AskVerify
}

// Allows reports whether [Approvals.MayCheck] allows a command as things are: it asks nobody and records no refusal.
func (m *Approvals) Allows(ctx context.Context, command, agent string) bool {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return false
	}
	if !accepted(rec, command) {
		r := m.ruling(rec, command, agent, acceptance)
		if d := r.decide(); d.Action != permission.Allow && (d.Action != permission.Ask || rec.Options.Ask != "allow" || r.shipped) {
			return false
		}
	}
	return m.MayCheck(ctx, command, agent, "") == nil
}

// MayRun asks whether one of the project's own commands may run, by the rules for shell commands; what describes the command, since no
// agent called it. A command that came with the project and is not trusted runs by a rule that a person wrote or by a person's answer only.
func (m *Approvals) MayRun(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error {
	r := m.ruling(rec, command, agent, what)
	adopted, shipped, decide := slices.Contains(rec.Adopted, command), r.shipped, r.decide
	fix := "allow it with a permission rule, or run with --ask allow"
	if shipped {
		fix = "look at it and trust it: " + trust.Command + text.When(adopted, " "+rec.Todo) + "; then resume; or allow it with a permission rule"
	}
	d := decide()
	switch {
	case d.Action == permission.Allow:
		if !d.ByDefault() {
			m.setOnline(command)
		}
		return nil
	case d.Action == permission.Deny:
		return mayNot(what, command, d.Reason, fix)
	}
	s := m.hooked(ctx, tools.Call{Session: rec.Session, Task: task, Agent: agent}, r.access)
	if s.Action == permission.Deny || s.Action == permission.Allow && !shipped { // trust is a person's
		err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Append(centurion.Event{Type: centurion.EventPluginActed, Mission: m.st.ID, Session: rec.Session, Task: task,
				Data: event.Data(event.PluginData{Hook: centurion.HookAsk, By: s.by, Answer: string(s.Action), About: command})})
			return err
		})
		if err == nil && s.Action == permission.Deny {
			err = mayNot(what, command, s.why, fix)
		}
		return err
	}
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: m.st.ID, Session: rec.Session, Task: task,
		Permission: "bash", Patterns: r.access.Patterns, Always: r.access.Always, Title: command, Text: what + map[bool]string{true: " of the plan"}[what == acceptance] + ": " + d.Reason,
		Created: centurion.Now()}
	switch {
	case rec.Options.Ask == "allow" && !shipped:
		m.setOnline(command)
		return nil
	case rec.Options.Ask == "allow":
		d.Reason = "it came with the project and is not trusted, which --ask allow does not replace"
	case rec.Options.Ask == "ask":
		got, err := m.Await(ctx, ask, func() bool { return decide().Action == permission.Allow })
		if err == nil && got.Answer != "once" && got.Answer != "always" {
			return mayNot(what, command, "a person refused it", fix)
		}
		if err == nil {
			m.setOnline(command)
		}
		return err
	default:
		d.Reason += "; there is no one to ask (--ask deny)"
	}
	if err := m.Refuse(ctx, ask); err != nil {
		return err
	}
	return mayNot(what, command, d.Reason, fix)
}

// ruling is what the rules say of one of the project's own commands.
type ruling struct {
	access  tools.Access
	shipped bool // it came with the project
	decide  func() permission.Decision
}

func (m *Approvals) ruling(rec centurion.Mission, command, agent, what string) ruling {
	r := ruling{access: tools.Access{Permission: "bash", Patterns: []string{command}, Always: []string{command}, Script: command},
		shipped: slices.Contains(rec.Adopted, command) || what != acceptance || slices.Contains(rec.Options.Verify, command)}
	r.decide = func() permission.Decision {
		d := m.Decide(agent, r.access)
		if d.ByDefault() && d.Action != permission.Deny && r.shipped {
			d.Action, d.Reason = permission.Ask, "it came with the project and is not trusted"
		}
		return d
	}
	return r
}

// setOnline lets a command of the host use the network: it is a person's, or a person, their rule or their policy has allowed it.
func (m *Approvals) setOnline(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.online[command] = true
}

// Online reports whether a command that [Approvals.MayCheck] has allowed may use the network.
func (m *Approvals) Online(command string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.online[command]
}

// MayExchange asks a person whether a check that was changed in the plan's file counts. Without one to ask, it does not.
func (m *Approvals) MayExchange(ctx context.Context, x centurion.Exchange, why, task string) (bool, error) {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Options.Ask != "ask" {
		return false, err
	}
	title := "use the check of todo.md: " + strings.Join(x.To, "; ")
	if len(x.To) == 0 {
		title = "continue without a check, as todo.md says"
	}
	got, err := m.Await(ctx, store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: m.st.ID, Session: rec.Session, Task: task,
		Permission: "todowrite", Patterns: x.To, Title: title, Text: why, Created: centurion.Now()}, func() bool { return false })
	return got.Answer == "once" || got.Answer == "always", err
}

func mayNot(what, command, why, fix string) error {
	return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("the %s `%s` may not run: %s", what, command, why), Hint: fix}
}
