// Package notify turns facts into desktop notices. It owns which facts call a person and what a notice says; it is a
// watcher that only reads events, and nothing in the program waits for it.
//
// A person is called when a mission is done, has failed or is blocked, and when something waits for their answer, once
// for everything that waits at the same time. What a single worker does calls nobody.
package notify

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Sender shows one notice. Title and body are plain text that [Watch] has made harmless.
type Sender interface {
	Send(ctx context.Context, title, body string, urgent bool) error
}

// MaxText is the length of a title or body, in runes. What desktops show without cutting is shorter than that.
const MaxText = 200

// Watch reads events until the sequence or ctx ends and sends what a person should know. A notice that cannot be sent
// stops nothing: the first such error is returned at the end, unless the sequence itself ended with one.
func Watch(ctx context.Context, events iter.Seq2[centurion.Event, error], s Sender) error {
	w := watcher{missions: map[string]*mission{}}
	var failed error
	for e, err := range events {
		if err != nil {
			if ctx.Err() != nil {
				break
			}
			return err
		}
		if ctx.Err() != nil {
			break
		}
		n, ok := w.see(e)
		if !ok {
			continue
		}
		if err := s.Send(ctx, Clean(n.title), Clean(n.body), n.urgent); err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

type notice struct {
	title, body string
	urgent      bool
}

// mission is what is remembered of one.
type mission struct {
	goal   string
	open   int  // asks without an answer
	called bool // the person was told that something waits, and it still does
}

type watcher struct{ missions map[string]*mission }

// see takes in one event and returns the notice that it calls for.
func (w *watcher) see(e centurion.Event) (notice, bool) {
	m := w.missions[e.Mission]
	if m == nil {
		m = &mission{}
		w.missions[e.Mission] = m
	}
	switch e.Type {
	case centurion.EventMissionStarted, centurion.EventMissionResumed:
		m.goal = cmp.Or(view.Read(e).Goal, m.goal)
	case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked:
		m.open++
		if m.called || view.Read(e).By != "" { // a policy answers in the same moment: it waits for nobody
			return notice{}, false
		}
		m.called = true
		return notice{"Centurion needs you", text.Dots(asks(e), m.goal), true}, true
	case centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
		m.open = max(m.open-1, 0)
		m.called = m.called && m.open > 0
	case centurion.EventMissionCompleted:
		title := "Mission done"
		if d := view.Read(e); centurion.MissionCompleted.Word(d.Evidence, d.Profile) != string(centurion.MissionCompleted) {
			title += ", not verified"
		}
		return w.end(e, title, false)
	case centurion.EventMissionFailed:
		return w.end(e, "Mission failed", true)
	case centurion.EventMissionBlocked:
		if m.called { // they have been told what it waits for
			delete(w.missions, e.Mission)
			return notice{}, false
		}
		return w.end(e, "Mission blocked", true)
	case centurion.EventMissionPaused, centurion.EventMissionCancelled:
		delete(w.missions, e.Mission) // a limit they set, or their own doing
	}
	return notice{}, false
}

func (w *watcher) end(e centurion.Event, title string, urgent bool) (notice, bool) {
	goal := w.missions[e.Mission].goal
	delete(w.missions, e.Mission)
	d, cost, took := view.Read(e), "", ""
	if d.Cost > 0 {
		cost = text.USD(d.Cost)
	}
	if d.DurationMS > 0 {
		took = text.Span(d.Duration())
	}
	return notice{title, text.Dots(d.Reason, goal, cost, took), urgent}, true
}

// asks says what waits, without its details: a command or a question may hold what does not belong on a lock screen.
func asks(e centurion.Event) string {
	switch e.Type {
	case centurion.EventPermissionAsked:
		if p := view.Read(e).Permission; p != "" {
			return "permission for " + p
		}
		return "a permission"
	case centurion.EventPlanAsked:
		return "a plan waits for your approval"
	}
	return "a question"
}

// lookalikes stand for characters that mean something to a desktop, a shell or a script that shows a notice.
var lookalikes = strings.NewReplacer("<", "‹", ">", "›", "&", "＆", `"`, "”", "`", "’", `\`, "＼", "$(", "$ (", "${", "$ {", "%", "％")

// Clean makes a text harmless for a notice: one line, no control or invisible characters, no markup, no leading dash,
// and at most [MaxText] runes.
func Clean(s string) string {
	s = lookalikes.Replace(text.Printable(centurion.Clip(s, 16*MaxText)))
	return text.Cut(strings.TrimLeft(s, "-–—− "), MaxText)
}
