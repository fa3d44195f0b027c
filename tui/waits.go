package tui

import (
	"iter"
	"strings"

	"centurion"
	"centurion/text"
)

// Waits reports open asks to readers of JSON lines, who would overlook them there.
type Waits struct {
	say   func(line string)
	story story
	seen  int64
}

// NewWaits returns one that reports each ask in a line: the agent, the question, and the command for the answer.
func NewWaits(say func(line string)) *Waits {
	return &Waits{say: say, story: story{board: &Board{}}}
}

// Before takes in an earlier event without reporting it.
func (w *Waits) Before(e centurion.Event) {
	w.story.apply(e)
	w.seen = max(w.seen, e.Seq)
}

// Open reports the asks left open by earlier events. With questions, only those of ask_user: they outlive the host that asked.
func (w *Waits) Open(questions bool) {
	for _, a := range w.story.board.Asks {
		if questions && a.Type != "question" {
			continue
		}
		w.tell(askedFacts(a, w.story.name(a.Session, a.Task)))
	}
}

// Through yields events unchanged, and reports each new ask.
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

// tell reports the last of an ask's facts; those before it are its plan.
func (w *Waits) tell(facts []fact) {
	if len(facts) == 0 {
		return
	}
	f := facts[len(facts)-1]
	w.say(text.Dots(strings.TrimSpace(f.who+" "+f.text), f.detail))
}
