package report

import (
	"slices"
	"time"

	"centurion/text"
)

// heldUp is how long the whole mission waited for a person's answers: an ask was open, and no agent worked.
func heldUp(t Timeline, asked []Decision) time.Duration {
	var waits, busy []period
	for _, a := range asked {
		p := period{a.Time.Time, a.Time.Add(text.Millis(a.WaitMS))}
		if a.Answer == "" && a.By == "" && a.WaitMS == 0 { // it is still open
			p.to = t.To.Time
		}
		waits = append(waits, p)
	}
	for _, l := range t.Lanes {
		for _, s := range l.Spans {
			if s.Kind != SpanWait {
				busy = append(busy, period{s.From.Time, s.To.Time})
			}
		}
	}
	for _, g := range t.Gaps {
		busy = append(busy, period{g.From.Time, g.To.Time}) // gaps are not working time and not counted
	}
	return covered(append(slices.Clone(busy), waits...)) - covered(busy)
}

// period is a time between two moments.
type period struct{ from, to time.Time }

// covered is the total length of the union of periods.
func covered(all []period) (sum time.Duration) {
	slices.SortFunc(all, func(a, b period) int { return a.from.Compare(b.from) })
	var end time.Time
	for _, p := range all {
		if p.from.Before(end) {
			p.from = end
		}
		if p.to.After(p.from) {
			sum += p.to.Sub(p.from)
			end = p.to
		}
	}
	return sum
}
