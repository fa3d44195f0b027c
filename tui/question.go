package tui

import (
	"cmp"
	"fmt"

	"centurion/orchestrator/approval"
	"centurion/text"
)

// choose moves between the choices of a question, and reports whether the key was for that.
func (d *dialog) choose(name string) bool {
	n := len(d.ask.Choices())
	if n == 0 || len(d.input.text) > 0 || name != "up" && name != "down" {
		return false
	}
	switch {
	case name == "down":
		d.choice = d.choice%n + 1
	case d.choice <= 1:
		d.choice = n
	default:
		d.choice--
	}
	d.offset = d.lead + d.choice - 1 // render limits it to the end
	return true
}

// questionKey handles other keys of a question. A number without a choice is a typing mistake, and the person is asked again.
func (d *dialog) questionKey(name, text string) (action, string) {
	if name != "enter" {
		d.input.key(name, text)
		return nothing, ""
	}
	s := approval.Chosen(d.ask.Choices(), string(d.input.text))
	if err := approval.NoChoice(d.ask.Choices(), s); err != nil {
		d.err, d.input = err.Error()+": type one of their numbers, or your own words", input{}
		return nothing, ""
	}
	switch {
	case s == "" && d.choice > 0:
		return answer, d.ask.Choices()[d.choice-1]
	case s == "":
		return nothing, ""
	}
	return answer, s
}

func (d *dialog) question(t theme, w int) (title string, body, keys []string) {
	a := d.ask
	title = d.title(t, cmp.Or(d.who, "an agent")+" asks", w)
	if a.Line != "" {
		body = t.paintAll(dim, text.Wrap(text.Clean(fmt.Sprintf("%s, below %s", a.Address, a.Line)), w))
	}
	body = append(body, text.WrapLines(cmp.Or(a.Text, a.Title), w)...)
	d.lead = len(body)
	for i, o := range a.Choices() {
		mark, c := " ", plain
		if i+1 == d.choice && len(d.input.text) == 0 {
			mark, c = "›", strong
		}
		body = append(body, t.paintAll(c, text.Wrap(fmt.Sprintf("%s %d  %s", mark, i+1, text.Clean(o)), w))...)
	}
	hint := text.When(len(a.Choices()) > 0, "↑ ↓, a number or your own words; ") + "enter sends it · esc: no answer"
	return title, body, []string{"› " + d.input.line(w-3), t.paint(dim, text.Fit(hint, w))}
}
