// Package opencode serves the clients of OpenCode. It passes events on to any number of readers; the names of OpenCode's protocol stand in
// the packages of its dialects.
package opencode

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
)

// The limits of what is kept for readers that are slow.
const (
	keptBytes = 16 << 20 // of events
	lag       = 1024     // events; a reader that is further behind gets no deltas
)

// ErrBehind ends a reader that was so slow that facts it has not read are gone. It reads everything again.
var ErrBehind = errors.New("the reader is too slow: events that it has not read are gone")

// Hub passes events on to readers. It never waits for one: who is too slow first loses deltas, and in the end is sent away. The zero value is
// ready to use.
type Hub struct {
	mu      sync.Mutex // protects the fields below
	events  []entry    // the kept ones, oldest first
	end     int64      // the number of the next one
	lost    int64      // the facts with numbers below it are gone
	bytes   int
	changed chan struct{} // closed at the next event; nil without waiters
}

type entry struct {
	n     int64
	text  []byte
	delta bool // it can be lost: a later event has all of it
}

// Send passes an event on. The text must not be changed afterwards.
func (h *Hub) Send(text []byte, delta bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, entry{h.end, text, delta})
	h.end++
	if h.bytes += len(text); h.bytes > keptBytes {
		h.drop()
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// drop forgets the oldest deltas, and then the oldest facts: more than needed, so that it is seldom done.
func (h *Hub) drop() {
	for _, deltas := range []bool{true, false} {
		kept := make([]entry, 0, len(h.events))
		for _, e := range h.events {
			if h.bytes <= keptBytes*3/4 || e.delta != deltas {
				kept = append(kept, e)
				continue
			}
			if h.bytes -= len(e.text); !e.delta {
				h.lost = e.n + 1
			}
		}
		h.events = kept
	}
}

// Reader reads the events that are sent after it was made.
type Reader struct {
	h  *Hub
	at int64 // the number of the next one
}

// Reader makes a reader.
func (h *Hub) Reader() *Reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Reader{h, h.end}
}

// Next waits for the next event. The error is [ErrBehind], or the cause of the end of ctx.
func (r *Reader) Next(ctx context.Context) ([]byte, error) {
	for {
		text, changed, err := r.take()
		if text != nil || err != nil {
			return text, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Waits reports whether the reader has to wait for its next event.
func (r *Reader) Waits() bool {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	return r.at >= r.h.end
}

// take returns the next event, or what tells that there is one.
func (r *Reader) take() (text []byte, changed <-chan struct{}, err error) {
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.at < h.lost {
		return nil, nil, ErrBehind
	}
	i, _ := slices.BinarySearchFunc(h.events, r.at, func(e entry, n int64) int { return cmp.Compare(e.n, n) })
	for _, e := range h.events[i:] {
		if r.at = e.n + 1; !e.delta || h.end-r.at < lag {
			return e.text, nil, nil
		}
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return nil, h.changed, nil
}
