package page

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/approval"
	"centurion/server"
	"centurion/store"
	"centurion/text"
)

// asked is an ask on the page.
type asked struct {
	store.Ask
	Goal    string // of its mission
	Link    string // its own address
	Above   string // what comes before it in the address of the page's own form; the form of its own page needs none
	Mission string // the address of its mission, "" where that is not to be seen
	Head    string
	From    string
	What    string   // what is asked, by lines, with nothing hidden
	More    []string // why
	Choices []choice
	Words   string // what may be written beside a choice
	Wrong   string // why an answer was not taken
}

// choice is an answer. The first tap takes it, the second sends it.
type choice struct {
	Value, Label, Says string
	Risk               bool // it allows more than what is shown
}

// asked is an ask as the page shows it.
func (s *Site) asked(a store.Ask, m server.Mission, above, mission string) asked {
	v := asked{Ask: a, Goal: text.If(above == "..", "", m.Goal), Mission: mission, Link: server.AskLink(s.Token, a.ID), Above: above}
	who := text.Clean(strings.TrimSpace(a.Agent + " " + a.Address))
	v.From = text.Dots(text.When(a.Line != "", "below "+a.Line), text.When(!a.Deadline.IsZero(), "waits until "+a.Deadline.UTC().Format("15:04 UTC")))
	switch whole := visible(a.Text); a.Type {
	case store.AskPlan:
		v.Head, v.What = "A plan waits for you: "+text.EscapeWords(a.Title), whole
		v.Choices = []choice{{"run", "Run it", "agents carry out this plan and may run its checks", false}, {"quit", "Not now", "the plan stays in the project", false}}
	case store.AskPermission:
		v.Head, v.What = text.If(who != "", who+" needs", "It needs")+" your permission: "+text.Escape(a.Permission), visible(strings.Join(a.Patterns, "\n"))
		v.Choices = []choice{{"once", "Allow once", "only what is shown here", false}}
		if len(a.Always) > 0 {
			v.Choices = append(v.Choices, choice{"always", "Always allow", text.Escape(a.Permission+" "+strings.Join(a.Always, ", ")) + ", for every agent of this mission until it ends", true})
		}
		v.Choices = append(v.Choices, choice{"reject", "Refuse", "", false})
		v.Words = "Why you refuse (the agent is told)"
		reason, _ := a.Metadata["description"].(string)
		for _, why := range []string{a.Title, reason} {
			if why = visible(why); why != v.What {
				v.More = text.Union(v.More, text.Filled(why)...)
			}
		}
		v.More = append(v.More, text.Filled(text.When(whole != "", "Why you are asked: "+whole))...)
	default:
		v.Head, v.What = text.If(who != "", who+" asks", "A question"), whole
		if title := visible(a.Title); title != whole && title != "" {
			v.What = strings.TrimSpace(title + "\n" + whole)
		}
		for i, o := range a.Options {
			v.Choices = append(v.Choices, choice{strconv.Itoa(i + 1), text.EscapeWords(o), "", false})
		}
		v.Choices = append(v.Choices, choice{noAnswer, "No answer", "the agent decides for itself", false})
		v.Words = text.If(len(a.Options) > 0, "Or in your own words", "Your answer")
	}
	return v
}

// noAnswer is the choice not to answer a question.
const noAnswer = "none"

// visible shows every character of a text, by lines.
func visible(s string) string {
	return strings.Join(text.Each(strings.Split(strings.TrimSpace(s), "\n"), text.Escape), "\n")
}

// answer is what a person's choice and words say.
func (v asked) answer(picked, words string) (string, error) {
	words = strings.TrimSpace(words)
	known := slices.ContainsFunc(v.Choices, func(c choice) bool { return c.Value == picked })
	switch {
	case v.Type != store.AskQuestion && !known:
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "choose one of the answers first"}
	case picked == "reject":
		return approval.Refusal(words), nil
	case v.Type != store.AskQuestion:
		return picked, nil
	case picked == noAnswer:
		return strings.TrimSpace(event.NoAnswer + " " + words), nil
	case words != "":
		words = approval.Chosen(v.Options, words)
		return words, approval.NoChoice(v.Options, words)
	case known:
		n, err := strconv.Atoi(picked)
		return v.Options[n-1], err
	}
	return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "choose one of the answers, or write your own"}
}

// maxForm limits an answer, in bytes.
const maxForm = 64 << 10

// ask shows an ask alone, and takes its answer.
func (s visit) ask(w http.ResponseWriter, r *http.Request) {
	id := server.LinkedAsk(s.Token, r.URL.Path)
	if id == "" {
		s.fail(w, &centurion.Error{Kind: centurion.KindNotFound, Msg: "this is no link of a question"})
		return
	}
	p, a, err := s.open(r.Context(), id)
	if err != nil {
		s.fail(w, err)
		return
	}
	if p == nil {
		s.say(w, http.StatusGone, gone, s.back(r, ""))
		return
	}
	m, err := p.API().Mission(r.Context(), a.Mission)
	if err != nil {
		s.fail(w, err)
		return
	}
	v := s.asked(a, m, "", "")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		s.alone(w, v, http.StatusOK)
	case http.MethodPost:
		s.answer(w, r, p, v)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		s.say(w, http.StatusMethodNotAllowed, "a link of a question is read or answered", "")
	}
}

// gone says that a link has worked.
const gone = "Nothing waits for an answer here any more: it was given, or what asked has stopped."

func (s visit) answer(w http.ResponseWriter, r *http.Request, p *Project, v asked) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	answer, err := v.answer(r.PostFormValue("answer"), r.PostFormValue("words"))
	if err == nil {
		err = p.API().Answer(r.Context(), v.ID, answer)
	}
	switch centurion.KindOf(err) {
	case "":
		s.say(w, http.StatusOK, "Answered: "+centurion.Clip(text.EscapeWords(answer), 200), s.back(r, v.Ask.Mission))
	case centurion.KindNotFound: // somebody else was first
		s.say(w, http.StatusGone, gone, s.back(r, v.Ask.Mission))
	case centurion.KindUsage:
		v.Wrong = sentence(err)
		s.alone(w, v, http.StatusBadRequest)
	default:
		s.fail(w, err)
	}
}

func (s *Site) alone(w http.ResponseWriter, v asked, status int) {
	s.write(w, shown{Title: text.Clean(v.Head), Status: status, Body: "alone", What: v})
}

// back is the address that somebody with the token goes back to: a mission, or the list for "".
func (s *Site) back(r *http.Request, mission string) string {
	return text.When(strings.HasPrefix(r.RequestURI, server.TokenPath), "../"+text.When(mission != "", "mission/"+mission))
}

// open is an open ask with its project, which is nil if there is none.
func (s visit) open(ctx context.Context, id string) (*Project, store.Ask, error) {
	for _, p := range s.projects {
		all, err := p.API().Asks(ctx)
		if err != nil {
			return nil, store.Ask{}, err
		}
		if i := slices.IndexFunc(all, func(a store.Ask) bool { return a.ID == id }); i >= 0 {
			return p, all[i], nil
		}
	}
	return nil, store.Ask{}, nil
}
