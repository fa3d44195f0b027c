package server

import (
	"context"
	"net/url"
	"strings"

	"centurion"
	"centurion/takeover"
)

// Person is the part of [API] with which a person takes over or undoes work. It takes the id or a unique prefix of a mission or a task;
// "" means the latest mission.
type Person interface {
	// Diff returns the changes; see takeover.Person.Diff.
	Diff(ctx context.Context, id string, o takeover.DiffOptions) (takeover.Change, error)
	// Merge merges a mission's work into the person's branch; see takeover.Person.Merge.
	Merge(ctx context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error)
	// Undo undoes work; see takeover.Person.Undo.
	Undo(ctx context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error)
}

// full returns the whole id of a mission or a task.
func (l *Local) full(ctx context.Context, id string) (string, error) {
	if strings.HasPrefix(id, string(centurion.PrefixTask)+"_") {
		return l.Store.ResolveTask(ctx, id)
	}
	m, err := l.mission(ctx, id)
	return m.ID, err
}

// Diff returns the changes of a mission or a task.
func (l *Local) Diff(ctx context.Context, id string, o takeover.DiffOptions) (takeover.Change, error) {
	return with(ctx, l.Person != nil, "diff", l.full, id, func(id string) (takeover.Change, error) { return l.Person.Diff(ctx, id, o) })
}

// Merge merges a mission's work into the person's branch.
func (l *Local) Merge(ctx context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	return with(ctx, l.Person != nil, "merge", l.full, id, func(id string) (takeover.MergeReport, error) { return l.Person.Merge(ctx, id, q) })
}

// Undo undoes the work of a mission or a task.
func (l *Local) Undo(ctx context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	return with(ctx, l.Person != nil, "undo", l.full, id, func(id string) (takeover.UndoReport, error) { return l.Person.Undo(ctx, id, q) })
}

type mergeBody struct {
	ID string `json:"id,omitempty"`
	takeover.MergeRequest
}

type undoBody struct {
	ID string `json:"id"`
	takeover.UndoRequest
}

// Diff returns the changes of a mission or a task.
func (c *Client) Diff(ctx context.Context, id string, o takeover.DiffOptions) (takeover.Change, error) {
	q := url.Values{"id": {id}, "path": o.Paths}
	if o.Patch {
		q.Set("patch", "true")
	}
	if o.Color {
		q.Set("color", "true")
	}
	return get[takeover.Change](ctx, c, "/diff", q)
}

// Merge merges a mission's work into the person's branch.
func (c *Client) Merge(ctx context.Context, id string, q takeover.MergeRequest) (takeover.MergeReport, error) {
	return send[takeover.MergeReport](ctx, c, "/merge", mergeBody{id, q})
}

// Undo undoes the work of a mission or a task.
func (c *Client) Undo(ctx context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	return send[takeover.UndoReport](ctx, c, "/undo", undoBody{id, q})
}
