package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

func (r *rig) compactions() []event.CompactedData {
	r.t.Helper()
	var all []event.CompactedData
	for _, e := range r.events(centurion.EventCompacted) {
		d, err := event.Decode[event.CompactedData](e)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

// LOOP-20, LOOP-31, C-17: whatever a history holds and wherever it is cut, what the model is sent is valid, begins with the
// first message, has the same system prompt and tools, and fits; a summary is asked for without tools.
func TestCompactedHistoriesAreValid(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(0, 0))
	rapid.Check(t, func(rt *rapid.T) {
		window := rapid.SampledFrom([]int{4000, 8000, 16000, 64000}).Draw(rt, "window")
		type message struct {
			kind    int
			text    int
			results []int
		}
		var list []message
		for range rapid.IntRange(0, 40).Draw(rt, "messages") {
			list = append(list, message{rapid.IntRange(0, 7).Draw(rt, "kind"), rapid.IntRange(0, 3000).Draw(rt, "text"),
				rapid.SliceOfN(rapid.IntRange(0, 4000), 1, 4).Draw(rt, "results")})
		}
		*model = answerer{main: func(req provider.Request) (provider.Delta, error) {
			return provider.Delta{Tokens: centurion.Tokens{Input: int64(bytesOf(req) / 3), Output: 2}}, nil
		}}
		if rapid.Bool().Draw(rt, "the summary fails") {
			model.summary = func(provider.Request) (string, error) { return "", errors.New("no summary today") }
		}
		r.cfg.Window = window
		r.fill(func(p *past) error {
			asked := true // an answer follows a question only
			for i, m := range list {
				text := fmt.Sprintf("message %d %s", i, strings.Repeat("y", m.text))
				var err error
				switch {
				case m.kind < 2 || !asked:
					err, asked = p.user([]centurion.Origin{centurion.OriginPerson, centurion.OriginHost}[m.kind%2], text), true
				case m.kind == 2:
					err, asked = p.answer(text, centurion.FinishStop), false
				case m.kind == 3:
					err = p.answer(text, centurion.FinishError)
				case m.kind == 4:
					err = p.answer(text, centurion.FinishCancelled)
				default:
					err = p.answer(text, centurion.FinishToolCalls, m.results...)
				}
				if err != nil {
					return err
				}
			}
			return p.user(centurion.OriginHost, "the newest result")
		})
		for turn := range 3 {
			if _, err := r.Turn(t.Context()); err != nil {
				rt.Fatalf("turn %d: %v", turn, err)
			}
			r.say(fmt.Sprintf("question %d %s", turn, strings.Repeat("z", window/2)))
			if turn == 1 {
				r.reopen()
			}
		}
		for i, req := range model.asked {
			if fault := valid(req.Messages); fault != "" {
				rt.Errorf("request %d: %s", i, fault)
			}
			if !strings.HasPrefix(req.Messages[0].Text, goal) || req.System != system || len(req.Tools) != 1 {
				rt.Errorf("request %d begins with %q, %d tools", i, centurion.Clip(req.Messages[0].Text, 80), len(req.Tools))
			}
			if n := bytesOf(req) / 3; n > window {
				rt.Errorf("request %d has %d tokens, the window %d", i, n, window)
			}
			if i == 0 && !strings.HasSuffix(req.Messages[len(req.Messages)-1].Text, "the newest result") {
				rt.Errorf("the newest message is %q", req.Messages[len(req.Messages)-1].Text)
			}
			inOrderOf(rt, req)
		}
		for _, req := range model.summed {
			if len(req.Tools) > 0 || len(req.Messages) != 1 || req.Session == r.id || bytesOf(req)/3 > window {
				rt.Errorf("a summary is asked for with %d tools, %d messages, %d bytes, as session %s", len(req.Tools), len(req.Messages), bytesOf(req), req.Session)
			}
		}
	})
}

// inOrderOf looks that the results stand in the order in which they came.
func inOrderOf(t interface{ Errorf(string, ...any) }, req provider.Request) {
	last := 0
	for _, m := range req.Messages {
		if m.Role != provider.Tool {
			continue
		}
		n := 0
		if _, err := fmt.Sscanf(m.CallID, "call_%d", &n); err != nil || n <= last {
			t.Errorf("the result of %s stands after that of call_%d", m.CallID, last)
		}
		last = n
	}
}

// LOOP-20: a history that fits is left alone, and one step before the limit a summary takes the place of what is old.
func TestCompactionBeforeTheWindowIsFull(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		window, buffer, maxOut int
		tokens                 int64 // that the last answer reports
		want                   int
	}{
		{"another model's count", 100_000, 0, 0, 80_500, 0},
		{"unknown window", 0, 0, 0, 1 << 30, 0},
		{"a fifth is left", 100_000, 0, 0, 79_000, 0},
		{"less than a fifth is left", 100_000, 0, 0, 80_500, 1},
		{"a fifth of the largest small window", 200_000, 0, 0, 159_000, 0},
		{"less than a fifth of the largest small window", 200_000, 0, 0, 160_500, 1},
		{"20,000 are left of a large one", 400_000, 0, 0, 379_000, 0},
		{"less than 20,000 are left", 400_000, 0, 0, 380_500, 1},
		{"a fifth of less than 200,000", 180_000, 0, 0, 150_000, 1},
		{"more than the window", 100_000, 0, 0, 130_000, 1},
		{"own buffer", 100_000, 50_000, 0, 50_500, 1},
		{"own buffer, not yet", 100_000, 5_000, 0, 94_000, 0},
		{"room for the answer", 100_000, 0, 30_000, 70_500, 1},
		{"a buffer larger than the window", 100_000, 1 << 20, 0, 49_000, 0},
		{"a buffer larger than the window leaves half of it", 100_000, 1 << 20, 0, 50_500, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := &answerer{main: func(provider.Request) (provider.Delta, error) {
				return provider.Delta{Tokens: centurion.Tokens{Input: tt.tokens - 10, Output: 10}}, nil
			}}
			r := rigOf(t, model, func(p *past) error {
				return errors.Join(rounds(20, 6000)(p), p.answer("so far", centurion.FinishStop), p.user(centurion.OriginPerson, "and now?"))
			})
			r.turn()
			r.cfg.Window, r.cfg.Buffer, r.cfg.MaxOut = tt.window, tt.buffer, tt.maxOut
			if tt.name == "another model's count" { // it says nothing of what this one will count
				r.cfg.Ref.ID = "another"
			}
			r.reopen()
			r.say("go on")
			r.turn()
			if got := r.compactions(); len(got) != tt.want {
				t.Fatalf("%d compactions, want %d: %+v", len(got), tt.want, got)
			}
		})
	}
}

