package tools

import (
	"fmt"
	"strings"
	"time"

	"centurion"
)

// label names a task: T1 "parse the limits" (worker).
func label(t centurion.Task) string { return labelWith(t, "") }

// labelWith names a task, and the title of its item where that says something else: T1 "the limits" (worker; item: Parse limits).
func labelWith(t centurion.Task, item string) string {
	who := t.Agent
	if item != "" && item != t.Title {
		who += "; item: " + centurion.Clip(item, 60)
	}
	return fmt.Sprintf("%s %q (%s)", t.Name(), t.Title, who)
}

// state says where a task stands and what it waits for.
func state(t centurion.Task) string {
	s := string(t.Status)
	if t.Reason != "" {
		s += ": " + t.Reason
	}
	return s
}

// resumes says of a task that it continues the conversation of another, whose name its own replaces; else it is empty.
func resumes(t centurion.Task) string {
	if t.Resumes == "" {
		return ""
	}
	return fmt.Sprintf("It continues the earlier conversation; its name is %s from now on.", t.Name())
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
