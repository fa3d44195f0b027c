package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"centurion"
	"centurion/text"
)

// Markdown writes the report in Markdown without HTML, with GitHub's tables and plain blocks. An error is that of w.
func (r *Report) Markdown(w io.Writer) error {
	m := &markdown{r: r}
	m.head()
	m.plan()
	m.timeline()
	m.troubles()
	m.receipts()
	m.decisions()
	m.files()
	m.costs()
	m.next()
	_, err := io.WriteString(w, m.b.String())
	return err
}

type markdown struct {
	r *Report
	b strings.Builder
}

func (m *markdown) p(format string, a ...any) { fmt.Fprintf(&m.b, format+"\n", a...) }

func (m *markdown) head() {
	r := m.r
	m.p("# %s\n", inline(short(r.Mission.Goal, maxHeading)))
	m.p("Mission report · %s · written %s\n", code(r.Mission.ID), clock(r.Written))
	m.p("**%s**\n", inline(r.headline()))
	m.p("%s\n\n%s\n", inline(r.proofs()), inline(r.way()))
	if who := r.who(); who != "" {
		m.p("%s\n", inline(who))
	}
	if r.Mission.Reason != "" {
		m.p("Why: %s\n", inline(r.Mission.Reason))
	}
	if len(r.Doubts) > 0 {
		m.p("> **Look at these**\n>")
		for _, d := range r.Doubts {
			m.p("> - **%s**%s%s%s", inline(d.Kind), suffix(" · ", inline(d.Item)), suffix(" · ", code(short(d.Command, maxCommand))),
				suffix(": ", inline(strings.Join(d.Why, "; "))))
		}
		m.p("")
	}
	m.p("## Goal\n")
	if !r.goalTold() {
		m.p("%s", fenced("text", r.Mission.Goal))
	}
	m.p("In %s%s, begun %s. %s %s\n", code(r.Mission.Directory), suffix(" with ", code(r.Mission.Options.Model)),
		clock(r.Mission.Started), inline(r.base()), inline(r.where())+suffix(" ", inline(r.confinement())))
	if r.Mission.Summary != "" {
		m.p("Summary by the mission's agent:\n\n%s", fenced("text", r.Mission.Summary))
	}
}

func (m *markdown) plan() {
	m.p("## Plan\n")
	if len(m.r.Items) == 0 {
		m.p("There was no plan with items.\n")
		return
	}
	m.p("| Item | What | State | Worth | Agent |\n|---|---|---|---|---|")
	for _, it := range m.r.Items {
		m.p("| %s | %s | %s | %s | %s |", inline(it.ID), inline(it.Title), inline(it.Status), inline(it.Worth()), inline(it.Agent))
	}
	m.p("")
}

// textWidth is the number of characters for the whole time.
const textWidth = 60

func (m *markdown) timeline() {
	m.p("## Timeline\n")
	t := m.r.Timeline
	if len(t.Lanes) == 0 {
		m.p("Nothing has happened yet.\n")
		return
	}
	var b strings.Builder
	for _, l := range t.Lanes {
		fmt.Fprintf(&b, "%-24s %s\n", runes(laneName(l), 24), drawn(t, l))
	}
	fmt.Fprintf(&b, "%-24s 0%*s\n", "", textWidth-1, axis(t.worked()))
	m.p("%s", fenced("text", b.String()))
	m.p("`█` works · `·` waits · `▒` checks run · `▓` merges · `r` tried again · `<` sent back · `x` cut off · `!` failed, red or conflict · `m` integrated or merged.\n")
	m.lanes(t)
	if len(t.Gaps) == 0 {
		return
	}
	m.p("Idle times of the mission are cut out:\n")
	for _, g := range t.Gaps {
		m.p("- at %s: %s, for %s%s", axis(t.at(g.From)), inline(gapWord(g.Kind)), cmp.Or(span(g.To.Sub(g.From.Time).Milliseconds()), "no time"),
			suffix(": ", inline(g.Reason)))
	}
	m.p("")
}

