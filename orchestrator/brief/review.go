package brief

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
)

// reviewBrief gives a reviewer the goal, the changes and the results of the checks, without the authors' own reports.
func (w *Writer) reviewBrief(ctx context.Context, b *strings.Builder, v review.View, t centurion.Task) error {
	messages, err := w.st.Store.Messages(ctx, v.Mission.Session)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n# The goal of the mission\n\n%s\n", v.Mission.Goal)
	b.WriteString(attached(messages))
	if said := saidSince(messages); len(said) > 0 {
		fmt.Fprintf(b, "\nThe person has added since:\n\n- %s\n", strings.Join(said, "\n- "))
	}
	since, err := w.reviewBefore(ctx, b, v, t)
	if err != nil {
		return err
	}
	err = w.reviewChange(ctx, b, v, t, since)
	receiptLines(b, v.Receipts)
	return err
}

// attached returns the texts attached to the goal, in the first message of a mission's owner, or "".
func attached(messages []centurion.Message) (text string) {
	seen := false
	for _, msg := range messages[:min(1, len(messages))] {
		for _, p := range msg.Parts {
			if p.Type == centurion.PartText && seen && !p.Synthetic { // the first is the goal
				text += p.Text + "\n"
			}
			seen = seen || p.Type == centurion.PartText
		}
	}
	return text
}

// saidSince lists the person's messages to the mission's owner after the goal, oldest first.
func saidSince(messages []centurion.Message) (said []string) {
	for i, msg := range messages {
		if i > 0 && msg.Role == centurion.RoleUser && msg.Origin == centurion.OriginPerson {
			said = append(said, centurion.Clip(strings.TrimSpace(msg.Text()), 2000))
		}
	}
	return said
}

// reviewDiff limits the diff given to a reviewer, in bytes. It reads the rest itself.
const reviewDiff = 30 << 10

// reviewChange adds the changes: those of the items that the review covers, or all of the mission's, or those merged since a time. It
// omits the authors and their reports.
func (w *Writer) reviewChange(ctx context.Context, b *strings.Builder, v review.View, t centurion.Task, since time.Time) error {
	var of map[string]bool // nil covers all
	if v.Plan.Doc != nil && t.Item != "" {
		of = v.Plan.Covers(t)
	}
	fresh := slices.DeleteFunc(slices.Clone(v.Tasks), func(t centurion.Task) bool { return t.Ended.Before(since) })
	if !w.iso.Isolated() {
		reviewFiles(b, fresh)
		w.reviewOutside(b, v.Plan, fresh, of)
		return nil
	}
	if t.Unchanged {
		b.WriteString("\n# What was changed\n\nNothing: the mission has changed no file, so there is no work to review. Say FAIL if there should be some. A PASS counts only together with a check that passed.\n")
		return nil
	}
	scope, parts, err := w.reviewScope(ctx, of, v, since)
	if err != nil {
		return err
	}
	b.WriteString("\n# What was changed\n\n" + scope + "\n")
	w.reviewOutside(b, v.Plan, fresh, of)
	left := reviewDiff
	for _, s := range parts {
		shown, err := w.showStretch(ctx, b, s, left)
		if err != nil {
			return err
		}
		left -= shown
	}
	return nil
}

// reviewBefore adds the findings of the newest review of the same work, and returns the time since which the branch has newer changes:
// zero if there are none, there was no review, or there are no commits to compare.
func (w *Writer) reviewBefore(ctx context.Context, b *strings.Builder, v review.View, t centurion.Task) (since time.Time, err error) {
	var last centurion.Task
	for _, o := range v.Tasks { // oldest first
		same := o.ID != t.ID && o.Agent == agents.Reviewer && o.Item == t.Item
		if same && o.Status == centurion.TaskCompleted && !state.JudgesNothing(o.Agent, o.Status, o.Result) {
			last = o
		}
	}
	if last.ID == "" {
		return since, nil
	}
	fmt.Fprintf(b, "\n# What the review before yours found\n\n%s\n", state.FirstLines(last.Result, 20, 2000))
	if !w.iso.Isolated() {
		return since, nil
	}
	tip, err := w.iso.Tip(ctx)
	if err != nil {
		return since, err
	}
	if from := tipAt(v, last.Started.Time); from != "" && from != tip {
		since = last.Started.Time
	}
	return since, nil
}

