package tui

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event/toast"
	"centurion/event/view"
	"centurion/text"
)

// ShowOptions are the options of the boards of one-shot commands.
type ShowOptions struct {
	Color    bool
	Width    int               // cells; default 100
	Now      time.Time         // the reference for ages; default now
	Slots    int               // parallel workers; default 50
	PerAgent int               // per agent; default 10
	Asking   map[string]bool   // tasks with an open question to the person, by id
	NeedsYou map[string]bool   // missions with an open ask, by id
	Doubt    map[string]string // doubts about the checks of tasks, by id; see [Doubts]
	Most     int               // maximum tasks named in each group; default all
	IDs      bool              // tasks: include ids, for commands that take one
	Full     bool              // show: complete tool outputs and texts instead of their first lines
	Prompt   bool              // show: complete system prompt of a session

	whole bool // the list is part of a Show: groups without a task are omitted
}

func (o ShowOptions) defaults() ShowOptions {
	o.Width = max(minWidth, cmp.Or(o.Width, 100))
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return o
}

// page collects lines and prints them at once.
type page struct {
	strings.Builder
	theme theme
	w     int
}

func (p *page) line(s string) { p.WriteString(strings.TrimRight(s, " ") + "\n") }

// lines writes a text whole, indented.
func (p *page) lines(s string) {
	for _, l := range text.WrapLines(s, p.w-2) {
		p.line("  " + l)
	}
}

func (p *page) flush(w io.Writer) error {
	if _, err := io.WriteString(w, p.String()); err != nil {
		return outputError(err)
	}
	return nil
}

// needsYou replaces the status of a mission that waits for a person's answer.
const needsYou = "needs you"

// Missions prints one line for each mission, in the order given.
func Missions(w io.Writer, missions []centurion.Mission, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	if len(missions) == 0 {
		p.line("no missions here yet; start one with: centurion run \"GOAL\"")
	}
	for _, m := range missions {
		state, tone := text.Pad(string(m.Status), 9), missionTone(m.Status)
		if o.NeedsYou[m.ID] {
			state, tone = needsYou, warn
		}
		level := text.When(m.Level > 0, fmt.Sprintf("L%d", m.Level))
		facts := text.Dots(level, text.Tokens(m.Usage.Tokens.Total())+" tok", text.Cost(m.Usage), text.Span(o.Now.Sub(m.Updated.Time))+" ago")
		left := m.ID + "  " + p.theme.paint(tone, state) + "  "
		room := o.Width - text.Width(m.ID) - 13 - text.Width(facts) - 2
		if room < 10 { // too narrow for one line
			p.line(left + facts)
			p.line("  " + text.Fit(text.Clean(m.Goal), o.Width-2))
		} else {
			p.line(left + text.Pad(text.Clean(m.Goal), room) + "  " + p.theme.paint(dim, facts))
		}
		if m.Reason != "" && m.Status != centurion.MissionCompleted {
			p.line("  " + p.theme.paint(dim, text.Fit(text.Clean(m.Reason), o.Width-2)))
		} else if word := m.Status.Word(m.Evidence, m.Options.Profile); word != string(m.Status) {
			p.line("  " + p.theme.paint(dim, text.Fit(word+": "+m.Evidence.Words(), o.Width-2)))
		}
	}
	return p.flush(w)
}

// Tasks prints the consolidated list of a mission's tasks: the numbers of running and completed tasks, running ones, queued or waiting
// ones, the slots, and ended ones.
//
//	Running (2): [1/5]
//	⚡ Enforce the limits (worker) - 12s ← NEW
//	Queued (1):
//	· Check the whole (reviewer) - 3s
//	Slots: 2/50 · worker 2/10
func Tasks(w io.Writer, tasks []centurion.Task, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	list := reasons(toast.List{Tasks: tasks, Slots: o.Slots, PerAgent: o.PerAgent, Asking: o.Asking})
	for _, g := range list.Live() {
		if len(g.Tasks) > 0 || !o.whole {
			p.group(g, o)
		}
	}
	if s := list.SlotLine(); s != "" {
		p.line(p.theme.paint(dim, text.Fit(s, o.Width)))
	}
	for _, g := range list.Ended() {
		p.group(g, o)
	}
	return p.flush(w)
}

// reasons replaces the reasons of some tasks in a list: for one that needs the person, and for a blocked or failed one that another
// task continues.
func reasons(l toast.List) toast.List {
	l.Tasks = slices.Clone(l.Tasks)
	titles := map[string]string{}
	for _, t := range l.Tasks {
		titles[t.ID] = cmp.Or(t.Title, t.ID)
	}
	gone := centurion.Continued(l.Tasks)
	for i := range l.Tasks {
		t := &l.Tasks[i]
		switch next := gone[t.ID]; {
		case next != "":
			t.Reason, t.Error = "continued in: "+titles[next], nil
		case l.Asking[t.ID] && !t.Status.Ended():
			t.Reason = cmp.Or(t.Reason, "needs you: centurion asks")
		}
	}
	return l
}