// LOOP-16, LOOP-66, LOOP-79, C-17: nothing is deleted: a pointer and a summary are added, in OpenCode's shapes, and what a restart loads is
// byte by byte what was sent before. The goal, the newest messages and a person's words stay as they were.
func TestCompactionIsStored(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, func(p *past) error {
		return errors.Join(rounds(10, 3000)(p), p.answer("half", centurion.FinishStop), p.user(centurion.OriginPerson, "Use tabs."),
			rounds(20, 3000)(p))
	})
	r.cfg.Window = 16000
	r.reopen()
	before := r.messages()
	r.turn()
	after := r.messages()
	if len(after) != len(before)+3 { // pointer, summary, answer
		t.Fatalf("%d messages, want %d", len(after), len(before)+3)
	}
	c, sum := after[len(before)].Parts[0].Compaction, after[len(before)+1]
	if c == nil || !c.Auto || c.Overflow || !sum.Summary || sum.ParentID != after[len(before)].ID || !strings.Contains(sum.Text(), "The work goes well.") {
		t.Fatalf("pointer %+v, summary %+v", c, sum)
	}
	if i := slices.IndexFunc(before, func(m centurion.Message) bool { return m.ID == c.Tail }); i < 1 || i > len(before)-1 {
		t.Errorf("the pointer leads to message %d of %d", i, len(before))
	}
	if role := model.asked[0].Messages[0].Role; role != provider.User {
		t.Errorf("the summary is told as %s", role)
	}
	if n := len(model.asked[0].Messages); n >= len(before) {
		t.Errorf("%d messages are sent of %d", n, len(before))
	}
	first := model.asked[0].Messages[0].Text
	for _, want := range []string{goal, "The work goes well.", "Use tabs."} {
		if !strings.Contains(first, want) {
			t.Errorf("the first message lacks %q: %s", want, first)
		}
	}
	r.reopen()
	r.say("next")
	r.turn()
	a, b := model.asked[0].Messages, model.asked[1].Messages
	if len(b) != len(a)+2 {
		t.Fatalf("%d messages, then %d", len(a), len(b))
	}
	for i := range a {
		if x, y := fmt.Sprint(a[i]), fmt.Sprint(b[i]); x != y {
			t.Fatalf("message %d was %q and is %q", i, x, y)
		}
	}
	if n := strings.Count(b[0].Text, "<summary>"); n != 1 {
		t.Errorf("there are %d summaries", n)
	}
	if d := r.compactions(); len(d) != 1 || d[0].Reason != event.CompactedAuto || d[0].After >= d[0].Before || d[0].Messages == 0 || d[0].ByHost {
		t.Errorf("told: %+v", d)
	}
	if u := r.host.spent; len(u) < 2 || r.record().Tokens.Total() != u[0].Plus(u[1]).Plus(u[2]).Tokens.Total() || sum.Usage.Tokens.Total() == 0 {
		t.Errorf("spent %+v, the session has %+v, the summary %+v", u, r.record().Tokens, sum.Usage)
	}
}

