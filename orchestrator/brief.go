package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/text"
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

// maxGoal is how much of the mission's goal, in bytes, a worker is given: most goals are a few sentences.
const maxGoal = 2000

// taskBrief is a worker's first message: its task as its parent wrote it, the goal, what the plan says of its item and what
// the items before it handed over. Nothing else of the parent's conversation is in it.
func (m *mission) taskBrief(ctx context.Context, t centurion.Task) (string, error) {
	var b strings.Builder
	b.WriteString("# Your task\n\n" + strings.TrimRight(t.Prompt, "\n") + "\n")
	if goal := m.st.Spent.Load().Goal; t.Agent != agents.Reviewer && t.Sub == nil { // a review begins with it
		fmt.Fprintf(&b, "\n# The goal of the mission, of which this is a part\n\n%s\n", centurion.Clip(strings.TrimSpace(goal), maxGoal))
	}
	p, err := m.plan.Read()
	if err != nil {
		return "", err
	}
	if t.Agent == agents.Reviewer {
		if err := m.reviewBrief(ctx, &b, t); err != nil {
			return "", err
		}
	}
	err = m.itemBrief(ctx, &b, p, t, time.Time{})
	return b.String(), err
}

// itemBrief adds what the plan says of a task's item and what was handed over. After a time since which the session is not
// new to the item, only what was handed over later.
func (m *mission) itemBrief(ctx context.Context, b *strings.Builder, p plan.View, t centurion.Task, since time.Time) error {
	if p.Doc == nil || t.Item == "" {
		return nil
	}
	it, ok := p.Doc.Item(t.Item)
	if !ok {
		return nil
	}
	if since.IsZero() {
		itemLines(b, it, t.Reviews)
	}
	if t.Agent == agents.Reviewer { // it judges what was done, not what is said of it
		return nil
	}
	return m.handedOver(ctx, b, it, func(o centurion.Task) bool {
		return o.ID == t.ID || o.Ended.Before(since) || !since.IsZero() && o.Session == t.Session
	})
}

func itemLines(b *strings.Builder, it todo.Item, done bool) {
	fmt.Fprintf(b, "\n# Item %s of the plan: %s\n", it.ID, it.Title)
	if len(it.Files) > 0 {
		fmt.Fprintf(b, "- files: %s\n", strings.Join(it.Files, ", "))
	}
	when := "run by the host when you end"
	if done {
		when = "which the host has run"
	}
	for _, v := range it.Verify {
		fmt.Fprintf(b, "- acceptance command, %s: `%s`\n", when, v)
	}
	for _, n := range it.Notes {
		fmt.Fprintf(b, "- note: %s\n", n)
	}
}

// handedOver adds the results of the items that came before, and of those who have changed the same files, but for what is
// known.
func (m *mission) handedOver(ctx context.Context, b *strings.Builder, it todo.Item, known func(centurion.Task) bool) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return err
	}
	newest := map[string]string{} // the task that did an item last
	for _, t := range tasks {
		if t.Status == centurion.TaskCompleted && !t.Reviews {
			newest[t.Item] = t.ID
		}
	}
	head := "\n# Handed over by what came before\n"
	told := map[string]bool{}
	for _, t := range tasks {
		if t.ID == newest[t.Item] && t.Item != "" && !known(t) && slices.Contains(it.After, t.Item) {
			fmt.Fprintf(b, "%s- %s %s: %s\n", head, t.Item, t.Title, centurion.Clip(strings.TrimSpace(t.Result), 1500))
			if len(t.Files) > 0 {
				fmt.Fprintf(b, "  files changed: %s\n", strings.Join(t.Files, ", "))
			}
			head, told[t.ID] = "", true
		}
	}
	sameFiles(b, it, tasks, func(t centurion.Task) bool { return told[t.ID] || known(t) })
	return nil
}

// maxSameFiles is how many tasks that changed an item's files are told of, the newest.
const maxSameFiles = 10

