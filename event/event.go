// Package event brings facts to readers at the edge: cursors over the journal, the fan-out of token deltas, and the typed data of every
// event. It stores nothing (the journal lives in store), and nothing in the program makes progress by reading it.
//
// Delivery: a fact is committed before it is published. A reader with a cursor gets every fact it asks for exactly once, in the order
// of the journal. Token deltas are lossy: they are not stored, late subscribers get no old ones, slow ones get fewer and larger pieces,
// and some are dropped for one that is too slow. A loss is visible: a delta with {"gap":true} takes the place of the dropped ones, and
// the part's next fact holds the whole text.
package event

import (
	"context"
	"iter"
	"slices"

	"centurion"
)

// page is how many facts Follow reads at once.
const page = 256

// Journal is the source of facts.
type Journal interface {
	// Events returns at most limit facts with a higher sequence number than after, in order; fewer only if that is all.
	Events(ctx context.Context, after int64, limit int) ([]centurion.Event, error)
	// LastSeq returns the newest committed sequence number.
	LastSeq() int64
	// Changed returns a channel that is closed at the next commit with facts after the call.
	Changed() <-chan struct{}
}

// Filter selects events. An empty field selects everything, but deltas come only with Deltas.
type Filter struct {
	Mission string
	Session string
	Task    string
	Types   []centurion.EventType // of facts; ignored for deltas
	Deltas  bool
}

// Match reports whether the filter selects e. A delta without a session marks a gap in several sessions and matches every filter with
// Deltas.
func (f Filter) Match(e centurion.Event) bool {
	if e.Type == centurion.EventDelta {
		if !f.Deltas {
			return false
		}
		if e.Session == "" {
			return true
		}
	} else if len(f.Types) > 0 && !slices.Contains(f.Types, e.Type) {
		return false
	}
	return (f.Mission == "" || f.Mission == e.Mission) && (f.Session == "" || f.Session == e.Session) &&
		(f.Task == "" || f.Task == e.Task)
}

// Follow yields every matching fact after the cursor and then waits for new ones until ctx ends, which is no error. A journal error is
// yielded once and ends the sequence. The iterator may be left at any time and ranged over again; each time it starts at the cursor.
//
// With f.Deltas, the deltas that h publishes meanwhile come in between: after the fact numbered After, and before every fact committed
// after the delta's publication, so that a part's final text never precedes its pieces. Without f.Deltas h may be nil.
func Follow(ctx context.Context, j Journal, h *Hub, after int64, f Filter) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		w := follower{ctx: ctx, journal: j, filter: f, cursor: after, yield: yield}
		if f.Deltas && h != nil {
			s := h.add(f.Match) // so that unwanted deltas do not crowd out the others
			defer h.remove(s)
			w.deltas = s.events
		}
		for {
			// Get the channel before reading: a commit in between then wakes the wait.
			changed := j.Changed()
			if !w.news() || !w.ready() || !w.wait(changed) {
				return
			}
		}
	}
}

// follower is one run of Follow. Its methods report false when the run is over.
type follower struct {
	ctx     context.Context
	journal Journal
	filter  Filter
	cursor  int64 // every fact up to here has been yielded
	yield   func(centurion.Event, error) bool
	deltas  <-chan centurion.Event
	next    *centurion.Event // the oldest received delta not yet yielded
	woken   bool             // by a delta, not by the journal
}

// news yields what the journal has, unless only a delta woke the run: otherwise 200 readers would query the store with each token.
func (w *follower) news() bool {
	if w.woken && w.journal.LastSeq() <= w.cursor {
		return true
	}
	return w.facts()
}

// facts yields the facts after the cursor, with the deltas before each.
func (w *follower) facts() bool {
	for w.ctx.Err() == nil {
		found, err := w.journal.Events(w.ctx, w.cursor, page)
		if err != nil {
			if w.ctx.Err() == nil {
				w.yield(centurion.Event{}, err)
			}
			return false
		}
		for _, e := range found {
			// A session publishes its delta before it commits e, so it is in the channel by now.
			if !w.before(e.Seq) {
				return false
			}
			w.cursor = e.Seq
			if w.filter.Match(e) && !w.yield(e, nil) {
				return false
			}
		}
		if len(found) < page {
			return true
		}
	}
	return false
}

// before yields the deltas published before the fact with the given number was committed.
func (w *follower) before(seq int64) bool {
	for {
		run := w.take(seq)
		if len(run) == 0 {
			return true
		}
		for _, d := range coalesce(run) {
			if !w.yield(d, nil) {
				return false
			}
		}
	}
}

// ready yields the deltas whose fact has been yielded.
func (w *follower) ready() bool { return w.before(w.cursor + 1) }

// take receives the available deltas whose After is below seq, at most a buffer's worth.
func (w *follower) take(seq int64) []centurion.Event {
	var run []centurion.Event
	for len(run) < deltaBuffer {
		if w.next == nil && !w.receive() {
			break
		}
		if w.next.After >= seq {
			break
		}
		run = append(run, *w.next)
		w.next = nil
	}
	return run
}

// receive takes the next delta if one is available.
func (w *follower) receive() bool {
	select {
	case d := <-w.deltas:
		w.next = &d
		return true
	default:
		return false
	}
}

// wait blocks until there is something to yield.
func (w *follower) wait(changed <-chan struct{}) bool {
	w.woken = false
	deltas := w.deltas
	if w.next != nil {
		deltas = nil // it waits for its fact, and those behind it wait in the buffer
	}
	select {
	case <-w.ctx.Done():
		return false
	case <-changed:
	case d := <-deltas:
		w.next, w.woken = &d, true
	}
	return w.ctx.Err() == nil
}
