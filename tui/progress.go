package tui

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/event/progress"
	"centurion/event/toast"
	"centurion/text"
)

// toastFact converts a toast to a fact.
func toastFact(e centurion.Event) fact {
	d, _ := event.Decode[toast.Toast](e) // for unknown data the line is empty
	lines := text.CleanLines(d.Message)
	if title := text.Clean(d.Title); title != "" && title != strings.Join(lines, " ") {
		lines = append([]string{title}, lines...)
	}
	tones := map[toast.Variant]tone{toast.Success: good, toast.Warning: warn, toast.Error: bad}
	return fact{at: e.Time.Time, mark: "»", tone: cmp.Or(tones[d.Variant], dim), text: text.Dots(lines...)}
}

// toastSpan is how long the live view shows a toast.
func toastSpan(e centurion.Event) time.Duration {
	d, _ := event.Decode[toast.Toast](e)
	return time.Duration(cmp.Or(max(0, d.Duration), 5000)) * time.Millisecond
}

// Progress prints the snapshots of a session as a table, one line per step.
//
//	STEP  TODO  RUNNING  TOKENS     COST  ELAPSED
//	   1   0/6        0   2.1k  $0.0120       4s
func Progress(w io.Writer, all []progress.Snapshot, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	p.line(p.theme.paint(dim, fmt.Sprintf("%4s  %7s  %7s  %7s  %8s  %7s", "STEP", "TODO", "RUNNING", "TOKENS", "COST", "ELAPSED")))
	for _, s := range all {
		done := text.If(s.Todo.Total() > 0, fmt.Sprintf("%d/%d", s.Todo.Done, s.Todo.Total()), "-")
		p.line(fmt.Sprintf("%4d  %7s  %7d  %7s  %8s  %7s", s.Step, done, s.Running, text.Tokens(s.Tokens.Total()),
			text.Cost(centurion.Usage{USD: s.Cost, Unpriced: s.Unpriced}), text.Span(text.Millis(s.ElapsedMS))))
	}
	return p.flush(w)
}

// Notices prints one line for each notice, in the order given.
func Notices(w io.Writer, all []centurion.Event, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	for _, e := range all {
		f := toastFact(e)
		p.line(f.at.In(o.Now.Location()).Format("15:04:05") + " " + p.theme.paint(f.tone, f.mark) + " " + text.Fit(f.text, o.Width-11))
	}
	return p.flush(w)
}
