package session_test

import (
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/session"
	"centurion/store"
)

// A person's message keeps its parts in order, and the id that its sender gave. The model gets the texts that are not ignored, apart by
// blank lines, and no file whose content is a text beside it.
func TestPartsOfAMessage(t *testing.T) {
	t.Parallel()
	st := openStore(t, filepath.Join(t.TempDir(), "state.db"))
	rec := session.New(centurion.Session{Agent: "assistant"}, centurion.Now())
	parts := []centurion.Part{{Type: centurion.PartText, Text: "one"}, {Type: centurion.PartText, Text: "unseen", Ignored: true},
		{Type: centurion.PartText, Text: "File a.md:\n\ntext", Synthetic: true}, {Type: centurion.PartFile, File: &centurion.File{Mime: centurion.MimeText, Name: "a.md", URL: "file:///a.md"}},
		{Type: centurion.PartText, Text: "\n\n---\ntwo"}, {Type: centurion.PartFile, File: &centurion.File{Mime: centurion.MimePDF, Name: "b.pdf", Data: []byte("%PDF-1.4\n")}}}
	say := func(id string) error {
		return st.Update(t.Context(), func(tx *store.Tx) error {
			_, err := session.SayParts(tx, &rec, centurion.OriginPerson, id, parts)
			return err
		})
	}
	if err := say("msg_mine"); err != nil {
		t.Fatal(err)
	}
	if err := say("msg_mine"); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("the id of another message: %v", err)
	}
	m, err := st.Message(t.Context(), rec.ID, "msg_mine")
	if err != nil || len(m.Parts) != len(parts) {
		t.Fatalf("%+v: %v", m, err)
	}
	for i, part := range m.Parts {
		if part.Type != parts[i].Type || part.Text != parts[i].Text || part.Ignored != parts[i].Ignored || part.Synthetic != parts[i].Synthetic {
			t.Errorf("part %d is %+v", i, part)
		}
	}
	sent := session.History([]centurion.Message{m})
	if want := "one\n\nFile a.md:\n\ntext\n\n---\ntwo\n\n[PDF b.pdf]"; sent[0].Text != want || len(sent[0].Files) != 1 {
		t.Errorf("sent %q with %d files, want %q", sent[0].Text, len(sent[0].Files), want)
	}
	all, err := st.Events(t.Context(), store.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.Type == centurion.EventMessageCreated && strings.Contains(string(e.Data), "msg_mine") && strings.Contains(string(e.Data), "File a.md") {
			t.Errorf("what the host has added is told as the person's: %s", e.Data)
		}
	}
}
