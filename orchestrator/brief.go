package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/store"
	"centurion/workspace/todo"
)

// firstMessage is the Commander's first message: the goal as the person typed it, and what they set for it.
func firstMessage(goal string, opts centurion.MissionOptions) string {
	var notes []string
	if opts.PlanOnly {
		notes = append(notes, "Only a plan is wanted now: look, write the todo list with update_todo, then end your turn. Start no work and change no file.")
	}
	if opts.Level > 0 {
		notes = append(notes, fmt.Sprintf("The person has set level %d for this mission.", opts.Level))
	}
	if len(notes) == 0 {
		return goal
	}
	return goal + "\n\n---\n" + strings.Join(notes, "\n")
}

// taskBrief is a worker's first message: its task as its parent wrote it, then what the plan says of its item and what
// the items before it handed over. Nothing else of the parent's conversation is in it.
func (m *mission) taskBrief(ctx context.Context, t centurion.Task) (string, error) {
	var b strings.Builder
	b.WriteString("# Your task\n\n" + strings.TrimRight(t.Prompt, "\n") + "\n")
	p, err := m.plan()
	if err != nil {
		return "", err
	}
	if t.Agent == agents.Reviewer {
		if err := m.reviewBrief(ctx, &b); err != nil {
			return "", err
		}
	}
	if p.doc == nil || t.Item == "" {
		return b.String(), nil
	}
	it, ok := p.doc.Item(t.Item)
	if !ok {
		return b.String(), nil
	}
	fmt.Fprintf(&b, "\n# Item %s of the plan: %s\n", it.ID, it.Title)
	if len(it.Files) > 0 {
		fmt.Fprintf(&b, "- files: %s\n", strings.Join(it.Files, ", "))
	}
	for _, v := range it.Verify {
		fmt.Fprintf(&b, "- acceptance command, run by the host in the project directory when you end: `%s`\n", v)
	}
	for _, n := range it.Notes {
		fmt.Fprintf(&b, "- note: %s\n", n)
	}
	err = m.handedOver(ctx, &b, it)
	return b.String(), err
}

// handedOver adds the results of the items that came before.
func (m *mission) handedOver(ctx context.Context, b *strings.Builder, it todo.Item) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
	if err != nil {
		return err
	}
	head := "\n# Handed over by what came before\n"
	newest := map[string]string{} // the task that did an item last
	for _, t := range tasks {
		if t.Status == centurion.TaskCompleted {
			newest[t.Item] = t.ID
		}
	}
	for _, t := range tasks {
		if t.ID == newest[t.Item] && t.Item != "" && slices.Contains(it.After, t.Item) {
			fmt.Fprintf(b, "%s- %s %s: %s\n", head, t.Item, t.Title, centurion.Clip(strings.TrimSpace(t.Result), 1500))
			if len(t.Files) > 0 {
				fmt.Fprintf(b, "  files changed: %s\n", strings.Join(t.Files, ", "))
			}
			head = ""
		}
	}
	return nil
}

// reviewBrief gives a reviewer the goal, what was changed and which checks passed, without the authors' own stories.
func (m *mission) reviewBrief(ctx context.Context, b *strings.Builder) error {
	rec, err := m.h.cfg.Store.Mission(ctx, m.id)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# The goal of the mission\n\n%s\n", rec.Goal)
	said, err := m.h.saidSince(ctx, rec)
	if err != nil {
		return err
	}
	if len(said) > 0 {
		fmt.Fprintf(b, "\nThe person has added since:\n\n- %s\n", strings.Join(said, "\n- "))
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
	if err != nil {
		return err
	}
	var files []string
	for _, t := range tasks {
		files = append(files, t.Files...)
	}
	slices.Sort(files)
	if files = slices.Compact(files); len(files) > 0 {
		fmt.Fprintf(b, "\n# Files changed so far with write and edit (shell commands may have changed others)\n\n- %s\n", strings.Join(files, "\n- "))
	}
	receipts, err := m.h.cfg.Store.Receipts(ctx, m.id)
	if err != nil || len(receipts) == 0 {
		return err
	}
	b.WriteString("\n# Checks that the host ran, oldest first\n\n")
	for _, r := range receipts {
		fmt.Fprintf(b, "- %s `%s`: exit code %d\n", r.Item, r.Command, r.ExitCode)
	}
	return nil
}

// notice tells a parent how a task ended, with everything it needs to go on: no second call is necessary.
func notice(tx *store.Tx, t centurion.Task) (string, error) {
	var b strings.Builder
	what := t.Title
	if t.Item != "" {
		what = t.Item + " " + what
	}
	how := ended(t.Status)
	if t.Reason == foundFaults {
		how = "has found faults: its item stays open"
	}
	fmt.Fprintf(&b, "Task %s (%s: %s) %s", t.ID, t.Agent, what, how)
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		fmt.Fprintf(&b, " after %s", t.Ended.Sub(t.Started.Time).Round(time.Second))
	}
	b.WriteString(".\n")
	if t.Error != nil {
		fmt.Fprintf(&b, "Why: %s\n", t.Error.Message)
	}
	if len(t.Files) > 0 {
		fmt.Fprintf(&b, "Files changed with write and edit: %s\n", strings.Join(t.Files, ", "))
	}
	receipts, err := tx.Receipts(t.Mission, t.ID)
	if err != nil {
		return "", err
	}
	last := map[string]centurion.Receipt{}
	for _, r := range receipts {
		last[r.Command] = r
	}
	for _, r := range receipts {
		if last[r.Command].ID == r.ID {
			state := "passed"
			if !r.Passed {
				state = fmt.Sprintf("failed with exit code %d", r.ExitCode)
			}
			fmt.Fprintf(&b, "Check `%s` %s.\n", r.Command, state)
		}
	}
	fmt.Fprintf(&b, "Cost: %s.\n", spent(t.Usage))
	if s := strings.TrimSpace(t.Result); s != "" {
		fmt.Fprintf(&b, "<result>\n%s\n</result>", centurion.Clip(s, 8000))
	}
	return b.String(), nil
}