func (p *page) group(g toast.Group, o ShowOptions) {
	p.line(g.Head)
	shown := len(g.Tasks)
	if o.Most > 0 {
		shown = min(shown, o.Most)
	}
	for _, t := range g.Tasks[:shown] {
		sign, c := taskMark(t.Status)
		if o.doubt(t) != "" {
			c = warn
		}
		switch g.Name {
		case "Running":
			sign, c = g.Mark, plain
		case "Waiting", "Continued", "Reverted": // independent of the task's status
			sign, c = g.Mark, dim
		}
		p.task(t, p.theme.paint(c, sign), o)
	}
	if more := len(g.Tasks) - shown; more > 0 {
		p.line(p.theme.paint(dim, toast.More(more)))
	}
}

func (p *page) task(t centurion.Task, mark string, o ShowOptions) {
	failed := text.When(t.Status.Ended(), errorWords(t.Error))
	detail := text.Dots(o.doubt(t), attemptWords(t), shortName(t), text.Clean(t.Reason), failed,
		text.When(t.Status.Ended(), text.Cost(t.Usage)), text.When(o.IDs, t.ID))
	detail = text.When(detail != "", " · "+detail)
	tail := fmt.Sprintf(" (%s) - %s", p.theme.paint(roleTone(t.Agent), text.Clean(t.Agent)), text.Span(taskTime(t, o.Now)))
	if toast.IsNew(t, o.Now) {
		tail += p.theme.paint(good, " ← NEW")
	}
	room := max(10, o.Width-text.Width(mark)-1-text.Width(tail)-text.Width(detail), min(o.Width/3, o.Width-text.Width(mark)-1-text.Width(tail)))
	line := mark + " " + text.Fit(text.Clean(t.Title), room) + tail
	if left := o.Width - text.Width(line); detail != "" && (left >= 8 || o.IDs) {
		if !o.IDs { // an id is for copying and never shortened
			detail = text.Fit(detail, left)
		}
		line += p.theme.paint(dim, detail)
	}
	p.line(line)
}

// shortName is the name of a task, if it is not its id.
func shortName(t centurion.Task) string { return text.When(t.Name() != t.ID, text.Clean(t.Name())) }

func attemptWords(t centurion.Task) string {
	return text.When(t.Attempt > 1, fmt.Sprintf("attempt %d", t.Attempt))
}

func errorWords(e *centurion.TaskError) string {
	if e == nil {
		return ""
	}
	return view.Words(string(e.Kind)) + ": " + withHint(e.Message, e.Hint)
}

// taskTime is the working time of an ended task, if known, without pauses of its mission. For any other task it is its age.
func taskTime(t centurion.Task, now time.Time) time.Duration {
	if t.Status.Ended() && t.ElapsedMS > 0 {
		return text.Millis(t.ElapsedMS)
	}
	return toast.Age(t, now)
}

// Shown is a complete mission, task or session with related data. Nil or empty parts are omitted.
type Shown struct {
	Mission  *centurion.Mission
	Task     *centurion.Task
	Session  *centurion.Session
	Tasks    []centurion.Task
	Receipts []centurion.Receipt
	Messages []centurion.Message // of the session, with their parts
	Own      centurion.Spent     // usage of the session itself
	Total    centurion.Spent     // including its children
	Sessions []centurion.Session // of the mission or the task, to find those with another model than their own
}

// Show prints a Shown.
func Show(w io.Writer, s Shown, o ShowOptions) error {
	o = o.defaults()
	p := page{theme: theme{o.Color}, w: o.Width}
	if m := s.Mission; m != nil {
		p.mission(m, o)
		p.field("changed", changedFiles(s.Tasks))
		for _, t := range s.Tasks {
			p.aside(t.Aside)
		}
	}
	if t := s.Task; t != nil {
		p.taskWhole(t, o)
	}
	for _, c := range s.Sessions {
		p.changed(c)
	}
	if c := s.Session; c != nil {
		u := centurion.Usage{Tokens: c.Tokens, USD: c.Cost, Unpriced: c.Metadata.Unpriced}
		if s.Task == nil { // which has the same title, and its session's usage
			p.line(p.theme.paint(strong, text.Fit(text.Clean(c.Title), o.Width)))
		}
		p.field("session", text.Dots(c.ID, text.Clean(c.Agent), text.Clean(c.Metadata.Address)))
		if s.Task == nil {
			p.field("usage", text.Dots(tokenText(u), text.Cost(u), spentTime(s.Own)))
			if s.Total != s.Own {
				p.field("total", text.Dots(tokenText(s.Total.Usage), text.Cost(s.Total.Usage), spentTime(s.Total), "with its children"))
			}
		}
		p.given(c, o)
		p.changed(*c)
	}
	if len(s.Tasks) > 0 {
		p.line("")
		o := o
		o.whole = true
		if err := Tasks(&p, s.Tasks, o); err != nil {
			return err
		}
	}
	if len(s.Receipts) > 0 {
		p.line("")
		for i, r := range s.Receipts {
			p.receipt(r, runOf(s.Receipts, i), o)
		}
	}
	for _, m := range s.Messages {
		p.message(m, o)
	}
	return p.flush(w)
}

