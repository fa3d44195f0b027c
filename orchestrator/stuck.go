package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/tools"
)

// What a person can answer when work came back too often. Anything else is what the session is told.
const (
	stuckRetry  = "try again"
	stuckGiveUp = "give up"
)

// stuckCall stands in the place of a tool call in the question about work that came back too often.
const stuckCall = "returns"

// stuck decides what becomes of work that came back too often, or of which its session says that it cannot be done. Of that whoever has handed
// it out hears first, as it knows what the plan is about and can say more; a person, if one is there, is asked where that has
// been tried, and where work came back too often. Its item is blocked meanwhile. It returns what the session is told if it tries on.
func (m *mission) stuck(ctx context.Context, c *conversation, back *merge.Rejection, returns int, said string) (string, error) {
	short := fmt.Sprintf("it came back %s and still cannot be merged: %s", centurion.Count(returns, "time"), back.Short)
	early := back.Ends || returns < m.h.cfg.Returns
	switch {
	case back.Ends:
		short = back.Short
	case early:
		short = "its agent says that it is stuck; it cannot be merged as it is: " + back.Short
	}
	none := &agent.StuckError{Err: &centurion.Error{Kind: centurion.KindVerify, Msg: short,
		Hint: "resume it with what would help, hand it out anew, or ask the person"}}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return "", err
	}
	first := false
	if early {
		if first, err = m.firstEnd(ctx, c.Task); err != nil {
			return "", err
		}
	}
	// The question belongs to the answer that was sent back last: a host that goes on finds it, and another round asks anew.
	newest, _, err := m.h.cfg.Store.Newest(ctx, c.ID())
	if err != nil {
		return "", err
	}
	call := &tools.Call{Session: c.ID(), Task: c.Task.ID, Message: newest, ID: stuckCall}
	asked, found, err := m.approvals.Asked(ctx, call)
	if err != nil {
		return "", err
	}
	if !found || asked.Answered.IsZero() { // one that was answered while nobody worked on it goes on, and is not blocked
		if err := m.plan.MarkItem(ctx, c.Task.Item, plan.MarkBlocked); err != nil {
			return "", err
		}
	}
	if !found && first || rec.Options.Ask != "ask" {
		return "", none
	}
	title, item := "task "+c.Task.Name, c.Task.Item
	if t := c.Task.Now.Load(); t != nil {
		title = strings.TrimSpace(t.Item + " " + t.Title)
	}
	answer, err := c.Desk().AskPerson(ctx, call,
		tools.Question{Text: stuckQuestion(title, c.Agent.Name, short, said), Choices: []string{stuckGiveUp, stuckRetry}})
	if err != nil {
		return "", err
	}
	if answer.By != "person" || answer.Text == event.NobodyThere {
		return "", none
	}
	if err := m.plan.MarkItem(ctx, item, plan.MarkRunning); err != nil {
		return "", err
	}
	switch strings.TrimSpace(answer.Text) {
	case stuckGiveUp:
		return "", &centurion.Error{Kind: centurion.KindVerify, Msg: short, Hint: "the person has given it up"}
	case stuckRetry:
		return back.Text, nil
	}
	return back.Text + "\n\nThe person says: " + answer.Text, nil
}

// firstEnd reports whether no task of the same item, or of the same session, has ended like this before.
func (m *mission) firstEnd(ctx context.Context, r *state.Run) (bool, error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == r.ID })
	return !slices.ContainsFunc(tasks, func(t centurion.Task) bool {
		same := i >= 0 && t.Session == tasks[i].Session || t.Item != "" && t.Item == r.Item
		return t.ID != r.ID && same && t.Status == centurion.TaskBlocked && t.Error != nil && t.Error.Kind == centurion.KindVerify
	}), nil
}

// stuckQuestion is what a person is asked: the agent's own words come first, as they may name what only the person knows.
func stuckQuestion(title, agent, short, said string) string {
	text := title + ": "
	if said = strings.TrimSpace(said); said != "" {
		text += fmt.Sprintf("the %s says: %s\n", agent, centurion.Clip(said, 1500))
	}
	return text + strings.TrimRight(centurion.Clip(short, 1500), ". \n") + ".\nHow should it go on?"
}

func isStuck(err error) bool {
	_, ok := errors.AsType[*agent.StuckError](err)
	return ok
}
