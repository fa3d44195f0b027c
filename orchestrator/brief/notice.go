package brief

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/text"
	"centurion/verify"
)

// Take adds a delivery to the history of its session.
func (w *Writer) Take(tx *store.Tx, rec *centurion.Session, p plan.View, d store.Delivery) (centurion.Message, error) {
	if d.Task == "" {
		msg, err := state.Say(tx, rec, d)
		if err != nil {
			return msg, err
		}
		d.Taken, d.Message, d.Files, d.Parts = centurion.Now(), msg.ID, nil, nil // the message keeps them
		return msg, tx.PutDelivery(&d)
	}
	t, err := tx.Task(d.Task)
	if err != nil {
		return centurion.Message{}, err
	}
	text, err := w.Notice(tx, p, t)
	if err != nil {
		return centurion.Message{}, err
	}
	msg, err := session.Say(tx, rec, centurion.OriginHost, text+w.Outline(p, t))
	if err != nil {
		return msg, err
	}
	return msg, state.Take(tx, d, t, msg.ID)
}

// Notice reports a task's end to its parent, with everything needed to continue without another call.
func (w *Writer) Notice(tx *store.Tx, p plan.View, t centurion.Task) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Task %s (%s: %s) %s", t.Name(), t.Agent, t.Title, ended(t))
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		took := text.Took(t.Ended.Sub(t.Started.Time).Round(time.Second))
		b.WriteString(cmp.Or(text.When(void(t), " ("+took+")"), " after "+took))
	}
	b.WriteString(".\n")
	if t.Unchanged && t.Reason == "" && t.Status == centurion.TaskCompleted {
		b.WriteString("Nothing had been changed when it began: its PASS alone shows nothing.\n")
	}
	if void(t) && t.Item != "" {
		fmt.Fprintf(&b, "%s still needs a review: delegate_task %s.\n", t.Item, plan.ReviewCall(t.Item))
	}
	if t.Error != nil {
		fmt.Fprintf(&b, "Why: %s\n", t.Error.Message)
		if t.Status == centurion.TaskBlocked && t.Error.Hint != "" && t.Error.Kind != centurion.KindPermission { // permissions are up to the person
			fmt.Fprintf(&b, "What you can do: %s.\n", t.Error.Hint)
		}
	}
	if err := raceLines(tx, &b, t); err != nil {
		return "", err
	}
	landedLines(&b, t)
	if w.iso.Isolated() && t.Status == centurion.TaskCompleted && !slices.Contains([]string{agents.Reviewer, agents.Planner}, t.Agent) && t.Item != "" && len(t.Landed) == 0 {
		b.WriteString("It changed no file.\n")
	}
	w.outsideLine(&b, p, t)
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

// raceLines says, at the end of a race, what became of the other tries.
func raceLines(tx *store.Tx, b *strings.Builder, t centurion.Task) error {
	if t.Race == nil {
		return nil
	}
	tasks, err := tx.Tasks(t.Mission)
	if err != nil {
		return err
	}
	var others []string
	for _, o := range tasks {
		if o.ID == t.ID || !race.Of(o, t) {
			continue
		}
		what := ended(o)
		if o.Lost() {
			what = "was overtaken"
		} else if o.Error != nil {
			what += " (" + centurion.Clip(o.Error.Message, 300) + ")"
		}
		others = append(others, fmt.Sprintf("%s (%s) %s, cost %s", o.Name(), o.Agent, what, spent(o.Usage)))
	}
	if t.Status == centurion.TaskCompleted {
		fmt.Fprintf(b, "It decided the race for %s.", t.Item)
	} else {
		fmt.Fprintf(b, "No try of %s has succeeded.", t.Item)
	}
	fmt.Fprintf(b, " The others: %s.\n", strings.Join(others, "; "))
	return nil
}

// Outline is the summary of the plan in the notice of a planner's end, whose delegator has not seen the plan.
func (w *Writer) Outline(p plan.View, t centurion.Task) string {
	if p.Doc == nil || t.Agent != agents.Planner || t.Status != centurion.TaskCompleted {
		return ""
	}
	file, _ := w.plan.File.Where()
	return "\nThe plan, which stands whole in " + file.Path() + ":\n" + plan.Outline(p.Doc)
}

