package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"centurion"
	"centurion/text"
)

// The measures of the picture, in its own units; a browser scales it.
const (
	picWidth  = 1000.0
	picLabels = 218.0 // width of the column of names
	picRight  = 14.0
	picTop    = 52.0 // for the axis and the labels of lines
	rowHigh   = 20.0
	rowLow    = 16.0 // with more lanes than manyLanes
	manyLanes = 60
	markWidth = 11.0 // closer marks are combined into one with a number
	tickRoom  = 72.0 // for a tick's label
	letter    = 7.0  // of a wide font; longer text is cut off at the column's end
	maxLabel  = 30   // columns of a lane's name
)

// picture is the layout of the timeline.
type picture struct {
	W, H, X, Right, Bottom float64
	Title, Desc            string
	Rows                   []picRow
	Ticks                  []picTick
	Lines                  []picLine
	Roles                  []picRole
	Marks                  []picLegend
	Kinds                  []picKind
	Waits, Checks, Merges  bool // there are bars of these kinds
	Crowded                bool // a mark has a number
}

// Left is the right edge of the names: the first marks extend a little beyond the start of time.
func (p *picture) Left() float64 { return p.X - markWidth/2 - 2.5 }

// Wide is the width of the part without the names.
func (p *picture) Wide() float64 { return p.W - p.Left() }

type picRow struct {
	Y, Mid, H float64
	Label     string // cut to its column
	Full      string
	Role      int
	Bars      []picBar
	Marks     []picMark
	Odd       bool
}

type picBar struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

type picMark struct {
	X, Y  float64
	Kind  MarkKind
	Path  string
	Title string
	Count int // number of combined marks; written if there is room
	Room  bool
	last  MarkKind // the newest of the combined marks
}

type picTick struct {
	X      float64
	Label  string
	Anchor string // where the label is anchored: middle; start if it would extend into the names; end if it would extend beyond the picture
}

type picLine struct {
	X, LabelY    float64
	Class        string
	Label, Title string // the label is empty if there is no room
	End          bool   // the label is to the left of the line
}

type picRole struct {
	Role int
	Name string
}

// picKind is a kind of line across all lanes.
type picKind struct{ Class, Name string }

type picLegend struct {
	Kind MarkKind
	Path string
	Name string
}

