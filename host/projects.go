package host

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
	"centurion/plugin"
	"centurion/server"
)

// Project is a project with state, and all its missions, newest first. There is at least one.
type Project struct {
	Place
	Missions []server.Mission
}

// Interrupted returns the missions that were running and now have no host.
func (p Project) Interrupted() []server.Mission {
	return slices.DeleteFunc(slices.Clone(p.Missions), func(m server.Mission) bool { return m.Reason != server.Interrupted })
}

// Projects reads every project that has missions. It creates nothing and takes no lock. note gets the reason why a project cannot be
// read.
func Projects(ctx context.Context, getenv func(string) string, note func(string)) ([]Project, error) {
	state, err := config.StateDir(getenv)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(state, "projects"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, StateError(state, err)
	}
	token, err := os.ReadFile(filepath.Join(state, "token"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // without one there is no host to grant access
		return nil, StateError(state, err)
	}
	var found []Project
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		p := Project{Place: Place{State: filepath.Join(state, "projects", e.Name()), Token: strings.TrimSpace(string(token))}}
		err := p.read(ctx)
		_, none := errors.AsType[NoMissionError](err)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case none:
		case err != nil:
			note(fmt.Sprintf("%s is passed over: %v", p.State, err))
		case len(p.Missions) > 0:
			p.Dir = p.Missions[0].Directory
			found = append(found, p)
		}
	}
	return found, nil
}

// ReadTimeout is how long the host of one of many projects may take to answer.
const ReadTimeout = 5 * time.Second

var errSilent = &centurion.Error{Kind: centurion.KindTimeout, Msg: "its host does not answer"}

func (p *Project) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, ReadTimeout, errSilent)
	defer cancel()
	api, done, err := p.API(ctx)
	if err != nil {
		return err
	}
	p.Missions, err = api.Missions(ctx)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(err, done())
}

// MovedFrom lists the directories from which a project without missions may have been moved: they are gone, had the same name or
// parent, and their missions are stored under the old path.
func MovedFrom(ctx context.Context, dir string, getenv func(string) string, note func(string)) (found []string) {
	all, err := Projects(ctx, getenv, note)
	if err != nil {
		return nil // nothing to compare with
	}
	for _, p := range all {
		_, err := os.Stat(p.Dir)
		if errors.Is(err, os.ErrNotExist) && (filepath.Base(p.Dir) == filepath.Base(dir) || filepath.Dir(p.Dir) == filepath.Dir(dir)) {
			found = append(found, p.Dir)
		}
	}
	return found[:min(len(found), maxMoved)]
}

// maxMoved is how many candidates for a moved project are listed.
const maxMoved = 3

// NeedsPlugin says why the package of a plugin has to stay installed: a project with missions whose configuration names it, trusted or not,
// or cannot be read. It is "" if it need not.
func NeedsPlugin(ctx context.Context, name string, getenv func(string) string, note func(string)) (why string, err error) {
	all, err := Projects(ctx, getenv, note)
	for _, p := range all {
		if _, err := os.Stat(p.Dir); err != nil {
			continue // it is gone
		}
		cfg, err := config.Load(config.Options{Dir: p.Dir, Env: getenv})
		if err != nil {
			return fmt.Sprintf("the configuration of %s cannot be read: %v", p.Dir, err), nil
		}
		if slices.ContainsFunc(cfg.PluginEntries(), func(e config.PluginEntry) bool { n, _, _ := plugin.Package(e.Spec); return n == name }) {
			return p.Dir + " names it, too", nil
		}
	}
	return "", err
}
