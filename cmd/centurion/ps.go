package main

import (
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/host"
	"centurion/server"
	"centurion/tui"
)

// everyMission is `centurion ps --all`.
func (c *cli) everyMission(ctx context.Context, dir, format string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	if dir != "" {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--all lists the missions of every project, --dir those of one",
			Hint: "leave one of them out"}
	}
	projects, err := host.Projects(ctx, c.getenv, c.note)
	if err != nil {
		return err
	}
	all := []server.Mission{}
	for _, p := range projects {
		all = append(all, p.Missions...)
	}
	slices.SortStableFunc(all, newestFirst)
	if format == "json" {
		return writeJSON(c.out, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.out, "No missions in any project yet. Start one with: centurion run \"GOAL\"")
		return err
	}
	return c.printPlaced(all)
}

func newestFirst(a, b server.Mission) int { return b.Started.Compare(a.Started.Time) }

// printPlaced prints missions with their directories.
func (c *cli) printPlaced(all []server.Mission) error {
	for _, m := range all {
		if err := c.printMissions([]server.Mission{m}); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(c.out, "  "+tui.Escape(m.Directory)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) printMissions(all []server.Mission) error {
	o := c.showOptions()
	o.NeedsYou = map[string]bool{}
	nouns := make([]centurion.Mission, len(all))
	for i, m := range all {
		nouns[i], o.NeedsYou[m.ID] = m.Noun(), m.Asks > 0
	}
	return tui.Missions(c.out, nouns, o)
}

// sayMoved tells a person whose project has no missions of those that it may have had elsewhere.
func (c *cli) sayMoved(ctx context.Context, dir string) {
	p, ws, err := c.locate(dir)
	if err != nil {
		return // what was asked for has been told
	}
	defer ws.Close()
	for _, old := range host.MovedFrom(ctx, p.Dir, c.getenv, c.note) {
		c.note(movedText(old))
	}
}

func movedText(old string) string {
	return fmt.Sprintf("missions of %s are kept, which is not there any more; if this is it, they go on when it is moved back; see them with: centurion ps --all", old)
}