// ORCH-83: a provider's overflow is answered by a shorter history, three times in a row at most.
func TestCompactionAfterOverflow(t *testing.T) {
	for _, window := range []int{0, 200_000} {
		limit := 30_000 // bytes that the provider takes
		model := &answerer{main: func(req provider.Request) (provider.Delta, error) {
			if bytesOf(req) > limit {
				return provider.Delta{}, &centurion.Error{Kind: centurion.KindOverflow, Msg: "too long"}
			}
			return provider.Delta{}, nil
		}}
		r := rigOf(t, model, rounds(40, 3000))
		r.cfg.Window = window
		r.reopen()
		for n := range 4 {
			_, err := r.Turn(t.Context())
			if err == nil {
				break
			}
			if n == 3 || centurion.KindOf(err) != centurion.KindOverflow {
				t.Fatalf("window %d, turn %d: %v", window, n, err)
			}
			if err := r.Compact(t.Context()); err != nil {
				t.Fatalf("window %d, turn %d: %v", window, n, err)
			}
		}
		if got := r.compactions(); len(got) == 0 || len(got) > 3 || got[0].Reason != event.CompactedOverflow {
			t.Errorf("window %d: %+v", window, got)
		}
		limit = 0
		r.fill(rounds(300, 3000))
		var err error
		n := 0
		for ; n < 10 && err == nil; n++ {
			r.fails(centurion.KindOverflow)
			err = r.Compact(t.Context())
			if n == 1 {
				r.reopen() // how often it was tried is not forgotten
			}
		}
		if centurion.KindOf(err) != centurion.KindOverflow || centurion.HintOf(err) == "" || len(r.compactions()) != 3 {
			t.Errorf("window %d: it was shortened %d times in a row, then %v", window, n-1, err)
		}
	}
}

