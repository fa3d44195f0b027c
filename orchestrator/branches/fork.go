package branches

import (
	"context"
	"errors"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
)

// Forked is the result of [Branches.Fork].
type Forked struct {
	Mission  string               `json:"mission"` // the new one
	Session  string               `json:"session"` // its first session, the copy
	Agent    string               `json:"agent"`
	Todo     string               `json:"todo"`     // path of its plan, relative to the project
	Messages int                  `json:"messages"` // number of copied messages
	From     centurion.ForkedFrom `json:"forked_from"`
}

// Fork copies the line of a conversation up to a message into a new, paused mission, which continues when it is resumed, after reading
// the messages sent to it meanwhile. at is a reference as for [Branches.Rewind]; empty means the newest message. The original is not
// disturbed: the copy has the state stored at that moment, and when it continues, calls without a result are answered as interrupted.
// Only the project's files are shared: messages and parts get new ids, the plan is a copy under the new mission's name, and the cost of
// copied messages is not counted again. The copy is created as a whole or not at all.
//
// The error has centurion.KindUsage for an ambiguous id and KindNotFound for a missing message.
func (b *Branches) Fork(ctx context.Context, of, at string) (Forked, error) {
	rec, err := b.Store.Session(ctx, of)
	if err != nil {
		return Forked{}, err
	}
	from, err := b.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return Forked{}, err
	}
	m := Copy(from, rec.Agent)
	if m.Todo, m.HadItems, err = plan.Copy(ctx, b.Workspace, from.Todo, m.ID); err != nil {
		return Forked{}, err
	}
	if !m.HadItems {
		m.Accepted, m.Approved = false, nil
	}
	var f Forked
	err = b.Store.Update(ctx, func(tx *store.Tx) (err error) {
		f, err = Write(tx, m, of, at)
		return err
	})
	if err != nil {
		if rerr := b.Workspace.Remove(m.Todo); centurion.KindOf(rerr) != centurion.KindNotFound {
			err = errors.Join(err, rerr)
		}
		return Forked{}, err
	}
	return f, nil
}

// Copy describes the mission for a copied conversation.
func Copy(from centurion.Mission, agent string) centurion.Mission {
	now := centurion.Now()
	m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Goal: from.Goal, Directory: from.Directory, Isolation: from.Isolation, Base: from.Base,
		Level: from.Level, LevelFrom: from.LevelFrom, Options: from.Options, Accepted: from.Accepted, Approved: from.Approved, Adopted: from.Adopted,
		Started: now, Updated: now}
	m.Options.Agent, m.Options.Request, m.Options.Detached, m.Options.Plan = agent, "", false, ""
	return m
}

// Write writes the line of a session up to a message into m, within tx.
func Write(tx *store.Tx, m centurion.Mission, of, at string) (Forked, error) {
	t, err := tx.Tree(of)
	if err != nil {
		return Forked{}, err
	}
	leaf, err := messageOf(t, at)
	if err != nil {
		return Forked{}, err
	}
	line := t.Line(leaf)
	if len(line) == 0 {
		return Forked{}, noMessages("fork", of)
	}
	origin := centurion.ForkedFrom{Mission: t.Session.Metadata.Mission, Session: of, Message: leaf}
	rec, messages := copyOf(t.Session, line, m.ID, origin)
	m.Session = rec.ID
	if err := tx.PutMission(&m); err != nil {
		return Forked{}, err
	}
	m.Status = centurion.MissionPlanning
	if err := tx.PutMission(&m); err != nil {
		return Forked{}, err
	}
	fact := func(t centurion.EventType, data any) error {
		_, err := tx.Append(centurion.Event{Type: t, Mission: m.ID, Session: rec.ID, Data: event.Data(data)})
		return err
	}
	err = errors.Join(fact(centurion.EventMissionStarted, state.Living(m)), tx.PutSession(&rec), fact(centurion.EventSessionCreated,
		map[string]any{"agent": rec.Agent, "address": rec.Metadata.Address, "title": rec.Title, "attempt": 0}))
	if err != nil {
		return Forked{}, err
	}
	for i := range messages {
		if err := putWhole(tx, &messages[i]); err != nil {
			return Forked{}, err
		}
	}
	if err := fact(centurion.EventForked, event.ForkedData{Mission: origin.Mission, Session: of, Message: leaf, Messages: len(line)}); err != nil {
		return Forked{}, err
	}
	_, err = state.MoveMission(tx, m.ID, centurion.MissionPaused, "forked from "+of, nil)
	return Forked{Mission: m.ID, Session: rec.ID, Agent: rec.Agent, Todo: m.Todo, Messages: len(line), From: origin}, err
}

func putWhole(tx *store.Tx, m *centurion.Message) error {
	if err := tx.PutMessage(m); err != nil {
		return err
	}
	for i := range m.Parts {
		if err := tx.PutPart(&m.Parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// copyOf copies a line into a new session, with new ids everywhere.
func copyOf(of centurion.Session, line []centurion.Message, mission string, from centurion.ForkedFrom) (centurion.Session, []centurion.Message) {
	meta := centurion.SessionMeta{Mission: mission, Address: "0/", System: of.Metadata.System, Tools: of.Metadata.Tools, AgentFile: of.Metadata.AgentFile,
		Roster: of.Metadata.Roster, Offered: of.Metadata.Offered, Skills: of.Metadata.Skills, External: of.Metadata.External, Plugged: of.Metadata.Plugged, Given: of.Metadata.Given, OwnModel: of.Metadata.OwnModel, ForkedFrom: &from}
	rec := session.New(centurion.Session{Slug: "0", ProjectID: of.ProjectID, Directory: of.Directory, Title: of.Title, Agent: of.Agent,
		Model: of.Model, Version: of.Version, Metadata: meta}, centurion.Now())
	ids := map[string]string{}
	for _, m := range line {
		ids[m.ID] = centurion.NewID(centurion.PrefixMessage)
	}
	for _, name := range sortedMarks(of) {
		if id := ids[of.Metadata.Marks[name]]; id != "" {
			if rec.Metadata.Marks == nil {
				rec.Metadata.Marks = map[string]string{}
			}
			rec.Metadata.Marks[name] = id
		}
	}
	for _, m := range line { // a compaction refers to parts
		for _, p := range m.Parts {
			ids[p.ID] = centurion.NewID(centurion.PrefixPart)
		}
	}
	prev := ""
	copied := make([]centurion.Message, 0, len(line))
	for _, m := range line {
		m.ID, m.SessionID, m.ParentID, m.Prev = ids[m.ID], rec.ID, ids[m.ParentID], prev
		m.Parts = copyParts(m, ids)
		prev = m.ID
		copied = append(copied, m)
	}
	return rec, copied
}

// copyParts returns the parts of a message with new ids. The message has its new ids already.
func copyParts(m centurion.Message, ids map[string]string) []centurion.Part {
	parts := make([]centurion.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		p.ID, p.SessionID, p.MessageID = ids[p.ID], m.SessionID, m.ID
		if p.Compaction != nil {
			c := *p.Compaction
			if c.Tail != "" {
				c.Tail = ids[c.Tail]
			}
			c.Clips = nil
			for part, n := range p.Compaction.Clips {
				if c.Clips == nil {
					c.Clips = map[string]int{}
				}
				c.Clips[ids[part]] = n
			}
			p.Compaction = &c
		}
		parts = append(parts, p)
	}
	return parts
}
