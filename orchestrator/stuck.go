package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"centurion"
	"centurion/event"
	"centurion/session"
	"centurion/tools"
)

// stuckError ends a task whose work came back too often: a person, or the mission's own agent, has to say how it goes on.
type stuckError struct{ err *centurion.Error }

func (e *stuckError) Error() string { return e.err.Error() }
func (e *stuckError) Unwrap() error { return e.err }

// What a person can answer when work came back too often. Anything else is what the session is told.
const (
	stuckRetry  = "try again"
	stuckGiveUp = "give up"
)

// stuckCall stands in the place of a tool call in the question about work that came back too often.
const stuckCall = "returns"

// stuck asks a person, if one is there, what becomes of work that came back too often, or of which its session says that it
// cannot be done. Its item is blocked meanwhile. It returns what the session is told if it tries on.
func (m *mission) stuck(ctx context.Context, c *conversation, back *rejection, returns int, said string) (string, error) {
	short := fmt.Sprintf("it came back %s and still cannot be merged: %s", centurion.Count(returns, "time"), back.short)
	switch {
	case back.cause == event.ReturnedStuck:
		short = back.short
	case givesUp(said) && returns < m.h.cfg.Returns:
		short = "its agent says that it is stuck; it cannot be merged as it is: " + back.short
	}
	none := &stuckError{&centurion.Error{Kind: centurion.KindVerify, Msg: short,
		Hint: "set the item to open with update_todo and hand it out again with what would help, or ask the person"}}
	if err := m.markItem(ctx, c.task.item, markBlocked); err != nil {
		return "", err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.id)
	if err != nil {
		return "", err
	}
	if rec.Options.Ask != "ask" {
		return "", none
	}
	title, item := "task "+c.task.id, c.task.item
	if t := c.task.now.Load(); t != nil {
		title = strings.TrimSpace(t.Item + " " + t.Title)
	}
	// The question belongs to the answer that was sent back last: a host that goes on finds it, and another round asks anew.
	newest, _, err := m.h.cfg.Store.Newest(ctx, c.id())
	if err != nil {
		return "", err
	}
	answer, err := asker{c}.AskPerson(ctx, &tools.Call{Session: c.id(), Task: c.task.id, Message: newest, ID: stuckCall},
		tools.Question{Text: stuckQuestion(title, c.agent.Name, short, said), Choices: []string{stuckGiveUp, stuckRetry}})
	if err != nil {
		return "", err
	}
	if answer.By != "person" || answer.Text == event.NobodyThere {
		return "", none
	}
	if err := m.markItem(ctx, item, markRunning); err != nil {
		return "", err
	}
	switch strings.TrimSpace(answer.Text) {
	case stuckGiveUp:
		return "", &centurion.Error{Kind: centurion.KindVerify, Msg: short, Hint: "the person has given it up"}
	case stuckRetry:
		return back.text, nil
	}
	return back.text + "\n\nThe person says: " + answer.Text, nil
}

// unfinished holds back the work of an agent that says that it is stuck, where no check of the item could show otherwise: what
// it has written is half of something, and its item is not done. Where the item has a check, that decides.
func (m *mission) unfinished(ctx context.Context, c *conversation, said string) (*rejection, error) {
	if !givesUp(said) || c.task.item == "" {
		return nil, nil
	}
	t, err := m.h.cfg.Store.Task(ctx, c.task.id)
	if err != nil || t.Reviews {
		return nil, err // a review's item is the work of others
	}
	if it, ok := m.itemNow(t.Item); !ok || len(it.Verify) > 0 {
		return nil, nil
	}
	return &rejection{cause: event.ReturnedStuck, short: "its agent says that it is stuck, and its item has no check that could show otherwise",
		text: "You said that you are stuck. A person wants you to try on: finish the item, then end your turn with what you have done."}, nil
}

// stuckQuestion is what a person is asked: the agent's own words come first, as they may name what only the person knows.
func stuckQuestion(title, agent, short, said string) string {
	text := title + ": "
	if said = strings.TrimSpace(said); said != "" {
		text += fmt.Sprintf("the %s says: %s\n", agent, centurion.Clip(said, 1500))
	}
	return text + strings.TrimRight(centurion.Clip(short, 1500), ". \n") + ".\nHow should it go on?"
}

// stuckWord begins the last message of an agent that cannot go on: its work does not come back to it then.
const stuckWord = "STUCK"

// givesUp reports whether an agent ends its turn with the word that says so.
func givesUp(said string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(said, "*_# \t\n"), "\n")
	rest, ok := strings.CutPrefix(word, stuckWord)
	return ok && (rest == "" || !unicode.IsLetter(rune(rest[0])))
}

func isStuck(err error) bool {
	_, ok := errors.AsType[*stuckError](err)
	return ok
}

// noHeadway is what becomes of a turn that was ended because it made the same refused call again and again. A person is asked
// what the mission's own agent should do. Who has delegated a task is told, and hears with a sub-agent's end that it has failed.
func (c *conversation) noHeadway(stuck *session.StuckError) error {
	if c.task == nil {
		return &errBlocked{fmt.Sprintf("The %s has called %s %d times in a row and was refused each time: %s. What should it do?",
			c.agent.Name, stuck.Tool, stuck.Times, forPerson(stuck.Said))}
	}
	if c.sess.Record().Metadata.Tools != nil {
		return stuck
	}
	return &stuckError{&centurion.Error{Kind: centurion.KindTimeout, Msg: centurion.Clip(stuck.Error(), 2000),
		Hint: "set the item to open with update_todo and hand it out again with what would help, or ask the person"}}
}

// toolCall is a call as a refusal shows it to a model, with what leads to it.
var toolCall = regexp.MustCompile(`:? *\bdelegate_task \{[^}]*\}`)

// forPerson is what a person is shown of a refusal that was written for a model: without the calls that it was told to make, on a line that
// can be read.
func forPerson(refusal string) string {
	s := strings.Join(strings.Fields(toolCall.ReplaceAllString(refusal, "")), " ")
	return strings.TrimRight(centurion.Clip(s, 300), ". ")
}
