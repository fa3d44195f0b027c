package server_test

import (
	"testing"

	"centurion"
)

// A client asks for a session's history to be shortened; what is wrong about it comes back with its kind.
func TestCompact(t *testing.T) {
	p, _ := hosting(t)
	c := connect(t, p.local)
	if err := c.Compact(t.Context(), p.session.ID[:len(p.session.ID)-3]); err != nil {
		t.Fatal(err)
	}
	if rec, err := p.store.Session(t.Context(), p.session.ID); err != nil || !rec.Metadata.Compact {
		t.Errorf("it is recorded as %v, %v", rec.Metadata.Compact, err)
	}
	if err := c.Compact(t.Context(), "ses_none"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("a session that is not there: %v", err)
	}
	p.local.Host = nil
	if err := c.Compact(t.Context(), p.session.ID); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
		t.Errorf("without a host: %v", err)
	}
}
