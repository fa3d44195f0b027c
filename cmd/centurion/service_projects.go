package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/config"
	"centurion/server"
	"centurion/tui"
)

// everyMission is `centurion ps --all`.
func (c *cli) everyMission(ctx context.Context, dir, format string) error {
	if format != "text" && format != "json" {
		return badValue("format", format, []string{"text", "json"})
	}
	if dir != "" {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--all lists the missions of every project, --dir those of one",
			Hint: "leave one of them out"}
	}
	projects, err := c.projects(ctx)
	if err != nil {
		return err
	}
	all := []server.Mission{}
	for _, p := range projects {
		all = append(all, p.missions...)
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

// project is one that has state, with all its missions, newest first. There is at least one.
type project struct {
	place
	missions []server.Mission
}

// interrupted returns the missions that were being worked on and that nobody works on now.
func (p project) interrupted() []server.Mission {
	var found []server.Mission
	for _, m := range p.missions {
		if m.Reason == server.Interrupted {
			found = append(found, m)
		}
	}
	return found
}

// projects reads every project that has missions, without creating anything or taking anybody's lock. What is wrong with
// one is told, and the others are read.
func (c *cli) projects(ctx context.Context) ([]project, error) {
	state, err := config.StateDir(c.getenv)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(state, "projects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, stateError(state, err)
	}
	token, err := os.ReadFile(filepath.Join(state, "token"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // without one there is no host to let anybody in
		return nil, stateError(state, err)
	}
	var found []project
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p := project{place: place{state: filepath.Join(state, "projects", e.Name()), token: strings.TrimSpace(string(token))}}
		err := p.read(ctx)
		_, none := errors.AsType[errNoMission](err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case none:
		case err != nil:
			c.note(fmt.Sprintf("%s is passed over: %v", p.state, err))
		case len(p.missions) > 0:
			p.dir = p.missions[0].Directory
			found = append(found, p)
		}
	}
	return found, nil
}

// lookTime is how long the host of one project among many may take to answer.
const lookTime = 5 * time.Second

var errSilent = &centurion.Error{Kind: centurion.KindTimeout, Msg: "its host does not answer"}

func (p *project) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lookTime, errSilent)
	defer cancel()
	api, done, err := p.api(ctx)
	if err != nil {
		return err
	}
	p.missions, err = api.Missions(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, done())
}

// sayMoved tells a person whose project has no missions of those that it may have had elsewhere.
func (c *cli) sayMoved(ctx context.Context, dir string) {
	p, ws, err := c.locate(dir)
	if err != nil {
		return // what was asked for has been told
	}
	defer ws.Close()
	for _, old := range c.movedFrom(ctx, p.dir) {
		c.note(movedText(old))
	}
}

// movedFrom lists the directories that a project without missions may have been moved from: there is none any more where they
// were, which was of the same name or in the same place, and their missions are kept under the old path.
func (c *cli) movedFrom(ctx context.Context, dir string) (found []string) {
	all, err := c.projects(ctx)
	if err != nil {
		return nil // nothing can be told of them
	}
	for _, p := range all {
		_, err := os.Stat(p.dir)
		if errors.Is(err, os.ErrNotExist) && (filepath.Base(p.dir) == filepath.Base(dir) || filepath.Dir(p.dir) == filepath.Dir(dir)) {
			found = append(found, p.dir)
		}
	}
	return found[:min(len(found), maxMoved)]
}

// maxMoved is how many directories are named of which one may be meant.
const maxMoved = 3

func movedText(old string) string {
	return fmt.Sprintf("missions of %s are kept, which is not there any more; if this is it, they go on when it is moved back; see them with: centurion ps --all", old)
}
