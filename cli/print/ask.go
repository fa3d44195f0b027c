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
	if _, err := fmt.Fprintf(w, "%s  %s  %s  %s\n", a.ID, a.Type, a.Permission, title); err != nil {
		return err
	}
	if a.Address != "" && (a.Line != "" || a.Type == store.AskQuestion) {
		from := a.Agent + " " + a.Address
		if a.Line != "" {
			from += ", below " + a.Line
		}
		if a.Task != "" {
			from += ", task " + a.Task
		}
		if _, err := fmt.Fprintf(w, "    from %s\n", text.Escape(from)); err != nil {
			return err
		}
	}
	if a.Type == store.AskPermission {
		for _, l := range [][2]string{{"why", text.EscapeWords(a.Text)}, {"always allows", whatAlways(a)}} {
			if l[1] == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "    %s: %s\n", l[0], l[1]); err != nil {
				return err
			}
		}
	}
	if a.Type != store.AskQuestion {
		return nil
	}
	for i, o := range a.Options {
		if _, err := fmt.Fprintf(w, "    %d  %s\n", i+1, text.EscapeWords(o)); err != nil {
			return err
		}
	}
	return nil
}

// whatAlways says what the answer "always" would allow, and for whom; it is empty where that adds nothing.
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
	if what == "" {
		return "approved once: there is nothing in it that could be allowed for always"
	}
	return "approved always: " + what + ", until it ends"
}

// HowToAnswer names the commands that answer what waits.
func HowToAnswer(all []store.Ask) string {
	var how []string
	for _, x := range []struct{ kind, say string }{
		{store.AskPermission, "centurion approve ID [once|always], centurion deny ID"}, {store.AskPlan, "centurion approve ID, centurion deny ID"},
		{store.AskQuestion, "centurion answer ID TEXT"}} {
		if slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == x.kind }) {
			how = append(how, x.say)
		}
	}
	said := ""
	if len(how) > 0 {
		said = "Answer with: " + strings.Join(how, ", ")
	}
	if !slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == lookup.BlockedMission }) {
		return said
	}
	if said != "" {
		said += "\n"
	}
	return said + `A blocked mission: send it what it needs (centurion send ID "TEXT"), then continue it: centurion resume ID`
}
