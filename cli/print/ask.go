package print

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"centurion/cli/lookup"
	"centurion/store"
	"centurion/text"
	"centurion/tui"
)

// Ask prints an approval or question: what it is, who asks, and the choices.
func Ask(w io.Writer, a store.Ask) error {
	title := text.Escape(cmp.Or(a.Title, a.Text)) // the person must see every character of it
	if a.Type == store.AskQuestion || a.Type == lookup.BlockedMission {
		title = text.EscapeWords(cmp.Or(a.Title, a.Text))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s  %s\n", a.ID, a.Type, a.Permission, title)
	if a.Address != "" && (a.Line != "" || a.Type == store.AskQuestion) {
		from := a.Agent + " " + a.Address + text.When(a.Line != "", ", below "+a.Line) + text.When(a.Task != "", ", task "+a.Task)
		fmt.Fprintf(&b, "    from %s\n", text.Escape(from))
	}
	switch a.Type {
	case store.AskPermission:
		for _, l := range [][2]string{{"why", text.EscapeWords(a.Text)}, {"always allows", whatAlways(a)}} {
			if l[1] != "" {
				fmt.Fprintf(&b, "    %s: %s\n", l[0], l[1])
			}
		}
	case store.AskQuestion:
		for i, o := range a.Options {
			fmt.Fprintf(&b, "    %d  %s\n", i+1, text.EscapeWords(o))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// whatAlways says what the answer "always" would allow, and for whom; it is empty if that adds nothing.
func whatAlways(a store.Ask) string {
	if a.Type != store.AskPermission || len(a.Always) == 0 {
		return ""
	}
	return text.Escape(a.Permission+" "+strings.Join(a.Always, ", ")) + ", for every agent of this mission"
}

// Approved says what an answer has allowed.
func Approved(a store.Ask, found bool, how string) string {
	if how != tui.AnswerAlways || !found || a.Type != store.AskPermission {
		return "approved " + how
	}
	what := whatAlways(a)
	return text.If(what == "", "approved once: there is nothing in it that could be allowed for always", "approved always: "+what+", until it ends")
}

// HowToAnswer names the commands that answer the open asks.
func HowToAnswer(all []store.Ask) string {
	var how []string
	for _, x := range []struct{ kind, say string }{
		{store.AskPermission, "centurion approve ID [once|always], centurion deny ID"}, {store.AskPlan, "centurion approve ID, centurion deny ID"},
		{store.AskQuestion, "centurion answer ID TEXT"}} {
		if slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == x.kind }) {
			how = append(how, x.say)
		}
	}
	blocked := slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == lookup.BlockedMission })
	return strings.Join(text.Filled(
		text.When(len(how) > 0, "Answer with: "+strings.Join(how, ", ")),
		text.When(blocked, `A blocked mission: send it what it needs (centurion send ID "TEXT"), then continue it: centurion resume ID`)), "\n")
}
