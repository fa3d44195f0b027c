package tui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/event/toast"
	"centurion/event/view"
	"centurion/text"
)

// minWidth is the smallest supported terminal width; on narrower ones lines are cut.
const minWidth = 20

// lines renders a fact for the scrollback of a terminal w cells wide.
func (f fact) lines(t theme, w int) []string {
	w = max(w, minWidth)
	if f.foot != "" {
		return f.block(t, w)
	}
	prefix := strings.Repeat("│ ", f.depth)
	room := w - text.Width(prefix) - 2
	head := t.paint(f.tone, f.mark) + " "
	prefix = t.paint(dim, prefix)
	var out []string
	if f.mark == "◆" {
		for i, l := range text.Wrap(f.text, room) {
			if i > 0 {
				head = "  "
			}
			out = append(out, head+t.paint(strong, l))
		}
		return append(out, prefixed("  ", t.paintAll(dim, text.Wrap(f.detail, room)))...)
	}
	if f.isSpeech() {
		first, rest := wrapAfter(f.text, text.Width(f.who)+2, room)
		out = append(out, prefix+head+t.paint(roleTone(f.agent), f.who)+"  "+first)
		for _, b := range f.body {
			rest = append(rest, text.Wrap(b, room)...)
		}
		return append(out, prefixed(prefix+"  ", rest)...)
	}
	if f.whole {
		for _, l := range text.Wrap(f.text, room) {
			out = append(out, prefix+head+l)
			head = "  "
		}
		return out
	}
	out = append(out, prefix+head+f.headLine(t, room))
	for _, b := range f.body {
		out = append(out, prefix+t.paint(dim, "  │ "+text.Fit(b, room-2)))
	}
	return out
}

// isSpeech reports whether the fact is a quotation, which is shown in full instead of in one line.
func (f fact) isSpeech() bool { return f.mark == "◇" || f.mark == "›" }

// headLine is who, text and detail in at most w cells; the detail is shortened first.
func (f fact) headLine(t theme, w int) string {
	var b strings.Builder
	left := w
	add := func(c tone, s, gap string) {
		if s == "" || left <= text.Width(gap) {
			return
		}
		if left < w {
			b.WriteString(t.paint(dim, gap))
			left -= text.Width(gap)
		}
		s = text.Fit(s, left)
		left -= text.Width(s)
		b.WriteString(t.paint(c, s))
	}
	add(roleTone(f.agent), f.who, "")
	gap := "  "
	add(plain, f.text, gap)
	if f.text != "" {
		gap = " · "
	}
	add(dim, f.detail, gap)
	return b.String()
}

// wrapAfter wraps s so that its first line leaves indent cells free.
func wrapAfter(s string, indent, w int) (first string, rest []string) {
	const filler = "\u2007" // a space without a line break opportunity
	lines := text.Wrap(strings.Repeat(filler, indent)+s, w)
	return strings.TrimLeft(lines[0], filler), lines[1:]
}

// block draws the answer of a child inside a border:
//
//	┌─ worker T2 · Enforce the limits
//	│ What it said.
//	└─ done 12s · $0.0100
func (f fact) block(t theme, w int) []string {
	prefix := strings.Repeat("│ ", f.depth)
	room := w - text.Width(prefix) - 3
	prefix = t.paint(dim, prefix)
	accent := roleTone(f.agent)
	who := text.Fit(f.who, room)
	title := ""
	switch left := room - text.Width(who) - 3; {
	case who == "":
		title = text.Fit(f.text, room)
	case f.text != "" && left > 3:
		title = t.paint(dim, " · ") + text.Fit(f.text, left)
	}
	out := []string{prefix + t.paint(accent, "┌─ "+who) + title}
	for _, b := range f.body {
		out = append(out, prefixed(prefix+t.paint(accent, "│")+" ", text.Wrap(b, room))...)
	}
	for i, l := range out {
		out[i] = strings.TrimRight(l, " ")
	}
	return append(out, prefix+t.paint(accent, "└─ ")+t.paint(f.tone, text.Fit(f.foot, room)))
}

// summary describes how the mission ended, its cost and the next command.
func summary(b *Board, t theme) []string {
	mark := cmp.Or(map[centurion.MissionStatus]string{centurion.MissionCompleted: "✓", centurion.MissionFailed: "✗",
		centurion.MissionPaused: "‖", centurion.MissionBlocked: "!", centurion.MissionCancelled: "−"}[b.Status], "·")
	end := cmp.Or(b.End, &view.Fact{})
	u := b.Usage()
	took := b.Elapsed(b.Last)
	word := b.Status.Word(end.Evidence, end.Profile)
	tone := missionTone(b.Status)
	if word != string(b.Status) {
		tone = warn
	}
	out := []string{t.paint(tone, mark+" "+word) + text.When(took > 0, " after "+text.Took(took)) +
		t.paint(dim, " · "+text.Dots(tokenText(u), text.Cost(u)))}
	if end.Summary != "" && end.Summary != b.Commander.Said {
		out = append(out, prefixed("  ", clip(strings.Split(end.Summary, "\n"), maxSaid))...)
	}
	if b.Reason != "" && b.Status != centurion.MissionCompleted {
		out = append(out, "  "+b.Reason)
	}
	out = append(out, "  "+t.paint(dim, text.Dots(todoText(b.Todo), proofText(b, end), taskText(end.Tasks, b))))
	for _, a := range b.Asks {
		if b.Status != centurion.MissionPaused && b.Status != centurion.MissionBlocked {
			break // no one waits for the answer any more
		}
		out = append(out, "  "+t.paint(warn, "? ")+text.Dots(askTitle(a), "`"+askCommand(a)+"`"))
	}
	if n := nextStep(b); n != "" {
		out = append(out, "  "+t.paint(dim, "next: ")+n)
	}
	return slices.DeleteFunc(out, func(l string) bool { return strings.TrimSpace(l) == "" })
}

