package approval

import (
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/permission"
	"centurion/store"
	"centurion/tools"
)

// acceptance is what a person is asked about where it is no setup command.
const acceptance = "acceptance command"

// MayCheck asks whether an acceptance command may run: one that a person accepted with the plan may, every other one
// goes by the rules of a shell command.
func (m *Approvals) MayCheck(ctx context.Context, command, agent, task string) error {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Options.TrustVerify || slices.Contains(rec.Approved, command) || slices.Contains(rec.Options.Verify, command) && !rec.Options.AskVerify {
		return err
	}
	return m.MayRun(ctx, rec, command, agent, task, acceptance)
}

// MayRun asks whether a command of the project's own may run, which is no agent's call; what says which it is. It goes by the rules of a
// shell command.
func (m *Approvals) MayRun(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error {
	a := tools.Access{Permission: "bash", Patterns: []string{command}, Always: []string{command}, Script: command}
	decide := func() permission.Decision {
		d := m.Decide(agent, a)
		if byDefault := d.Level == "" || d.Level == permission.DefaultLevel; byDefault && d.Action == permission.Allow &&
			what == acceptance && slices.Contains(rec.Adopted, command) {
			d.Action, d.Reason = permission.Ask, "it stood in a plan that no mission of this project wrote, and nobody has accepted it"
		}
		return d
	}
	d := decide()
	switch {
	case d.Action == permission.Allow:
		return nil
	case d.Action == permission.Deny:
		return mayNot(what, command, d.Reason)
	}
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixPermission), Type: store.AskPermission, Mission: m.st.ID, Session: rec.Session, Task: task,
		Permission: "bash", Patterns: a.Patterns, Always: a.Always, Title: command, Text: what + map[bool]string{true: " of the plan"}[what == acceptance] + ": " + d.Reason,
		Created: centurion.Now()}
	switch rec.Options.Ask {
	case "allow":
		return nil
	case "ask":
		got, err := m.Await(ctx, ask, func() bool { return decide().Action == permission.Allow })
		if err == nil && got.Answer != "once" && got.Answer != "always" {
			return mayNot(what, command, "a person refused it")
		}
		return err
	}
	if err := m.Refuse(ctx, ask); err != nil {
		return err
	}
	return mayNot(what, command, d.Reason+"; nobody is there to be asked (--ask deny)")
}

func mayNot(what, command, why string) error {
	return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("the %s `%s` may not run: %s", what, command, why),
		Hint: "allow it with a permission rule, or run with --ask allow"}
}
