package session_test

import (
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
)

// LOOP-5, LOOP-31, IKI-36
func TestUsage(t *testing.T) {
	r := newRig(t, inOrder(
		scripted.Answer{Calls: call("noop").Calls, Usage: &scripted.Usage{Input: 1000, Cached: 400, Output: 50, Reasoning: 20}},
		scripted.Answer{Say: "Done.", Usage: &scripted.Usage{Input: 2000, Cached: 1000, Output: 10}},
	), tool{name: "noop"})
	r.turn()
	tokens := centurion.Tokens{Input: 1600, Output: 40, Reasoning: 20, Cache: centurion.CacheUsage{Read: 1400}}
	const cost = (1600*1 + 60*2 + 1400*0.5) / 1e6
	rec := r.record()
	if rec.Tokens != tokens || !near(rec.Cost, cost) || rec.Metadata.Unpriced {
		t.Errorf("the session has %+v, %v, unpriced %v; want %+v, %v", rec.Tokens, rec.Cost, rec.Metadata.Unpriced, tokens, cost)
	}
	if rec.Tokens != r.Record().Tokens {
		t.Error("Record differs from what is stored")
	}
	var sum, told centurion.Usage
	for _, m := range r.messages() {
		sum = sum.Plus(m.Usage)
	}
	for _, u := range r.host.spent {
		told = told.Plus(u)
	}
	if sum.Tokens != tokens || !near(sum.USD, cost) || told.Tokens != tokens || !near(told.USD, cost) || len(r.host.spent) != 2 {
		t.Errorf("the messages sum up to %+v, the host was told %+v", sum, told)
	}
	finish := r.last().Parts[len(r.last().Parts)-1]
	if finish.Type != centurion.PartStepFinish || finish.Usage.Tokens.Input != 1000 {
		t.Errorf("the step ends with %+v", finish)
	}
}

func near(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

func TestUsageWithoutPrice(t *testing.T) {
	r := newRig(t, inOrder())
	r.cfg.Price = nil
	r.reopen()
	r.turn()
	if !r.record().Metadata.Unpriced || !r.host.spent[0].Unpriced {
		t.Error("an answer without a price counts as free")
	}
}

// What was not priced once is missing in the sum for ever.
func TestUnpricedStays(t *testing.T) {
	r := newRig(t, inOrder())
	price := r.cfg.Price
	r.cfg.Price = nil
	r.reopen()
	r.turn()
	r.cfg.Price = price
	r.reopen()
	r.say("go on")
	r.turn()
	if rec := r.record(); !rec.Metadata.Unpriced || rec.Cost == 0 {
		t.Errorf("unpriced %v, cost %v", rec.Metadata.Unpriced, rec.Cost)
	}
}

func TestUsageEstimated(t *testing.T) {
	const text = "0123456789012345678901234567890123456789"
	r := newRigOf(t, scripted.Config{Func: func(scripted.Request) scripted.Answer {
		return scripted.Answer{Raw: `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"}
	}}, tool{name: "noop"})
	r.say(strings.Repeat("words ", 1000))
	r.turn()
	got := r.record().Tokens
	if got.Output != int64(len(text)/4) || got.Input < 1500 || got.Input > 1700 {
		t.Errorf("estimated as %+v", got)
	}
}

// LOOP-31: a request that was refused has cost nothing, with a price and without one.
func TestRefusedRequestCostsNothing(t *testing.T) {
	for _, price := range []*centurion.Price{{Input: 1, Output: 2}, nil} {
		r := newRig(t, inOrder(scripted.Answer{Error: &scripted.Error{Status: 404, Message: "no such model"}}))
		r.cfg.Price = price
		r.reopen()
		r.fails(centurion.KindModelNotFound)
		rec := r.record()
		if rec.Tokens.Total() != 0 || rec.Cost != 0 || rec.Metadata.Unpriced {
			t.Errorf("it has cost %+v, %v, unpriced %v", rec.Tokens, rec.Cost, rec.Metadata.Unpriced)
		}
		for _, u := range r.host.spent {
			if u.Tokens.Total() != 0 || u.USD != 0 || u.Unpriced {
				t.Errorf("the host was told %+v", u)
			}
		}
	}
}
