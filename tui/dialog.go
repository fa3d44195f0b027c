package tui

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// settle is how long a new dialog ignores deciding keys, so that a person who is typing does not answer it by accident.
const settle = 300 * time.Millisecond

// dialog is the ask shown to the person.
type dialog struct {
	ask    *Ask
	who    string
	left   int // further asks
	level  int // of the mission
	since  time.Time
	items  []Item // newer items of a plan than those of the ask
	read   bool   // items were read
	offset int    // the first shown line of the body
	whole  bool   // the end of the body was shown
	sent   bool   // an answer is being sent
	err    string
	input  input

	choice int // selected choice of a question, from 1; 0 before the arrow keys were used
	lead   int // lines above the choices
}

// action is the effect of a key press.
type action int

const (
	nothing action = iota
	answer
	edit
)

// key handles a key, named as in bubbletea. For answer, reply is the decision.
func (d *dialog) key(name, text string, now time.Time) (act action, reply string) {
	if d.sent {
		return nothing, ""
	}
	if d.ask.Type == "question" {
		d.err = "" // the error of the last answer
		if d.choose(name) {
			return nothing, ""
		}
	}
	switch name {
	case "up", "pgup":
		d.offset = max(0, d.offset-1)
		return nothing, ""
	case "down", "pgdown":
		d.offset++ // render limits it to the end
		return nothing, ""
	}
	if d.ask.Type == "question" && name != "esc" {
		return d.questionKey(name, text)
	}
	if now.Sub(d.since) < settle {
		return nothing, ""
	}
	if d.ask.Type == "question" {
		return answer, event.NoAnswer
	}
	if d.ask.Type == "plan" {
		switch name {
		case "enter":
			return d.allow(AnswerOnce)
		case "e":
			return edit, ""
		case "q":
			return answer, AnswerReject
		}
		return nothing, ""
	}
	switch name {
	case "o":
		return d.allow(AnswerOnce)
	case "a":
		return d.allow(AnswerAlways)
	case "r":
		return answer, AnswerReject
	}
	return nothing, ""
}

// allow accepts only what was shown to its end.
func (d *dialog) allow(reply string) (action, string) {
	if !d.whole {
		d.err = "not all of it was shown yet: press ↓ to the end first"
		return nothing, ""
	}
	return answer, reply
}

// lines renders the dialog in w cells and at most h lines.
func (d *dialog) lines(t theme, w, h int) []string {
	title, body, keys := d.permission(t, w-2)
	switch d.ask.Type {
	case "plan":
		title, body, keys = d.plan(t, w-2)
	case "question":
		title, body, keys = d.question(t, w-2)
	}
	if d.sent {
		keys = []string{t.paint(dim, "sending…")}
	}
	if d.err != "" {
		keys = append([]string{t.paint(bad, text.Fit(d.err, w-2))}, keys...)
	}
	room := max(1, h-1-len(keys))
	if len(body) > room {
		room = max(1, room-1) // for the line that announces more
		d.offset = min(d.offset, len(body)-room)
		if d.offset == len(body)-room {
			d.whole = true
		}
		more := fmt.Sprintf("lines %d–%d of %d  ↑ ↓", d.offset+1, d.offset+room, len(body))
		body = append(slices.Clone(body[d.offset:d.offset+room]), t.paint(dim, text.Fit(more, w-2)))
	} else {
		d.offset, d.whole = 0, true
	}
	return prefixed(t.paint(warn, "▌")+" ", slices.Concat([]string{title}, body, keys))
}

func (d *dialog) title(t theme, said string, w int) string {
	more := text.When(d.left > 0, fmt.Sprintf("%d more", d.left))
	room := w - text.Width(more) - 2
	s := text.Fit(said, room)
	return t.paint(warn, s) + strings.Repeat(" ", max(0, w-text.Width(s)-text.Width(more))) + t.paint(dim, more)
}

func (d *dialog) permission(t theme, w int) (title string, body, keys []string) {
	a := d.ask
	title = d.title(t, fmt.Sprintf("%s needs your permission: %s", cmp.Or(d.who, "an agent"), text.Escape(a.Permission)), w)
	for _, p := range a.Patterns {
		for l := range strings.SplitSeq(p, "\n") { // a script is shown by lines, with everything else made visible
			for i, part := range text.WrapExact(text.Escape(l), w-2) {
				body = append(body, t.paint(dim, text.If(i > 0, "↪ ", "  "))+t.paint(strong, part))
			}
		}
	}
	for _, why := range []string{a.Title, a.Text, metadata(a.Metadata, "reason"), metadata(a.Metadata, "description")} {
		if why != "" && !slices.Contains(a.Patterns, why) {
			body = append(body, t.paintAll(dim, text.Wrap("why: "+text.Escape(why), w))...) // a sentence, wrapped at words
			break
		}
	}
	if len(a.Always) > 0 {
		body = append(body, t.paintAll(dim, text.WrapExact("\"always\" allows: "+text.Escape(strings.Join(a.Always, ", ")), w))...)
	}
	return title, body, []string{text.Fit("[o]nce  [a]lways  [r]eject", w)}
}