func tokenText(u centurion.Usage) string {
	tk := u.Tokens
	detail := text.Filled(
		text.When(tk.Cache.Read > 0, text.Tokens(tk.Cache.Read)+" cached"),
		text.When(tk.Reasoning > 0, text.Tokens(tk.Reasoning)+" reasoning"),
	)
	return text.Tokens(tk.Total()) + " tokens" + text.When(len(detail) > 0, " ("+strings.Join(detail, ", ")+")")
}

func todoText(t event.TodoCounts) string {
	if t.Total() == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s done", t.Done, centurion.Count(t.Total(), "item")) +
		text.When(t.Blocked > 0, fmt.Sprintf(", %d blocked", t.Blocked)) +
		text.When(t.Cancelled > 0, fmt.Sprintf(", %d cancelled", t.Cancelled))
}

// proofText describes how many items are proven, and which of them only by a review.
func proofText(b *Board, e *view.Fact) string {
	if e.Verified == 0 && e.Unverified == 0 {
		if b.Status == centurion.MissionCompleted {
			if e.Profile == "assistant" && e.Evidence == centurion.EvidenceNone {
				return "nothing to verify"
			}
			return cmp.Or(e.Evidence.Words(), "nothing to verify")
		}
		return ""
	}
	return provenWords(e.Tally)
}

func provenWords(e centurion.Tally) string {
	words := []string{fmt.Sprintf("%d verified", e.Verified)}
	alone := len(e.Reviewed) // without those below, whose check is in doubt
	for id := range e.Reviewed {
		if slices.Contains(e.Unproven, id) || slices.Contains(e.Flaky, id) {
			alone--
		}
	}
	if alone > 0 {
		words[0] += fmt.Sprintf(" (%d by a review alone)", alone)
	}
	if e.Unverified > 0 {
		words = append(words, fmt.Sprintf("%d not", e.Unverified))
	}
	for _, doubt := range []struct {
		name  string
		items []string
	}{{"unproven", e.Unproven}, {"flaky", e.Flaky}, {"cancelled", e.CancelledItems}} {
		told := text.Each(doubt.items, func(id string) string {
			by := e.Reviewed[id].String()
			return text.Clean(id) + text.When(by != "", " (reviewed by agent "+text.Clean(by)+")")
		})
		if len(told) > 0 {
			words = append(words, doubt.name+": "+strings.Join(told, " "))
		}
	}
	return strings.Join(words, ", ")
}

// taskText counts tasks by status, from the figures of the end or, without them, from the board.
func taskText(tasks map[string]int, b *Board) string {
	if len(tasks) == 0 {
		tasks = map[string]int{}
		l := toast.Of(b)
		for _, s := range append([]centurion.TaskStatus{centurion.StatusContinued}, centurion.TaskStatuses...) {
			if n := len(l.In(s)); n > 0 {
				tasks[string(s)] = n
			}
		}
	}
	total := 0
	var parts []string
	known := text.Each(centurion.TaskStatuses, func(s centurion.TaskStatus) string { return string(s) })
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(tasks)), func(s string) bool { return slices.Contains(known, s) })
	for _, s := range slices.Concat(known, others) {
		if n := tasks[s]; n > 0 {
			total += n
			parts = append(parts, fmt.Sprintf("%d %s", n, text.Clean(s)))
		}
	}
	return text.When(total > 0, centurion.Count(total, "task")+": "+strings.Join(parts, ", "))
}

func nextStep(b *Board) string {
	switch b.Status {
	case centurion.MissionPaused, centurion.MissionBlocked:
		return answerFirst(b.Asks) + "centurion resume " + b.ID
	case centurion.MissionFailed:
		return fmt.Sprintf("centurion show %s, then centurion resume %s", b.ID, b.ID)
	}
	return text.When(b.Status == centurion.MissionCompleted && b.Unmerged, "centurion merge "+b.ID)
}

// answerFirst is the advice before resuming a mission with open questions.
func answerFirst(asks []*Ask) string {
	open := slices.DeleteFunc(slices.Clone(asks), func(a *Ask) bool { return a.Type != "question" })
	switch len(open) {
	case 0:
		return ""
	case 1:
		return askCommand(open[0]) + ", then "
	}
	return "centurion asks, then "
}

func askTitle(a *Ask) string {
	switch a.Type {
	case "plan":
		return "the plan waits for you"
	case "question":
		return strings.TrimSpace(a.Agent + " asks: " + text.EscapeWords(a.Text+a.Title))
	}
	return strings.TrimSpace(a.Agent + " needs permission: " + askSubject(a))
}

func askCommand(a *Ask) string {
	if a.Type == "question" {
		return "centurion answer " + text.Escape(a.ID) + " TEXT"
	}
	return "centurion approve " + text.Escape(a.ID)
}

// rule is the line between past events and the current state.
func rule(t theme, w int) string { return t.paint(dim, strings.Repeat("─", w)) }
