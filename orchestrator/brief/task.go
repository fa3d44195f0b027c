package brief

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/workspace/todo"
)

// FirstMessage is the Commander's first message: the goal as typed by the person, and their settings.
func FirstMessage(goal string, opts centurion.MissionOptions) string {
	var notes []string
	if opts.PlanOnly {
		notes = append(notes, "Only a plan is wanted now: look, write the todo list with update_todo, then end your turn. Start no work and change no file.")
	}
	if opts.PlanFirst {
		notes = append(notes, "The person wants to see the plan before anything is written: save it with update_todo first, one item for small work.")
	}
	if opts.Level > 0 {
		notes = append(notes, fmt.Sprintf("The person has set level %d for this mission.", opts.Level))
	}
	if len(notes) == 0 {
		return goal
	}
	return goal + "\n\n---\n" + strings.Join(notes, "\n")
}

// maxGoal limits the part of the mission's goal in a worker's first message, in bytes: most goals are a few sentences.
const maxGoal = 2000

// Task is a worker's first message: its task as written by its parent, the goal, its item in the plan, and the results of earlier
// items. It contains nothing else of the parent's conversation.
func (w *Writer) Task(ctx context.Context, t centurion.Task) (string, error) {
	v, err := w.judge.Look(ctx)
	if err = cmp.Or(err, v.Unread); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Your task\n\n" + strings.TrimRight(t.Prompt, "\n") + "\n")
	if t.Agent != agents.Reviewer && t.Sub == nil { // a review begins with the goal
		fmt.Fprintf(&b, "\n# The goal of the mission; your task is a part of it\n\n%s\n", centurion.Clip(strings.TrimSpace(v.Mission.Goal), maxGoal))
	}
	if t.Agent == agents.Reviewer {
		err = w.reviewBrief(ctx, &b, v, t)
	}
	itemBrief(&b, v, t, time.Time{})
	return b.String(), err
}

// Resumed is the message to a resumed session: its new prompt, the state of its files, and news since its last answer. The goal,
// earlier results and checks are in its history.
func (w *Writer) Resumed(ctx context.Context, t centurion.Task) (string, error) {
	var b strings.Builder
	b.WriteString("# Your task continues\n\n" + strings.TrimRight(t.Prompt, "\n") + "\n")
	if err := w.standsAt(ctx, &b, t); err != nil {
		return "", err
	}
	v, err := w.judge.Look(ctx) // read after standsAt, which may have waited
	if err = cmp.Or(err, v.Unread); err != nil {
		return "", err
	}
	var before centurion.Task
	for _, o := range v.Tasks {
		if o.Session == t.Session && o.ID != t.ID && o.Ended.After(before.Ended.Time) {
			before = o
		}
	}
	since := before.Ended.Time
	if t.Item != before.Item {
		since = time.Time{} // the item is new to it
	}
	if t.Agent == agents.Reviewer {
		if err := w.reviewChange(ctx, &b, v, t, since); err != nil {
			return "", err
		}
		receiptLines(&b, slices.DeleteFunc(v.Receipts, func(r centurion.Receipt) bool { return r.Time.Before(since) }))
	}
	changedSince(&b, v, before)
	itemBrief(&b, v, t, since)
	return b.String(), nil
}

// changedSince reports changes of a session's last item since its task ended: other checks, and findings of reviews.
func changedSince(b *strings.Builder, v review.View, last centurion.Task) {
	p := v.Plan
	if p.Doc == nil || last.Item == "" || last.Agent == agents.Reviewer {
		return
	}
	if it, ok := p.Doc.Item(last.Item); ok && !slices.Equal(it.Verify, last.Verify) {
		fmt.Fprintf(b, "\nThe check of %s is now %s; it was %s.\n", it.ID, Lines(it.Verify), Lines(last.Verify))
	}
	findings(b, v, last.Item, last.Ended.Time)
}

// findings lists what reviews of an item found after a time.
func findings(b *strings.Builder, v review.View, item string, after time.Time) {
	for _, o := range v.Tasks {
		if o.Reason == state.FoundFaults && o.Ended.After(after) {
			if of := v.Plan.Covers(o); of == nil || of[item] {
				fmt.Fprintf(b, "\nWhat the review of %s found:\n%s\n", item, state.FirstLines(o.Result, 20, 2000))
			}
		}
	}
}

