package session_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
)

// between calls after with every piece of an answer, when it was taken and before the next is.
type between struct {
	inner interface {
		Stream(context.Context, provider.Request) iter.Seq2[provider.Delta, error]
	}
	after func(d provider.Delta)
}

func (b between) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		for d, err := range b.inner.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
			if err == nil {
				b.after(d)
			}
		}
	}
}

// streamed writes down what there is of an answer: its texts, thoughts and calls with what came of their arguments.
func streamed(m centurion.Message) string {
	var b strings.Builder
	for _, p := range m.Parts {
		switch p.Type {
		case centurion.PartText, centurion.PartReasoning:
			fmt.Fprintf(&b, "%s(%s)", p.Type, p.Text)
		case centurion.PartTool:
			raw := p.State.Raw
			if p.State.Status == centurion.ToolError { // as a restart leaves it
				if raw = string(p.State.Input); argument(p.State.Input, "raw") != "" {
					raw = argument(p.State.Input, "raw")
				}
			}
			fmt.Fprintf(&b, "call %s(%s)", p.Tool, strings.TrimPrefix(raw, "{}"))
		}
	}
	return b.String()
}

// LOOP-30, LOOP-33, C-11: with every_event each piece of an answer is in the store, and on disk, before the next is taken: a process that is
// killed after any of them has lost nothing.
func TestEveryEvent(t *testing.T) {
	r := newRig(t, inOrder(scripted.Answer{Reasoning: "Hm, two.", Say: "I look at both.", Chunk: 5, Calls: call(`noop {"path":"a.go"}`, `noop {"path":"b"}`).Calls}), tool{name: "noop"})
	var want strings.Builder // what has streamed, as streamed writes it
	open, pieces := "", 0
	var stored, kept, due []string
	begin := func(kind string) {
		if open != kind {
			if open != "" {
				want.WriteString(")")
			}
			want.WriteString(kind + "(")
			open = kind
		}
	}
	real := r.cfg.Model
	r.cfg.EveryEvent = true
	r.cfg.Model = between{inner: real, after: func(d provider.Delta) {
		switch d.Type {
		case provider.Text:
			begin("text")
		case provider.Reasoning:
			begin("reasoning")
		case provider.CallStart:
			open = strings.Repeat("x", len(open)) // another part, even if it is another call of the same tool
			begin("call " + d.Name)
		case provider.CallInput:
		default:
			return
		}
		want.WriteString(d.Text)
		if r.model.Requests()[len(r.model.Requests())-1].Turn > 1 {
			return
		}
		pieces++
		due = append(due, want.String()+")")
		stored = append(stored, streamed(r.last()))
		for _, p := range calls(r.last()) {
			if p.State.Status != centurion.ToolPending {
				t.Errorf("a call that still streams is stored as %s", p.State.Status)
			}
		}
		after := r.crash()
		kept = append(kept, streamed(after.last()))
	}}
	r.reopen()
	r.turn()
	if pieces < 10 {
		t.Fatalf("the answer came in %d pieces only", pieces)
	}
	for i := range due {
		if stored[i] != due[i] {
			t.Errorf("after piece %d there is stored %q, want %q", i+1, stored[i], due[i])
		}
		if kept[i] != due[i] {
			t.Errorf("who was killed after piece %d has kept %q of %q", i+1, kept[i], due[i])
		}
	}
	if got := r.messages()[1]; got.Finish != centurion.FinishToolCalls || len(calls(got)) != 2 {
		t.Errorf("in the end there is %+v", got)
	}
}
