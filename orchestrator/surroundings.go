package orchestrator

import (
	"cmp"
	"context"
	"strings"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/notes"
)

// surroundings are what stands around one conversation: an [agent.Around].
type surroundings struct {
	m     *mission
	c     *conversation
	notes *notes.Notebook
}

var _ agent.Around = (*surroundings)(nil)

// News tells which files others have changed too.
func (s *surroundings) News(ctx context.Context) ([]centurion.Message, error) {
	return s.m.claims.News(ctx, s.c)
}

// Seen says that what Status told of once was read.
func (s *surroundings) Seen() {
	s.m.commands.Heard(s.c.ID())
	s.notes.Heard()
}

// Status is what the model should know right now: for those who plan, where the plan stands; for a worker, who else is
// at work on what, and which of its background commands have ended.
func (s *surroundings) Status() string {
	c, m := s.c, s.m
	if c.Task == nil {
		return strings.TrimSpace(strings.TrimRight(m.brief.Status(&m.claims.Registry, m.loop.HasClaimed(), m.reserves)+"\n"+m.claims.WhoElse("", c.ID())+s.notes.Overlong(), "\n") + "\n" + m.commands.News(c.ID()))
	}
	var b strings.Builder
	b.WriteString(c.Task.Left())
	b.WriteString(m.claims.WhoElse(c.Holder, c.ID()))
	if long := s.notes.Overlong(); long != "" {
		b.WriteString(long + "\n")
	}
	b.WriteString(m.commands.News(c.ID()))
	return strings.TrimSpace(b.String())
}

// startable says, for a model, what the mission's own agent could do now instead of waiting for its tasks; it is empty if that is nothing.
func (m *mission) startable(ctx context.Context) (string, error) {
	v, err := m.judge.Look(ctx)
	if err = cmp.Or(err, v.Unread); err != nil || v.Plan.Doc == nil {
		return "", err
	}
	return brief.StandingOf(v, &m.claims.Registry).Startable(), nil
}
