package event

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"centurion"
	"centurion/guard"
)

// deltaBuffer is how many deltas wait for a slow subscriber before some are dropped.
const deltaBuffer = 64

// Hub sends token deltas, and facts that a full disk keeps from being stored, to its subscribers. It keeps nothing: late subscribers
// get no old ones. The zero Hub is ready to use; its methods are safe for concurrent use.
type Hub struct {
	mu   sync.Mutex // held while sending, so that no channel is closed meanwhile; sends never block
	subs map[*subscriber]struct{}
}

type subscriber struct {
	events chan centurion.Event
	want   func(centurion.Event) bool // nil means everything
	gap    bool                       // the newest event in the channel marks a gap that still grows
}

// Publish sends e to every subscriber and never blocks. If a subscriber's buffer is full, e is dropped, and a delta with {"gap":true}
// takes the place of all dropped ones. A subscriber whose filter panics only loses e: watchers must not disturb the publisher.
func (h *Hub) Publish(e centurion.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if s.wants(e) {
			s.send(e)
		}
	}
}

func (s *subscriber) wants(e centurion.Event) (yes bool) {
	if s.want == nil {
		return true
	}
	err := guard.Call("choose event", func() error { yes = s.want(e); return nil })
	return yes && err == nil
}

// send is called with the hub's lock held. There is no other sender, so the channel can only get emptier meanwhile. It has one place
// more than the buffer, for the gap event.
func (s *subscriber) send(e centurion.Event) {
	if len(s.events) < deltaBuffer {
		s.events <- e
		s.gap = false
		return
	}
	if !s.gap {
		// Which sessions' deltas will be dropped is not known yet, so it names none.
		s.events <- centurion.Event{After: e.After, Time: e.Time, Type: centurion.EventDelta, Data: Data(DeltaData{Gap: true})}
		s.gap = true
	}
}

// Subscribe returns a channel of everything published from now on. When ctx ends, the subscription is removed and the channel closed; a
// ctx that never ends keeps both forever.
func (h *Hub) Subscribe(ctx context.Context) <-chan centurion.Event {
	s := h.add(nil)
	guard.After(ctx, "end subscription", func() { h.remove(s) })
	return s.events
}

func (h *Hub) add(want func(centurion.Event) bool) *subscriber {
	s := &subscriber{events: make(chan centurion.Event, deltaBuffer+1), want: want}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.subs == nil {
		h.subs = map[*subscriber]struct{}{}
	}
	h.subs[s] = struct{}{}
	return s
}

// remove ends a subscription. It is called once.
func (h *Hub) remove(s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
	close(s.events)
}

// coalesce joins consecutive deltas of the same field of the same part after the same fact. It joins nothing across a gap.
func coalesce(run []centurion.Event) []centurion.Event {
	if len(run) < 2 {
		return run
	}
	type key struct {
		after                int64
		session, part, field string
	}
	type piece struct {
		at   int // in out
		data DeltaData
		text strings.Builder
		more bool
	}
	var out []centurion.Event
	open := map[key]*piece{}
	flush := func() {
		for _, p := range open {
			if p.more {
				p.data.Delta = p.text.String()
				out[p.at].Data = Data(p.data)
			}
		}
		clear(open)
	}
	for _, e := range run {
		var d DeltaData
		if e.Type != centurion.EventDelta || json.Unmarshal(e.Data, &d) != nil || d.Gap {
			flush()
			out = append(out, e)
			continue
		}
		k := key{e.After, e.Session, d.Part, d.Field}
		p := open[k]
		if p == nil {
			p = &piece{at: len(out), data: d}
			open[k] = p
			out = append(out, e)
		} else {
			p.more = true
		}
		p.text.WriteString(d.Delta)
	}
	flush()
	return out
}
