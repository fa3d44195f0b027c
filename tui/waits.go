package tui

import (
	"iter"
	"strings"

	"centurion"
	"centurion/text"
)

// Waits tells of asks that wait for a person, for whoever reads events as JSON lines and would not see them there.
type Waits struct {
	say   func(line string)
	story story
	seen  int64
}

// NewWaits returns one that says each ask in a line: who asks what, and the command that answers it.
func NewWaits(say func(line string)) *Waits {
	return &Waits{say: say, story: story{board: &Board{}}}
}

// Before takes in an event that happened before, of which nothing is said.
func (w *Waits) Before(e centurion.Event) {
	w.story.apply(e)
	w.seen = max(w.seen, e.Seq)
}

// Open says the asks that were left open by what happened before. With questions those of ask_user alone: they outlive the host that asked.
func (w *Waits) Open(questions bool) {
	for _, a := range w.story.board.Asks {
		if questions && a.Type != "question" {
			continue
		}
		w.tell(askedFacts(a, w.story.name(a.Session, a.Task)))
	}
}

// Through yields events as they are, and says each new ask that comes by.
func (w *Waits) Through(events iter.Seq2[centurion.Event, error]) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for e, err := range events {
			if err == nil && e.Seq > w.seen {
				if facts := w.story.apply(e); strings.HasSuffix(string(e.Type), ".asked") {
					w.tell(facts)
				}
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// tell says the last of an ask's facts; those before it are the plan that it is about.
func (w *Waits) tell(facts []fact) {
	if len(facts) == 0 {
		return
	}
	f := facts[len(facts)-1]
	said := f.text
	if f.who != "" {
		said = f.who + " " + said
	}
	w.say(text.Dots(said, f.detail))
}