func metadata(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func (d *dialog) plan(t theme, w int) (title string, body, keys []string) {
	items := d.ask.Items
	if d.read {
		items = d.items
	}
	waves, stuck := Waves(items)
	level := text.When(d.level > 0, fmt.Sprintf("level %d", d.level))
	title = d.title(t, text.Dots("The plan", level, centurion.Count(len(items), "item")+" in "+centurion.Count(len(waves), "wave"), roles(items),
		costRange(d.ask.CostLow, d.ask.CostHigh)), w)
	for i, wave := range waves {
		body = append(body, t.paint(dim, fmt.Sprintf("wave %d", i+1)))
		for _, it := range wave {
			body = append(body, planItem(t, it, w)...)
		}
	}
	if len(stuck) > 0 {
		body = append(body, t.paint(bad, text.Fit("can never start: each waits for another or for an unknown item", w)))
		for _, it := range stuck {
			body = append(body, planItem(t, it, w)...)
		}
	}
	if len(items) == 0 {
		body = append(body, t.paintAll(dim, text.WrapExact(cmp.Or(text.Escape(d.ask.Text), "no items"), w))...)
	}
	return title, body, []string{text.Fit("[enter] run  [e]dit  [q] not now", w)}
}

// planItem shows an item with its complete checks: accepting the plan allows them to run.
func planItem(t theme, it Item, w int) []string {
	after := text.When(len(it.After) > 0, "after "+text.Escape(strings.Join(it.After, ", ")))
	id := text.Pad(text.Escape(it.ID), min(6, max(3, text.Width(it.ID))))
	agent := text.Pad(text.Escape(it.Agent), 9)
	indent := 2 + text.Width(id) + 1
	lead := "  " + id + " "
	if w >= narrow {
		indent += text.Width(agent) + 1
		lead += t.paint(roleTone(it.Agent), agent) + " "
	}
	out := []string{lead + text.Fit(text.Escape(it.Title), w-indent)}
	if room := w - indent - text.Width(text.Escape(it.Title)) - 2; after != "" && room >= text.Width(after) {
		out[0] += "  " + t.paint(dim, after)
	} else if after != "" {
		out = append(out, strings.Repeat(" ", indent)+t.paint(dim, text.Fit(after, w-indent)))
	}
	for _, v := range it.Verify {
		checks := t.paintAll(dim, text.WrapExact("check: "+text.Escape(v), w-indent))
		out = append(out, prefixed(strings.Repeat(" ", indent), checks)...)
	}
	return out
}

// roles counts the items of each agent: 3 worker, 1 reviewer.
func roles(items []Item) string {
	n := map[string]int{}
	for _, it := range items {
		if it.Agent != "" {
			n[text.Escape(strings.ToLower(it.Agent))]++
		}
	}
	parts := text.Each(slices.Sorted(maps.Keys(n)), func(a string) string { return fmt.Sprintf("%d %s", n[a], a) })
	return strings.Join(parts, ", ")
}

func costRange(low, high float64) string {
	low, high = math.Round(low*100)/100, math.Round(high*100)/100 // a rough estimate
	switch {
	case high <= 0:
		return ""
	case low <= 0 || low >= high:
		return "about " + text.USD(high)
	}
	return "about " + text.USD(low) + "–" + text.USD(high)
}

// input is a line of text being typed.
type input struct {
	text []rune
	pos  int
}

func (in *input) key(name, text string) {
	switch name {
	case "left":
		in.pos = max(0, in.pos-1)
	case "right":
		in.pos = min(len(in.text), in.pos+1)
	case "home", "ctrl+a":
		in.pos = 0
	case "end", "ctrl+e":
		in.pos = len(in.text)
	case "backspace":
		if in.pos > 0 {
			in.pos--
			in.text = slices.Delete(in.text, in.pos, in.pos+1)
		}
	case "delete":
		if in.pos < len(in.text) {
			in.text = slices.Delete(in.text, in.pos, in.pos+1)
		}
	case "ctrl+u":
		in.text, in.pos = slices.Clone(in.text[in.pos:]), 0
	case "ctrl+w":
		i := in.pos
		for i > 0 && in.text[i-1] == ' ' {
			i--
		}
		for i > 0 && in.text[i-1] != ' ' {
			i--
		}
		in.text, in.pos = slices.Delete(in.text, i, in.pos), i
	default:
		in.insert(text)
	}
}

// insert adds typed or pasted text, in one line.
func (in *input) insert(s string) {
	r := []rune(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return ' '
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 {
			return -1
		}
		return r
	}, s))
	in.text = slices.Insert(in.text, in.pos, r...)
	in.pos += len(r)
}

// line shows the text around the cursor in w cells.
func (in *input) line(w int) string {
	const cursor = "▏"
	before, after := text.Escape(string(in.text[:in.pos])), text.Escape(string(in.text[in.pos:]))
	for text.Width(before) > w-2 && before != "" {
		before = string([]rune(before)[1:])
	}
	return before + cursor + text.Fit(after, w-1-text.Width(before))
}
