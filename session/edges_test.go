package session_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// spoken is a model without a wire that says the same each time. Then something happens.
type spoken struct {
	deltas []provider.Delta
	then   func()
}

func (s spoken) Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for _, d := range s.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if s.then != nil {
			s.then()
		}
	}
}

func text(s string) provider.Delta { return provider.Delta{Type: provider.Text, Text: s} }

func ends(finish string, tokens int64) provider.Delta {
	return provider.Delta{Type: provider.Done, Finish: finish, Tokens: centurion.Tokens{Input: tokens, Output: tokens}}
}

// An answer that is complete is kept and paid for, whoever is cancelled the moment after; so is what a summary cost, whether it
// was of use or not.
func TestCompleteAnswersAreKept(t *testing.T) {
	for name, tt := range map[string]struct {
		deltas  []provider.Delta
		compact bool
		check   func(t *testing.T, r *rig)
	}{
		"an answer": {[]provider.Delta{text("Good."), ends(centurion.FinishStop, 100)}, false, func(t *testing.T, r *rig) {
			if m := r.last(); m.Text() != "Good." || m.Finish != centurion.FinishStop || m.Usage.Tokens.Output != 100 {
				t.Errorf("stored: %q, %s, %+v", m.Text(), m.Finish, m.Usage)
			}
		}},
		"a summary": {[]provider.Delta{text("The work goes well."), ends(centurion.FinishStop, 100)}, true, func(t *testing.T, r *rig) {
			if len(r.compactions()) != 1 {
				t.Errorf("compactions: %+v", r.compactions())
			}
		}},
		"a summary that is refused": {[]provider.Delta{text("I"), ends(centurion.FinishFilter, 100)}, true, func(t *testing.T, r *rig) {
			if len(r.compactions()) != 0 {
				t.Errorf("compactions: %+v", r.compactions())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rigOf(t, nil, rounds(40, 3000))
				ctx, cancel := context.WithCancelCause(t.Context())
				r.cfg.Model = spoken{tt.deltas, func() { cancel(centurion.ErrCancelled) }}
				if tt.compact { // a summary is read no further than its end
					r.cfg.Model = spoken{tt.deltas, nil}
					r.cfg.Host = ending{r.host, func() { cancel(centurion.ErrCancelled) }}
				}
				r.reopen()
				var err error
				if tt.compact {
					err = r.Compact(ctx)
				} else {
					_, err = r.Turn(ctx)
				}
				if err != nil && centurion.KindOf(err) != centurion.KindCancelled {
					t.Error(err)
				}
				tt.check(t, r)
				if n := len(r.host.spent); n != 1 || r.host.spent[0].Tokens.Input != 100 {
					t.Errorf("spent: %+v", r.host.spent)
				}
				if got := r.record(); got.Tokens.Input != 100 || got.Cost == 0 || r.Record().Tokens.Input != 100 {
					t.Errorf("the session has cost %+v, %v; in memory %+v", got.Tokens, got.Cost, r.Record().Tokens)
				}
			})
		})
	}
}

// ending is a host in which something happens as soon as nothing is waited for any more, and before a wait.
type ending struct {
	*host
	then func()
}

func (e ending) Waiting(ctx context.Context, w *provider.Wait) error {
	e.then()
	return e.host.Waiting(ctx, w)
}

// What is reserved for a request is given free when it is over, however that ends, and bounds its answer.
func TestReservationEndsWithTheRequest(t *testing.T) {
	no := &centurion.Error{Kind: centurion.KindBudget, Msg: "spent"}
	for name, tt := range map[string]struct {
		answer  scripted.Answer
		refused error
		kind    centurion.Kind
		asked   int
	}{
		"an answer":  {scripted.Answer{Say: "Good."}, nil, "", 1},
		"calls":      {call("noop", "noop"), nil, "", 2},
		"half a one": {scripted.Answer{Say: "Good.", Finish: "content_filter"}, nil, centurion.KindRefusal, 1},
		"an error":   {scripted.Answer{Error: &scripted.Error{Status: 400, Message: "no"}}, nil, centurion.KindInvalidRequest, 1},
		"a refusal":  {scripted.Answer{}, no, centurion.KindBudget, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, inOrder(tt.answer), tool{name: "noop"})
			open, made := 0, 0
			r.cfg.Reserve = func(_ context.Context, n session.Need) (session.Cover, error) {
				if n.Input <= 0 || tt.refused != nil {
					return session.Cover{}, tt.refused
				}
				open, made = open+1, made+1
				return session.Cover{MaxOut: 77, Done: func() { open-- }}, nil
			}
			r.reopen()
			if _, err := r.Turn(t.Context()); centurion.KindOf(err) != tt.kind {
				t.Error(err)
			}
			if open != 0 || made != tt.asked || len(r.model.Requests()) != tt.asked {
				t.Errorf("%d reservations for %d requests, %d stay", made, len(r.model.Requests()), open)
			}
			for _, q := range r.model.Requests() {
				if got := string(q.Field("max_tokens")) + string(q.Field("max_completion_tokens")); got != "77" {
					t.Errorf("its answer may have %q tokens", got)
				}
			}
		})
	}
}

