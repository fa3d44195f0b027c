package v1

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/approval"
	"centurion/store"
)

func (p *Project) askRoutes() map[string]route {
	return map[string]route{
		"GET /permission": func(r *http.Request) (any, error) {
			all, err := p.asks(r.Context(), true)
			out := make([]permissionAsk, 0, len(all))
			for _, a := range all {
				out = append(out, shownPermission(a))
			}
			return out, err
		},
		"GET /question": func(r *http.Request) (any, error) {
			all, err := p.asks(r.Context(), false)
			out := make([]questionAsk, 0, len(all))
			for _, a := range all {
				out = append(out, shownQuestion(a))
			}
			return out, err
		},
		"POST /permission/{id}/reply": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Reply   string `json:"reply"`
				Message string `json:"message"`
			}](r)
			if err == nil {
				err = p.allow(r.Context(), r.PathValue("id"), b.Reply, b.Message)
			}
			return true, err
		},
		"POST /session/{session}/permissions/{id}": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Response string `json:"response"`
			}](r)
			if err == nil {
				err = p.allow(r.Context(), r.PathValue("id"), b.Response, "")
			}
			return true, err
		},
		"POST /question/{id}/reply": func(r *http.Request) (any, error) {
			b, err := read[struct {
				Answers [][]string `json:"answers"`
			}](r)
			if err != nil {
				return nil, err
			}
			a, err := p.ask(r.Context(), r.PathValue("id"), false)
			if err != nil {
				return nil, err
			}
			return true, p.API().Answer(r.Context(), a.ID, spoken(a, b.Answers))
		},
		"POST /question/{id}/reject": func(r *http.Request) (any, error) {
			a, err := p.ask(r.Context(), r.PathValue("id"), false)
			if err != nil {
				return nil, err
			}
			no := map[string]string{store.AskPermission: "reject", store.AskPlan: "quit"}[a.Type]
			return true, p.API().Answer(r.Context(), a.ID, cmp.Or(no, event.NoAnswer))
		},
	}
}

// questionID is the id of an ask that is shown as a question.
func questionID(id string) string {
	_, rest, _ := strings.Cut(id, "_")
	return string(centurion.PrefixQuestion) + "_" + rest
}

// asks are the open asks of one of the two kinds.
func (p *Project) asks(ctx context.Context, dialog bool) ([]store.Ask, error) {
	all, err := p.API().Asks(ctx)
	return slices.DeleteFunc(all, func(a store.Ask) bool { return asksByDialog(a) != dialog }), err
}

// ask is an open ask. One that is over is not found.
func (p *Project) ask(ctx context.Context, id string, dialog bool) (store.Ask, error) {
	all, err := p.asks(ctx, dialog)
	if err != nil {
		return store.Ask{}, err
	}
	for _, a := range all {
		if a.ID == id || !dialog && questionID(a.ID) == id {
			return a, nil
		}
	}
	tag := map[bool]string{true: "PermissionNotFoundError", false: "QuestionNotFoundError"}[dialog]
	return store.Ask{}, &overError{tag, id, "nothing waits for an answer to " + id}
}

func (p *Project) allow(ctx context.Context, id, reply, why string) error {
	if !slices.Contains([]string{"once", "always", "reject"}, reply) {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "the reply is once, always or reject"}
	}
	a, err := p.ask(ctx, id, true)
	if err != nil {
		return err
	}
	if reply == "reject" {
		reply = approval.Refusal(why) // it is told to the agent
	}
	return p.API().Answer(ctx, a.ID, reply)
}

// spoken is the answer to a question: the word of a choice, or what the person wrote.
func spoken(a store.Ask, given [][]string) string {
	var said []string
	for _, labels := range given {
		said = append(said, labels...)
	}
	_, words := answers(a)
	if len(said) == 1 && words[said[0]] != "" {
		return words[said[0]]
	}
	return cmp.Or(strings.Join(said, ", "), event.NoAnswer)
}
