package tools

import (
	"context"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/event"
)

// MaxChoices limits the choices of a question to what a person grasps at a glance.
const MaxChoices = 10

// MaxQuestion limits a question and MaxChoice each choice, in runes, to what a terminal shows without much scrolling.
const (
	MaxQuestion = 4000
	MaxChoice   = 200
)

// Asker passes questions of a model to the person. The orchestrator implements it.
type Asker interface {
	// AskPerson blocks until the question is answered or ctx ends; it does not block if no person can answer. The same call asks only
	// once: repeated after a restart it waits for the same question or returns the answer given meanwhile.
	AskPerson(ctx context.Context, c *Call, q Question) (Answer, error)
}

// Question is a question to a person.
type Question struct {
	Text    string
	Choices []string // at most [MaxChoices], the model's preference first; a person may answer something else
}

// Answer is the answer to a question.
type Answer struct {
	Text string // one of the choices, the person's own words, or why there is no answer
	By   string // person, policy, timeout or shutdown
}

type askUserInput struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
}

func askUserTool() Tool {
	question, choice, choices := nonEmpty("Your question, with everything needed to decide"), nonEmpty(""), list("Answers to choose from, your preferred one first", nil)
	question.MaxLength, choice.MaxLength, choices.MaxItems = new(MaxQuestion), new(MaxChoice), new(MaxChoices)
	choices.Items = &jsonschema.Schema{Type: "string", MinLength: choice.MinLength, MaxLength: choice.MaxLength}
	return define("ask_user", object(need("question", question), may("choices", choices)),
		func(askUserInput) Effect { return Effect{Hosted: true, Once: true, Beside: true, Alike: "ask_user"} }, runAskUser)
}

func runAskUser(ctx context.Context, c *Call, in askUserInput) (Result, error) {
	q := Question{Text: strings.TrimSpace(in.Question)}
	if q.Text == "" {
		return Result{}, usage("ask_user", "say what you want to know", "the question is empty")
	}
	for _, choice := range in.Choices {
		choice = strings.Join(strings.Fields(choice), " ")
		if choice == "" || slices.Contains(q.Choices, choice) {
			return Result{}, usage("ask_user", "give each choice once, or none to get free text", "a choice is empty or stands there twice")
		}
		q.Choices = append(q.Choices, choice)
	}
	if err := c.Gate.Ask(ctx, c, Access{Permission: "question", Patterns: []string{"*"}, Always: []string{"*"}}); err != nil {
		return Result{}, err
	}
	if c.Asker == nil {
		return answered(q, Answer{Text: event.NobodyThere, By: "policy"}), nil
	}
	a, err := c.Asker.AskPerson(ctx, c, q)
	if err != nil {
		return Result{}, err
	}
	return answered(q, a), nil
}

func answered(q Question, a Answer) Result {
	return Result{Output: a.Text, Title: centurion.Clip(q.Text, 80), Metadata: map[string]any{"question": q.Text, "answer": a.Text, "by": a.By}}
}