// One step whose results alone are larger than the window is cut, not given up, and one whose call is says so.
func TestCompactionOfOneStep(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, func(p *past) error {
		return p.answer("I read all", centurion.FinishToolCalls, 40_000, 40_000, 300, 40_000)
	})
	r.cfg.Window = 8000
	r.reopen()
	r.turn()
	msgs := model.asked[0].Messages
	if n := bytesOf(model.asked[0]) / 3; n > 8000 || len(msgs) != 6 || !strings.Contains(msgs[2].Text, "bytes left out") || strings.Contains(msgs[4].Text, "left out") {
		t.Errorf("%d tokens in %d messages", n, len(msgs))
	}
	if got := calls(r.messages()[1]); len(got[0].State.Output) < 40_000 {
		t.Error("the result is cut in the store")
	}
	r.reopen()
	r.say("go on")
	r.turn()
	if a, b := msgs[2].Text, model.asked[1].Messages[2].Text; a != b {
		t.Errorf("the result is %d bytes after a restart and was %d", len(b), len(a))
	}
	r.fill(func(p *past) error { return p.user(centurion.OriginPerson, strings.Repeat("too long ", 10_000)) })
	asked := len(model.asked)
	if r.turn(); len(model.asked) == asked { // an estimate may be wrong, and it costs nothing if the provider refuses
		t.Error("what nothing can shorten is not sent")
	}
	r.fill(func(p *past) error { return p.user(centurion.OriginPerson, strings.Repeat("too long ", 10_000)) })
	if err := r.Compact(t.Context()); centurion.KindOf(err) != centurion.KindOverflow || centurion.HintOf(err) == "" {
		t.Errorf("what the provider refused and nothing can shorten ends with %v", err)
	}
}

// LOOP-66: without a model the host tells what was done from what is recorded.
func TestSummaryWithoutModel(t *testing.T) {
	model := &answerer{summary: func(provider.Request) (string, error) {
		return "", &centurion.Error{Kind: centurion.KindOverflow, Msg: "too long"}
	}}
	r := rigOf(t, model, func(p *past) error {
		return errors.Join(rounds(30, 2000)(p), p.answer("the cause is in lexer.go", centurion.FinishToolCalls, 10), rounds(6, 2000)(p))
	})
	r.cfg.Window = 16000
	r.reopen()
	r.turn()
	d := r.compactions()
	if len(d) != 1 || !d[0].ByHost {
		t.Fatalf("%+v", d)
	}
	first := model.asked[0].Messages[0].Text
	for _, want := range []string{goal, "look ", "failed", "the cause is in lexer.go"} {
		if want != "failed" && !strings.Contains(first, want) {
			t.Errorf("%q is lost: %s", want, first)
		}
	}
	if len(model.summed) != 1 || len(model.summed[0].Tools) > 0 {
		t.Errorf("%d requests for a summary", len(model.summed))
	}
}

// Somebody may ask for it at any time; it is done once, before the next request, also if it was asked before a restart.
func TestCompactionWhenAsked(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(12, 2000))
	asked := true
	r.cfg.Asked = func() bool { was := asked; asked = false; return was }
	r.reopen()
	r.turn()
	if d := r.compactions(); len(d) != 1 || d[0].Reason != event.CompactedAsked || d[0].After >= d[0].Before {
		t.Fatalf("%+v", d)
	}
	r.say("next")
	rec := r.record()
	rec.Metadata.Compact = true
	if err := r.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&rec) }); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	r.turn()
	r.say("and next")
	r.turn()
	if d := r.compactions(); len(d) > 2 || r.record().Metadata.Compact {
		t.Errorf("%d compactions, asked still: %v", len(d), r.record().Metadata.Compact)
	}
	// Asked for while an answer or a failure is written down, it survives the end of the host.
	update := func(f func(tx *store.Tx) error) {
		if err := r.store.Update(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	for what, write := range map[string]func(){
		"the last answer": func() {
			model.main = func(provider.Request) (provider.Delta, error) { asked = true; return provider.Delta{}, nil }
			r.say("and the last")
			r.turn()
		},
		"the end of a retry": func() { asked = true; update(r.Session.ClearRetry) },
		"another model": func() {
			asked = true
			update(func(tx *store.Tx) error {
				return r.PutModel(tx, centurion.ModelRef{ID: "b", Provider: "c"}, centurion.Retry{})
			})
		},
	} {
		write()
		if rec := r.record(); !rec.Metadata.Compact {
			t.Errorf("%s: forgotten", what)
		} else {
			rec.Metadata.Compact = false
			update(func(tx *store.Tx) error { return tx.PutSession(&rec) })
		}
		r.reopen()
	}
}

// LOOP-20: the budget is asked before a summary is, and a turn that ends meanwhile ends it.
func TestCompactionAsksTheBudget(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(40, 3000))
	r.host.before = func() ([]centurion.Message, error) {
		return nil, &centurion.Error{Kind: centurion.KindBudget, Msg: "spent"}
	}
	if err := r.Compact(t.Context()); centurion.KindOf(err) != centurion.KindBudget || len(model.summed) > 0 {
		t.Errorf("%v, %d summaries", err, len(model.summed))
	}
	r.host.before = nil
	ctx, cancel := context.WithCancelCause(t.Context())
	model.summary = func(provider.Request) (string, error) {
		cancel(centurion.ErrCancelled)
		return "", context.Canceled
	}
	if err := r.Compact(ctx); !errors.Is(err, centurion.ErrCancelled) || len(r.compactions()) > 0 {
		t.Errorf("%v, %+v", err, r.compactions())
	}
}