// sameFiles tells of those who have changed the item's files since the mission began, and of whom nothing was said yet.
func sameFiles(b *strings.Builder, it todo.Item, tasks []centurion.Task, told func(centurion.Task) bool) {
	var lines []string
	for _, t := range tasks {
		if told(t) || !t.Undone.IsZero() {
			continue
		}
		files := slices.DeleteFunc(slices.Clone(t.Files), func(f string) bool {
			return !slices.ContainsFunc(it.Files, func(pattern string) bool { return claims.Matches(pattern, f) })
		})
		if len(files) > 0 {
			lines = append(lines, fmt.Sprintf("- %s %s changed %s: %s\n", t.Name(), t.Title, strings.Join(files, ", "), state.FirstLines(t.Result, 6, 600)))
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n# Who has changed your files before you\n" + strings.Join(lines[max(0, len(lines)-maxSameFiles):], ""))
	}
}

// reviewBrief gives a reviewer the goal, what was changed and what the checks are worth, without the authors' own stories.
func (m *mission) reviewBrief(ctx context.Context, b *strings.Builder, t centurion.Task) error {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# The goal of the mission\n\n%s\n", rec.Goal)
	with, err := m.h.attachedTo(ctx, rec)
	if err != nil {
		return err
	}
	b.WriteString(with)
	said, err := m.h.saidSince(ctx, rec)
	if err != nil {
		return err
	}
	if len(said) > 0 {
		fmt.Fprintf(b, "\nThe person has added since:\n\n- %s\n", strings.Join(said, "\n- "))
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return err
	}
	since, err := m.reviewBefore(ctx, b, t, tasks)
	if err != nil {
		return err
	}
	if err := m.reviewChange(ctx, b, t, tasks, since); err != nil {
		return err
	}
	receipts, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil || len(receipts) == 0 {
		return err
	}
	receiptLines(b, receipts)
	return nil
}

// notice tells a parent how a task ended, with everything it needs to go on: no second call is necessary.
func (m *mission) notice(tx *store.Tx, p plan.View, t centurion.Task) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s (%s: %s) %s", t.Name(), t.Agent, t.Title, ended(t))
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		fmt.Fprintf(&b, " after %s", text.Took(t.Ended.Sub(t.Started.Time).Round(time.Second)))
	}
	b.WriteString(".\n")
	if t.Unchanged && t.Reason == "" && t.Status == centurion.TaskCompleted {
		b.WriteString("Nothing had been changed when it began: its PASS alone shows nothing.\n")
	}
	if t.Reason == noVerdict && t.Item != "" {
		fmt.Fprintf(&b, "%s still needs a review: delegate_task %s.\n", t.Item, plan.ReviewCall(t.Item))
	}
	if t.Error != nil {
		fmt.Fprintf(&b, "Why: %s\n", t.Error.Message)
		if t.Status == centurion.TaskBlocked && t.Error.Hint != "" && t.Error.Kind != centurion.KindPermission { // what no rule allows is the person's
			fmt.Fprintf(&b, "What you can do: %s.\n", t.Error.Hint)
		}
	}
	var returns []event.ReturnData
	if t.Status == centurion.TaskCompleted && max(t.CameBack, t.Returns) > 0 { // only then they are told
		returns, _ = m.returnsOf(m.st.Ctx, store.EventQuery{Task: t.ID}) // without it the line only names no reason
	}
	landedLines(&b, t, returns)
	if m.iso.Isolated() && t.Status == centurion.TaskCompleted && !slices.Contains([]string{agents.Reviewer, agents.Planner}, t.Agent) && t.Item != "" && len(t.Landed) == 0 {
		b.WriteString("It changed no file.\n")
	}
	m.outsideLine(&b, p, t)
	if err := checkLines(p, tx, &b, t); err != nil {
		return "", err
	}
	if err := exchangeLines(tx, &b, t); err != nil {
		return "", err
	}
	if err := personLines(tx, &b, t); err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "Cost: %s.\n", spent(t.Usage))
	if s := strings.TrimSpace(t.Result); s != "" {
		fmt.Fprintf(&b, "<result>\n%s\n</result>", centurion.Clip(s, 8000))
	}
	return b.String(), nil
}

// planOf is the plan in short, behind the notice that a planner has ended: who delegated that has not seen it.
func (m *mission) planOf(p plan.View, t centurion.Task) string {
	if p.Doc == nil || t.Agent != agents.Planner || t.Status != centurion.TaskCompleted {
		return ""
	}
	file, _ := m.plan.File.Where()
	return "\nThe plan, which stands whole in " + file.Path() + ":\n" + plan.Outline(p.Doc)
}

// foundFaults is the reason of a review that is done and did not pass.
const foundFaults = "found faults"

// noVerdict is the reason of a review that is done and said neither PASS nor FAIL.
const noVerdict = "no verdict"

// ended says how a task has ended.
func ended(t centurion.Task) string {
	switch {
	case t.Reason == foundFaults && t.Reviews:
		return "has found faults: " + t.Item + " is open again"
	case t.Reason == foundFaults:
		return "has found faults: its item stays open"
	case t.Reason == noVerdict:
		return "gave no verdict, neither PASS nor FAIL, also when it was asked again: it does not count"
	}
	switch t.Status {
	case centurion.TaskCompleted:
		return "is completed"
	case centurion.TaskFailed:
		return "has failed"
	case centurion.TaskCancelled:
		return "was cancelled"
	case centurion.TaskBlocked:
		return "is blocked"
	}
	return "is " + string(t.Status)
}

// summarize keeps the Commander's last words as the mission's summary.
func (m *mission) summarize(ctx context.Context) error {
	text, err := m.st.LastText(ctx, m.root.id())
	if err != nil {
		return err
	}
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
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
	return fmt.Sprintf("%s, %d tokens", text.Cost(u), u.Tokens.Total())
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

// slug is an address that can stand in a URL.
func slug(address string) string {
	return strings.Trim(strings.ReplaceAll(address, "/", "-"), "-")
}
