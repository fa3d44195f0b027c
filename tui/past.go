package tui

import (
	"context"
	"io"
	"iter"

	"centurion"
)

// maxPast is how many facts are kept to be shown again: more than the lines of a tall terminal.
const maxPast = 200

// Past is what happened in a mission before somebody looks at it. The zero Past is that of a mission that begins.
type Past struct {
	story story
	facts []fact // the newest, oldest first
	lines int    // of them that a view begins with
}

// NewPast returns the past of a mission with these caps on workers at once; 0 means the default. A view of it begins with as much of
// what happened as fills the screen if tell is set, else with what happens next.
func NewPast(slots, perAgent int, tell bool) *Past {
	p := &Past{story: story{board: &Board{Slots: slots, PerAgent: perAgent}}}
	if tell {
		p.lines = plainPast
	}
	return p
}

// plainPast is how many lines of the past a plain view begins with: a small terminal's screenful.
const plainPast = 20

// Add takes an event that happened before. Events come in their order.
func (p *Past) Add(e centurion.Event) { p.keep(p.story.apply(e)) }

func (p *Past) keep(facts []fact) {
	p.facts = append(p.facts, facts...)
	if n := len(p.facts) - maxPast; n > maxPast { // seldom, so that it costs nothing
		p.facts = append([]fact(nil), p.facts[n:]...)
	}
}

// RunPlain is [RunPlain] of a mission with this past.
func (p *Past) RunPlain(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error]) error {
	for _, f := range p.facts[max(0, len(p.facts)-p.lines):] {
		if _, err := io.WriteString(w, f.plainLine()+"\n"); err != nil {
			return outputError(err)
		}
	}
	return runPlain(ctx, w, &p.story, events)
}
