package main

import (
	"context"
	"os"
	"path/filepath"

	"centurion"
	"centurion/tui"
	"centurion/workspace/todo"
)

// planFile asks where the plan of a mission stands: a newer mission of the project takes its place.
func planFile(api shower, id string) tui.PlanFile {
	return func(ctx context.Context) (string, error) {
		m, err := api.Mission(ctx, id)
		if err == nil && m.Todo == "" {
			err = &centurion.Error{Op: "find plan", Kind: centurion.KindNotFound, Msg: "mission " + id + " has no plan file"}
		}
		return filepath.Join(m.Directory, filepath.FromSlash(m.Todo)), err
	}
}

// planReader reads the items of the plan in a file.
func planReader(file tui.PlanFile) tui.PlanReader {
	return func(ctx context.Context) ([]tui.Item, error) {
		path, err := file(ctx)
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, &centurion.Error{Op: "read plan", Kind: centurion.KindNotFound, Err: err}
		}
		doc, err := todo.Parse(b)
		if err != nil {
			return nil, err
		}
		var items []tui.Item
		for _, it := range doc.Items() {
			if !it.Group {
				items = append(items, tui.Item{ID: it.ID, Title: it.Title, Agent: it.Agent, After: it.After, Files: it.Files, Verify: it.Verify,
					Status: doc.Status(it.ID).String()})
			}
		}
		return items, nil
	}
}
