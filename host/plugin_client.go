package host

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/server"
	"centurion/server/opencode"
	v1 "centurion/server/opencode/v1"
	"centurion/text"
)

const (
	maxBegun  = 100         // missions that plugins begin in one host: each has the limits of a mission, and its costs
	showEvery = time.Second // the least time between two notices of plugins
)

// pluginProject is the project as its plugins see it: OpenCode's routes, without what a person alone may do, and OpenCode's events.
func (h *Host) pluginProject() *v1.Project {
	p := &v1.Project{Directory: h.workspace.Dir(), State: h.State, Version: h.how.Version, API: func() server.API { return h.api }, Files: h.workspace,
		Note: func(string) {}, Show: h.showForPlugins(), All: &opencode.Hub{},
		Follow: func(ctx context.Context, q server.EventQuery) iter.Seq2[centurion.Event, error] {
			return h.api.Events(ctx, q)
		}}
	none := &centurion.Error{Op: "plugin", Kind: centurion.KindConfig, Msg: "this host begins no missions"}
	p.Begin = func(context.Context, v1.Begin) (server.Mission, error) { return server.Mission{}, none }
	p.Catalog = func(context.Context) (v1.Catalog, error) { return v1.Catalog{}, none }
	p.Expand = func(context.Context, string, string) (v1.Begin, error) { return v1.Begin{}, none }
	if h.how.Front != nil {
		h.how.Front(p)
	}
	begin := p.Begin
	var begun atomic.Int32
	p.Begin = func(ctx context.Context, b v1.Begin) (server.Mission, error) {
		if begun.Add(1) > maxBegun {
			return server.Mission{}, &centurion.Error{Op: "plugin", Kind: centurion.KindBudget, Msg: "plugins have begun " + centurion.Count(maxBegun, "mission") + " here, and begin no more"}
		}
		m, err := begin(ctx, b)
		if err == nil {
			h.mu.Lock()
			h.runs.plugins[m.ID] = true
			h.mu.Unlock()
		}
		return m, err
	}
	return p
}

// showForPlugins returns what notes a plugin's notice in the running missions, unless one came just before.
func (h *Host) showForPlugins() func(title, message, variant string) {
	var last atomic.Int64
	return func(title, message, _ string) {
		now, was := time.Now().UnixNano(), last.Load()
		if now-was >= int64(showEvery) && last.CompareAndSwap(was, now) {
			h.tell("plugin: " + text.Clean(centurion.Clip(strings.Join(text.Filled(title, message), ": "), 300)))
		}
	}
}

// follow keeps the project of the plugins up to date until they are closed. It is needed for requests and events, and not before.
func (p *Plugins) follow() {
	p.following.Do(func() {
		p.group.Go("project of plugins", func() error {
			_ = p.project.Run(p.life) // the plugins miss what comes
			return nil
		})
	})
}

// serve answers what plugins fetch.
func (p *Plugins) serve() http.Handler {
	if p.project == nil {
		return nil
	}
	own := p.project.PluginHandler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.follow()
		own.ServeHTTP(w, r)
	})
}

// tellEvents tells what happens in the project by OpenCode's events, if a plugin wants them. Of a reader that is too slow some are lost.
func (p *Plugins) tellEvents() error {
	if p.settle(p.life, p.host) != nil || !p.host.Has("event") {
		return nil
	}
	p.follow()
	for reader := p.project.All.Reader(); ; {
		text, err := reader.Next(p.life)
		if errors.Is(err, opencode.ErrBehind) {
			reader = p.project.All.Reader()
			continue
		}
		if err != nil {
			return nil
		}
		var e struct {
			Payload json.RawMessage `json:"payload"`
		}
		if json.Unmarshal(text, &e) == nil {
			p.host.Event(e.Payload)
		}
	}
}
