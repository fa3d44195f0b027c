package state

import (
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// Sources of an answer.
const (
	ByPerson  = "person"  // by the command line, or at a terminal
	ByProgram = "program" // another program with the token, without a terminal: it may act for a person
	ByTimeout = "timeout" // the deadline passed
	ByAbort   = "abort"   // the asking agent was stopped
)

// EndOfTurn replaces the tool call in a question that ended a turn of the mission's own agent. No call waits for its answer, which is
// delivered as a message; if it is still open at a resume, approval.CloseQuestions closes it.
const EndOfTurn = "end of turn"

// FromPerson reports whether an answer is a person's, or a program's that may act for one.
func FromPerson(by string) bool { return by == ByPerson || by == ByProgram }

// PutReply stores the answer of ask.By. If no call waits for it, the mission's own agent gets it as a message.
func PutReply(tx *store.Tx, ask store.Ask, answer string) error {
	if err := PutAnswer(tx, ask, answer, ask.By); err != nil || ask.Call != EndOfTurn {
		return err
	}
	return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: ask.Mission, Session: ask.Session, Wake: true,
		Created: centurion.Now(), Origin: centurion.OriginHost, Text: "You asked: " + centurion.Clip(ask.Text, 1000) + "\nThe person answers: " + answer})
}

// OpenQuestions is the reason of a mission blocked on questions: the question, or how many there are.
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

// AsksHint is part of the reason of a mission that is blocked on several questions.
const AsksHint = "centurion asks"

// closeAsksOf closes the open questions of an ended task.
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

// ByPolicy marks an ask, and its answer, that was decided without a person.
const ByPolicy = "policy"

// ByAlways marks an open ask that a person's "always" to another ask has answered.
const ByAlways = "always"

// ByEnd marks an ask that was closed because the asking agent had ended.
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
		Options: a.Options, CostLow: a.CostLow, CostHigh: a.CostHigh, Deadline: a.Deadline, Answer: a.Answer, By: a.By, PID: a.PID, Command: a.Command})}
}

// CloseAsks closes the open asks of a stopping mission; the agents ask again after a resume. Kept questions can be answered meanwhile;
// the resumed call finds the answer.
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
