package event

import (
	"strings"

	"centurion"
)

// Placeholders for a missing answer. The model reads them as the result of its call.
const (
	NobodyThere = "(the question could not be answered: no one to ask; decide yourself and say what you assumed)"
	TooLate     = "(the question could not be answered in time; decide yourself and say what you assumed)"
	NoAnswer    = "(the person did not answer)"
)

// AskFrom identifies the asker: the agent, its address in the mission, and the chain of agents above it, starting with the mission's
// own: "commander 0/ › planner 0/1".
type AskFrom struct {
	Agent   string `json:"agent,omitempty"`
	Address string `json:"address,omitempty"`
	Line    string `json:"line,omitempty"` // empty for the mission's own agent
}

// QuestionShape is what OpenCode has in question.asked and question.replied besides the ID, and its Tool is in permission.asked too.
// [AskData] is Centurion's own form of the same.
type QuestionShape struct {
	SessionID string         `json:"sessionID,omitempty"`
	Questions []QuestionInfo `json:"questions,omitempty"`
	Tool      *QuestionTool  `json:"tool,omitempty"`
	RequestID string         `json:"requestID,omitempty"` // of an answer
	Answers   [][]string     `json:"answers,omitempty"`   // one list per question
}

// QuestionInfo is one question.
type QuestionInfo struct {
	Question string           `json:"question"`
	Header   string           `json:"header"` // at most 30 characters
	Options  []QuestionOption `json:"options"`
}

// QuestionOption is one choice.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// QuestionTool is the tool call that asks.
type QuestionTool struct {
	MessageID string `json:"messageID"`
	CallID    string `json:"callID"`
}

// headerLen is OpenCode's limit for the header of a question.
const headerLen = 30

// NewQuestion returns a question in OpenCode's format.
func NewQuestion(session, message, call, text string, options []string) QuestionShape {
	first, _, _ := strings.Cut(text, "\n")
	q := QuestionInfo{Question: text, Header: centurion.Clip(first, headerLen-1), Options: []QuestionOption{}}
	for _, o := range options {
		q.Options = append(q.Options, QuestionOption{Label: o})
	}
	s := QuestionShape{SessionID: session, Questions: []QuestionInfo{q}}
	if call != "" {
		s.Tool = &QuestionTool{MessageID: message, CallID: call}
	}
	return s
}
