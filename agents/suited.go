package agents

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed sub_agent.md
var subAgentPrompt string

// suited returns a built-in text for an agent with these tools. A line that begins with {tool} is kept only for agents with the tool,
// one that begins with {!tool} only for those without.
func suited(text string, tools []string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "{"); ok {
			tool, words, _ := strings.Cut(rest, "} ")
			tool, without := strings.CutPrefix(tool, "!")
			if slices.Contains(tools, tool) == without {
				continue
			}
			line = words
		}
		b.WriteString(line)
	}
	return b.String()
}

// builtIn reports whether the agent has the assistant's own prompt, as suited to its tools.
func (a Agent) builtIn() bool { return a.Prompt == suited(assistantPrompt, a.Tools) }
