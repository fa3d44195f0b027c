package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/approval"
	"centurion/server"
	"centurion/store"
)

// RefuseMission returns the error for an answer to a blocked mission: it has no question, but its agent reads messages.
func RefuseMission(ctx context.Context, api server.API, id string) error {
	if !strings.HasPrefix(id, string(centurion.PrefixMission)+"_") {
		return nil
	}
	m, err := api.Mission(ctx, id)
	if err != nil {
		return err
	}
	e := &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: m.ID + " is a mission, not a question", Hint: "see what waits with: centurion asks"}
	if !m.Status.Ended() {
		e.Hint = toldAndResumed(m.ID)
	}
	return e
}

// toldAndResumed says how a person's message reaches a blocked mission.
func toldAndResumed(mission string) string {
	return fmt.Sprintf(`write to it: centurion send %s "TEXT", then: centurion resume %s`, mission, mission)
}

// Choice interprets an answer to a question. It refuses a number without a choice.
func Choice(a store.Ask, answer string) (string, error) {
	taken := approval.Chosen(a.Options, answer)
	if err := approval.NoChoice(a.Options, taken); err != nil {
		return "", &centurion.Error{Op: "answer " + a.ID, Kind: centurion.KindUsage, Msg: err.Error(),
			Hint: "see them with: centurion asks; or answer in words of your own"}
	}
	return taken, nil
}

// stillNeeds says what a blocked mission needs: if its question has been answered meanwhile, only a resume.
func stillNeeds(m server.Mission, open []store.Ask) string {
	if before, several := strings.CutSuffix(m.Reason, "("+approval.AsksHint+")"); several {
		return before + "(answered; continue with: centurion resume " + m.ID + ")"
	}
	before, rest, asked := strings.Cut(m.Reason, "(centurion answer ")
	id, _, named := strings.Cut(rest, " TEXT)")
	if !asked || !named || slices.ContainsFunc(open, func(a store.Ask) bool { return a.ID == id }) {
		return m.Reason
	}
	return before + "(answered; continue with: centurion resume " + m.ID + ")"
}

// asksFor reports whether the open questions in the list already say what a blocked mission needs.
func asksFor(m server.Mission, open []store.Ask) bool {
	return slices.ContainsFunc(open, func(a store.Ask) bool {
		return a.Mission == m.ID && a.Type == store.AskQuestion &&
			(strings.Contains(m.Reason, "(centurion answer "+a.ID+" ") || strings.HasSuffix(m.Reason, "("+approval.AsksHint+")"))
	})
}

// RefuseQuestion returns the error for a permission given to a question.
func RefuseQuestion(ctx context.Context, api server.API, id string) error {
	if a, found := Ask(ctx, api, id); found && a.Type == store.AskQuestion {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: a.ID + " asks no permission, but: " + centurion.Clip(a.Text, 80),
			Hint: "answer it with: centurion answer " + a.ID + " TEXT"}
	}
	return nil
}

// Refusal returns a person's refusal: for a question, that they do not answer it.
func Refusal(ctx context.Context, api server.API, id, reason string) string {
	if a, found := Ask(ctx, api, id); found && a.Type == store.AskQuestion {
		return strings.TrimSpace(event.NoAnswer + " " + reason)
	}
	return approval.Refusal(reason)
}

// Ask finds an approval or question by its id or a unique prefix. If it cannot be read, answering reports why.
func Ask(ctx context.Context, api server.API, id string) (found store.Ask, ok bool) {
	all, err := api.Asks(ctx)
	if err != nil || id == "" {
		return found, false
	}
	n := 0
	for _, a := range all {
		if a.ID == id {
			return a, true
		}
		if strings.HasPrefix(a.ID, id) {
			found, n = a, n+1
		}
	}
	return found, n == 1
}

// BlockedMission is the type of a blocked mission among the asks: it needs a fix and a resume, not an answer.
const BlockedMission = "mission"

// Waiting lists the asks and, after them, the missions that are blocked.
func Waiting(ctx context.Context, api server.API) ([]store.Ask, error) {
	all, err := api.Asks(ctx)
	if err != nil {
		return nil, err
	}
	missions, err := api.Missions(ctx)
	for _, m := range missions {
		if m.Status == centurion.MissionBlocked && !asksFor(m, all) {
			all = append(all, store.Ask{ID: m.ID, Type: BlockedMission, Mission: m.ID, Session: m.Session, Title: stillNeeds(m, all)})
		}
	}
	return all, err
}

// IsRead reports whether a mission is running, so that its agent reads an answer by itself.
func IsRead(ctx context.Context, api server.API, mission string) bool {
	if _, idle := api.(*server.Local); idle {
		return false
	}
	m, err := api.Mission(ctx, mission)
	return err != nil || m.Status.Alive() // if it is unreadable, assume so
}