// Where the end of a failed answer, or of a turn that was stopped, cannot be stored, both errors are told: a superseded attempt has to end.
func TestEndThatIsNotStored(t *testing.T) {
	lost := &centurion.Error{Kind: centurion.KindConflict, Msg: "superseded"}
	for name, tt := range map[string]struct {
		answer scripted.Answer
		writes int // that are allowed
		kind   centurion.Kind
	}{
		"an error":  {scripted.Answer{Error: &scripted.Error{Status: 400, Message: "no"}}, 1, centurion.KindInvalidRequest}, // the row
		"a refusal": {scripted.Answer{Say: "Good.", Finish: "content_filter"}, 1, centurion.KindRefusal},
		"stopped":   {call("stop"), 3, centurion.KindCancelled}, // the row, the answer, the results
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			r := newRig(t, inOrder(tt.answer), tool{name: "stop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				stop(centurion.ErrCancelled)
				return tools.Result{Output: "ok"}, nil
			}})
			writes := 0
			r.cfg.Fence = func(*store.Tx) error {
				if writes++; writes > tt.writes {
					return lost
				}
				return nil
			}
			r.reopen()
			if _, err := r.Turn(ctx); !errors.Is(err, lost) || centurion.KindOf(err) != tt.kind {
				t.Errorf("%v, of kind %s", err, centurion.KindOf(err))
			}
		})
	}
}

// What is sent anew with each request, the status, is reserved for as well.
func TestStatusIsReservedFor(t *testing.T) {
	input := func(status string) int64 {
		now := "" // the first request is the same
		r := newRig(t, inOrder(call("noop")), tool{name: "noop", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
			now = status
			return tools.Result{Output: "ok"}, nil
		}})
		r.host.status = func() string { return now }
		var needs []session.Need
		r.cfg.Reserve = func(_ context.Context, n session.Need) (session.Cover, error) {
			needs = append(needs, n)
			return session.Cover{}, nil
		}
		r.reopen()
		r.turn()
		return needs[1].Input
	}
	if without, with := input(""), input(strings.Repeat("x", 3000)); with != without+session.TokensOf(3000) {
		t.Errorf("%d tokens without a status, %d with one", without, with)
	}
}

// Where the endpoint does not say what an answer cost, all that came counts: text, thoughts, and arguments of calls.
func TestEstimateOfAnAnswer(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for name, deltas := range map[string][]provider.Delta{
		"text":      {text(long), ends(centurion.FinishStop, 0)},
		"thoughts":  {{Type: provider.Reasoning, Text: long}, text("a"), ends(centurion.FinishStop, 0)},
		"arguments": {{Type: provider.CallStart, CallID: "c", Name: "noop"}, {Type: provider.CallInput, Text: `{"a":"` + long + `"}`}, ends(centurion.FinishToolCalls, 0)},
		"half":      {text(long)},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, inOrder(), tool{name: "noop"})
			r.cfg.Model, r.cfg.MaxSteps = spoken{deltas, nil}, 1
			r.reopen()
			_, _ = r.Turn(t.Context()) // some of these end badly
			if u := r.messages()[1].Usage.Tokens; u.Output < 1000 || u.Output > 1100 || u.Input == 0 {
				t.Errorf("it is taken for %+v", u)
			}
		})
	}
}

// An answer that was cut off before it said anything is not an empty one: it is asked to go on.
func TestEmptyAnswerAtTheLimitGoesOn(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Finish: "length"}))
	if out := r.turn(); out.Text != "done" || out.Steps != 2 {
		t.Errorf("%+v", out)
	}
	if reqs := r.model.Requests(); len(reqs) != 2 || !strings.Contains(reqs[1].Last(), "Continue exactly where it stopped") {
		t.Errorf("%d requests", len(reqs))
	}
}

// A wait within a request does not forget the failures that came before it.
func TestWaitKeepsTheFailuresBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, inOrder(scripted.Answer{Error: &scripted.Error{Status: 429, RetryAfter: 7 * time.Second, Message: "slow down"}}))
		before := centurion.Retry{Attempts: 3, RateLimits: 2, Failed: []string{"test/other"}}
		if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return r.PutRetry(tx, before) }); err != nil {
			t.Fatal(err)
		}
		var during *centurion.Retry
		r.cfg.Host = ending{r.host, func() { during = cmp.Or(during, r.record().Metadata.Retry) }}
		r.reopen()
		r.turn()
		if during == nil || during.Attempts != 3 || during.RateLimits != 2 || !slices.Equal(during.Failed, before.Failed) || during.WaitMS < 7000 || during.Reason != "rate limit" {
			t.Errorf("while it waits: %+v", during)
		}
		if after := r.record().Metadata.Retry; after != nil {
			t.Errorf("after the answer: %+v", after)
		}
	})
}

