package server_test

import (
	"bytes"
	"testing"

	"centurion"
	"centurion/orchestrator/mail"
)

// LOOP-13: as many files as a message may have come through the socket; other requests stay as small as they are.
func TestSendFiles(t *testing.T) {
	p, _ := hosting(t)
	c := connect(t, p.local)
	pdf := centurion.File{Mime: centurion.MimePDF, Name: "a.pdf", Path: "a.pdf", Data: append([]byte("%PDF-1.7\n"), bytes.Repeat([]byte("x"), 3<<20)...)}
	var files []centurion.File
	for range 6 {
		files = append(files, pdf)
	}
	got, err := c.Send(t.Context(), mail.Post{To: "0/", Text: "read them", Files: files})
	if err != nil || got.Session != p.session.ID {
		t.Fatalf("%+v, %v", got, err)
	}
	waiting, err := p.store.PendingDeliveries(t.Context(), p.session.ID)
	if err != nil || len(waiting) != 1 || len(waiting[0].Files) != 6 || !bytes.Equal(waiting[0].Files[5].Data, pdf.Data) {
		t.Errorf("%d deliveries, %v", len(waiting), err)
	}
	_, err = c.Prompt(t.Context(), mail.Post{To: p.session.ID, Text: "read it", Files: files[:1]})
	if centurion.KindOf(err) != centurion.KindConflict { // nobody works on the mission, which the host can only say if it has read the message
		t.Errorf("a message that waits for its answer: %v", err)
	}
	_, err = c.Send(t.Context(), mail.Post{To: "0/", Text: "one more", Files: append(files, pdf, pdf, pdf)})
	if centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("too much: %v", err)
	}
	if err := c.Answer(t.Context(), "x", string(make([]byte, 2<<20))); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("a long answer: %v", err)
	}
}