// What is reserved for a summary is what it may cost, and is given back when that is recorded, also where the summary cannot be used or
// stored. Then nothing is shortened.
func TestCompactionGivesBack(t *testing.T) {
	for name, tt := range map[string]struct {
		summary func(provider.Request) (string, error)
		fence   error
		kind    centurion.Kind
	}{
		"a summary":  {},
		"no summary": {summary: func(provider.Request) (string, error) { return "", &centurion.Error{Kind: centurion.KindOverflow} }},
		"no credit":  {summary: func(provider.Request) (string, error) { return "", &centurion.Error{Kind: centurion.KindBudget} }, kind: centurion.KindBudget},
		"full disk":  {summary: func(provider.Request) (string, error) { return "", &centurion.Error{Kind: centurion.KindDisk} }, kind: centurion.KindDisk},
		"lost state": {fence: &centurion.Error{Kind: centurion.KindConflict, Msg: "taken over"}, kind: centurion.KindConflict},
	} {
		t.Run(name, func(t *testing.T) {
			model := &answerer{summary: tt.summary}
			r := rigOf(t, model, rounds(40, 3000))
			var needs []session.Need
			open := 0
			r.cfg.Window = 60_000
			r.cfg.Reserve = func(_ context.Context, n session.Need) (session.Cover, error) {
				needs = append(needs, n)
				open++
				return session.Cover{MaxOut: n.MaxOut, Done: func() { open-- }}, nil
			}
			r.cfg.Fence = func(*store.Tx) error { return tt.fence }
			r.reopen()
			err := r.Compact(t.Context())
			if centurion.KindOf(err) != tt.kind || (len(r.compactions()) == 0) != (tt.kind != "") {
				t.Errorf("%v, %+v", err, r.compactions())
			}
			if len(needs) != 1 || open != 0 || needs[0].MaxOut != 4096 || needs[0].Input < int64(bytesOf(model.summed[0])/4) || model.summed[0].MaxOutput != 4096 {
				t.Errorf("reserved %+v, of which %d stay", needs, open)
			}
			if d := r.compactions(); len(d) > 0 && (d[0].After <= 0 || d[0].After >= d[0].Before) {
				t.Errorf("%+v", d)
			}
		})
	}
}