// void reports whether a task is a review that does not count.
func void(t centurion.Task) bool { return t.Reason == state.NoVerdict || t.Reason == state.SawNothing }

// ended describes how a task has ended.
func ended(t centurion.Task) string {
	switch {
	case t.Reason == state.FoundFaults && t.Reviews:
		return "has found faults: " + t.Item + " is open again"
	case t.Reason == state.FoundFaults:
		return "has found faults: its item stays open"
	case t.Reason == state.NoVerdict:
		return "gave no verdict, neither PASS nor FAIL, also when it was asked again: it does not count"
	case t.Reason == state.SawNothing:
		return "said PASS without having read or run anything, also when it was asked to: it does not count"
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

// spent describes a cost, as far as it is known.
func spent(u centurion.Usage) string {
	if u.Unpriced {
		return centurion.Count(int(u.Tokens.Total()), "token")
	}
	return text.Cost(u) + ", " + centurion.Count(int(u.Tokens.Total()), "token")
}

// landedLines lists the merges of a task with the results of their checks, and why its work came back before, oldest first.
func landedLines(b *strings.Builder, t centurion.Task) {
	if len(t.Landed) == 0 && len(t.Files) > 0 {
		fmt.Fprintf(b, "Files changed with write and edit: %s\n", strings.Join(t.Files, ", "))
	}
	for _, l := range t.Landed {
		var files []string
		for _, f := range l.Files {
			files = append(files, changeLine(f))
		}
		fmt.Fprintf(b, "Integrated as %.8s: %s\n", l.Commit, centurion.Clip(strings.Join(files, "; "), 2000))
	}
	if n := max(t.CameBack, t.Returns); n > 0 && t.Status == centurion.TaskCompleted {
		why := returnReasons(t.Rejections)
		if why != "" {
			why = ": " + why
		}
		fmt.Fprintf(b, "It came back %s before that%s.\n", centurion.Count(n, "time"), why)
	}
}

// returnReasons lists the reasons why work came back, each once.
func returnReasons(all []centurion.Rejection) string {
	var out []string
	for _, d := range all {
		files := centurion.Clip(strings.Join(d.Files, ", "), 100)
		why := map[string]string{
			event.ReturnedCheck:    "the check `" + centurion.Clip(d.Command, 80) + "` failed",
			event.ReturnedConflict: "it did not fit to what others had merged in " + files,
			event.ReturnedMarkers:  "conflict markers were left in " + files,
			event.ReturnedFiles:    "it had changed files of others: " + files,
			event.ReturnedGuard:    "it broke the mission's check `" + centurion.Clip(d.Command, 80) + "`",
			event.ReturnedQuestion: "it had changed nothing and asked in plain text",
			event.ReturnedStuck:    "it said that it was stuck",
			event.ReturnedHollow:   "its tests told nothing of its work",
			event.ReturnedVerdict:  "its answer had no verdict that counts",
		}[d.Cause]
		if why == "" { // from another version
			why = d.Cause
		}
		if !slices.Contains(out, why) {
			out = append(out, why)
		}
	}
	return strings.Join(out, "; ")
}

// checkLines reports the newest receipt of each command of a task, and what to do if they prove too little and no review has passed.
func checkLines(p plan.View, tx *store.Tx, b *strings.Builder, t centurion.Task) error {
	doubtful, unproven := false, false
	receipts, err := tx.Receipts(t.Mission, t.ID)
	if err != nil {
		return err
	}
	last := map[string]centurion.Receipt{}
	for _, r := range receipts {
		last[r.Command] = r
	}
	for _, r := range receipts {
		if last[r.Command].ID != r.ID {
			continue
		}
		switch {
		case !r.Passed:
			fmt.Fprintf(b, "Check `%s` failed with exit code %d.\n", r.Command, r.ExitCode)
		case r.Proof == "":
			fmt.Fprintf(b, "Check `%s` passed.\n", r.Command)
		default:
			fmt.Fprintf(b, "Check `%s` passed: %s", r.Command, r.Proof)
			if r.Why != "" {
				b.WriteString(", " + r.Why)
			}
			b.WriteString(".\n")
			doubtful, unproven = doubtful || !r.Proof.Solid(), unproven || r.Proof == centurion.ProofUnproven
		}
		for _, w := range r.Weakened {
			fmt.Fprintf(b, "The work weakens a check: %s\n", w)
		}
	}
	if !doubtful || t.Status != centurion.TaskCompleted || t.Item == "" {
		return nil
	}
	tasks, err := tx.Tasks(t.Mission)
	if err != nil || review.HasPassed(p, t, tasks) {
		return err
	}
	fix := plan.DelegateCall(t.Agent, t.Item, "fix "+t.Item)
	if by, when := (review.View{Plan: p, Tasks: tasks}).Coming(t.Item); by != "" {
		fmt.Fprintf(b, "That proves too little, but %s reviews it %s; or have it fixed, which opens it again: delegate_task %s.\n", by, when, fix)
	} else {
		fmt.Fprintf(b, "That proves too little. Have it reviewed: delegate_task %s; or have it fixed, which opens it again: delegate_task %s.\n",
			plan.ReviewCall(p.FreeReview(t.Item, tasks)), fix)
	}
	if unproven {
		b.WriteString("If the check itself is wrong, send the plan with another command for it (update_todo): it runs at once against the merged work, without it and with it.\n")
	} else {
		b.WriteString("If the check itself is wrong, say in the review's prompt what it should be: only the reviewer may change it now.\n")
	}
	return nil
}

// exchangeLines reports, to the delegator of a review, the checks that it replaced and their results since.
func exchangeLines(tx *store.Tx, b *strings.Builder, t centurion.Task) error {
	if len(t.Exchanged) == 0 {
		return nil
	}
	receipts, err := tx.Receipts(t.Mission, "")
	if err != nil {
		return err
	}
	for _, x := range t.Exchanged {
		if x.Item == "" {
			fmt.Fprintf(b, "It changed the mission's own checks from %s to %s; they run at the end.\n", Lines(x.From), Lines(x.To))
			continue
		}
		fmt.Fprintf(b, "It changed the check of %s from %s to %s", x.Item, Lines(x.From), Lines(x.To))
		for _, command := range verify.Distinct(x.To) {
			switch r := review.Newest(receipts, x.Item, command); {
			case r == nil:
				fmt.Fprintf(b, "; `%s` counts when it has run against the work", command)
			case !r.Passed:
				fmt.Fprintf(b, "; `%s` fails on the work", command)
			default:
				fmt.Fprintf(b, "; `%s` passed: %s", command, r.Proof)
				if r.Why != "" {
					b.WriteString(", " + r.Why)
				}
			}
		}
		b.WriteString(".\n")
	}
	return nil
}

// Lines joins commands in backticks; none are "nothing".
func Lines(commands []string) string {
	if len(commands) == 0 {
		return "nothing"
	}
	return "`" + strings.Join(commands, "`, `") + "`"
}

// maxPersonLines limits the quoted messages of a person, the newest of each kind.
const maxPersonLines = 6

// personLines quotes a person's messages to a task's agent and their answers, which may have changed the result.
func personLines(tx *store.Tx, b *strings.Builder, t centurion.Task) error {
	sent, err := tx.TakenDeliveries(t.Mission, t.Session)
	if err != nil {
		return err
	}
	asks, err := tx.Asks(t.Mission)
	if err != nil {
		return err
	}
	var wrote, answered []string
	for _, d := range sent {
		during := !d.Taken.Before(t.Started.Time) && !d.Taken.After(t.Ended.Time)
		if state.IsMail(d) && during {
			wrote = append(wrote, "The person wrote to it: "+inQuotes(d.Text))
		}
	}
	for _, a := range asks {
		if a.Type == store.AskQuestion && a.Task == t.ID && state.FromPerson(a.By) && a.Answer != event.NobodyThere {
			answered = append(answered, "The person was asked: "+inQuotes(a.Text)+" and answered: "+inQuotes(a.Answer))
		}
	}
	for _, lines := range [][]string{wrote, answered} {
		for _, l := range lines[max(0, len(lines)-maxPersonLines):] {
			b.WriteString(l + "\n")
		}
	}
	return nil
}

func inQuotes(s string) string { return "\"" + centurion.Clip(strings.TrimSpace(s), 600) + "\"" }
