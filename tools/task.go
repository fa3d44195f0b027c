package tools

import (
	"fmt"
	"strings"
	"time"

	"centurion"
)

// label names a task: tsk_… «parse the limits» (worker, T1).
func label(t centurion.Task) string { return labelWith(t, "") }

// labelWith names a task, and its item with the item's own title, which may say something else: tsk_… «the limits» (worker, T1 Parse limits).
func labelWith(t centurion.Task, item string) string {
	who := t.Agent
	if t.Item != "" {
		who += ", " + t.Item
		if item != "" && item != t.Title {
			who += " " + centurion.Clip(item, 60)
		}
	}
	return fmt.Sprintf("%s «%s» (%s)", t.ID, t.Title, who)
}

// state says where a task stands and what it waits for.
func state(t centurion.Task) string {
	s := string(t.Status)
	if t.Reason != "" {
		s += ": " + t.Reason
	}
	return s
}

// resumes says of a task that it goes on with the conversation of another, whose id its own replaces; else it is empty.
func resumes(t centurion.Task) string {
	if t.Resumes == "" {
		return ""
	}
	return fmt.Sprintf("It resumes %s in the same conversation; its id is %s from now on.", t.Resumes, t.ID)
}

// report is all that is to be told of a task that has ended.
func report(t centurion.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", label(t), state(t))
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		fmt.Fprintf(&b, " after %s", duration(t.Ended.Sub(t.Started.Time)))
	}
	if t.Attempt > 1 {
		fmt.Fprintf(&b, ", attempt %d", t.Attempt)
	}
	if r := resumes(t); r != "" {
		b.WriteString(". " + r)
	}
	b.WriteByte('\n')
	if t.Error != nil {
		fmt.Fprintf(&b, "error (%s): %s\n", t.Error.Kind, t.Error.Message)
	}
	if len(t.Files) > 0 {
		fmt.Fprintf(&b, "files changed: %s\n", strings.Join(t.Files, ", "))
	}
	fmt.Fprintf(&b, "cost: %s, %d tokens\n", money(t.Usage), t.Usage.Tokens.Total())
	if t.Result != "" {
		fmt.Fprintf(&b, "result:\n%s\n", strings.TrimRight(t.Result, "\n"))
	}
	return b.String()
}

func money(u centurion.Usage) string {
	if u.Unpriced {
		return "$?"
	}
	return fmt.Sprintf("$%.4f", u.USD)
}

// duration says how long something took or takes, without more digits than are of use.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}
