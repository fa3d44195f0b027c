package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/server"
	"centurion/takeover"
)

// workID returns the id of the mission or task that a person means, and the latest mission's for "". Of several tasks of an
// item the newest is meant that has changed something.
func workID(ctx context.Context, api server.API, typed string) (string, error) {
	if typed == "" {
		m, err := api.Mission(ctx, "")
		return m.ID, err
	}
	id, err := idOf(ctx, api, typed)
	if err != nil || strings.Contains(typed, "_") {
		return id, err
	}
	if strings.HasPrefix(id, string(centurion.PrefixSession)+"_") {
		s, err := api.Session(ctx, id)
		if err != nil {
			return "", err
		}
		if s.Metadata.Task != "" {
			return s.Metadata.Task, nil
		}
		return s.Metadata.Mission, nil
	}
	m, err := api.Mission(ctx, "")
	if err != nil {
		return id, nil
	}
	tasks, err := api.Tasks(ctx, m.ID)
	for _, t := range slices.Backward(tasks) {
		if strings.EqualFold(t.Item, typed) && (len(t.Landed) > 0 || t.Checkout != nil) {
			return t.ID, err
		}
	}
	return id, err
}

// refused says why nothing was touched, and what to do. A person has to act: the exit code says so.
func (c *cli) refused(r *takeover.Refusal) {
	c.code = exitBlocked
	fmt.Fprintf(c.err, "centurion: nothing was changed: %s\nnext: %s\n", oneLine(r.Why), oneLine(r.Next))
}

// undoLine tells a person how to take back what they have just done.
func (c *cli) undoLine(command string) {
	if command != "" {
		fmt.Fprintf(c.err, "undo: %s\n", command)
	}
}

// where says where a person's work stands.
func where(branch string) string {
	if branch == "" {
		return "the detached HEAD"
	}
	return branch
}

// commitName is a commit as people read it.
func commitName(id string) string {
	if id == "" {
		return "nothing"
	}
	return id[:min(len(id), 10)]
}
