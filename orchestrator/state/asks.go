package state

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// Who answered a question, where it was no person.
const (
	ByTimeout = "timeout" // its deadline came first
	ByAbort   = "abort"   // who asked was stopped
)

// EndOfTurn stands in the place of a tool call in a question with which the mission's own agent ended its turn. Nobody waits for
// its answer: it is given to the agent as a message, and one that was not answered before a resume is closed (approval.CloseQuestions).
const EndOfTurn = "end of turn"

// PutReply stores a person's answer, and tells it to the mission's own agent if none of its calls waits for it.
func PutReply(tx *store.Tx, ask store.Ask, answer string) error {
	if err := PutAnswer(tx, ask, answer, "person"); err != nil || ask.Call != EndOfTurn {
		return err
	}
	return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: ask.Mission, Session: ask.Session, Wake: true,
		Created: centurion.Now(), Origin: centurion.OriginHost, Text: "You asked: " + centurion.Clip(ask.Text, 1000) + "\nThe person answers: " + answer})
}

// OpenQuestions says why a mission is blocked for which everybody waits for an answer: the question, or how many there are.
func OpenQuestions(ask store.Ask, open []store.Ask) string {
	var who, what []string
	for _, a := range open {
		if a.Type != store.AskQuestion {
			continue
		}
		what = append(what, centurion.Clip(strings.Join(strings.Fields(a.Text), " "), 80))
		if !slices.Contains(who, a.Agent) {
			who = append(who, a.Agent)
		}
	}
	if len(what) < 2 {
		return ask.Agent + " asks: " + centurion.Clip(ask.Text, 1500) + " (centurion answer " + ask.ID + " TEXT)"
	}
	verb := " asks "
	if len(who) > 1 {
		verb = " ask "
	}
	return fmt.Sprintf("%s%s%d questions: %s (%s)", strings.Join(who, ", "), verb, len(what), strings.Join(what, " · "), AsksHint)
}

// AsksHint stands in the reason of a mission that is blocked on several questions.
const AsksHint = "centurion asks"

// closeAsksOf ends what a task that has ended asks.
func closeAsksOf(tx *store.Tx, t centurion.Task) error {
	open, err := tx.OpenAsks(t.Mission)
	if err != nil {
		return err
	}
	for _, a := range open {
		if a.Task != t.ID || a.Type != store.AskQuestion {
			continue
		}
		if err := PutAnswer(tx, a, event.NoAnswer, ByAbort); err != nil {
			return err
		}
	}
	return nil
}

// ByPolicy stands in an ask, and in its answer, that no person was asked.
const ByPolicy = "policy"

// ByAlways stands in the answer to an ask that was open when a person's "always" to another one came to cover it.
const ByAlways = "always"

// ByEnd stands in an ask that nobody could answer any more, because who asked had ended.
const ByEnd = "shutdown"

func PutAsk(tx *store.Tx, a store.Ask) error {
	if err := tx.PutAsk(&a); err != nil {
		return err
	}
	_, err := tx.Append(askFact(a, map[string]centurion.EventType{store.AskPermission: centurion.EventPermissionAsked,
		store.AskQuestion: centurion.EventQuestionAsked, store.AskPlan: centurion.EventPlanAsked}[a.Type]))
	return err
}

func PutAnswer(tx *store.Tx, a store.Ask, answer, by string) error {
	a.Answer, a.By, a.Answered = answer, by, centurion.Now()
	if err := tx.PutAsk(&a); err != nil {
		return err
	}
	_, err := tx.Append(askFact(a, map[string]centurion.EventType{store.AskPermission: centurion.EventPermissionReplied,
		store.AskQuestion: centurion.EventQuestionAnswered, store.AskPlan: centurion.EventPlanAnswered}[a.Type]))
	return err
}

func askFact(a store.Ask, t centurion.EventType) centurion.Event {
	var shape event.QuestionShape
	if a.Type == store.AskQuestion {
		shape = event.NewQuestion(a.Session, a.Message, a.Call, a.Text, a.Options)
		if !a.Answered.IsZero() {
			shape.RequestID, shape.Answers = a.ID, [][]string{{a.Answer}}
		}
	} else if a.Message != "" {
		shape.Tool = &event.QuestionTool{MessageID: a.Message, CallID: a.Call}
	}
	return centurion.Event{Type: t, Mission: a.Mission, Session: a.Session, Task: a.Task, Data: event.Data(event.AskData{ID: a.ID,
		AskFrom: event.AskFrom{Agent: a.Agent, Address: a.Address, Line: a.Line}, QuestionShape: shape,
		Type: a.Type, Message: a.Message, Call: a.Call, Permission: a.Permission, Patterns: a.Patterns, Always: a.Always, Title: a.Title, Text: a.Text,
		Options: a.Options, CostLow: a.CostLow, CostHigh: a.CostHigh, Deadline: a.Deadline, Answer: a.Answer, By: a.By})}
}

// CloseAsks ends the asks that a stopping mission leaves open; those who asked will ask again when it is resumed. Questions may
// be kept: they can be answered meanwhile, and the call that asked finds the answer.
func CloseAsks(tx *store.Tx, mission string, keepQuestions bool) error {
	open, err := tx.OpenAsks(mission)
	if err != nil {
		return err
	}
	for _, a := range open {
		if keepQuestions && a.Type == store.AskQuestion {
			continue
		}
		if err := PutAnswer(tx, a, "reject", ByEnd); err != nil {
			return err
		}
	}
	return nil
}
