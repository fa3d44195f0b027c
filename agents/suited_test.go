package agents

import (
	"strings"
	"testing"
)

// SUB-17, R18: nobody is told of a tool that they do not hold: a sub-agent has a prompt of its own for the tools that it got, and
// an assistant whose definition takes something away is not sent to use it.
func TestPromptsSuitTheTools(t *testing.T) {
	a := DefaultAssistant().agents[0]
	for name, tools := range map[string][]string{"all": a.Tools, "looks": {"read", "grep"}, "writes": {"read", "write", "edit"}, "asks": {"read", "ask_user"}} {
		sub := a.SubAgent(tools, "")
		for tool, word := range map[string]string{"ask_user": "ask_user", "bash": "command", "edit": "Change what the task needs"} {
			if strings.Contains(sub.Prompt, word) != sub.Holds(tool) {
				t.Errorf("%s: holds %v and is told:\n%s", name, sub.Tools, sub.Prompt)
			}
		}
		if strings.Contains(sub.Prompt, "Assistant of one person") || strings.ContainsAny(sub.Prompt, "{}") || !strings.HasPrefix(sub.Prompt, "You work as a sub-agent") {
			t.Errorf("%s: %s", name, sub.Prompt)
		}
	}
	for tool, word := range map[string]string{"ask_user": "`ask_user`", "bash": "checks"} {
		if !strings.Contains(a.Prompt, word) || strings.ContainsAny(a.Prompt, "{}") {
			t.Errorf("the assistant is told:\n%s", a.Prompt)
		}
		c, _, err := DefaultAssistant().With(Definition{Name: Assistant, Tools: map[string]bool{tool: false}, Source: "a.md"}, Definition{Name: "mine", Tools: map[string]bool{tool: false}, Source: "m.md"})
		if err != nil {
			t.Fatal(err)
		}
		for _, less := range c.agents {
			if strings.Contains(less.Prompt, word) || !strings.Contains(less.Prompt, "Find out what is wanted") {
				t.Errorf("%s, without %s, is told:\n%s", less.Name, tool, less.Prompt)
			}
		}
	}
	// A person's own words stay as they are.
	own := Agent{Prompt: "You test.\n{bash} - x\n", Tools: []string{"read"}}
	if got := own.SubAgent([]string{"read"}, "").Prompt; !strings.HasPrefix(got, own.Prompt) || !strings.Contains(got, "You work as a sub-agent") {
		t.Error(got)
	}
}
