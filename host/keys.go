package host

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"centurion/provider"
	"centurion/redact"
	"centurion/session"
)

// withholding is a model that is sent no keys, and whose answers have none. The arguments of its tool calls stay as they are, since the
// calls are to do what it says; the store replaces the keys in what it keeps of them.
type withholding struct {
	session.Model
	keys *redact.Keys
}

// Stream implements session.Model. A piece of text or thinking comes when it is certain to hold no part of a key.
func (m withholding) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	return func(yield func(provider.Delta, error) bool) {
		a := &heldAnswer{keys: m.keys, yield: yield, calls: map[int]*redact.Stream{}}
		for d, err := range m.Model.Stream(ctx, m.without(req)) {
			if err != nil {
				_ = a.flush() && yield(d, err)
				return
			}
			if !a.take(d) {
				return
			}
		}
		a.flush()
	}
}

// without returns a request without keys. The same request always becomes the same, so that a provider finds it in its cache.
func (m withholding) without(req provider.Request) provider.Request {
	req.System = m.keys.Text(req.System)
	req.Messages = slices.Clone(req.Messages)
	for i := range req.Messages {
		msg := &req.Messages[i]
		msg.Text, msg.Reasoning = m.keys.Text(msg.Text), m.keys.Text(msg.Reasoning)
		// A signed thought cannot be changed, only left out.
		msg.Thoughts = slices.DeleteFunc(slices.Clone(msg.Thoughts), func(t provider.Thought) bool { return m.keys.Text(t.Text) != t.Text })
		msg.Calls = slices.Clone(msg.Calls)
		for j := range msg.Calls {
			msg.Calls[j].Arguments = m.keys.Text(msg.Calls[j].Arguments)
		}
	}
	return req
}

// heldAnswer passes an answer on, piece by piece.
type heldAnswer struct {
	keys  *redact.Keys
	yield func(provider.Delta, error) bool
	kind  provider.DeltaType     // of the part that grows: Text or Reasoning; otherwise Waiting
	part  *redact.Stream         // of that part
	calls map[int]*redact.Stream // by the index of the call
	said  [2]strings.Builder     // the thinking of a block, before and after
}

// take passes on what is certain by now. It returns false when nobody listens any more.
func (a *heldAnswer) take(d provider.Delta) bool {
	switch d.Type {
	case provider.Waiting:
	case provider.Text, provider.Reasoning:
		if a.kind != d.Type && !a.endPart() {
			return false
		}
		if a.part == nil {
			a.kind, a.part = d.Type, a.keys.Stream(false)
		}
		a.said[0].WriteString(d.Text)
		return a.grow(provider.Delta{Type: d.Type, Text: a.part.Next(d.Text)})
	case provider.CallInput:
		if a.calls[d.Index] == nil {
			a.calls[d.Index] = a.keys.Stream(true)
		}
		d.Text = a.calls[d.Index].Next(d.Text)
		return a.grow(d)
	case provider.CallEnd:
		if !a.endCall(d.Index) {
			return false
		}
	default:
		thinking := a.kind == provider.Reasoning
		if !a.endPart() || d.Type == provider.Done && !a.flush() {
			return false
		}
		if d.Type == provider.ReasoningEnd {
			if thinking && a.said[0].String() != a.said[1].String() {
				d.Metadata = nil // it signs the thinking as it was
			}
			a.said[0].Reset()
			a.said[1].Reset()
		}
	}
	return a.yield(d, nil)
}

func (a *heldAnswer) grow(d provider.Delta) bool {
	if d.Text == "" {
		return true
	}
	if d.Type == provider.Reasoning {
		a.said[1].WriteString(d.Text)
	}
	return a.yield(d, nil)
}

// endPart passes on the rest of the part that grows.
func (a *heldAnswer) endPart() bool {
	if a.part == nil {
		return true
	}
	rest := provider.Delta{Type: a.kind, Text: a.part.End()}
	a.kind, a.part = provider.Waiting, nil
	return a.grow(rest)
}

func (a *heldAnswer) endCall(index int) bool {
	s := a.calls[index]
	delete(a.calls, index)
	return s == nil || a.grow(provider.Delta{Type: provider.CallInput, Index: index, Text: s.End()})
}

// flush passes on all that is held back.
func (a *heldAnswer) flush() bool {
	if !a.endPart() {
		return false
	}
	for _, index := range slices.Sorted(maps.Keys(a.calls)) {
		if !a.endCall(index) {
			return false
		}
	}
	return true
}
