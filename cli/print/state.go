package print

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"centurion"
	"centurion/host"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/control"
	"centurion/orchestrator/mail"
	"centurion/server"
	"centurion/store"
	"centurion/text"
)

// Tidy prints what was archived and removed.
func Tidy(w io.Writer, r host.TidyReport) error {
	drop, archive, remove := "dropped", "archived", "removed"
	if r.DryRun {
		drop, archive, remove = "would be dropped", "would be archived", "would be removed"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s, %s %s, %s %s, of %s that ended.\n", centurion.Count(r.Sessions, "session"), drop,
		centurion.Count(r.Archived, "task"), archive, centurion.Count(r.Removed, "task"), remove, centurion.Count(r.Missions, "mission"))
	gone := text.If(r.DryRun, "Would be removed", "No longer needed and removed")
	if len(r.Aside) > 0 {
		fmt.Fprintf(&b, "%s, with files of removed tasks and missions that git ignores: %s.\n", gone, strings.Join(r.Aside, ", "))
	}
	if len(r.Worktrees) > 0 {
		fmt.Fprintf(&b, "%s: %s.\n", gone, strings.Join(r.Worktrees, ", "))
	}
	switch {
	case r.DryRun:
	case r.HostPID != 0:
		fmt.Fprintf(&b, "Process %d hosts this project and did it; the state file shrinks only when no process hosts the project.\n", r.HostPID)
	case r.Before > 0:
		fmt.Fprintf(&b, "The state file has %s; it had %s.\n", centurion.Bytes(r.After), centurion.Bytes(r.Before))
	}
	_, err := fmt.Fprint(w, b.String())
	return err
}

// Repair prints what was repaired and what is lost.
func Repair(w io.Writer, r store.Report) error {
	var b strings.Builder
	switch {
	case r.Sound:
		b.WriteString("Nothing is wrong with this project's state.\n")
	case r.Accepted:
		fmt.Fprintf(&b, "The file is whole, but its newest %s missing. It was kept as it is.\n",
			text.If(r.Missing == 1, "event is", centurion.Count(int(r.Missing), "event")+" are"))
	default:
		b.WriteString("Everything that could still be read is in a new file:\n")
		for _, t := range r.Tables {
			fmt.Fprintf(&b, "  %-9s %6d kept%s\n", t.Name, t.Kept, text.When(t.Lost > 0, fmt.Sprintf(", %d lost", t.Lost)))
		}
		if r.Missing > 0 {
			fmt.Fprintf(&b, "Of the newest %s nothing is left.\n", centurion.Count(int(r.Missing), "event"))
		}
	}
	for _, path := range r.Aside {
		fmt.Fprintf(&b, "The damaged file is kept: %s\n", path)
	}
	if !r.Sound {
		b.WriteString("Look at what there is with: centurion ps\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// State is the activity of a session in one line.
func State(s control.State) string {
	facts := []string{"now: " + string(s.Activity) + text.When(s.Waits != "", ", waits for "+string(s.Waits))}
	for _, call := range s.Calls {
		facts = append(facts, fmt.Sprintf("%s for %s", text.Clean(call.Tool), text.Span(time.Since(call.Since.Time))))
	}
	return text.Dots(append(facts, text.When(s.Queued > 0, centurion.Count(s.Queued, "message")+" unread"))...)
}

// Sent says what happens to a message.
func Sent(got mail.Posted, queued bool) string {
	who := fmt.Sprintf("%s (%s)", cmp.Or(got.Address, got.Task), text.Clean(got.Agent))
	waits := got.State == centurion.TaskQueued || got.State == centurion.TaskWaiting
	switch {
	case got.Compact:
		return compacts(got, who)
	case !got.Working:
		status := text.If(got.Status.Alive(), "interrupted", string(got.Status))
		return fmt.Sprintf("kept for %s of mission %s, which is %s; it is read with: centurion resume %s", who, got.Mission, status, got.Mission)
	case waits:
		return fmt.Sprintf("sent to %s; its task reads it when it continues%s", who, text.When(got.Reason != "", ", and is waiting: "+text.Clean(got.Reason)))
	case queued:
		return fmt.Sprintf("sent to %s; it is read at the end of the turn", who)
	}
	return "sent to " + who
}

// compacts says what happens to a request for a shorter history.
func compacts(got mail.Posted, who string) string {
	switch {
	case got.Short:
		return fmt.Sprintf("nothing to shorten: the conversation of %s is short", who)
	case got.Done:
		return fmt.Sprintf("the conversation of %s is shortened", who)
	case !got.Working:
		return fmt.Sprintf("the conversation of %s will be shortened with its next request, once mission %s is resumed: centurion resume %s", who, got.Mission, got.Mission)
	}
	return fmt.Sprintf("the conversation of %s will be shortened before its next request", who)
}

// Rewound says what a rewind did, how to undo it and how to continue.
func Rewound(got branches.Rewound, r server.Rewind) string {
	lines := text.Filled(text.When(r.Mark != "", fmt.Sprintf("%s is called %s", got.From, r.Mark)))
	switch {
	case r.To == "":
	case got.From == got.Leaf:
		lines = append(lines, fmt.Sprintf("%s stands at %s already", got.Session, got.Leaf))
	default:
		left := text.When(got.Undone > 0, "; "+centurion.Count(got.Undone, "message")+" left as a branch") // none, if it is a later message of the same line
		lines = append(lines, fmt.Sprintf("%s continues after %s%s", got.Session, got.Leaf, left),
			fmt.Sprintf("undo: centurion rewind %s --to %s", got.Session, cmp.Or(got.Mark, got.From)), "continue: centurion resume "+got.Mission)
	}
	return strings.Join(lines, "\n")
}
