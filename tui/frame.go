package tui

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"centurion"
	"centurion/event/toast"
	"centurion/text"
)

// frame is the live region of the view: the current state, in at most Height lines of at most Width cells.
type frame struct {
	board  *Board
	theme  theme
	now    time.Time
	width  int
	height int
	dialog []string // the ask for the person, rendered
	prompt []string // the line for writing to the Commander
	notice string   // the view's own status: "stopping…"
	toast  fact     // the newest toast, while it is shown
}

// narrow is the width below which columns are omitted instead of squeezed.
const narrow = 60

// lines renders the frame. If there is too little room, workers are first reduced to a count; a dialog is always complete, because its
// subject must be visible.
func (f frame) lines() []string {
	w := max(f.width, minWidth)
	top := append([]string{rule(f.theme, w)}, f.header(w)...)
	top = append(top, f.dialog...)
	bottom := append(f.footer(w), f.prompt...)
	room := max(0, f.height-len(top)-len(bottom))
	if len(f.dialog) > 0 && f.height-len(f.dialog) < len(top)-len(f.dialog)+len(bottom) {
		return f.tight(w)
	}
	return f.whole(append(append(top, f.workers(w, room)...), bottom...))
}

// whole cuts off the top of a frame that is still too tall: the keys of a dialog are at the end.
func (f frame) whole(lines []string) []string { return lines[max(0, len(lines)-f.height):] }

// tight is the frame for a terminal with hardly more lines than the dialog needs.
func (f frame) tight(w int) []string {
	out := f.dialog
	if len(out) < f.height {
		out = append(f.header(w)[:1], out...)
	}
	return f.whole(out)
}

// header describes the mission, its state and its cost.
func (f frame) header(w int) []string {
	b, t := f.board, f.theme
	u := b.Usage()
	level := text.When(b.Level > 0, fmt.Sprintf("L%d", b.Level))
	state := string(b.Status)
	switch {
	case b.NeedsYou():
		state = needsYou
	case state == "":
		state = "starting"
	}
	cost := text.Cost(u)
	switch {
	case b.MaxCost > 0 && !u.Unpriced:
		cost += "/" + strings.TrimSuffix(text.USD(b.MaxCost), ".00")
	case b.MaxTokens > 0:
		cost = text.Tokens(u.Tokens.Total()) + "/" + text.Tokens(b.MaxTokens) + " tok · " + cost
	}
	tokens := text.When(b.MaxTokens == 0 || b.MaxCost > 0 && !u.Unpriced, text.Tokens(u.Tokens.Total())+" tok")
	facts := text.Dots(level, state, text.Span(b.Elapsed(f.now)), tokens, cost)
	title := func(room int) string { return t.paint(commander, "◆ ") + t.paint(strong, text.Fit(b.Goal, room-2)) }
	var out []string
	if room := w - text.Width(facts) - 2; w >= narrow && room >= 20 {
		left := title(room)
		out = []string{left + strings.Repeat(" ", max(2, w-text.Width(left)-text.Width(facts))) + f.headFacts(facts, state)}
	} else {
		out = []string{title(w), "  " + f.headFacts(text.Fit(facts, w-2), state)}
	}
	if f.notice != "" {
		out = append(out, t.paint(warn, "! "+text.Fit(f.notice, w-2)))
	}
	if n := b.Countdown.Sub(f.now); n > 0 && b.Status.Alive() {
		out = append(out, t.paint(dim, text.Fit("  continues in "+text.Span(n+time.Second-1), w)))
	}
	return out
}

// headFacts paints the state in its own colour unless it is simply running.
func (f frame) headFacts(facts, state string) string {
	c := missionTone(f.board.Status)
	if f.board.NeedsYou() {
		c = warn
	}
	before, after, ok := strings.Cut(facts, state)
	if c == plain || !ok {
		return f.theme.paint(dim, facts)
	}
	return f.theme.paint(dim, before) + f.theme.paint(c, state) + f.theme.paint(dim, after)
}

// workers renders one line for the Commander and each worker, in at most room lines.
func (f frame) workers(w, room int) []string {
	b := f.board
	var rows []row
	if b.Commander.Doing != "" || b.Commander.Retry != nil {
		rows = append(rows, f.commander())
	}
	tasks := append(b.Active(), f.waiting()...)
	for _, t := range tasks {
		rows = append(rows, f.task(t))
	}
	folded := 0
	if len(rows) > room {
		folded = len(rows) - max(0, room-1)
		rows = rows[:max(0, room-1)]
	}
	cols := columns(rows, w)
	out := text.Each(rows, func(r row) string { return r.line(f.theme, cols, w) })
	if folded > 0 && room > 0 {
		out = append(out, f.theme.paint(dim, text.Fit(fmt.Sprintf("  … %s", centurion.Count(folded, "more worker")), w)))
	}
	return out
}

// waiting returns the tasks whose wait deserves a line: for a retry, a person, a rate limit. Those waiting for a slot or a predecessor
// are counted below.
func (f frame) waiting() []*Task {
	var out []*Task
	for _, t := range f.board.In(centurion.TaskWaiting, centurion.TaskQueued) {
		if t.Retry != nil || t.Status == centurion.TaskWaiting && t.Session != "" {
			out = append(out, t)
		}
	}
	return out
}

