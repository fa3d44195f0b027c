package session_test

import (
	"encoding/json"

	"pgregory.net/rapid"

	"centurion"
	"centurion/session"
	"centurion/store"
)

// behind is what a session has behind it when films are played to it.
type behind struct {
	answers int      // in its history
	due     []string // the calls of those that every request has to bring
	told    []string // what it has to bring in the person's name
}

// What a prologue says, and how a request tells it.
const (
	firstLook  = "Look at this."
	nextLook   = "And at this."
	imageName  = "[image a.png, 8×8]"
	summary    = "It was looked at."
	summarized = "<summary>\nYour conversation became too long. What came after the message above and before what follows is left out; " +
		"this stands for it:\n\n" + summary + "\n</summary>"
)

// prologue gives a session something that came before: files of a person and of a tool, and a compaction that keeps all, a part
// or nothing of it.
func (p *stage) prologue(t *rapid.T, id string) (b behind) {
	kind := rapid.SampledFrom([]string{"none", "files", "tail", "no tail"}).Draw(t, "what came before")
	if kind == "none" {
		return behind{told: []string{goal}}
	}
	shot := picture(p.t, "a.png", 8, 8, 1)
	rec, err := p.store.Session(p.t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	err = p.store.Update(p.t.Context(), func(tx *store.Tx) error {
		put := func(m centurion.Message, parts ...centurion.Part) error {
			m.ID, m.SessionID, m.Agent, m.Model = centurion.NewID(centurion.PrefixMessage), id, rec.Agent, ref
			if m.Role == "" {
				m.Role = centurion.RoleAssistant
			}
			if err := tx.PutMessage(&m); err != nil {
				return err
			}
			for _, c := range parts {
				c.ID, c.SessionID, c.MessageID = centurion.NewID(centurion.PrefixPart), id, m.ID
				if err := tx.PutPart(&c); err != nil {
					return err
				}
			}
			return nil
		}
		called := func(callID string) centurion.Part {
			return centurion.Part{Type: centurion.PartTool, CallID: callID, Tool: "camera", State: &centurion.ToolState{Status: centurion.ToolCompleted,
				Input: json.RawMessage(`{}`), Output: "shot", Attachments: []centurion.Part{centurion.FilePart(id, "", shot)}}}
		}
		b = behind{answers: 2, due: []string{"camera", "camera"}, told: []string{goal, firstLook + "\n\n" + imageName}}
		if err := put(centurion.Message{Finish: centurion.FinishToolCalls}, called("old_1")); err != nil {
			return err
		}
		tail, err := session.SayParts(tx, &rec, centurion.OriginPerson, "", session.Texts(firstLook, shot))
		if err != nil {
			return err
		}
		if err := put(centurion.Message{Finish: centurion.FinishToolCalls}, called("old_2")); err != nil || kind == "files" {
			return err
		}
		c := &centurion.Compaction{Auto: true}
		b = behind{answers: 3, told: []string{goal, summarized}}
		if kind == "tail" {
			c.Tail, b.due, b.told = tail.ID, []string{"camera"}, append(b.told, firstLook+"\n\n"+imageName)
		}
		b.told = append(b.told, nextLook+"\n\n"+imageName)
		if err := put(centurion.Message{Role: centurion.RoleUser, Origin: centurion.OriginHost}, centurion.Part{Type: centurion.PartCompaction, Compaction: c}); err != nil {
			return err
		}
		if err := put(centurion.Message{Summary: true, Finish: centurion.FinishStop}, centurion.Part{Type: centurion.PartText, Text: summary}); err != nil {
			return err
		}
		_, err = session.SayParts(tx, &rec, centurion.OriginPerson, "", session.Texts(nextLook, shot))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
