package session

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
)

// arrivedMessage is the output of [centurion.HookMessage].
type arrivedMessage struct {
	Message centurion.Message `json:"message"`
	Parts   []centurion.Part  `json:"parts"`
}

// maxArrived limits the texts that plugins may make of one message, in bytes: as much as a person may write.
const maxArrived = 256 << 10

// hookArrived lets plugins change what a person or another agent has written, before the first request that has it. Each message is passed
// once, also if that request is repeated.
func (s *Session) hookArrived(ctx context.Context) error {
	if s.cfg.Hooks == nil || !s.cfg.Hooks.Has(centurion.HookMessage) {
		return nil
	}
	from := len(s.history)
	for from > 0 && s.history[from-1].Role == centurion.RoleUser {
		from--
	}
	for i := from; i < len(s.history); i++ {
		m := s.history[i]
		if m.Heard || m.Origin == centurion.OriginHost || pointer(&m) != nil {
			continue
		}
		in := s.hookInput()
		in.Message = m.ID
		out, by, err := centurion.RunHook(ctx, s.cfg.Hooks, centurion.HookMessage, in, arrivedMessage{m, m.Parts})
		if cause := ended(ctx); cause != nil {
			return cause
		}
		m.Heard = true
		parts, usable := rewritten(&m, out.Parts)
		changed := err == nil && len(by) > 0 && usable
		err = s.update(ctx, func(tx *store.Tx) error {
			if !changed {
				return tx.PutMessage(&m)
			}
			for j := range parts {
				parts[j].Text = tx.Redacted(parts[j].Text)
			}
			m.Parts = parts
			if err := putMessage(tx, &m); err != nil {
				return err
			}
			return Acted(tx, &s.rec, centurion.HookMessage, by, m.ID)
		})
		if err != nil {
			return err
		}
		s.history[i] = m
	}
	return nil
}

// rewritten returns the parts of a message with the texts that plugins want, the new ones at the end. What they left out no model gets. It
// reports false if they left no text, or too much.
func rewritten(m *centurion.Message, want []centurion.Part) (parts []centurion.Part, usable bool) {
	size := 0
	for _, p := range m.Parts {
		i := slices.IndexFunc(want, func(w centurion.Part) bool { return w.ID == p.ID })
		switch {
		case p.Type != centurion.PartText:
		case i < 0:
			p.Ignored = true
		default:
			p.Text, p.Ignored = want[i].Text, want[i].Ignored
		}
		parts = append(parts, p)
	}
	for _, w := range want {
		if w.Type == centurion.PartText && !slices.ContainsFunc(m.Parts, func(p centurion.Part) bool { return p.ID == w.ID }) {
			p := newPart(m, centurion.PartText)
			p.Text, p.Synthetic = w.Text, w.Synthetic
			parts = append(parts, p)
		}
	}
	for _, p := range parts {
		size += len(p.Text)
	}
	now := *m
	now.Parts = parts
	return parts, size <= maxArrived && strings.TrimSpace(now.Text()) != ""
}
