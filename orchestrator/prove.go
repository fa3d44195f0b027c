package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/tools"
	"centurion/verify"
	"centurion/workspace/todo"
)

// prove runs the acceptance commands of the conversation's item. It returns the receipt of the first that failed, or nil.
// An error of centurion.KindPermission means that a command may not run.
func (m *mission) prove(ctx context.Context, c *conversation, returns int) (*centurion.Receipt, error) {
	p, err := m.plan.Read()
	if err != nil || p.Doc == nil || c.task.Item == "" {
		return nil, err
	}
	if p.IsGone(c.task.Item) {
		return nil, plan.Removed(c.task.Item)
	}
	t, err := m.h.cfg.Store.Task(ctx, c.task.ID)
	if err != nil {
		return nil, err
	}
	it, ok := p.Doc.Item(c.task.Item)
	if !ok { // its line cannot be read: what it was given holds
		it.ID, it.Verify = t.Item, t.Verify
	}
	if len(it.Verify) == 0 || t.Reviews {
		return nil, nil
	}
	if err := m.st.MoveRun(ctx, c.task, centurion.TaskVerifying, nil); err != nil {
		return nil, err
	}
	if returns == m.h.cfg.Returns {
		// The last try: what somebody else has half written must not decide it.
		if err := m.st.Quiet(ctx, c.task.ID); err != nil {
			return nil, err
		}
	}
	for _, command := range it.Verify {
		r, err := m.check(ctx, centurion.Receipt{Command: command, Item: it.ID, Task: c.task.ID}, c.agent.Name)
		if err != nil {
			return nil, err
		}
		if !r.Passed {
			return &r, nil
		}
	}
	return nil, nil
}

// check runs one acceptance command while no tool writes, and keeps the receipt.
func (m *mission) check(ctx context.Context, want centurion.Receipt, agent string) (centurion.Receipt, error) {
	if err := m.mayCheck(ctx, want.Command, agent, want.Task); err != nil {
		return want, err
	}
	err := m.tellCheck(ctx, centurion.EventVerifyStarted, want)
	if err != nil {
		return want, err
	}
	var got centurion.Receipt
	err = m.alone(ctx, func() (err error) {
		got, err = m.h.checker.Run(ctx, m.h.cfg.Workspace.Dir(), want.Command)
		return err
	})
	if err != nil {
		return got, err
	}
	got.Mission, got.Task, got.Item, got.Final = m.st.ID, want.Task, want.Item, want.Final
	got.Why = "no isolation: that it is green is all that was looked at"
	failpoint.Hit(failpoint.CheckRan)
	return got, m.keepReceipt(ctx, &got)
}

func (m *mission) tellCheck(ctx context.Context, t centurion.EventType, r centurion.Receipt) error {
	r.Mission = m.st.ID
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Append(checkFact(t, r))
		return err
	})
}

func checkFact(t centurion.EventType, r centurion.Receipt) centurion.Event {
	return centurion.Event{Type: t, Mission: r.Mission, Task: r.Task, Data: event.Data(checkData(r))}
}

func checkData(r centurion.Receipt) event.VerifyData {
	return event.VerifyData{Command: r.Command, ExitCode: r.ExitCode, Item: r.Item, Receipt: r.ID, Final: r.Final, Error: r.Error,
		Output: event.Short(r.Output), DurationMS: r.Millis, Proof: r.Proof, Why: r.Why, FailureLine: r.FailureLine, Weakened: r.Weakened[:min(len(r.Weakened), 10)]}
}

// acceptance is what a person is asked about where it is no setup command.
const acceptance = "acceptance command"

// mayCheck asks whether an acceptance command may run: one that a person accepted with the plan may, every other one
// goes by the rules of a shell command.
func (m *mission) mayCheck(ctx context.Context, command, agent, task string) error {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil || rec.Options.TrustVerify || slices.Contains(rec.Approved, command) || slices.Contains(rec.Options.Verify, command) && !rec.Options.AskVerify {
		return err
	}
	return m.mayRun(ctx, rec, command, agent, task, acceptance)
}

// mayRun asks whether a command of the project's own may run, which is no agent's call; what says which it is. It goes by the rules of a
// shell command.
func (m *mission) mayRun(ctx context.Context, rec centurion.Mission, command, agent, task, what string) error {
	a := tools.Access{Permission: "bash", Patterns: []string{command}, Always: []string{command}, Script: command}
	decide := func() permission.Decision {
		d := m.approvals.Decide(agent, a)
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
		got, err := m.approvals.Await(ctx, ask, func() bool { return decide().Action == permission.Allow })
		if err == nil && got.Answer != "once" && got.Answer != "always" {
			return mayNot(what, command, "a person refused it")
		}
		return err
	}
	if err := m.approvals.Refuse(ctx, ask); err != nil {
		return err
	}
	return mayNot(what, command, d.Reason+"; nobody is there to be asked (--ask deny)")
}

