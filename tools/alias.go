package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"centurion"
)

// alias is another name that models know one of the tools by. It stands in no schema: a tool is offered under one name, and
// a call under another is served by it as if it had been called by its own.
type alias struct {
	name, tool string
	with       string                                 // served only to whom holds this tool as well; "" to all who hold the tool
	adapt      func(input map[string]json.RawMessage) // what its arguments are in the tool's words; may be nil
}

var aliases = [...]alias{
	{"grep_search", "grep", "", lookIn},
	{"mgrep", "grep", "", lookIn},
	{"glob_search", "glob", "", lookIn},
	{"call_agent", "delegate_task", "list_tasks", callAgent}, // the Commander's alone
}

// Served returns the tool that serves calls under another name for somebody who holds tools, or "" if the name is none of
// these or the role behind it another's.
func Served(name string, holds func(tool string) bool) string {
	i := slices.IndexFunc(aliases[:], func(a alias) bool { return a.name == name })
	if i < 0 || !holds(aliases[i].tool) || aliases[i].with != "" && !holds(aliases[i].with) {
		return ""
	}
	return aliases[i].tool
}

// Adapt returns the input of a call under another name as the tool that serves it takes it. An input that is no JSON
// object, or of a name that is no other name, is returned as it is.
func Adapt(name string, input json.RawMessage) json.RawMessage {
	i := slices.IndexFunc(aliases[:], func(a alias) bool { return a.name == name })
	var in map[string]json.RawMessage
	if i < 0 || json.Unmarshal(input, &in) != nil || in == nil {
		return input
	}
	aliases[i].adapt(in)
	out, err := json.Marshal(in)
	if err != nil {
		return input
	}
	return out
}

// lookIn gives a directory the name that all tools have for it.
func lookIn(in map[string]json.RawMessage) {
	for _, other := range []string{"dir", "directory"} {
		if v, ok := in[other]; ok && in["path"] == nil {
			in["path"] = v
			delete(in, other)
		}
	}
}

// callAgent is a delegation whose result is waited for.
func callAgent(in map[string]json.RawMessage) {
	if in["background"] == nil {
		in["background"] = json.RawMessage("false")
	}
	var prompt string
	if in["description"] == nil && json.Unmarshal(in["prompt"], &prompt) == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
		if d, err := json.Marshal(centurion.Clip(first, descriptionLen)); err == nil {
			in["description"] = d
		}
	}
}

// descriptionLen is how many bytes of a prompt describe a task that was given no description.
const descriptionLen = 60
