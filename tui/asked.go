package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

func (s *story) ask(e centurion.Event, p view.Fact) []fact {
	if s.asked == nil {
		s.asked = map[string]*Ask{}
	}
	key := cmp.Or(p.ID, e.Session)
	if strings.HasSuffix(string(e.Type), ".asked") {
		for _, a := range s.board.Asks {
			if cmp.Or(a.ID, a.Session) == key {
				s.asked[key] = a
				return askedFacts(a, s.name(a.Session, a.Task))
			}
		}
		return nil
	}
	a := s.asked[key]
	delete(s.asked, key)
	if a == nil { // decided by policy, or asked before the shown events: the answer repeats the question
		a = s.board.NewAsk(e, p)
	}
	f := answered(a, p)
	if f.who != "" {
		f.who = s.name(a.Session, a.Task)
	}
	return []fact{f}
}

// yes are the answers that accept a permission or a plan; any other text is a refusal in a person's words.
var yes = [...]string{AnswerOnce, AnswerAlways, "run", "yes"}

// answered describes how an ask ended, and who answered.
func answered(a *Ask, p view.Fact) fact {
	f := fact{mark: "✓", tone: good, agent: a.Agent, who: a.Agent}
	no := a.Type != "question" && !slices.Contains(yes[:], p.Answer)
	if no {
		f.mark, f.tone = "✗", bad
	}
	by := text.When(p.By != "" && p.By != "person", "by "+text.Clean(p.By))
	if p.By == "always" { // it was open when the person answered another one with "always"
		by = `by your earlier "always"`
	}
	switch a.Type {
	case "plan":
		f.who = ""
		f.text = "plan accepted"
		if no {
			f.mark, f.tone, f.text = "·", dim, "plan not run"
		}
		if len(a.Items) > 0 {
			waves, _ := Waves(a.Items)
			f.detail = fmt.Sprintf("%s in %s", centurion.Count(len(a.Items), "item"), centurion.Count(len(waves), "wave"))
		}
		f.detail = text.Dots(f.detail, by)
	case "question":
		f.text, f.detail = "answered: "+cmp.Or(text.Clean(p.Answer), "(no answer)"), by
	default:
		f.text = text.If(no, "rejected", "allowed "+cmp.Or(text.Clean(p.Answer), AnswerOnce))
		ownWords := text.When(no && p.Answer != AnswerReject, text.Clean(p.Answer))
		f.detail = text.Dots(askSubject(a), by, ownWords)
	}
	return f
}

// askSubject is the subject of a permission ask in one line, with nothing hidden: a command as written.
func askSubject(a *Ask) string {
	if a.Permission == "bash" && a.Title != "" {
		return "bash " + text.Escape(a.Title)
	}
	return strings.TrimSpace(text.Escape(a.Permission) + " " + text.Escape(strings.Join(a.Patterns, " ")))
}

// askedFacts describes an ask and how to answer it elsewhere; the live view shows a dialog instead.
func askedFacts(a *Ask, who string) []fact {
	f := fact{mark: "?", tone: warn, agent: a.Agent, who: cmp.Or(who, a.Agent), quiet: true}
	switch a.Type {
	case "plan":
		f.who = ""
		f.text = "plan waits for you"
		f.detail = fmt.Sprintf("answer with: centurion approve %s · centurion deny %s", text.Escape(a.ID), text.Escape(a.ID))
		return append(planFacts(a), f)
	case "question":
		f.text = "asks: " + text.EscapeWords(cmp.Or(a.Text, a.Title)) +
			text.When(len(a.Choices()) > 0, " ("+text.EscapeWords(strings.Join(a.Choices(), ", "))+")")
		f.detail = fmt.Sprintf("answer with: centurion answer %s TEXT", text.Escape(a.ID))
	default:
		f.text = "needs your permission: " + askSubject(a)
		f.detail = fmt.Sprintf("answer with: centurion approve %s [once|always] · centurion deny %s", text.Escape(a.ID), text.Escape(a.ID))
	}
	return []fact{f}
}

func planFacts(a *Ask) []fact {
	waves, stuck := Waves(a.Items)
	var facts []fact
	add := func(label string, items []Item) {
		for _, it := range items {
			after := text.When(len(it.After) > 0, "after "+text.Escape(strings.Join(it.After, ", ")))
			checks := text.When(len(it.Verify) > 0, "check: "+text.Escape(strings.Join(it.Verify, "; ")))
			facts = append(facts, fact{mark: "·", tone: dim, quiet: true, who: label,
				text: strings.TrimSpace(text.Escape(it.ID) + " " + text.Escape(it.Title)), detail: text.Dots(text.Escape(it.Agent), after, checks)})
		}
	}
	for i, w := range waves {
		add(fmt.Sprintf("wave %d", i+1), w)
	}
	add("can never start", stuck)
	return facts
}
