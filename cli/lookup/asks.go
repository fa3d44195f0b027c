package lookup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
	"centurion/tui"
)

// RefuseMission is the error for an answer to a mission itself, which stands among what waits if it is blocked: it has no question
// that could be answered, but its agent reads what is written to it.
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

// toldAndResumed is how a person's word reaches a blocked mission.
func toldAndResumed(mission string) string {
	return fmt.Sprintf(`write to it: centurion send %s "TEXT", then: centurion resume %s`, mission, mission)
}

// Choice is what an answer to a question is taken as. A number that none of its choices has is refused.
func Choice(a store.Ask, answer string) (string, error) {
	taken := orchestrator.Chosen(a.Options, answer)
	if err := orchestrator.NoChoice(a.Options, taken); err != nil {
		return "", &centurion.Error{Op: "answer " + a.ID, Kind: centurion.KindUsage, Msg: err.Error(),
			Hint: "see them with: centurion asks; or answer in words of your own"}
	}
	return taken, nil
}

// stillNeeds says what a blocked mission needs: a question that was answered meanwhile needs nothing but a resume.
func stillNeeds(m server.Mission, open []store.Ask) string {
	if before, several := strings.CutSuffix(m.Reason, "("+orchestrator.AsksHint+")"); several {
		return before + "(answered; go on with: centurion resume " + m.ID + ")"
	}
	before, rest, asked := strings.Cut(m.Reason, "(centurion answer ")
	id, _, named := strings.Cut(rest, " TEXT)")
	if !asked || !named || slices.ContainsFunc(open, func(a store.Ask) bool { return a.ID == id }) {
		return m.Reason
	}
	return before + "(answered; go on with: centurion resume " + m.ID + ")"
}

// asksFor reports whether what a blocked mission needs stands in the list already, as open questions of its own.
func asksFor(m server.Mission, open []store.Ask) bool {
	return slices.ContainsFunc(open, func(a store.Ask) bool {
		return a.Mission == m.ID && a.Type == store.AskQuestion &&
			(strings.Contains(m.Reason, "(centurion answer "+a.ID+" ") || strings.HasSuffix(m.Reason, "("+orchestrator.AsksHint+")"))
	})
}

// RefuseQuestion is the error for a permission given to a question: once is no answer to it.
func RefuseQuestion(ctx context.Context, api server.API, id string) error {
	if a, found := Ask(ctx, api, id); found && a.Type == store.AskQuestion {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: a.ID + " asks no permission, but: " + centurion.Clip(a.Text, 80),
			Hint: "answer it with: centurion answer " + a.ID + " TEXT"}
	}
	return nil
}

// Refusal is how a person refuses what waits: of a question, that they do not answer it.
func Refusal(ctx context.Context, api server.API, id, reason string) string {
	if a, found := Ask(ctx, api, id); found && a.Type == store.AskQuestion {
		return strings.TrimSpace(event.NoAnswer + " " + reason)
	}
	return cmp.Or(reason, tui.AnswerReject)
}

// Ask finds what waits by its id or the only beginning of one. What cannot be read is told by the answer itself.
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

// BlockedMission is the type of a blocked mission among what waits: it is answered by mending what it names and a resume.
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

// IsRead reports whether somebody works on a mission, who reads an answer by themselves.
func IsRead(ctx context.Context, api server.API, mission string) bool {
	if _, idle := api.(*server.Local); idle {
		return false
	}
	m, err := api.Mission(ctx, mission)
	return err != nil || m.Status.Alive() // what cannot be read is no reason to send somebody away
}