func mayNot(what, command, why string) error {
	return &centurion.Error{Kind: centurion.KindPermission, Msg: fmt.Sprintf("the %s `%s` may not run: %s", what, command, why),
		Hint: "allow it with a permission rule, or run with --ask allow"}
}

// failedText tells a worker of a failed check where all write in the same place.
func (m *mission) failedText(c *conversation, r centurion.Receipt) string {
	text := "The host ran your acceptance command and it failed.\n" + account(r)
	if len(m.claims.Others(c.Holder)) > 0 {
		return text + "\nOthers are working in the project at the same time; if the failure is in their files, say so and end your turn."
	}
	return text + "\nMend the cause, then end your turn; the host runs it again."
}

// account tells a model of a failed check.
func account(r centurion.Receipt) string {
	s := fmt.Sprintf("`%s` ended with exit code %d after %d ms.", r.Command, r.ExitCode, r.Millis)
	if r.Error != "" {
		s += " " + r.Error + "."
	}
	if strings.Contains(r.Command, " | ") {
		s += " A pipe fails if any of its commands does."
	}
	if out := strings.TrimSpace(r.Output); out != "" {
		return s + "\n<output>\n" + out + "\n</output>"
	}
	return s + " It printed nothing."
}

// accountAgain is [account] for a session that was told of a failure of the same command before: an output that it has already is
// not told once more. What only differs in numbers, such as times, is the same.
func accountAgain(r centurion.Receipt, before []centurion.Receipt) string {
	for _, b := range slices.Backward(before) {
		if b.ID == r.ID || b.Task != r.Task || b.Command != r.Command || b.Final {
			continue
		}
		if !b.Passed && strings.TrimSpace(r.Output) != "" && b.Error == r.Error && withoutNumbers(b.Output) == withoutNumbers(r.Output) {
			r.Output = ""
			return strings.TrimSuffix(account(r), " It printed nothing.") + " It printed the same as the last time, but for numbers."
		}
		break
	}
	return account(r)
}

func withoutNumbers(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, strings.TrimSpace(s))
}

// missing lists, in words for the Commander, what keeps the mission from being complete, apart from the final checks.
func (m *mission) missing(ctx context.Context) ([]string, error) {
	v, err := m.judge.Look(ctx)
	if err != nil {
		return nil, err
	}
	unread, err := m.h.cfg.Store.PendingDeliveries(ctx, v.Mission.Session)
	return v.Missing(unread), err
}