// legend are the kinds of marks with their shapes around their centre and their names, most severe first. The shapes differ, so that
// colour is not needed.
var legend = []picLegend{
	{MarkKill, "M-4.5 -3L-3 -4.5L0 -1.5L3 -4.5L4.5 -3L1.5 0L4.5 3L3 4.5L0 1.5L-3 4.5L-4.5 3L-1.5 0z", "cut off"}, // a cross
	{MarkFail, "M-4 -4H4V4H-4z", "failed or blocked"},                                                            // a square
	{MarkConflict, "M0 -5.5L5.5 0L0 5.5L-5.5 0zM0 -2.5L-2.5 0L0 2.5L2.5 0z", "conflict"},                         // a diamond with a hole
	{MarkRed, "M0 -5L5 4H-5z", "red check"},                                                                      // an upright triangle
	{MarkReturn, "M4 -4.5L-4.5 0L4 4.5z", "sent back"},                                                           // a triangle pointing back
	{MarkRetry, "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "tried again"},                                            // a circle
	{MarkMerge, "M0 -5L5 0L0 5L-5 0z", "integrated or merged"},                                                   // a diamond
	{MarkDone, "M-4.5 0L-3 -1.5L-1.2 0.6L3 -4L4.5 -2.5L-1.2 3.6z", "completed"},                                  // a tick
}

// rank is the severity of a kind of mark; 0 is the most severe.
func (k MarkKind) rank() int {
	return slices.IndexFunc(legend, func(l picLegend) bool { return l.Kind == k })
}

// name describes a mark: the name of its kind, how a task was done, or whether a merge was undone.
func (m Mark) name() string {
	switch {
	case m.Kind == MarkDone && m.Text != "":
		return m.Text
	case m.Kind == MarkMerge && strings.HasPrefix(m.Text, takenBack):
		return strings.TrimSuffix(takenBack, " from ")
	case m.Kind == MarkMerge && strings.HasPrefix(m.Text, integrated):
		return integrated
	}
	return legend[m.Kind.rank()].Name
}

// moment is the time of a mark of the whole mission: working time since the start, or the clock time after the end.
func (t Timeline) moment(m Mark) string {
	if m.Time.After(t.To.Time) {
		return clock(m.Time)
	}
	return axis(t.at(m.Time))
}

// kindsOf are the kinds of line in use, in order of first use.
func kindsOf(lines []picLine) []picKind {
	names := map[string]string{"restart": "its host was gone", "pause": "paused", "merge": "merged or reverted", "conflict": "conflict"}
	var out []picKind
	for _, l := range lines {
		if !slices.ContainsFunc(out, func(k picKind) bool { return k.Class == l.Class }) {
			out = append(out, picKind{l.Class, cmp.Or(names[l.Class], l.Class)})
		}
	}
	return out
}

// draw lays out a timeline.
func draw(t Timeline) *picture {
	if len(t.Lanes) == 0 {
		return nil
	}
	high := rowHigh
	if len(t.Lanes) > manyLanes {
		high = rowLow
	}
	p := &picture{W: picWidth, X: picLabels, Right: picWidth - picRight, Bottom: picTop + high*float64(len(t.Lanes))}
	p.H = p.Bottom + 8
	whole := max(t.worked(), time.Millisecond)
	x := func(at centurion.Time) float64 { return tenth(p.X + (p.Right-p.X)*float64(t.at(at))/float64(whole)) }
	roles := rolesOf(t.Lanes)
	used := map[MarkKind]bool{}
	for i, l := range t.Lanes {
		r := picRow{Y: picTop + high*float64(i), H: high, Mid: picTop + high*(float64(i)+0.5), Role: roles[l.Agent], Odd: i%2 == 1}
		r.Full = laneName(l)
		r.Label = columns(r.Full, maxLabel)
		r.Bars = bars(t, l, r, x)
		r.Marks = marks(t, l, r.Mid, x)
		for _, m := range l.Marks {
			used[m.Kind] = true
		}
		p.uses(l, r)
		p.Rows = append(p.Rows, r)
	}
	p.Ticks = ticks(whole, p.X, p.Right)
	p.Lines = lines(t, x)
	p.Kinds = kindsOf(p.Lines)
	for _, m := range legend {
		if used[m.Kind] {
			p.Marks = append(p.Marks, m)
		}
	}
	for name, n := range roles {
		p.Roles = append(p.Roles, picRole{n, name})
	}
	slices.SortFunc(p.Roles, func(a, b picRole) int { return cmp.Or(cmp.Compare(a.Role, b.Role), strings.Compare(a.Name, b.Name)) })
	p.Title = "Timeline of the workers"
	p.Desc = describe(t)
	return p
}

// uses notes which kinds in a lane the legend has to explain.
func (p *picture) uses(l Lane, r picRow) {
	for _, s := range l.Spans {
		p.Waits = p.Waits || s.Kind == SpanWait
		p.Checks = p.Checks || s.Kind == SpanVerify
		p.Merges = p.Merges || s.Kind == SpanMerge
	}
	p.Crowded = p.Crowded || slices.ContainsFunc(r.Marks, func(m picMark) bool { return m.Room })
}

// describe describes the picture in words, for screen readers.
func describe(t Timeline) string {
	n := t.marked()
	parts := []string{fmt.Sprintf("%s over %s at work", centurion.Count(len(t.Lanes), "lane"), cmp.Or(span(t.worked().Milliseconds()), "no time"))}
	for _, m := range legend {
		if n[m.Kind] > 0 {
			parts = append(parts, fmt.Sprintf("%s: %d", m.Name, n[m.Kind]))
		}
	}
	if len(t.Gaps) > 0 {
		parts = append(parts, centurion.Count(len(t.Gaps), "interruption")+" cut out")
	}
	return strings.Join(parts, "; ") + ". The table below has the same in words."
}

// rolesOf assigns a colour to each agent: fixed ones to the cast, the rest to others in turn.
func rolesOf(lanes []Lane) map[string]int {
	cast := []string{"commander", "planner", "worker", "reviewer"}
	out, next := map[string]int{}, len(cast)
	for _, l := range lanes {
		if _, ok := out[l.Agent]; ok {
			continue
		}
		if i := slices.Index(cast, l.Agent); i >= 0 {
			out[l.Agent] = i
			continue
		}
		out[l.Agent] = next
		if next++; next == 8 {
			next = len(cast)
		}
	}
	return out
}

func laneName(l Lane) string {
	own := text.When(l.Task == "", l.Agent)
	return text.Clean(cmp.Or(own, strings.TrimSpace(l.Item+" "+l.Title), l.Task))
}

// bars are the spans of a lane, with indistinguishable ones of one kind combined.
func bars(t Timeline, l Lane, r picRow, x func(centurion.Time) float64) []picBar {
	var out []picBar
	for _, s := range l.Spans {
		from, to := x(s.From), x(s.To)
		b := picBar{X: from, W: max(tenth(to-from), 1.2), Class: string(s.Kind), Y: tenth(r.Y + r.H*0.2), H: tenth(r.H * 0.6)}
		if s.Kind == SpanWait {
			b.Y, b.H = tenth(r.Mid-0.75), 1.5
		}
		b.Title = fmt.Sprintf("%s: %s from %s to %s", laneName(l), s.Kind, axis(t.at(s.From)), axis(t.at(s.To))) +
			text.When(s.Attempt > 1, fmt.Sprintf(", attempt %d", s.Attempt))
		if n := len(out); n > 0 && out[n-1].Class == b.Class && b.X-(out[n-1].X+out[n-1].W) < 0.6 && min(b.W, out[n-1].W) < 3 {
			out[n-1].W = tenth(max(b.X+b.W-out[n-1].X, out[n-1].W))
			continue
		}
		out = append(out, b)
	}
	return out
}

// marks are the marks of a lane. Overlapping ones are combined, with the shape of the most severe.
func marks(t Timeline, l Lane, y float64, x func(centurion.Time) float64) []picMark {
	all := slices.Clone(l.Marks)
	slices.SortStableFunc(all, func(a, b Mark) int { return a.Time.Compare(b.Time.Time) })
	var out []picMark
	for _, m := range all {
		at := x(m.Time)
		title := fmt.Sprintf("%s at %s", m.name(), axis(t.at(m.Time))) + suffix(": ", text.When(m.Text != m.name(), short(m.Text, 160)))
		if n := len(out); n > 0 && at-out[n-1].X < markWidth {
			g := &out[n-1]
			if !follows(g.last, m.Kind) {
				g.Count++
			}
			g.last = m.Kind
			if len(g.Title) < 600 {
				g.Title += "\n" + title
			}
			if m.Kind.rank() < g.Kind.rank() {
				g.Kind = m.Kind
			}
			continue
		}
		out = append(out, picMark{X: at, Y: y, Kind: m.Kind, Title: title, Count: 1, last: m.Kind})
	}
	for i := range out {
		end := picWidth
		if i+1 < len(out) {
			end = out[i+1].X - markWidth/2
		}
		out[i].Path = legend[out[i].Kind.rank()].Path
		out[i].Room = out[i].Count > 1 && end-out[i].X > 8+7*float64(1+len(itoa(out[i].Count)))
	}
	return out
}

// follows reports whether a mark is only the consequence of the one before it: failed checks and conflicts cause returns, merged tasks
// are done.
func follows(before, k MarkKind) bool {
	switch k {
	case MarkReturn:
		return before == MarkRed || before == MarkConflict
	case MarkDone:
		return before == MarkMerge
	}
	return false
}

// steps are the possible distances between two ticks of the axis, in seconds.
var steps = []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
	3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 48 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}