// What calls of one answer have for the host is all handed on: which results they take, what failed calls say of themselves, and
// that one of them ends the turn.
func TestResultsOfABatch(t *testing.T) {
	result := func(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
		id := argument(in, "id")
		r := tools.Result{Output: id, Consumes: []string{"tsk_" + id}, EndTurn: id == "1", Metadata: map[string]any{"code": id}}
		if id == "2" {
			return r, errors.New("no")
		}
		return r, nil
	}
	r := newRig(t, inOrder(call(`get {"id":1}`, `get {"id":2}`, `get {"id":3}`)), tool{name: "get", effect: readOnly, run: result})
	if out := r.turn(); out.Steps != 1 {
		t.Errorf("the turn has %d requests", out.Steps)
	}
	m := r.last()
	if got := r.host.consumed[m.ID]; !slices.Equal(got, []string{"tsk_1", "tsk_2", "tsk_3"}) {
		t.Errorf("taken: %q", got)
	}
	for i, p := range calls(m) {
		if want := string(rune('1' + i)); p.State.Metadata["code"] != want {
			t.Errorf("call %s has %+v", want, p.State.Metadata)
		}
	}
}

// An answer after a compaction answers the person, not the host's own note; that note says why there is one.
func TestAnswerAfterCompaction(t *testing.T) {
	asks := true
	for name, tt := range map[string]struct {
		shorten        func(r *rig) error
		auto, overflow bool
	}{
		"the window is full":   {func(r *rig) error { r.cfg.Window = 16000; r.reopen(); return nil }, true, false},
		"the provider says so": {func(r *rig) error { return r.Compact(r.t.Context()) }, true, true},
		"a person asks": {func(r *rig) error {
			r.cfg.Asked = func() bool { defer func() { asks = false }(); return asks }
			r.reopen()
			return nil
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, &answerer{}, rounds(40, 3000))
			if err := tt.shorten(r); err != nil {
				t.Fatal(err)
			}
			r.turn()
			all := r.messages()
			if got := all[len(all)-1].ParentID; got != all[0].ID {
				t.Errorf("the answer belongs to %s, the person's message is %s", got, all[0].ID)
			}
			i := slices.IndexFunc(all, func(m centurion.Message) bool { return m.Parts[0].Compaction != nil })
			if i < 0 || !all[i+1].Summary || all[i+1].ParentID != all[i].ID {
				t.Fatalf("there is no compaction with its summary among %d messages", len(all))
			}
			if c := all[i].Parts[0].Compaction; c.Auto != tt.auto || c.Overflow != tt.overflow {
				t.Errorf("it says %+v", c)
			}
		})
	}
}

// Only compactions without an answer in between are bounded, and a restart counts them alike.
func TestCompactionsInARowAfterARestart(t *testing.T) {
	r := rigOf(t, &answerer{}, rounds(10, 3000))
	for i := range 5 {
		r.append(rounds(20, 3000))
		if err := r.Compact(t.Context()); err != nil {
			t.Fatalf("compaction %d: %v", i+1, err)
		}
		r.turn()
		r.say("Go on.")
	}
}

// What is too long for the window after it was shortened is not sent.
func TestCompactionLeavesTooMuch(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(30, 2000))
	r.cfg.Window, r.cfg.Asked = 100, func() bool { return true }
	r.reopen()
	if r.fails(centurion.KindOverflow); len(model.asked) != 0 || len(r.compactions()) != 1 {
		t.Errorf("%d requests, shortened %d times", len(model.asked), len(r.compactions()))
	}
}

// Where only results are shortened, the summary before stays as it is: no other one is asked for.
func TestCompactionKeepsTheSummary(t *testing.T) {
	refusals := 1
	model := &answerer{main: func(provider.Request) (provider.Delta, error) {
		if refusals--; refusals >= 0 {
			return provider.Delta{}, &centurion.Error{Kind: centurion.KindOverflow, Msg: "too long"}
		}
		return provider.Delta{}, nil
	}}
	r := rigOf(t, model, func(p *past) error {
		return errors.Join(p.user(centurion.OriginPerson, "Use tabs."), rounds(20, 900)(p), p.answer("I read all", centurion.FinishToolCalls, 40_000, 40_000))
	})
	r.cfg.Window = 8000
	r.reopen()
	r.fails(centurion.KindOverflow)
	if err := r.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.turn()
	first := model.asked[1].Messages[0].Text
	if len(model.summed) != 1 || len(r.compactions()) != 2 || strings.Count(first, "The work goes well.") != 1 || !strings.Contains(first, "Use tabs.") {
		t.Errorf("%d summaries were asked for in %d compactions: %s", len(model.summed), len(r.compactions()), first)
	}
	if a, b := bytesOf(model.asked[0]), bytesOf(model.asked[1]); b >= a {
		t.Errorf("%d bytes were refused, and %d were sent", a, b)
	}
}
