// Package toast derives from a mission's events what a person is told in passing: the list of its tasks and the short notices that
// OpenCode calls toasts. It owns which facts give a toast and what it says.
//
// It stores nothing: the same facts give the same toasts again, and a toast may be missed, since the journal is what counts. Texts have
// one line, or several made by this package, and no control characters.
package toast

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/view"
	"centurion/text"
)

// Window is how long the events of one session's tasks are collected for one toast.
const Window = 500 * time.Millisecond

// maxText is how many bytes of a goal, a title or a reason a toast repeats.
const maxText = 160

// Notice is a toast and its origin.
type Notice struct {
	Toast
	Time    centurion.Time
	After   int64 // the sequence number of the newest fact in it
	Mission string
	Session string // for a task the session that delegated it, else the mission's own
}

// Event returns the notice as an event, which is not stored and has no sequence number of its own.
func (n Notice) Event() centurion.Event {
	return centurion.Event{Type: centurion.EventToast, After: n.After, Time: n.Time, Mission: n.Mission, Session: n.Session,
		Data: event.Data(n.Toast)}
}

// Deriver derives notices from events. The zero Deriver is ready to use. It is not safe for concurrent use.
type Deriver struct {
	// Caps returns a mission's limits for simultaneous workers, in total and per agent, for display; 0 means the default. Nil means the
	// defaults for all.
	Caps func(mission string) (slots, perAgent int)

	missions map[string]*mission
	kept     map[string]*event.Ring[Notice] // by session
}

// mission is the state of a mission that has not ended.
type mission struct {
	board    view.Board
	families []*family // in the order of their first tasks
	called   bool      // the person was told that something waits, and it still does
	waits    time.Time // until then the wait for the model is known
}

// family is the tasks delegated by one session.
type family struct {
	parent string
	batch  []string // ids of the tasks since none was left to do, in the order of their first events

	opened  centurion.Time // time of the first unreported event; zero without one
	after   int64
	ended   []string
	started bool
}

// Due returns when the next waiting notice is due; the zero time if none waits.
func (d *Deriver) Due() time.Time {
	var due time.Time
	for _, m := range d.missions {
		for _, f := range m.families {
			if at := f.opened.Add(Window); !f.opened.IsZero() && (due.IsZero() || at.Before(due)) {
				due = at
			}
		}
	}
	return due
}

// Flush returns the notices that are due.
func (d *Deriver) Flush(now time.Time) []Notice {
	var out []Notice
	for id, m := range d.missions {
		for _, f := range m.families {
			if at := f.opened.Add(Window); !f.opened.IsZero() && !at.After(now) {
				out = append(out, d.keep(m.tell(id, f, centurion.Time{Time: at})))
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Notice) int { return a.Time.Compare(b.Time.Time) })
	return out
}

// Kept returns the newest notices of a session, at most [event.Kept], oldest first.
func (d *Deriver) Kept(session string) []Notice {
	if r := d.kept[session]; r != nil {
		return r.All()
	}
	return nil
}

func (d *Deriver) keep(n Notice) Notice {
	if d.kept == nil {
		d.kept = map[string]*event.Ring[Notice]{}
	}
	r := d.kept[n.Session]
	if r == nil {
		r = &event.Ring[Notice]{}
		d.kept[n.Session] = r
	}
	r.Add(n)
	return n
}

// Apply takes the next event and returns its notices, after those that were due before it.
func (d *Deriver) Apply(e centurion.Event) []Notice {
	if e.Type == centurion.EventDelta || e.Type == centurion.EventToast || e.Mission == "" {
		return nil
	}
	kind, _, _ := strings.Cut(string(e.Type), ".")
	out := d.Flush(e.Time.Time)
	m := d.missions[e.Mission]
	if m == nil {
		m = &mission{}
		if d.Caps != nil {
			m.board.Slots, m.board.PerAgent = d.Caps(e.Mission)
		}
		if d.missions == nil {
			d.missions = map[string]*mission{}
		}
		d.missions[e.Mission] = m
	}
	var p view.Fact
	switch kind {
	case "task":
		p = m.task(e)
	case "mission", "budget", "provider", "permission", "question", "plan":
		p, _ = m.board.Apply(e)
	}
	if e.Type.EndsMission() { // the rest of its tasks is reported before its end
		for _, f := range m.families {
			if !f.opened.IsZero() {
				out = append(out, d.keep(m.tell(e.Mission, f, e.Time)))
			}
		}
	}
	if t, ok := m.see(e, p); ok {
		out = append(out, d.keep(Notice{Toast: t, Time: e.Time, After: e.Seq, Mission: e.Mission, Session: cmp.Or(m.board.Session, e.Session)}))
	}
	if e.Type == centurion.EventMissionCompleted || e.Type == centurion.EventMissionCancelled {
		delete(d.missions, e.Mission)
	}
	return out
}

// family returns the family of a parent session.
func (m *mission) family(parent string) *family {
	for _, f := range m.families {
		if f.parent == parent {
			return f
		}
	}
	f := &family{parent: parent}
	m.families = append(m.families, f)
	return f
}

// clean makes a text one displayable line of at most maxText bytes.
func clean(s string) string {
	return centurion.Clip(text.Printable(centurion.Clip(s, 4*maxText)), maxText)
}
