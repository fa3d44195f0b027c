package orchestrator

import (
	"context"
	"strings"

	"centurion"
	"centurion/session"
)

// CompactWord is the text of a [Post] that is meant for the host: it is not told to the agent, whose history is shortened
// before its next request instead.
const CompactWord = "/compact"

// wantsCompact reports whether a message is [CompactWord]. The error has centurion.KindUsage for words behind it, which
// nobody would read.
func (p Post) wantsCompact() (bool, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(p.Text), " ")
	if word != CompactWord || p.Origin != centurion.OriginPerson {
		return false, nil
	}
	if rest != "" {
		return false, &centurion.Error{Op: "send", Kind: centurion.KindUsage, Msg: CompactWord + " takes no text behind it",
			Hint: "send " + CompactWord + " alone, and what the agent should know in a message of its own"}
	}
	return true, nil
}

// compactAt asks for the history of a message's receiver to be shortened.
func (h *Host) compactAt(ctx context.Context, p Post, to receiver) (Posted, error) {
	m, err := h.cfg.Store.Mission(ctx, to.mission)
	if err != nil {
		return Posted{}, err
	}
	got := Posted{ID: p.ID, Mission: m.ID, Status: m.Status, Session: to.session, Task: to.task, Compact: true}
	if to.task != "" {
		t, err := h.cfg.Store.Task(ctx, to.task)
		if err != nil {
			return got, err
		}
		got.Session, got.Agent, got.State, got.Reason = t.Session, t.Agent, t.Status, t.Reason
	}
	if got.Session == "" {
		return got, &centurion.Error{Op: "compact session", Kind: centurion.KindConflict, Msg: "task " + to.task + " has no conversation yet",
			Hint: "it begins with a short one; see: centurion tasks " + m.ID}
	}
	s, err := h.cfg.Store.Session(ctx, got.Session)
	if err != nil {
		return got, err
	}
	got.Agent, got.Address = s.Agent, s.Metadata.Address
	if !continues(m, got) { // what is written to it next is a next request
		if err := reachable(m, got); err != nil {
			return got, err
		}
	}
	got.Working = h.running(m.ID) != nil
	stored, err := h.cfg.Store.Messages(ctx, got.Session)
	if err != nil {
		return got, err
	}
	if got.Short = session.Short(stored); got.Short {
		return got, nil
	}
	return got, h.Compact(ctx, got.Session)
}
