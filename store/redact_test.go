package store

import (
	"strings"
	"testing"

	"centurion"
	"centurion/redact"
)

// S7: no row is written with a key, of whatever table, also where JSON escapes it; ids and numbers stay.
func TestRowsHaveNoKeys(t *testing.T) {
	const key = `zq7"<own>&key`
	s := openTemp(t)
	s.Redact(redact.New(redact.Key{Name: "OWN", Value: key}))
	err := s.Update(t.Context(), func(tx *Tx) error {
		if err := tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: "use " + key, Started: centurion.Now()}); err != nil {
			return err
		}
		if err := tx.PutPart(&centurion.Part{ID: "prt_1", MessageID: "msg_1", Type: centurion.PartTool, State: &centurion.ToolState{Status: centurion.ToolRunning, Input: []byte(`{"a":"zq7\"<own>&key","n":12345678}`)}}); err != nil {
			return err
		}
		if got := tx.Redacted(key); got != "[key OWN]" {
			t.Errorf("redacted: %s", got)
		}
		_, err := tx.Append(centurion.Event{Type: "x", Mission: "msn_1", Data: []byte(`{"text":"zq7\"\u003cown\u003e\u0026key"}`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Mission(t.Context(), "msn_1")
	if err != nil || m.Goal != "use [key OWN]" || m.Started.IsZero() {
		t.Errorf("mission %+v, %v", m, err)
	}
	var rows []string
	for _, table := range []*table{partTable, journalTable} {
		err := s.w.rows(table, "", func(r *row) error { rows = append(rows, string(r.data())); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	if all := strings.Join(rows, "\n"); strings.Contains(all, "own>") || !strings.Contains(all, `{"a":"[key OWN]","n":12345678}`) || !strings.Contains(all, `{"text":"[key OWN]"}`) {
		t.Errorf("rows %s", all)
	}
}