// lanes writes the timeline as a table, and the merges of the whole mission.
func (m *markdown) lanes(t Timeline) {
	m.p("| Who | What | From | To | End | What happened |\n|---|---|---|---|---|---|")
	for i, l := range t.Lanes {
		if i == maxRows {
			m.p("| … | and %d more | | | | |", len(t.Lanes)-i)
			break
		}
		from, to := "", ""
		if n := len(l.Spans); n > 0 {
			from, to = axis(t.at(l.Spans[0].From)), axis(t.at(l.Spans[n-1].To))
		}
		marks := text.Each(happenings(l), func(h happened) string { return inline(m.r.when(h) + suffix(h.Sep, short(h.Text, 160))) })
		m.p("| %s | %s | %s | %s | %s | %s |", inline(l.Agent), inline(strings.TrimSpace(l.Item+" "+short(l.Title, 120))), from, to, inline(l.End), strings.Join(marks, "; "))
	}
	m.p("")
	for _, k := range t.Marks {
		m.p("- at %s: %s", t.moment(k), inline(cmp.Or(k.Text, k.name())))
	}
	if len(t.Marks) > 0 {
		m.p("")
	}
}

// drawn is a lane drawn in characters.
func drawn(t Timeline, l Lane) string {
	cells := []rune(strings.Repeat(" ", textWidth))
	whole := max(t.worked(), 1)
	cell := func(at centurion.Time) int {
		return min(int(int64(t.at(at))*textWidth/int64(whole)), textWidth-1)
	}
	for _, s := range l.Spans {
		fill := map[SpanKind]rune{SpanWait: '·', SpanWork: '█', SpanVerify: '▒', SpanMerge: '▓'}[s.Kind]
		for i := cell(s.From); i <= cell(s.To); i++ {
			if s.Kind != SpanWait || cells[i] == ' ' {
				cells[i] = fill
			}
		}
	}
	for _, k := range l.Marks {
		if c, ok := map[MarkKind]rune{MarkRetry: 'r', MarkReturn: '<', MarkKill: 'x', MarkFail: '!', MarkRed: '!', MarkConflict: '!', MarkMerge: 'm'}[k.Kind]; ok {
			cells[cell(k.Time)] = c
		}
	}
	return strings.TrimRight(string(cells), " ")
}

func (m *markdown) receipts() {
	m.p("## Receipts\n")
	sections := m.r.sections()
	if len(sections) == 0 {
		m.p("The host has run no check for this mission.\n")
	}
	for _, s := range sections {
		m.p("### %s\n", inline(s.Title))
		for _, c := range s.Checks {
			m.check(c)
		}
	}
}

func (m *markdown) check(c Check) {
	m.p("%s — **%s**. %s\n", code(c.Command), inline(string(c.Standing)), inline(m.r.worth(c)))
	if c.Receipt == nil {
		return
	}
	for _, why := range doubted(c) {
		m.p("Why: %s\n", inline(why))
	}
	m.p("| Run | Ended | Took | Tree | At |\n|---|---|---:|---|---|")
	all := runs(c.Receipt)
	for i, run := range all {
		m.p("| %s | %s | %s | %s | %s |", inline(runWord(all, i)), inline(ended(run)+suffix(": ", ranInto(run))), span(run.Millis), inline(hash(run.Tree)), clock(run.Time))
	}
	m.p("")
	if c.Receipt.Removed != "" {
		patch := plainPatch(reversed(c.Receipt.Removed))
		m.p("We took this out …\n\n%s", fenced("diff", wholeLines(patch, textPatch)))
		if left := strings.Count(patch, "\n") - strings.Count(wholeLines(patch, textPatch), "\n"); left > 0 {
			m.p("(%s more; the page has them: `-o report.html`)\n", centurion.Count(left, "line"))
		}
		said := died(c.Receipt)
		m.p("… and %s%s", without(c.Receipt), text.If(said != "", ":\n\n"+fenced("text", said), ".\n"))
	}
	for _, w := range c.Receipt.Weakened {
		m.p("- weakened: %s", inline(w))
	}
	if len(c.Receipt.Weakened) > 0 {
		m.p("")
	}
	if !c.Receipt.Passed {
		m.p("It printed:\n\n%s", fenced("text", tail(c.Receipt.Output, 2000)))
	}
	if c.Early > 0 {
		m.p("%s\n", early(c))
	}
	if f := c.Final; f != nil {
		m.p("On the finished work: %s, %s, tree %s, %s.\n", ended(runs(&centurion.Receipt{ExitCode: f.ExitCode, Passed: f.Passed})[0]),
			cmp.Or(span(f.Millis), "0 ms"), inline(cmp.Or(hash(f.Tree), "none")), clock(f.Time))
	}
}

