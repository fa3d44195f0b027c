package tools

import (
	"context"
	"strings"
	"sync"

	"centurion/workspace"
)

// Notebook stores the shared notes of a project's sessions. The orchestrator implements it, with the rules on who may write how much.
type Notebook interface {
	// UpdateContext writes u and returns a summary of the new state for the model. Errors are centurion.KindPermission if the session's
	// role may not do it, KindUsage for a text that is too long or would replace one that the session has not read, and KindConflict if
	// the text was changed since; then nothing is written.
	UpdateContext(ctx context.Context, c *Call, u ContextUpdate) (string, error)
}

// ContextUpdate is one change of the shared notes. Empty fields mean no change.
type ContextUpdate struct {
	Context string // the whole of context.md
	Summary string // the whole of summary.md
	Note    string // a line for the notes in context.md
}

// maxNote is the maximum size of a note in bytes: a long line. Longer texts belong into a result or into the code.
const maxNote = 500

type updateContextInput struct {
	Context string `json:"context"`
	Summary string `json:"summary"`
	Note    string `json:"note"`
}

func updateContextTool() Tool {
	return define("update_context", object(
		may("context", nonEmpty("The whole text of context.md; replaces what is there")),
		may("summary", nonEmpty("The whole text of summary.md; replaces what is there")),
		may("note", nonEmpty("One line to add to the notes in context.md")),
	), func(updateContextInput) Effect { return Effect{Hosted: true, Once: true} }, runUpdateContext)
}

// NotesOnly returns update_context for roles that may only add notes.
func NotesOnly() Tool { return noteTool() }

var noteTool = sync.OnceValue(func() *defined[updateContextInput] {
	d := define("update_context", object(need("note", nonEmpty("The line to add"))),
		func(updateContextInput) Effect { return Effect{Hosted: true, Once: true} }, runUpdateContext).(*defined[updateContextInput])
	d.doc = noteDoc
	return d
})

const noteDoc = `Adds a line to the notes in .opencode/context.md, which the agents of this project share.

Use it for facts that others need and cannot see in the code: a trap, a decision, where something is. Do not repeat your result. Returns how much room the file has left.

Example: {"note": "The limits are checked in internal/limit/limit.go; the router only calls it."}`

func runUpdateContext(ctx context.Context, c *Call, in updateContextInput) (Result, error) {
	const op = "update_context"
	if c.Notebook == nil {
		return denied(op, "your role does not write what the sessions share", "say it in your answer")
	}
	text := func(s string) string { return c.Keys.Text(strings.TrimSpace(s)) }
	u := ContextUpdate{Context: text(in.Context), Summary: text(in.Summary), Note: text(in.Note)}
	if u == (ContextUpdate{}) {
		return Result{}, usage(op, "give context, summary or note", "nothing was given to write")
	}
	if n := len(u.Note); n > maxNote {
		return Result{}, usage(op, "say it in one line; the rest belongs into your result", "the note has %d bytes, more than %d", n, maxNote)
	}
	out, err := c.Notebook.UpdateContext(ctx, c, u)
	if err != nil {
		return Result{}, err
	}
	var written []string
	if u.Context != "" || u.Note != "" {
		written = append(written, workspace.ContextPath)
	}
	if u.Summary != "" {
		written = append(written, workspace.SummaryPath)
	}
	return Result{Output: out, Title: "shared context", Metadata: map[string]any{"context": len(u.Context), "summary": len(u.Summary),
		"note": len(u.Note), knows: c.Seen.known(written...)}}, nil
}