// stretch is a part of the mission's branch, between two commits.
type stretch struct{ what, from, to string }

// reviewScope describes what a review covers, in words and as stretches of the branch; of is its set of items, nil for all.
func (w *Writer) reviewScope(ctx context.Context, of map[string]bool, v review.View, since time.Time) (scope string, parts []stretch, err error) {
	base, err := w.iso.Base(ctx)
	if err != nil {
		return "", nil, err
	}
	tip, err := w.iso.Tip(ctx)
	if err != nil {
		return "", nil, err
	}
	everything := []stretch{{"everything that the mission has changed", base.Commit, tip}}
	if !since.IsZero() {
		all, err := w.iso.Ground.Repo.Stat(ctx, base.Commit, tip)
		if err != nil {
			return "", nil, err
		}
		var text strings.Builder
		fmt.Fprintf(&text, "The diff below is what was merged since the last review. The mission has changed these files in all (git diff %.12s %.12s):\n", base.Commit, tip)
		fileLines(&text, all)
		return strings.TrimRight(text.String(), "\n"), []stretch{{"merged since the last review", cmp.Or(tipAt(v, since), base.Commit), tip}}, nil
	}
	if of == nil {
		return "Your review covers everything that was merged before it began; that is the diff below." + idleItems(nil, v.Tasks), everything, nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(of)), ", ")
	parts = landedFor(of, v.Tasks)
	idle := idleItems(of, v.Tasks)
	if len(parts) == 0 && idle == "" { // the mission's own agent did them
		return fmt.Sprintf("Your review covers %s; the diff below is that of the whole mission.", names), everything, nil
	}
	below := "; the diff below is theirs. See the rest with"
	if len(parts) == 0 {
		below = ". See what the mission has changed with"
	}
	return fmt.Sprintf("Your review covers %s%s: git diff %.12s %.12s%s", names, below, base.Commit, tip, idle), parts, nil
}

// idleItems names the covered items whose tasks have changed no file; of is nil for all.
func idleItems(of map[string]bool, tasks []centurion.Task) string {
	var idle []string
	for _, t := range tasks {
		if t.Item != "" && (of == nil || of[t.Item]) && !slices.Contains(idle, t.Item) && review.Idle(t.Item, tasks) {
			idle = append(idle, t.Item)
		}
	}
	if len(idle) == 0 {
		return ""
	}
	slices.Sort(idle)
	return fmt.Sprintf("\nNothing was changed for %s: its task changed no file. Say FAIL if something is missing, and with PASS why nothing had to be changed.", strings.Join(idle, ", "))
}

// landedFor lists the merges of tasks for some of the items. A task without an item that continues another one belongs to that one's
// item.
func landedFor(items map[string]bool, tasks []centurion.Task) (parts []stretch) {
	of := map[string]string{} // the item of each task
	for _, t := range tasks { // oldest first
		of[t.ID] = cmp.Or(t.Item, of[t.Resumes])
		for _, l := range t.Landed {
			if item := of[t.ID]; items[item] {
				what := "item " + item
				if t.Item == "" {
					what += ", continued by " + t.Name()
				}
				parts = append(parts, stretch{what, l.Before, l.Commit})
			}
		}
	}
	return parts
}

// showStretch adds the files and the diff of a stretch, limited in bytes. It returns the length of the shown diff.
func (w *Writer) showStretch(ctx context.Context, b *strings.Builder, s stretch, limit int) (shown int, err error) {
	files, err := w.iso.Ground.Repo.Stat(ctx, s.from, s.to)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(b, "\n%s (git diff %.12s %.12s):\n", s.what, s.from, s.to)
	fileLines(b, files)
	patch, err := w.iso.Ground.Repo.Patch(ctx, s.from, s.to, false)
	if err != nil {
		return 0, err
	}
	cut := ""
	if len(patch) > limit {
		patch = strings.ToValidUTF8(patch[:max(limit, 0)], "")
		patch = patch[:strings.LastIndexByte(patch, '\n')+1]
		cut = fmt.Sprintf("(cut here; see the rest with: git diff %.12s %.12s -- FILE)\n", s.from, s.to)
	}
	if patch != "" {
		fmt.Fprintf(b, "\n```diff\n%s```\n", patch)
	}
	b.WriteString(cut)
	return len(patch), nil
}