// row is a line of the worker table before its layout.
type row struct {
	mark  string
	tone  tone
	name  string
	agent string
	title string
	doing string
	age   string
	loud  tone // tone of doing
	soft  bool // the title itself describes the activity
}

func (f frame) commander() row {
	c := f.board.Commander
	agent := cmp.Or(f.board.AgentOf(f.board.Session, ""), "commander")
	r := row{mark: "◇", tone: roleTone(agent), name: "0/", agent: agent, title: c.Doing, loud: dim, soft: true}
	f.retry(&r, c.Retry)
	return r
}

func (f frame) task(t *Task) row {
	r := row{name: t.Name(), agent: t.Agent, title: t.Title, doing: t.Doing, loud: dim, age: text.Span(toast.Age(t.Task, f.now))}
	r.mark, r.tone = taskMark(t.Status)
	if r.tone == plain {
		r.tone = roleTone(t.Agent)
	}
	if t.Status == centurion.TaskWaiting && why(t) != "" {
		r.doing, r.loud = "waits: "+why(t), warn
	}
	if r.doing == "" && toast.IsNew(t.Task, f.now) {
		r.doing, r.loud = "← NEW", good
	}
	f.retry(&r, t.Retry)
	for _, a := range f.board.Asks {
		if a.Task == t.ID {
			r.mark, r.tone, r.doing, r.loud = "?", warn, "needs you", warn
		}
	}
	return r
}

// retry shows a wait for the provider, with its remaining time.
func (f frame) retry(r *row, w *Retry) {
	if w == nil {
		return
	}
	r.mark, r.tone, r.loud = "↻", warn, warn
	s := text.If(w.Attempt > 0, fmt.Sprintf("retry %d", w.Attempt), "retry")
	if left := w.Until.Sub(f.now); left > 0 {
		s += " in " + text.Span(left+time.Second-1)
	}
	r.doing = text.Dots(s, w.Reason)
}

// layout is the widths of the worker table's columns.
type layout struct{ name, agent, title, doing int }

// columns fits the table into w cells: mark, name, agent, title, activity, age. Names and agents get their full width; title and
// activity share the rest, and on a narrow terminal agent and activity yield to the title.
func columns(rows []row, w int) layout {
	var c layout
	titles := 0
	for _, r := range rows {
		c.name = max(c.name, min(8, text.Width(r.name)))
		c.agent = max(c.agent, min(10, text.Width(r.agent)))
		if r.doing != "" {
			titles = max(titles, text.Width(r.title))
		}
	}
	const mark, age, gap = 4, 7, 2 // "  ● ", "  12m34s"
	rest := w - mark - age - c.name - 1
	if w < narrow {
		c.agent, c.title = 0, rest-1
		return c
	}
	rest -= c.agent + gap
	c.title = min(titles, rest*2/5)
	c.doing = rest - c.title - gap
	return c
}

func (r row) line(t theme, c layout, w int) string {
	var b strings.Builder
	b.WriteString("  " + t.paint(r.tone, r.mark) + " " + text.Pad(r.name, c.name) + " ")
	if c.agent > 0 {
		b.WriteString(t.paint(roleTone(r.agent), text.Pad(r.agent, c.agent)) + "  ")
	}
	title := plain
	if r.soft {
		title = dim
	}
	switch {
	case c.doing == 0 && r.loud == warn: // narrow: what stops a worker matters more than its title
		b.WriteString(t.paint(warn, text.Pad(r.doing, c.title)))
	case c.doing == 0:
		b.WriteString(t.paint(title, text.Pad(r.title, c.title)))
	case r.doing == "":
		b.WriteString(t.paint(title, text.Pad(r.title, c.title+2+c.doing)))
	default:
		b.WriteString(t.paint(title, text.Pad(r.title, c.title)) + "  " + t.paint(r.loud, text.Pad(r.doing, c.doing)))
	}
	return strings.TrimRight(b.String()+" "+t.paint(dim, text.PadLeft(r.age, 6)), " ")
}

// footer counts slots and draws the bar of the todo list.
func (f frame) footer(w int) []string {
	b, t := f.board, f.theme
	var out []string
	if line := slots(toast.Of(b)); line != "" {
		out = append(out, t.paint(dim, text.Fit("  "+line, w)))
	}
	if total := b.Todo.Total(); total > 0 {
		label := fmt.Sprintf(" %d/%d", b.Todo.Done, total) + text.When(b.Todo.Blocked > 0, fmt.Sprintf(" · %d blocked", b.Todo.Blocked))
		full, empty := bar(b.Todo.Done, total, min(40, max(4, w-2-text.Width(label))))
		out = append(out, "  "+t.paint(good, full)+t.paint(dim, empty)+label)
	}
	if f.toast.text != "" {
		out = append(out, t.paint(f.toast.tone, text.Fit("  "+f.toast.mark+" "+f.toast.text, w)))
	}
	return out
}

// slots is the consolidated list without its tasks, which have their own lines:
//
//	Running (3): [2/6] · Queued (1) · Slots: 3/50 · worker 2/10 · reviewer 1/10
func slots(l toast.List) string {
	line := l.SlotLine()
	if line == "" {
		return ""
	}
	queued := len(l.In(centurion.TaskQueued, centurion.TaskWaiting))
	return text.Dots(l.Head(), text.When(queued > 0, fmt.Sprintf("Queued (%d)", queued)), line)
}