// ticks are the ticks of the axis, as many as have room for their labels.
func ticks(whole time.Duration, from, to float64) []picTick {
	room := int((to - from) / tickRoom)
	var step time.Duration
	for _, seconds := range steps {
		if step = time.Duration(seconds * float64(time.Second)); int(whole/step) <= room {
			break
		}
	}
	if int(whole/step) > room { // longer than all steps
		step = whole / time.Duration(room)
	}
	var out []picTick
	for at := time.Duration(0); at <= whole; at += step {
		tick := picTick{X: tenth(from + (to-from)*float64(at)/float64(whole)), Label: axis(at), Anchor: "middle"}
		switch half := float64(len(tick.Label)) * letter / 2; {
		case at == 0:
			tick.Anchor = "start"
		case tick.X+half > picWidth:
			tick.Anchor = "end"
		}
		out = append(out, tick)
	}
	return out
}

// axis formats a time since the start, which is 0.
func axis(d time.Duration) string {
	if d > 10*time.Second {
		return text.Took(d.Round(time.Second))
	}
	return text.If(d == 0, "0", text.Took(d))
}

// lines are the events of the whole mission: lost hosts, pauses and merges. Labels without room in two rows are omitted; their text is
// in the title and in the table.
func lines(t Timeline, x func(centurion.Time) float64) []picLine {
	type at struct {
		when centurion.Time
		line picLine
	}
	var all []at
	for _, g := range t.Gaps {
		l := picLine{X: x(g.From), Class: "pause", Label: g.Kind}
		if g.Kind == Restart {
			l.Class, l.Label = "restart", "host restarted"
		}
		gone := cmp.Or(span(g.To.Sub(g.From.Time).Milliseconds()), "no time")
		l.Title = strings.TrimSuffix(fmt.Sprintf("%s at %s, for %s: %s", l.Label, axis(t.at(g.From)), gone, g.Reason), ": ")
		l.Label += " " + gone
		all = append(all, at{g.From, l})
	}
	for _, m := range t.Marks {
		label := m.name()
		all = append(all, at{m.Time, picLine{X: x(m.Time), Class: string(m.Kind), Label: label, Title: cmp.Or(m.Text, label) + " at " + t.moment(m)}})
	}
	slices.SortStableFunc(all, func(a, b at) int { return a.when.Compare(b.when.Time) })
	free := [2]float64{} // how far each row is filled
	var out []picLine
	for _, a := range all {
		l := a.line
		wide := float64(len([]rune(l.Label)))*letter + 10
		from, to := l.X, l.X+wide
		if l.End = to > picWidth; l.End {
			from, to = l.X-wide, l.X
		}
		placed := false
		for row := range free {
			if from >= free[row] {
				free[row], l.LabelY, placed = to, 12+13*float64(row), true
				break
			}
		}
		if !placed {
			l.Label = ""
		}
		out = append(out, l)
	}
	return out
}

// tenth rounds to a tenth, which is precise enough and keeps the page short.
func tenth(f float64) float64 { return float64(int(f*10+0.5)) / 10 }

// runes cuts a text to n characters.
func runes(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// columns cuts a text to n columns; East Asian characters take two.
func columns(s string, n int) string {
	wide := 0
	for i, r := range s {
		if wide++; unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0x1f300 && r <= 0x1faff || r >= 0xff00 && r <= 0xff60 {
			wide++
		}
		if wide > n {
			return runes(s, utf8.RuneCountInString(s[:i]))
		}
	}
	return s
}
