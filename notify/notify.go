// Package notify turns facts into desktop notices. It owns which facts call a person and what a notice says; it is a
// watcher that only reads events, and nothing in the program waits for it.
//
// A person is called when a mission is done, has failed or is blocked, and when something waits for their answer, once
// for everything that waits at the same time. What a single worker does calls nobody.
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
	view.Board
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
	if m.called || d.By != "" { // a policy answers in the same moment: it waits for nobody
		return notice{}, false
	}
	m.called = true
	return notice{"Centurion needs you", text.Dots(asks(e.Type, d), m.Goal), true}, true
}

// end is the notice of the end of a run. A pause and a cancelling call nobody: they are a limit that the person set, or their own doing.
func (m *mission) end(how centurion.EventType, d view.Fact) (notice, bool) {
	title := ""
	switch {
	case how == centurion.EventMissionCompleted:
		word := centurion.MissionCompleted.Word(d.Evidence, d.Profile)
		title = "Mission done" + text.When(word != string(centurion.MissionCompleted), ", not verified")
	case how == centurion.EventMissionFailed:
		title = "Mission failed"
	case how == centurion.EventMissionBlocked && !m.called: // else they have been told what it waits for
		title = "Mission blocked"
	}
	cost, took := text.When(d.Cost > 0, text.USD(d.Cost)), text.When(d.DurationMS > 0, text.Span(d.Duration()))
	return notice{title, text.Dots(d.Reason, m.Goal, cost, took), how != centurion.EventMissionCompleted}, title != ""
}

// asks says what waits, without its details: a command or a question may hold what does not belong on a lock screen.
func asks(typ centurion.EventType, d view.Fact) string {
	switch typ {
	case centurion.EventPermissionAsked:
		return text.If(d.Permission != "", "permission for "+d.Permission, "a permission")
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