// fileLines lists the first hundred changed files.
func fileLines(b *strings.Builder, files []centurion.FileChange) {
	for i, f := range files {
		if i == 100 {
			fmt.Fprintf(b, "- … and %d more\n", len(files)-i)
			return
		}
		b.WriteString("- " + changeLine(f) + "\n")
	}
}

// tipAt returns the tip of the mission's branch at a time, "" for its base.
func tipAt(v review.View, at time.Time) string {
	all := slices.Clone(v.Mission.Landed)
	for _, t := range v.Tasks {
		all = append(all, t.Landed...)
	}
	var last centurion.Landed
	for _, l := range all {
		if !l.Time.After(at) && (l.Time.After(last.Time.Time) || l.Before == last.Commit) {
			last = l
		}
	}
	return last.Commit
}

func changeLine(f centurion.FileChange) string {
	s := f.Status + " " + f.Path
	if f.Old != "" {
		s += " (was " + f.Old + ")"
	}
	if f.Binary {
		return s + ", binary"
	}
	return fmt.Sprintf("%s, +%d -%d", s, f.Added, f.Deleted)
}

// reviewFiles lists the changed files when there are no commits to compare.
func reviewFiles(b *strings.Builder, tasks []centurion.Task) {
	var files []string
	for _, t := range tasks {
		files = append(files, t.Files...)
	}
	slices.Sort(files)
	if files = slices.Compact(files); len(files) > 0 {
		fmt.Fprintf(b, "\n# Files changed so far with write and edit (shell commands may have changed others)\n\n- %s\n", strings.Join(files, "\n- "))
	}
}

// receiptLines lists the newest run of each check for a reviewer: its grade and why, its output without the work, and checks weakened
// by the work.
func receiptLines(b *strings.Builder, receipts []centurion.Receipt) {
	receipts = slices.DeleteFunc(slices.Clone(receipts), func(r centurion.Receipt) bool { return strings.Contains(r.Item, "/") }) // of tries
	if len(receipts) == 0 {
		return
	}
	b.WriteString("\n# Checks that the host ran, the newest run of each\n\n")
	type check struct{ item, command string }
	newest := map[check]int{}
	for i, r := range receipts {
		newest[check{r.Item, r.Command}] = i
	}
	for i, r := range receipts {
		if newest[check{r.Item, r.Command}] != i {
			continue
		}
		fmt.Fprintf(b, "- %s: `%s`: exit code %d", cmp.Or(r.Item, "mission"), r.Command, r.ExitCode)
		if r.Proof != "" {
			fmt.Fprintf(b, ", %s", r.Proof)
			if r.Why != "" {
				b.WriteString(": " + r.Why)
			}
		}
		b.WriteByte('\n')
		if r.FailureLine != "" {
			fmt.Fprintf(b, "  with the work taken out it said: %s\n", r.FailureLine)
		}
		for _, w := range r.Weakened {
			fmt.Fprintf(b, "  LOOK AT THIS: %s\n", w)
		}
	}
}

// What a reviewer is told whose answer would not count.
const (
	NoVerdict = "Your answer has no verdict, so your review would not count. Begin your answer with one word, PASS or FAIL, then each finding in a line. " +
		"If something that you could not check keeps you from saying PASS, say FAIL and name it."
	SawNothing = "You said PASS, but you have read no file and run nothing, and no check of this mission has passed. Such a review would not count. " +
		"Look at the code, and run what shows whether it works: build it, run its tests. Then answer again, beginning with PASS or FAIL."
)