// finalChecks runs each distinct acceptance command once on the finished work. Items whose command fails are open again.
// It returns what is missing, in words for the Commander.
func (m *mission) finalChecks(ctx context.Context) ([]string, error) {
	p, err := m.plan.Read()
	if err != nil {
		return nil, err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	commands := slices.Clone(rec.Options.Verify)
	if p.Doc != nil {
		commands = append(commands, p.Doc.Checks()...)
		for _, it := range p.Items() {
			if p.Doc.Status(it.ID) == todo.Done {
				commands = append(commands, it.Verify...)
			}
		}
	}
	ends := append(review.GoalChecks(rec.Goal, m.h.cfg.Workspace.Dir()), rec.Check) // what shows that the goal is reached, where no item does
	commands = append(commands, ends...)
	m.passed, m.checked = 0, true
	var failed []centurion.Receipt
	for _, command := range verify.Distinct(commands) {
		r, err := m.checkFinished(ctx, command, len(p.Items()) == 0 && slices.Contains(ends, command))
		if err != nil {
			return nil, err
		}
		if r.Passed {
			m.passed++
		} else {
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return nil, m.judge.Count(ctx, p)
	}
	return m.reopen(ctx, p, failed)
}

// checkFinished runs a command on the finished work, and where it is to prove all of it, without it as well.
func (m *mission) checkFinished(ctx context.Context, command string, proves bool) (centurion.Receipt, error) {
	if m.iso.Isolated() {
		return m.finalCheck(ctx, command, "commander", proves)
	}
	return m.check(ctx, centurion.Receipt{Command: command, Final: true}, "commander")
}

// reopen sets the items of failed final checks back to open and says what is missing.
func (m *mission) reopen(ctx context.Context, p plan.View, failed []centurion.Receipt) ([]string, error) {
	m.checked = false
	var missing []string
	for _, r := range failed {
		text := "the final check failed: " + account(r)
		var back []string
		for _, it := range p.Items() {
			if !it.Group && slices.Contains(it.Verify, r.Command) && p.Doc.Status(it.ID) == todo.Done {
				if err := m.plan.MarkItem(ctx, it.ID, plan.MarkOpen); err != nil {
					return nil, err
				}
				back = append(back, it.ID)
			}
		}
		if len(back) > 0 {
			text += "\nOpen again: " + strings.Join(back, ", ") + "."
		}
		missing = append(missing, text)
	}
	rec, err := m.st.Record(ctx, func(rec *centurion.Mission) { rec.Reopened++ })
	if err == nil && rec.Reopened > m.h.cfg.Returns {
		return nil, &state.Blocked{Question: fmt.Sprintf("The final checks have failed %d times: %s What should be done?", rec.Reopened, missing[0])}
	}
	return missing, err
}

// sendBack tells the Commander what the final checks found.
func (m *mission) sendBack(ctx context.Context, missing []string) (verdict, bool, error) {
	what := "Every item is done"
	if p, err := m.plan.Read(); err == nil && len(p.Items()) == 0 {
		what = "You ended your turn as if the goal were reached"
	}
	text := what + ", but the final checks say otherwise:\n- " + strings.Join(missing, "\n- ") + "\nSee to it."
	return verdict{}, true, m.root.say(ctx, centurion.OriginHost, text)
}

// completed is the verdict of a mission that is done, unless its person wants proof and nothing shows that it is.
func (m *mission) completed(ctx context.Context) (verdict, error) {
	reason := ""
	if m.passed == 0 {
		reason = "nothing to verify"
	}
	rec, err := m.judge.KeepEvidence(ctx, m.h.cfg.Workspace.Dir())
	if err != nil {
		return verdict{}, err
	}
	if rec.Options.RequireProof && rec.Evidence == centurion.EvidenceNone {
		return verdict{status: centurion.MissionBlocked, reason: review.Lacks}, nil
	}
	if rec.Level == 0 && !state.Alone(m.st.Profile) {
		err = m.plan.InferLevel(ctx)
	}
	if rec.Summary == "" && err == nil {
		err = m.summarize(ctx)
	}
	m.keepSummary(ctx)
	return verdict{status: centurion.MissionCompleted, reason: reason}, err
}

// proveTicks runs the commands of items that an agent marks as done. An item whose command fails is not ticked: the
// whole update is refused with the output.
func (m *mission) proveTicks(ctx context.Context, c *conversation, updates []tools.ItemUpdate) ([]string, error) {
	p, err := m.plan.Read()
	if err != nil || p.Doc == nil {
		return nil, err
	}
	var notes []string
	for _, u := range updates {
		mark, err := markOf(u.Status)
		if u.Status == "" || err != nil || mark != todo.Done {
			continue
		}
		it, ok := p.Doc.Item(u.ID)
		if !ok || p.Doc.Status(u.ID) == todo.Done {
			continue
		}
		if run := m.plan.RunOf(u.ID); run != "" {
			if c.task != nil && c.task.ID == run {
				notes = append(notes, u.ID+": the host marks your own item when you end.")
				continue
			}
			return nil, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("item %s is being worked on; the host ticks it", u.ID),
				Hint: "end your turn; you will be told when it ends"}
		}
		for _, command := range it.Verify {
			task := ""
			if c.task != nil {
				task = c.task.ID
			}
			r, err := m.checkTick(ctx, c, centurion.Receipt{Command: command, Item: it.ID, Task: task})
			if err != nil {
				return nil, err
			}
			if !r.Passed {
				return nil, &centurion.Error{Kind: centurion.KindVerify, Msg: "item " + it.ID + " is not done: " + account(r)}
			}
			notes = append(notes, it.ID+": "+passed(r))
		}
	}
	return notes, nil
}

// checkTick runs a command of an item that an agent marks as done.
func (m *mission) checkTick(ctx context.Context, c *conversation, want centurion.Receipt) (centurion.Receipt, error) {
	if !m.iso.Isolated() {
		return m.check(ctx, want, c.agent.Name)
	}
	if err := m.ownMerged(ctx, c); err != nil {
		return want, err
	}
	return m.proveAnew(ctx, c, want.Item, verify.Distinct([]string{want.Command})[0])
}

// passed says of a green check what it is worth.
func passed(r centurion.Receipt) string {
	text := fmt.Sprintf("`%s` passed", r.Command)
	if r.Proof == "" || r.Proof.Solid() {
		return text + "."
	}
	return fmt.Sprintf("%s, but is %s (%s): a review has to pass as well.", text, r.Proof, r.Why)
}