// planOf is the plan in short, behind the notice that a planner has ended: who delegated that has not seen it.
func (m *mission) planOf(t centurion.Task) string {
	p, err := m.plan()
	if err != nil || p.doc == nil || t.Agent != agents.Planner || t.Status != centurion.TaskCompleted {
		return ""
	}
	file, _ := m.todo.where()
	return "\nThe plan, which stands whole in " + file.Path() + ":\n" + outline(p.doc)
}

// foundFaults is the reason of a review that is done and did not pass.
const foundFaults = "found faults"

func ended(s centurion.TaskStatus) string {
	switch s {
	case centurion.TaskCompleted:
		return "is completed"
	case centurion.TaskFailed:
		return "has failed"
	case centurion.TaskCancelled:
		return "was cancelled"
	case centurion.TaskBlocked:
		return "is blocked"
	}
	return "is " + string(s)
}

// goOn reminds the Commander that it is not done. It stands once, in what changes all the time at the end of the newest
// message: put into every tool's output it would fill the history with copies of itself.
const goOn = "Not finished: start what can be started, or end your turn while others work."

// allDone tells the Commander how the mission ends.
const allDone = "Every item is done or cancelled: call mission_complete, unless the goal asks for more."

// missionStatus is what the Commander sees at the end of the newest message: where the plan stands, what is spent.
func (m *mission) missionStatus() string {
	ctx := m.ctx
	rec, err := m.h.cfg.Store.Mission(ctx, m.id)
	if err != nil || !rec.HadItems {
		return ""
	}
	var b strings.Builder
	if p, err := m.plan(); err == nil && p.doc != nil {
		c := p.doc.Counts()
		fmt.Fprintf(&b, "Todo: %d open, %d running, %d done, %d cancelled, %d blocked.", c.Open, c.Running, c.Done, c.Cancelled, c.Blocked)
		atWork, err := m.itemsAtWork(ctx)
		if err != nil {
			return ""
		}
		next := slices.DeleteFunc(p.doc.Runnable(), func(it todo.Item) bool { return atWork[it.ID] })
		if len(next) > 0 {
			fmt.Fprintf(&b, " Can be started: %s.", strings.Join(ids(next), ", "))
		}
		b.WriteByte('\n')
		switch {
		case len(next) > 0 || c.Running > 0 || len(atWork) > 0:
			b.WriteString(goOn + "\n")
		case c.Open+c.Blocked == 0:
			b.WriteString(allDone + "\n")
		}
	}
	if tasks, err := m.h.cfg.Store.Tasks(ctx, m.id); err == nil {
		for _, t := range tasks {
			if t.Status.Ended() {
				continue
			}
			fmt.Fprintf(&b, "%s %s %s %s", t.ID, t.Agent, t.Item, t.Status)
			if t.Reason != "" {
				b.WriteString(": " + t.Reason)
			}
			b.WriteByte('\n')
		}
	}
	if rec.LevelFrom == centurion.LevelByPerson {
		fmt.Fprintf(&b, "Level: %d, set by the person.\n", rec.Level)
	}
	b.WriteString(m.budgetLine(rec))
	return b.String()
}

// lastText returns the newest text that a session's model wrote.
func (m *mission) lastText(ctx context.Context, id string) (text string, err error) {
	messages, err := m.h.cfg.Store.Messages(ctx, id)
	for _, msg := range messages {
		if msg.Role == centurion.RoleAssistant && !msg.Summary && msg.Finish != centurion.FinishError && msg.Text() != "" {
			text = msg.Text()
		}
	}
	return text, err
}

// summarize keeps the Commander's last words as the mission's summary.
func (m *mission) summarize(ctx context.Context) error {
	text, err := m.lastText(ctx, m.root.id())
	if err != nil {
		return err
	}
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.id)
		if err != nil {
			return err
		}
		rec.Summary = text
		return tx.PutMission(&rec)
	})
}

// spent says what something has cost, as far as that is known.
func spent(u centurion.Usage) string {
	if u.Unpriced {
		return fmt.Sprintf("%d tokens", u.Tokens.Total())
	}
	return fmt.Sprintf("%s, %d tokens", money(u), u.Tokens.Total())
}

// saidSince lists what the person has written to the mission's owner after the goal, oldest first.
func (h *Host) saidSince(ctx context.Context, rec centurion.Mission) ([]string, error) {
	messages, err := h.cfg.Store.Messages(ctx, rec.Session)
	var said []string
	for i, msg := range messages {
		if i > 0 && msg.Role == centurion.RoleUser && msg.Origin == centurion.OriginPerson {
			said = append(said, centurion.Clip(strings.TrimSpace(msg.Text()), 2000))
		}
	}
	return said, err
}

func money(u centurion.Usage) string {
	if u.Unpriced {
		return "$?"
	}
	return fmt.Sprintf("$%.4f", u.USD)
}

// slug is an address that can stand in a URL.
func slug(address string) string {
	return strings.Trim(strings.ReplaceAll(address, "/", "-"), "-")
}
