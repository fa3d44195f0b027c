package server

import (
	"context"
	"strings"

	"centurion"
	"centurion/orchestrator/mail"
)

// Send sends a message to an agent. Ids may be unique prefixes.
func (l *Local) Send(ctx context.Context, p mail.Post) (mail.Posted, error) {
	if l.Host == nil {
		return mail.Posted{}, notRunning("send")
	}
	p, err := l.addressed(ctx, p)
	if err != nil {
		return mail.Posted{}, err
	}
	got, err := l.Host.Mail.Send(ctx, p)
	if err != nil || got.Compact || got.Status != centurion.MissionBlocked && !p.Resume || p.NoReply || got.Working || got.Task != "" || l.Work == nil {
		return got, err
	}
	if err := l.Work.Launch(got.Mission); err != nil { // the message is the awaited answer, or is to have one
		return got, err
	}
	got.Working = true
	return got, nil
}

// addressed completes the ids of a message.
func (l *Local) addressed(ctx context.Context, p mail.Post) (mail.Post, error) {
	var err error
	switch kind, _, _ := strings.Cut(p.To, "_"); centurion.Prefix(kind) {
	case centurion.PrefixTask:
		p.To, err = l.Store.ResolveTask(ctx, p.To)
	case centurion.PrefixSession:
		p.To, err = l.Store.ResolveSession(ctx, p.To)
	case centurion.PrefixMission:
		p.To, err = l.Store.ResolveMission(ctx, p.To)
	default:
		var m centurion.Mission
		m, err = l.mission(ctx, p.Mission)
		p.Mission = m.ID
	}
	return p, err
}
