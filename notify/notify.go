// Package notify turns facts into desktop notices. It owns which facts call for a person and what a notice says; it only reads events,
// and nothing in the program waits for it.
//
// A person is notified when a mission is done, has failed or is blocked, and when something waits for their answer, once for everything
// that waits at the same time. A single worker never causes a notice.
package notify

import (
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

// MaxText is the maximum length of a title or body, in runes. Desktops show less without cutting.
const MaxText = 200

// Watch reads events until the sequence or ctx ends and sends what a person should know. A failed notice stops nothing: the first such
// error is returned at the end, unless the sequence itself ended with one.
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

// mission is the state of a mission.
type mission struct {
	view.Board
	called bool // the person was told that something waits, and it still does
}

type watcher struct{ missions map[string]*mission }

// see takes one event and returns its notice.
func (w *watcher) see(e centurion.Event) (notice, bool) {
	m := w.missions[e.Mission]
	if m == nil {
		m = &mission{}
		w.missions[e.Mission] = m
	}
	switch kind, _, _ := strings.Cut(string(e.Type), "."); kind {
	default:
		return notice{}, false
	case "mission", "permission", "question", "plan":
	}
	d, _ := m.Apply(e)
	if e.Type.EndsMission() {
		delete(w.missions, e.Mission)
		return m.end(e.Type, d)
	}
	if !strings.HasSuffix(string(e.Type), ".asked") {
		m.called = m.called && len(m.Asks) > 0
		return notice{}, false
	}
	if m.called || d.By != "" { // a policy answers right away: it waits for no one
		return notice{}, false
	}
	m.called = true
	return notice{"Centurion needs you", text.Dots(asks(e.Type, d), m.Goal), true}, true
}

// end returns the notice for the end of a run. A pause and a cancellation need none: they are a limit set by the person, or their own
// doing.
func (m *mission) end(how centurion.EventType, d view.Fact) (notice, bool) {
	title := ""
	switch {
	case how == centurion.EventMissionCompleted:
		word := centurion.MissionCompleted.Word(d.Evidence, d.Profile)
		title = "Mission done" + text.When(word != string(centurion.MissionCompleted), ", not verified")
	case how == centurion.EventMissionFailed:
		title = "Mission failed"
	case how == centurion.EventMissionBlocked && !m.called: // otherwise they know already what it waits for
		title = "Mission blocked"
	}
	cost, took := text.When(d.Cost > 0, text.USD(d.Cost)), text.When(d.DurationMS > 0, text.Span(d.Duration()))
	return notice{title, text.Dots(d.Reason, m.Goal, cost, took), how != centurion.EventMissionCompleted}, title != ""
}

// asks says what waits, without details: a command or a question may hold things that do not belong on a lock screen.
func asks(typ centurion.EventType, d view.Fact) string {
	switch typ {
	case centurion.EventPermissionAsked:
		return text.If(d.Permission != "", "permission for "+d.Permission, "a permission")
	case centurion.EventPlanAsked:
		return "a plan waits for your approval"
	}
	return "a question"
}

// lookalikes replace characters with a special meaning to a desktop, a shell or a script that shows a notice.
var lookalikes = strings.NewReplacer("<", "‹", ">", "›", "&", "＆", `"`, "”", "`", "’", `\`, "＼", "$(", "$ (", "${", "$ {", "%", "％")

// Clean makes a text safe for a notice: one line, no control or invisible characters, no markup, no leading dash, and at most [MaxText]
// runes.
func Clean(s string) string {
	s = lookalikes.Replace(text.Printable(centurion.Clip(s, 16*MaxText)))
	return text.Cut(strings.TrimLeft(s, "-–—− "), MaxText)
}