// R3: a process that dies around a compaction leaves the old history or the new one, and both can be gone on with.
func TestCompactionAndCrash(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(40, 3000))
	r.cfg.Window = 16000
	r.reopen()
	var during *rig
	model.summary = func(provider.Request) (string, error) {
		during = r.crash() // before anything of it is stored
		return "The work goes well.", nil
	}
	main := 0
	var after *rig
	model.main = func(provider.Request) (provider.Delta, error) {
		if main++; main == 1 {
			after = r.crash() // it is stored, and no request has used it
		}
		return provider.Delta{}, nil
	}
	r.turn()
	model.summary, model.main = nil, nil
	for name, it := range map[string]*rig{"before": during, "after": after} {
		n := len(it.compactions())
		if want := map[string]int{"before": 0, "after": 1}[name]; n != want {
			t.Errorf("%s: %d compactions, want %d", name, n, want)
		}
		it.turn()
		if fault := valid(model.asked[len(model.asked)-1].Messages); fault != "" || len(it.compactions()) != 1 {
			t.Errorf("%s: %s, %d compactions", name, fault, len(it.compactions()))
		}
	}
}

// OPAL-80, LOOP-20: a conversation of 60 rounds in a window of 16,000 over the real wire, which checks every request.
func TestCompactionOverTheWire(t *testing.T) {
	n := 0
	r := newRig(t, func(q scripted.Request) scripted.Answer {
		if q.System() != system {
			return scripted.Answer{Say: "So far all is well."}
		}
		if n++; n > 60 {
			return scripted.Answer{Say: "All done."}
		}
		return call(fmt.Sprintf(`look {"n":%d}`, n))
	}, tool{name: "look", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: strings.Repeat("a line of output\n", 150)}, nil
	}})
	r.cfg.Window = 16000
	r.reopen()
	if out := r.turn(); out.Text != "All done." || out.Steps != 61 {
		t.Errorf("%+v", out)
	}
	if d := r.compactions(); len(d) < 2 || len(d) > 20 {
		t.Errorf("%d compactions", len(d))
	}
	for _, q := range r.model.Requests() {
		if q.Bytes/4 > 16000 {
			t.Errorf("request %d has %d bytes", q.Number, q.Bytes)
		}
	}
}

// C-17: a second summary takes the place of the first also where messages are kept that are older than the first.
func TestCompactionTwice(t *testing.T) {
	model := &answerer{}
	r := rigOf(t, model, rounds(30, 900))
	asks := 2
	r.cfg.Asked = func() bool { asks--; return asks >= 0 }
	r.reopen()
	r.turn()
	r.say("next")
	r.turn()
	r.reopen()
	r.say("last")
	r.turn()
	a, b := model.asked[1].Messages, model.asked[2].Messages
	if n := len(r.compactions()); n != 2 || len(b) != len(a)+2 || fmt.Sprint(a) != fmt.Sprint(b[:len(a)]) {
		t.Errorf("%d compactions; %d messages were sent, and %d after a restart", n, len(a), len(b))
	}
	if n := strings.Count(fmt.Sprint(b), "<summary>"); n != 1 {
		t.Errorf("there are %d summaries", n)
	}
}

func BenchmarkCompaction(b *testing.B) {
	model := &answerer{}
	r := rigOf(b, model, rounds(2000, 600))
	stored := r.messages()
	b.Run("plan-and-store", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			r.fill(rounds(2000, 600))
			b.StartTimer()
			if err := r.Compact(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("history", func(b *testing.B) {
		for b.Loop() {
			if len(session.History(stored)) != 4001 {
				b.Fatal("the history is not whole")
			}
		}
	})
}

// ORCH-83: an answer ends the row: a conversation that goes on is shortened as often as it has to be.
func TestCompactionsBetweenAnswers(t *testing.T) {
	model := &answerer{main: func(req provider.Request) (provider.Delta, error) {
		return provider.Delta{Tokens: centurion.Tokens{Input: int64(bytesOf(req) / 4), Output: 10}}, nil
	}}
	r := rigOf(t, model, func(*past) error { return nil })
	r.cfg.Window = 60_000
	r.reopen()
	for range 7 {
		r.say(strings.Repeat("words ", 20_000))
		r.turn()
	}
	if n := len(r.compactions()); n != 6 {
		t.Errorf("%d compactions in seven turns, of which all but the first need one", n)
	}
	for i, req := range model.asked {
		if n := bytesOf(req); n > 200_000 {
			t.Errorf("request %d has %d bytes", i, n)
		}
	}
}