// spentTime is the working time, or "" if it is unknown.
func spentTime(s centurion.Spent) string {
	return text.When(s.ElapsedMS != 0, text.Took(text.Millis(s.ElapsedMS)))
}

// changed shows the model of a session that uses another one than its own.
func (p *page) changed(c centurion.Session) {
	if own := c.Metadata.OwnModel; own != nil && c.Model != nil {
		p.field("model", text.Clean(c.Model.Provider+"/"+c.Model.ID+" instead of "+c.Own().String()+" for "+c.Agent+" "+c.Metadata.Address))
	}
}

// maxGoal limits the lines of a goal at the top of a mission's page.
const maxGoal = 3

// goalHead returns the first wrapped lines of a goal, and the number of further ones.
func goalHead(goal string, w int) (lines []string, more int) {
	for _, l := range text.CleanLines(goal) {
		if l = text.Clean(l); l != "" {
			lines = append(lines, text.Wrap(l, w)...)
		}
	}
	more = max(len(lines)-maxGoal, 0)
	return lines[:len(lines)-more], more
}

func (p *page) field(name, value string) {
	if value == "" {
		return
	}
	for i, l := range text.Wrap(value, p.w-12) {
		if i > 0 {
			name = ""
		}
		p.line("  " + p.theme.paint(dim, text.Pad(name, 8)) + "  " + l)
	}
}

func (p *page) mission(m *centurion.Mission, o ShowOptions) {
	lines, more := goalHead(m.Goal, o.Width-2)
	mark := "◆ "
	for _, l := range lines {
		p.line(p.theme.paint(commander, mark) + p.theme.paint(strong, l))
		mark = "  "
	}
	if more > 0 {
		p.line(p.theme.paint(dim, fmt.Sprintf("  … %s more: centurion report %s", centurion.Count(more, "line"), m.ID)))
	}
	p.field("mission", text.Dots(m.ID, p.theme.paint(missionTone(m.Status), m.Status.Word(m.Evidence, m.Options.Profile)), text.Clean(m.Reason)))
	p.field("where", text.Dots(text.Clean(m.Directory), text.Clean(m.Branch), isolation(m)))
	p.field("base", baseWords(m.Base))
	p.field("merged", mergedWords(m))
	p.field("model", text.Clean(m.Options.Model))
	from := levelFrom(m.LevelFrom)
	level := text.When(m.Level > 0, fmt.Sprintf("level %d", m.Level)+text.When(from != "", ", "+from))
	if m.Status.Ended() {
		defer p.lines(m.Summary) // at the end, because it matters most
	}
	p.field("run", text.Dots(level, text.Span(text.Millis(m.ElapsedMS)), centurion.Count(m.Rounds, "round")))
	p.field("usage", text.Dots(tokenText(m.Usage), text.Cost(m.Usage)))
	if m.Verified+m.Unverified+len(m.CancelledItems) > 0 {
		p.field("items", provenWords(m.Tally))
	}
	if m.Status == centurion.MissionCompleted {
		p.field("evidence", m.Evidence.Words())
	}
	p.field("limits", text.Dots(limits(m)...))
	p.aside(m.Aside)
	p.field("reserved", reserved(m))
}

// aside lists git-ignored files, one line per directory: no merge includes them. A path is for copying and never broken.
func (p *page) aside(all []centurion.Aside) {
	for _, a := range all {
		p.line("  " + p.theme.paint(dim, text.Pad("aside", 8)) + "  " + text.Clean(a.String()))
	}
}

func (p *page) taskWhole(t *centurion.Task, o ShowOptions) {
	mark, c := taskMark(t.Status)
	if o.doubt(*t) != "" {
		c = warn
	}
	p.line(p.theme.paint(c, mark) + " " + p.theme.paint(strong, text.Fit(text.Clean(t.Title), o.Width-2)))
	p.field("task", text.Dots(shortName(*t), t.ID, string(t.Status), o.doubt(*t), attemptWords(*t), text.Clean(t.Reason)))
	p.field("agent", text.Dots(text.Clean(t.Agent), t.Session))
	p.field("resumes", text.Clean(t.Resumes))
	p.field("usage", text.Dots(tokenText(t.Usage), text.Cost(t.Usage)))
	p.field("budget", text.Dots(taskBudget(t)...))
	p.field("files", strings.Join(text.Each(t.Files, text.Clean), " "))
	// Files that the plan does not give to the task's item.
	p.field("outside", text.When(len(t.Outside) > 0, "its item's files: "+text.Clean(strings.Join(t.Outside, ", "))))
	if c := t.Checkout; c != nil {
		p.field("works in", text.Clean(c.Dir))
	}
	p.field("landed", landedWords(t))
	p.aside(t.Aside)
	p.field("error", errorWords(t.Error))
	p.lines(t.Result)
}