// textPatch limits a patch in bytes, since Markdown cannot fold it.
const textPatch = 2 << 10

func (m *markdown) costs() {
	m.p("## Cost\n")
	if len(m.r.Agents) == 0 {
		m.p("No model has answered yet.\n")
		return
	}
	for _, t := range []costs{{"Agent", m.r.Agents}, {"Model", m.r.Models}} {
		if t.Name == "Model" && len(t.Rows) == 1 { // its only row equals the sum above
			m.p("All of it by %s.\n", code(t.Rows[0].Name))
			continue
		}
		m.p("| %s | Requests | In | Cached | Out | Reasoning | Cost |\n|---|---:|---:|---:|---:|---:|---:|", t.Name)
		for _, s := range append(t.Rows[:len(t.Rows):len(t.Rows)], summed(t.Rows)) {
			k := s.Tokens
			m.p("| %s | %d | %s | %s | %s | %s | %s |", inline(s.Name), s.Requests, text.Tokens(k.Input), text.Tokens(k.Cache.Read), text.Tokens(k.Output),
				text.Tokens(k.Reasoning), inline(money(s.Usage)))
		}
		m.p("")
	}
}

func (m *markdown) files() {
	m.p("## Files changed\n")
	if len(m.r.Files) == 0 {
		m.p("%s\n", inline(cmp.Or(m.r.NoFiles, "No file was changed.")))
		return
	}
	for _, f := range m.r.Files {
		m.p("- %s%s%s%s", code(f.Path), suffix(" ", inline(f.Status)), suffix(" ", f.Lines()), suffix(", was ", code(f.Old)))
	}
	m.p("")
}

// maxRows limits the rows of a kind; the page has all of them.
const maxRows = 200

// rows writes a line for each of all, up to [maxRows], and counts the rest.
func rows[T any](m *markdown, all []T, line func(T)) {
	for _, v := range all[:min(len(all), maxRows)] {
		line(v)
	}
	if n := len(all) - maxRows; n > 0 {
		m.p("- … and %d more", n)
	}
}

func (m *markdown) decisions() {
	m.p("## What was asked, and the answers\n")
	rows(m, m.r.Decisions, func(d Decision) {
		m.p("- %s %s%s: %s → **%s**%s%s", clock(d.Time), inline(d.Type), suffix(" of ", inline(d.of())), inline(short(d.Asked, 600)),
			inline(cmp.Or(short(d.Answer, 600), "waits")), suffix(", by ", inline(d.By)), suffix(", after ", span(d.WaitMS)))
	})
	if len(m.r.Decisions) == 0 {
		m.p("No questions were asked.")
	}
	m.p("")
	m.messages()
}

// messages lists the person's messages to agents, if any.
func (m *markdown) messages() {
	if len(m.r.Messages) == 0 {
		return
	}
	m.p("## What you wrote to agents\n")
	rows(m, m.r.Messages, func(s Said) {
		m.p("- %s to %s: %s%s (%s)", clock(s.Time), inline(s.to()), inline(short(s.Text, 600)), suffix(", with ", inline(strings.Join(s.Files, ", "))), m.r.read(s))
	})
	m.p("")
}

func (m *markdown) troubles() {
	m.p("## What went wrong, and what became of it\n")
	rows(m, m.r.Troubles, func(t Trouble) {
		again := text.When(t.Repeat > 0, " ("+centurion.Count(t.Repeat, "more time")+")") // no text of a model's
		m.p("- %s %s: %s%s → %s", clock(t.Time), inline(short(t.Where, 120)), inline(short(t.What, 400)), again, inline(t.Then))
	})
	if len(m.r.Troubles) == 0 {
		m.p("Nothing.")
	}
	m.p("")
}

func (m *markdown) next() {
	m.p("## What you can do now\n\n%s\n", inline(m.r.where()))
	for _, t := range m.r.Undone {
		m.p("- reverted: %s", inline(t))
	}
	for _, c := range m.r.Next {
		m.p("- %s %s", code(c.Line), inline(c.What))
	}
}
