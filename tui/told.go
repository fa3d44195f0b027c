package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// maxChanged limits the named changed files of a mission.
const maxChanged = 20

// changedFiles names the files changed by the tasks of a mission, each once.
func changedFiles(tasks []centurion.Task) string {
	var all []string
	for _, t := range tasks {
		all = append(all, text.Each(t.Files, text.Clean)...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if more := len(all) - maxChanged; more > 0 {
		all = append(all[:maxChanged], fmt.Sprintf("… and %d more", more))
	}
	return strings.Join(all, " ")
}

// errorLine describes how a message ended without a failure: its turn was stopped, or a question waits for its answer.
func errorLine(e *centurion.MessageError) (string, tone) {
	text := e.Data.Message
	switch {
	case waitsForAnswer(text):
		return "waits for your answer: " + text, warn
	case e.Name != "MessageAbortedError":
		return e.Name + ": " + text, bad
	case strings.HasPrefix(text, "stopped "):
		return text, warn
	}
	return "stopped: " + text, warn
}

// waitsForAnswer reports whether a session's work ended with a question to the person, which names the command for the answer.
func waitsForAnswer(text string) bool {
	return strings.Contains(text, "(centurion answer que_") || strings.HasSuffix(text, "(centurion asks)")
}

// askedBy is the request in a call in one line: a question to the person, or the prompt of a child. It is empty for other tools.
func askedBy(tool string, input json.RawMessage) string {
	var in struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
		Prompt   string   `json:"prompt"`
	}
	if json.Unmarshal(input, &in) != nil {
		return ""
	}
	said := ""
	switch tool {
	case "ask_user":
		said = in.Question + text.When(len(in.Choices) > 0, " ("+strings.Join(in.Choices, ", ")+")")
		said = text.When(said != "", "question: "+said)
	case "sub_agent", "delegate_task":
		said = text.When(in.Prompt != "", "prompt: "+in.Prompt)
	}
	return strings.Join(strings.Fields(text.Clean(centurion.Clip(said, 1000))), " ")
}

// branched describes the message to which a conversation was rewound, or the original of a fork.
func branched(typ centurion.EventType, data json.RawMessage) string {
	if typ == centurion.EventForked {
		v := decoded[event.ForkedData](data)
		return fmt.Sprintf("is a copy of %s up to %s: %s", text.Clean(v.Session), text.Clean(v.Message), centurion.Count(v.Messages, "message"))
	}
	v := decoded[event.RewoundData](data)
	return fmt.Sprintf("rewound to %s, %s left as a branch", text.Clean(v.To), centurion.Count(v.Undone, "message")) +
		text.When(v.Mark != "", ", under "+text.Clean(v.Mark))
}

// plainJSON writes <, > and & in JSON unescaped. An escaped backslash is kept, so that its second half begins no escape.
func plainJSON(b []byte) string {
	return strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003C`, "<", `\u003e`, ">", `\u003E`, ">", `\u0026`, "&").Replace(string(b))
}

// askedLines is the complete question of an ask_user call, with each choice on its own line; nil for other calls.
func askedLines(tool string, input json.RawMessage, w int) []string {
	var in struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}
	if tool != "ask_user" || json.Unmarshal(input, &in) != nil || in.Question == "" {
		return nil
	}
	out := text.WrapLines("question: "+in.Question, w)
	for i, c := range in.Choices {
		out = append(out, text.Wrap(fmt.Sprintf("%d  %s", i+1, strings.Join(strings.Fields(text.Clean(c)), " ")), w)...)
	}
	return out
}
