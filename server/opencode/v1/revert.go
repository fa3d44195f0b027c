package v1

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/branches"
)

func (p *Project) revertRoutes() map[string]route {
	return map[string]route{
		"POST /session/{id}/revert": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Message string `json:"messageID"`
				Part    string `json:"partID"` // an answer is not cut: it counts as its message
			}](r)
			if err == nil && centurion.CheckID(centurion.PrefixMessage, b.Message) != nil {
				err = &centurion.Error{Kind: centurion.KindNotFound, Msg: "the session has no message " + b.Message}
			}
			if err != nil {
				return nil, err
			}
			return p.revert(r, b.Message)
		},
		"POST /session/{id}/unrevert": func(r *http.Request) (any, error) { return p.revert(r, "") },
		"GET /session/{id}/diff":      p.diff,
	}
}

// revertState is what is reverted in a session.
type revertState struct {
	Message string `json:"messageID"`
	Diff    string `json:"diff,omitempty"` // what that has changed in files
}

func shownRevert(r *centurion.Revert) *revertState {
	if r == nil {
		return nil
	}
	return &revertState{r.Message, strings.TrimRight(r.Patch, "\n")}
}

// busyError says that a session cannot do what was asked now, as OpenCode's clients know it.
type busyError struct {
	Tag     string `json:"_tag"`
	Session string `json:"sessionID"`
	Message string `json:"message"`
}

func (e *busyError) Error() string { return e.Message }

// asBusy is a conflict as OpenCode's clients know it; any other error stays as it is.
func asBusy(session string, err error) error {
	if centurion.KindOf(err) != centurion.KindConflict {
		return err
	}
	_, body := failure(err)
	return &busyError{"SessionBusyError", session, body.Data["message"].(string)}
}

// revert reverts a session from a message on, or brings everything back.
func (p *Project) revert(r *http.Request, message string) (any, error) {
	s, err := p.session(r)
	if err != nil {
		return nil, err
	}
	got, err := p.API().Revert(r.Context(), s.ID, message)
	if err != nil {
		return nil, asBusy(s.ID, err)
	}
	diffs, err := p.API().Written(r.Context(), s.ID, "")
	if err != nil {
		return nil, err
	}
	if err := p.toldAll(r.Context()); err != nil {
		return nil, err
	}
	p.send("session.diff", diffEvent{s.ID, shownDiffs(diffs)})
	p.tellKept(got)
	return shownSession(got.Session), nil
}

// tellKept tells which files could not be reverted, for which a session has no place.
func (p *Project) tellKept(got branches.Reverted) {
	if n := len(got.Kept); n > 0 {
		text := "changed since, and left as it is: " + centurion.Clip(strings.Join(got.Kept, ", "), 300)
		p.send("tui.toast.show", toastEvent{Title: centurion.Count(n, "file") + " not reverted", Message: text, Variant: "warning", Duration: 10_000})
	}
}

type diffEvent struct {
	Session string     `json:"sessionID"`
	Diff    []fileDiff `json:"diff"`
}

// fileDiff is OpenCode's SnapshotFileDiff.
type fileDiff struct {
	File      string `json:"file"`
	Patch     string `json:"patch"`
	Additions int    `json:"additions"`
	Deletions int    `json:"deletions"`
	Status    string `json:"status"`
}

// diff lists what the turn of a message has changed in files. As with OpenCode's server, a session as a whole and an answer have nothing.
func (p *Project) diff(r *http.Request) (any, error) {
	s, err := p.session(r)
	id := r.FormValue("messageID")
	if err != nil || centurion.CheckID(centurion.PrefixMessage, id) != nil {
		return []fileDiff{}, err
	}
	diffs, err := p.API().Written(r.Context(), s.ID, id)
	if centurion.KindOf(err) == centurion.KindNotFound {
		err = nil
	}
	return shownDiffs(diffs), err
}

func shownDiffs(diffs []centurion.FileDiff) []fileDiff {
	out := []fileDiff{}
	for _, d := range diffs {
		status := d.Status
		if status == "renamed" {
			status = "modified"
		}
		var patch strings.Builder
		patch.WriteString("Index: " + d.Path + "\n" + strings.Repeat("=", 67) + "\n--- " + d.Path + "\t\n+++ " + d.Path + "\t\n")
		for _, h := range d.Hunks {
			patch.WriteString(h.Header + "\n" + h.Text)
		}
		out = append(out, fileDiff{d.Path, patch.String(), d.Added, d.Deleted, status})
	}
	return out
}

type removedEvent struct {
	Session string `json:"sessionID"`
	Message string `json:"messageID"`
}

// tellRewound tells the messages that are no longer on a session's line.
func (p *Project) tellRewound(ctx context.Context, e centurion.Event) error {
	d, err := event.Decode[event.RewoundData](e)
	if err != nil {
		return err
	}
	t, err := p.API().Tree(ctx, e.Session)
	if err != nil {
		return err
	}
	all := make([]centurion.Message, 0, len(t.Messages))
	for _, m := range t.Messages {
		all = append(all, centurion.Message{ID: m.Info.ID, Prev: m.Prev})
	}
	stays := centurion.Line(all, d.To)
	for _, m := range centurion.Line(all, d.From) {
		if !slices.ContainsFunc(stays, func(s centurion.Message) bool { return s.ID == m.ID }) {
			p.send("message.removed", removedEvent{e.Session, m.ID})
		}
	}
	return p.tellSession(ctx, e)
}
