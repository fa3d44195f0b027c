package agents

import (
	_ "embed"
	"slices"
	"strings"
)

//go:embed sub_agent.md
var subAgentPrompt string

// suited is one of the built-in texts for an agent with these tools. A line of it that begins with {tool} stands there only
// for those who hold the tool, one that begins with {!tool} only for those who do not: nobody is told of what they do not have.
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

// builtIn reports whether the agent has the assistant's own prompt, as it is with its tools.
func (a Agent) builtIn() bool { return a.Prompt == suited(assistantPrompt, a.Tools) }
