package tui

import (
	"context"
	"io"
	"iter"

	"centurion"
)

// maxPast limits the facts kept for showing again: more than the lines of a tall terminal.
const maxPast = 200

// Past is the history of a mission before a view of it begins. The zero Past is for a new mission.
type Past struct {
	story story
	facts []fact // the newest facts, oldest first
	lines int    // how many of them a view shows at its start
}

// NewPast returns the past of a mission with these caps on parallel workers; 0 means the default. With tell, a view of it begins with a
// screenful of past events, otherwise with the next event.
func NewPast(slots, perAgent int, tell bool) *Past {
	p := &Past{story: story{board: &Board{Slots: slots, PerAgent: perAgent}}}
	if tell {
		p.lines = plainPast
	}
	return p
}

// plainPast is the number of past lines at the start of a plain view: a small terminal's screenful.
const plainPast = 20

// Add adds an earlier event. Call it in the order of the events.
func (p *Past) Add(e centurion.Event) { p.keep(p.story.apply(e)) }

func (p *Past) keep(facts []fact) {
	p.facts = append(p.facts, facts...)
	if n := len(p.facts) - maxPast; n > maxPast { // rarely, so that it costs nothing
		p.facts = append([]fact(nil), p.facts[n:]...)
	}
}

// RunPlain is [RunPlain] for a mission with this past.
func (p *Past) RunPlain(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error]) error {
	for _, f := range p.facts[max(0, len(p.facts)-p.lines):] {
		if _, err := io.WriteString(w, f.plainLine()+"\n"); err != nil {
			return outputError(err)
		}
	}
	return runPlain(ctx, w, &p.story, events)
}
