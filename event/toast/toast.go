// Package toast derives from a mission's events what a person is told in passing: the consolidated list of its tasks and
// the short notices that OpenCode calls toasts. It owns which facts give a toast and what it says.
//
// Nothing here is stored. A toast is made anew from the same facts each time, and may be missed: what counts is in the
// journal. Texts are of one line, or of several that this package made, without control characters.
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

// Window is how long what happens to the tasks of one session is gathered for one toast.
const Window = 500 * time.Millisecond

// maxText is how many bytes of a goal, a title or a reason a toast repeats.
const maxText = 160

// Notice is a toast with where it comes from.
type Notice struct {
	Toast
	Time    centurion.Time
	After   int64 // the sequence number of the newest fact that it tells of
	Mission string
	Session string // whom it belongs to: of a task the session that delegated it, else the mission's own
}

// Event is the notice as an event, which is not stored: it has no sequence number of its own.
func (n Notice) Event() centurion.Event {
	return centurion.Event{Type: centurion.EventToast, After: n.After, Time: n.Time, Mission: n.Mission, Session: n.Session,
		Data: event.Data(n.Toast)}
}

// Deriver makes notices of events. The zero Deriver is ready. It is not safe for concurrent use.
type Deriver struct {
	// Caps returns a mission's caps on workers at once, in all and of one agent, to be shown; 0 means the defaults. Nil
	// means the defaults for all.
	Caps func(mission string) (slots, perAgent int)

	missions map[string]*mission
	kept     map[string]*event.Ring[Notice] // by session
}

// mission is what is remembered of one that has not ended.
type mission struct {
	board    view.Board
	families []*family // in the order of their first tasks
	called   bool      // the person was told that something waits, and it still does
	waits    time.Time // until then it is known that the model is waited for
}

// family is the tasks that one session has delegated.
type family struct {
	parent string
	batch  []string // ids of the tasks since none was left to do, in the order of their first events

	opened  centurion.Time // when the first event came that was not told yet; zero if there is none
	after   int64
	ended   []string
	started bool
}

// Due returns when a notice comes out that waits for more to be told with it; the zero time if none waits.
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

// Apply takes the next event and returns the notices that it calls for, after those that were due before it.
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
	if e.Type.EndsMission() { // what is left of its tasks is told before its end
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

// family returns the one of a parent session.
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

// clean makes a text one line that any program can show, of at most maxText bytes.
func clean(s string) string {
	return centurion.Clip(text.Printable(centurion.Clip(s, 4*maxText)), maxText)
}
