package session_test

import (
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/session"
	"centurion/store"
)

// two is a conversation that rests: one message of a person, and its answer.
func two(p *past) error { return p.answer("It is built.", centurion.FinishStop) }

// shorten shortens the session of a rig while nobody works on it.
func (r *rig) shorten() error { return session.Shorten(r.t.Context(), r.cfg, r.id) }

// A person who waits for it gets a summary of a conversation that rests, of two messages and of many: what it costs counts, nothing that
// is not in it is left out, and the agent goes on with it.
func TestShorten(t *testing.T) {
	long := func(p *past) error {
		return errors.Join(rounds(30, 2000)(p), p.user(centurion.OriginPerson, "Is it fast?"), p.answer("It is.", centurion.FinishStop))
	}
	used := func(write func(*past) error) func(*past) error { // its tools and status take 19,000 tokens
		return func(p *past) error {
			p.usage.Tokens.Input = 20_000
			return write(p)
		}
	}
	for name, test := range map[string]struct {
		write    func(*past) error
		replaced int
		kept     int
		after    int64 // tokens of the next request, at least
	}{
		"two messages":    {two, 1, 0, 0},
		"many messages":   {long, 30, 2, 0},
		"one that waits":  {func(p *past) error { return errors.Join(two(p), p.user(centurion.OriginPerson, "Why?")) }, 1, 1, 0},
		"a pause":         {rounds(3, 200), 2, 1, 0},
		"a short pause":   {used(rounds(3, 1000)), 2, 1, 15_000},
		"with many tools": {used(two), 1, 0, 15_000},
	} {
		t.Run(name, func(t *testing.T) {
			model := &answerer{}
			r := rigOf(t, model, test.write)
			if err := r.shorten(); err != nil {
				t.Fatal(err)
			}
			d := r.compactions()
			if len(d) != 1 || d[0].Reason != event.CompactedAsked || d[0].Messages != test.replaced || d[0].Kept != test.kept || d[0].ByHost {
				t.Fatalf("%+v, want %d replaced and %d kept", d, test.replaced, test.kept)
			}
			if d[0].After < test.after {
				t.Errorf("its tools are forgotten: %+v", d[0])
			}
			if last := r.last(); !last.Summary || last.Finish != centurion.FinishStop || !strings.HasPrefix(last.Text(), "The work goes well.") {
				t.Errorf("the newest message is %+v", last)
			}
			if len(r.host.spent) != 1 || r.record().Tokens.Total() == 0 {
				t.Errorf("spent %+v, on record %+v", r.host.spent, r.record().Tokens)
			}
			r.reopen()
			r.say("next")
			r.turn()
			asked := model.asked[0].Messages
			if fault := valid(asked); fault != "" || !strings.Contains(asked[0].Text, goal) || !strings.Contains(asked[0].Text, "The work goes well.") {
				t.Errorf("%s in %+v", fault, asked)
			}
			if len(r.compactions()) != 1 {
				t.Error("shortened again")
			}
		})
	}
}

// What stands in the way is told to who waits, and nothing has changed: the agent goes on with the old history.
func TestShortenFails(t *testing.T) {
	refuses := &centurion.Error{Kind: centurion.KindRefusal, Msg: "no, I will not"}
	var r *rig
	writes := func(provider.Request) (string, error) {
		r.append(func(p *past) error { return p.user(centurion.OriginPerson, "One more thing.") })
		return "The work goes well.", nil
	}
	open := func(p *past) error {
		return errors.Join(two(p), p.tx.PutMessage(&centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: p.rec.ID, Role: centurion.RoleAssistant}))
	}
	for name, test := range map[string]struct {
		write   func(*past) error
		summary func(provider.Request) (string, error)
		kind    centurion.Kind
		says    string
		spent   int
		more    int // messages since
	}{
		"a model that fails":          {two, func(provider.Request) (string, error) { return "", refuses }, centurion.KindNoAnswer, "no, I will not", 0, 0},
		"a model that says nothing":   {two, func(provider.Request) (string, error) { return " \n", nil }, centurion.KindNoAnswer, "empty", 1, 0},
		"nothing to shorten":          {func(*past) error { return nil }, nil, centurion.KindConflict, "nothing to shorten", 0, 0},
		"somebody writes meanwhile":   {two, writes, centurion.KindConflict, "meanwhile", 1, 1},
		"an answer that is not whole": {open, nil, centurion.KindInternal, session.ErrUnended.Error(), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			model := &answerer{summary: test.summary}
			r = rigOf(t, model, func(*past) error { return nil })
			rec := r.record()
			if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return test.write(&past{tx: tx, rec: &rec}) }); err != nil {
				t.Fatal(err)
			}
			before := len(r.messages())
			err := r.shorten()
			if centurion.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v is %s, want %s and %q", err, centurion.KindOf(err), test.kind, test.says)
			}
			if errors.Is(err, session.ErrUnended) != (test.kind == centurion.KindInternal) {
				t.Errorf("whether it waits for its end: %v", err)
			}
			if n := len(r.messages()); n != before+test.more || len(r.compactions()) > 0 || len(r.host.spent) != test.spent {
				t.Errorf("%d messages, want %d; %+v; spent %+v", n, before, r.compactions(), r.host.spent)
			}
			model.summary = nil
			r.reopen()
			r.say("next")
			r.turn()
			if got := model.asked[0].Messages; valid(got) != "" || strings.Contains(got[0].Text, "<summary>") {
				t.Errorf("it goes on with %+v", got)
			}
		})
	}
}

// A process that dies while the summary is written leaves the old history, and one that dies after it the whole summary.
func TestShortenAndCrash(t *testing.T) {
	var during *rig
	model := &answerer{}
	r := rigOf(t, model, two)
	model.summary = func(provider.Request) (string, error) { during = r.crash(); return "The work goes well.", nil }
	if err := r.shorten(); err != nil {
		t.Fatal(err)
	}
	after := r.crash()
	model.summary = nil
	for it, want := range map[*rig]int{during: 2, after: 4} {
		if n := len(it.messages()); n != want || it.Due() {
			t.Errorf("%d messages, want %d; due: %v", n, want, it.Due())
		}
		if err := it.shorten(); (err == nil) != (it == during) {
			t.Errorf("shortened once more: %v", err)
		}
	}
}

// What was asked for while the agent had no turn is done at once, and once.
func TestShortenAsked(t *testing.T) {
	r := rigOf(t, &answerer{}, two)
	asked := true
	r.cfg.Asked = func() bool { was := asked; asked = false; return was }
	r.reopen()
	for range 2 {
		if err := r.ShortenAsked(t.Context()); err != nil || len(r.compactions()) != 1 || r.Due() {
			t.Errorf("%+v, due: %v, %v", r.compactions(), r.Due(), err)
		}
	}
}
