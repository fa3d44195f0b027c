// Package opencode serves the clients of OpenCode. It passes events on to any number of readers; the names of OpenCode's protocol stand in
// the packages of its dialects.
package opencode

import (
	"context"
	"errors"
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
	first   int64      // the number of the oldest kept one
	bytes   int
	changed chan struct{} // closed at the next event; nil without waiters
}

type entry struct {
	text  []byte
	delta bool // it can be lost: a later event has all of it
}

// Send passes an event on. The text must not be changed afterwards.
func (h *Hub) Send(text []byte, delta bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, entry{text, delta})
	h.bytes += len(text)
	if h.bytes > keptBytes {
		drop := 0
		for ; h.bytes > keptBytes*3/4; drop++ { // more than needed, so that what is left is seldom copied
			h.bytes -= len(h.events[drop].text)
		}
		h.events, h.first = append([]entry(nil), h.events[drop:]...), h.first+int64(drop)
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
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
	return &Reader{h, h.first + int64(len(h.events))}
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

// take returns the next event, or what tells that there is one.
func (r *Reader) take() (text []byte, changed <-chan struct{}, err error) {
	h := r.h
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.at < h.first {
		return nil, nil, ErrBehind
	}
	for end := h.first + int64(len(h.events)); r.at < end; {
		e := h.events[r.at-h.first]
		if r.at++; !e.delta || end-r.at < lag {
			return e.text, nil, nil
		}
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return nil, h.changed, nil
}
