package main

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"centurion/host"
	"centurion/report"
	"centurion/server"
	"centurion/server/page"
	"centurion/tui"
)

// page is the page of the open projects, which stay open while it is asked for.
func (s *serving) page(token string) *page.Site {
	return &page.Site{Token: token, Style: report.Style(), Projects: func(ctx context.Context) (all []*page.Project, done func()) {
		var held []func()
		for _, open := range s.projects.opened() {
			p, done, err := s.projects.use(ctx, open.conn.Workspace.Dir())
			if err != nil {
				continue // it is about to be closed
			}
			held = append(held, done)
			if _, err := p.hostChanged(ctx, p.conn.API()); err != nil {
				s.note("the host of " + p.conn.Workspace.Dir() + " is gone: " + err.Error()) // the page says so, too
			}
			all = append(all, &page.Project{Directory: p.conn.Workspace.Dir(), API: p.conn.API, Follow: p.follow, Tell: p.tell})
		}
		slices.SortFunc(all, func(a, b *page.Project) int { return strings.Compare(a.Directory, b.Directory) })
		return all, func() {
			for _, done := range held {
				done()
			}
		}
	}}
}

// logLines limits the log on the page; `centurion logs` has all of it.
const logLines = 300

// tell is the report of a mission, and its log.
func (p *served) tell(ctx context.Context, mission string) (t page.Told, err error) {
	v := &host.View{API: p.conn.API(), Place: p.conn.Place, Workspace: p.conn.Workspace}
	r, err := reportOf(ctx, v, mission)
	if err != nil {
		return t, err
	}
	parts, err := r.Parts()
	for _, part := range parts {
		t.Parts = append(t.Parts, page.Part(part))
	}
	if err != nil {
		return t, err
	}
	var b bytes.Buffer
	err = tui.RunPlain(ctx, &b, v.API.Events(ctx, server.EventQuery{Mission: mission}))
	lines := slices.Collect(strings.Lines(b.String()))
	t.Log = strings.Join(lines[max(0, len(lines)-logLines):], "")
	return t, err
}
