package session_test

import (
	"strings"
	"testing"

	"centurion"
)

// What a compaction has taken away does not stand in the conversation any more, nor does a read that it has cut.
func TestCallsThatStand(t *testing.T) {
	r := rigOf(t, &answerer{}, rounds(40, 1500))
	stand := func() (n int, last string) {
		for p := range r.Calls() {
			n, last = n+1, p.State.Output
		}
		return n, last
	}
	if n, last := stand(); n != 40 || !strings.HasPrefix(last, "result 40:") {
		t.Fatalf("%d calls stand, the last is %.20q", n, last)
	}
	r.cfg.Window = 16000
	r.reopen()
	r.turn()
	after, _ := stand()
	if d := r.compactions(); len(d) != 1 || after == 0 || after >= 40 {
		t.Fatalf("%d calls stand after %+v", after, d)
	}
	r.reopen()
	if n, last := stand(); n != after || !strings.HasPrefix(last, "result 40:") {
		t.Errorf("%d calls stand when it is opened anew, not %d; the last is %.20q", n, after, last)
	}

	r = rigOf(t, &answerer{}, func(p *past) error {
		p.tool = "read"
		return p.answer("one large", centurion.FinishToolCalls, 90_000)
	})
	r.cfg.Window = 16000
	r.reopen()
	r.turn()
	if n, _ := stand(); len(r.compactions()) != 1 || n != 0 {
		t.Errorf("%d reads stand whole that were cut: %+v", n, r.compactions())
	}
}
