package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/host"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/tui"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// startWith starts a mission. On a terminal it first asks whether to carry out a plan that no mission owns. Otherwise such a plan is put
// aside, and a note says where.
func (c *runner) startWith(ctx context.Context, conn *host.Connection, goal string, opts centurion.MissionOptions) (server.Mission, error) {
	if opts.Plan == "" && c.f.profile == agents.ProfileMission && c.f.format != "json" && c.live() {
		var err error
		if opts.Plan, err = c.askAdopt(ctx, conn); err != nil {
			return server.Mission{}, err
		}
	}
	m, err := host.Call(ctx, conn, func(api server.API) (server.Mission, error) { return api.Start(ctx, goal, opts) })
	if err == nil && m.PutAside != "" {
		c.note(orchestrator.PutAsideNote(m.Todo, m.PutAside))
	}
	return m, err
}

// askAdopt asks whether the plan that lies in the project is to be carried out, unless there is none or a mission owns it. It returns the
// plan's file if it is.
func (c *runner) askAdopt(ctx context.Context, conn *host.Connection) (string, error) {
	b, _, err := conn.Workspace.ReadFile(workspace.TodoPath, 0)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return "", nil // the start of the mission reports an unreadable plan
	}
	all, err := host.Call(ctx, conn, func(api server.API) ([]server.Mission, error) { return api.Missions(ctx) })
	if err != nil {
		return "", err
	}
	if i := slices.IndexFunc(all, func(m server.Mission) bool { return m.Todo == workspace.TodoPath }); i >= 0 && all[i].HasPlan {
		return "", nil
	}
	what := "it cannot be read as a plan"
	if doc, err := todo.Parse(b); err == nil {
		what = centurion.Count(doc.Counts().Total(), "item")
	}
	if _, err := fmt.Fprintf(c.out, "No mission of this project wrote the plan in %s (%s).\n", workspace.TodoPath, what); err != nil {
		return "", err
	}
	key, err := c.choose(ctx, "carry it out? (y/n/Q, n puts it aside, q quits)", "ynq", "q")
	switch {
	case err != nil || key == "n":
		return "", err
	case key == "y":
		return workspace.TodoPath, nil
	}
	return "", &centurion.Error{Op: "start mission", Kind: centurion.KindInterrupted, Msg: "you quit", Hint: "look at the plan in " + workspace.TodoPath + ", then run it again"}
}

// planFile returns the path of a mission's plan at this moment: a newer mission of the project may take the name.
func planFile(api missionAPI, id string) tui.PlanFile {
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
