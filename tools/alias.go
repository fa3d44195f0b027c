package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"centurion"
)

// alias is another name by which models call a tool. It is in no schema: a tool is offered under one name, but calls under its aliases
// are served, too.
type alias struct {
	name, tool string
	with       string                                 // only for holders of this tool, too; "" for all holders of the tool
	adapt      func(input map[string]json.RawMessage) // converts the arguments for the tool; may be nil
}

var aliases = [...]alias{
	{"grep_search", "grep", "", lookIn},
	{"mgrep", "grep", "", lookIn},
	{"glob_search", "glob", "", lookIn},
	{"call_agent", "delegate_task", "list_tasks", callAgent}, // only for the Commander
}

// Served returns the tool that serves calls under an alias for a holder of tools, or "" if the name is no alias or its role another's.
func Served(name string, holds func(tool string) bool) string {
	i := slices.IndexFunc(aliases[:], func(a alias) bool { return a.name == name })
	if i < 0 || !holds(aliases[i].tool) || aliases[i].with != "" && !holds(aliases[i].with) {
		return ""
	}
	return aliases[i].tool
}

// Adapt converts the input of a call under an alias for the tool that serves it. Other names, and input that is not a JSON object, are
// returned unchanged.
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

// lookIn renames a directory argument to the name that all tools use.
func lookIn(in map[string]json.RawMessage) {
	for _, other := range []string{"dir", "directory"} {
		if v, ok := in[other]; ok && in["path"] == nil {
			in["path"] = v
			delete(in, other)
		}
	}
}

// callAgent is a synchronous delegation.
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

// descriptionLen is how many bytes of a prompt describe a task without a description.
const descriptionLen = 60