// standsAt tells a resumed session the state of its files, which may differ from what it has read.
func (w *Writer) standsAt(ctx context.Context, b *strings.Builder, t centurion.Task) error {
	if !w.iso.Isolated() {
		return nil
	}
	s, err := w.iso.PlaceOf(t.Session, t.ID).TakeUp(ctx, t.Item != "" && !t.Reviews)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\nYour files stand at %.8s: everything that was merged so far is in them", s.At)
	switch {
	case len(s.Left) > 0:
		fmt.Fprintf(b, ", and what you did before and was not merged is laid on top: %s", centurion.Clip(strings.Join(w.iso.InProject(s.Left), ", "), 500))
		if len(s.Marked) > 0 {
			fmt.Fprintf(b, ". It does not fit to what others have merged in %s: both stand there, text with the markers <<<<<<<, ======= and >>>>>>>",
				centurion.Clip(strings.Join(w.iso.InProject(s.Marked), ", "), 500))
		}
	case s.Kept != "":
		fmt.Fprintf(b, ". What you did before and was not merged is not: see it with git show %s. Your first write lays it on top", s.Kept)
	}
	b.WriteString(". Read files again before you edit them.\n")
	return nil
}

// itemBrief adds the plan's data of a task's item and the results of earlier items. With since, the session knows the item, and only
// later results are added.
func itemBrief(b *strings.Builder, v review.View, t centurion.Task, since time.Time) {
	if v.Plan.Doc == nil || t.Item == "" {
		return
	}
	it, ok := v.Plan.Doc.Item(t.Item)
	if !ok {
		return
	}
	if since.IsZero() {
		itemLines(b, it, t.Reviews)
	}
	if t.Race != nil && since.IsZero() {
		fmt.Fprintf(b, "- %d agents try this item, each in its own worktree. The first work that the acceptance command proves is merged, "+
			"of several at once the smallest change: change what the item needs, and nothing else.\n", len(t.Race.Agents))
	}
	if t.Agent == agents.Reviewer { // it judges the work, not the reports
		return
	}
	if since.IsZero() {
		var worked time.Time
		for _, o := range v.Tasks {
			if o.Item == it.ID && o.ID != t.ID && o.Agent != agents.Reviewer && o.Ended.After(worked) {
				worked = o.Ended.Time
			}
		}
		findings(b, v, it.ID, worked)
	}
	handedOver(b, v, it, func(o centurion.Task) bool {
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

// maxHandedOver limits one result handed over, in bytes. Direct predecessors have included what matters of earlier results.
const maxHandedOver = 1500

// handedOver adds the results of preceding items, nearest first, and of tasks that changed the same files, without known ones.
func handedOver(b *strings.Builder, v review.View, it todo.Item, known func(centurion.Task) bool) {
	newest := map[string]string{} // the task that did an item last
	for _, t := range v.Tasks {
		if t.Status == centurion.TaskCompleted && !t.Reviews {
			newest[t.Item] = t.ID
		}
	}
	head := "\n# Handed over by what came before\n"
	told := map[string]bool{}
	left := maxHandedOver * len(it.After)
	for _, id := range v.Plan.Nearest(it) {
		for _, t := range v.Tasks {
			if t.ID != newest[id] || known(t) || left <= 0 {
				continue
			}
			text := centurion.Clip(strings.TrimSpace(t.Result), min(left, maxHandedOver))
			left -= len(text)
			fmt.Fprintf(b, "%s- %s %s: %s\n", head, t.Item, t.Title, text)
			if len(t.Files) > 0 {
				fmt.Fprintf(b, "  files changed: %s\n", strings.Join(t.Files, ", "))
			}
			head, told[t.ID] = "", true
		}
	}
	sameFiles(b, it, v.Tasks, func(t centurion.Task) bool { return told[t.ID] || known(t) })
}

// maxSameFiles limits the listed tasks that changed an item's files, newest first.
const maxSameFiles = 10

// sameFiles lists tasks that have changed the item's files since the mission began and were not mentioned yet.
func sameFiles(b *strings.Builder, it todo.Item, tasks []centurion.Task, told func(centurion.Task) bool) {
	var lines []string
	for _, t := range tasks {
		if told(t) || !t.Undone.IsZero() || t.Lost() {
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

// Open returns the opening of a task's session, with only those instructions that apply to its item's files.
func (w *Writer) Open(ctx context.Context, d *Desk, a agents.Agent, t centurion.Task, model centurion.ModelRef) (Opening, error) {
	var near []string
	if p, err := w.plan.Read(); err == nil && p.Doc != nil && t.Item != "" {
		if it, ok := p.Doc.Item(t.Item); ok {
			near = it.Files
		}
	}
	kind := centurion.IsolationShared
	if w.iso.Isolated() {
		kind = centurion.IsolationWorktree
	}
	return d.Open(ctx, a, d.Window(model), instructions.Want{Near: near}, kind)
}
