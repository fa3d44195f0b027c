package session_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"centurion"
	"centurion/provider/scripted"
	"centurion/store"
)

// LOOP-64, LOOP-65: what a session has used is, after every answer and also after one that broke, the sum of what its messages say,
// in the process that runs it, in the store and after a restart.
func TestCountersStayTrue(t *testing.T) {
	use := func(in, cached, out, thought int) *scripted.Usage {
		return &scripted.Usage{Input: in, Cached: cached, Output: out, Reasoning: thought}
	}
	one, broken, two, three := call("noop"), scripted.Answer{Say: "I think that this is a long story, told in pieces.", Error: &scripted.Error{Status: 500, Stream: true}}, call("noop"), scripted.Answer{Say: "Done."}
	one.Usage, two.Usage, three.Usage = use(100, 0, 10, 0), use(200, 90, 20, 5), use(300, 200, 30, 0)
	r := newRig(t, inOrder(one, broken, two, three), tool{name: "noop"})
	var want centurion.Tokens
	check := func(messages int) {
		t.Helper()
		want = centurion.Tokens{}
		for _, m := range r.messages() {
			want = want.Plus(m.Usage.Tokens)
		}
		if r.Record().Tokens != want || r.record().Tokens != want || len(r.messages()) != messages {
			t.Errorf("%d messages have used %+v; the session says %+v, the store %+v", len(r.messages()), want, r.Record().Tokens, r.record().Tokens)
		}
	}
	r.fails(centurion.KindOverloaded)
	check(3)
	r.reopen()
	check(3)
	r.turn()
	check(5)
	r.reopen()
	check(5)
	if want.Input < 100+110+100 || want.Cache.Read != 290 || want.Reasoning != 5 {
		t.Errorf("in the end %+v", want)
	}
	if last := r.last().Time.Completed; r.record().Time.Updated != last || last <= r.record().Time.Created {
		t.Errorf("updated at %d, the last answer ended at %d", r.record().Time.Updated, last)
	}
}

// LOOP-15, LOOP-78: messages of one moment keep the order in which they were stored, whatever their ids are, in the store as in what
// the model is sent.
func TestEqualTimesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Say: "one"}))
		var ids []string
		for range 6 {
			ids = append(ids, centurion.NewID(centurion.PrefixMessage))
		}
		slices.Sort(ids)
		slices.Reverse(ids)
		at := r.messages()[0].Time.Created
		for i, id := range ids {
			err := r.store.Update(t.Context(), func(tx *store.Tx) error {
				m := centurion.Message{ID: id, SessionID: r.id, Role: centurion.RoleUser, Origin: centurion.OriginPerson, Agent: "worker", Model: ref,
					Time: centurion.MessageTime{Created: at}}
				if err := tx.PutMessage(&m); err != nil {
					return err
				}
				return tx.PutPart(&centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: r.id, MessageID: id, Type: centurion.PartText, Text: fmt.Sprint("said ", i)})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			r.reopen()
			var got []string
			for _, m := range r.messages()[1:] {
				if got = append(got, m.ID); m.Time.Created != at {
					t.Errorf("made at %d, not at %d", m.Time.Created, at)
				}
			}
			if !slices.Equal(got, ids) {
				t.Errorf("read in the order %q, stored as %q", got, ids)
			}
		}
		r.turn()
		if got, want := r.model.Requests()[0].Last(), goal+"\n\nsaid 0\n\nsaid 1\n\nsaid 2\n\nsaid 3\n\nsaid 4\n\nsaid 5"; got != want {
			t.Errorf("the model is sent %q", got)
		}
	})
}
