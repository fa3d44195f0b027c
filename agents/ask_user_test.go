package agents

import (
	"strings"
	"testing"
)

// SUB-17: an agent of the person's own that may ask is not told that nobody can be asked, and the others are; the four never
// hold the tool, whatever a definition says.
func TestWhoMayAsk(t *testing.T) {
	for _, may := range []bool{true, false} {
		c, _ := with(t, Definition{Name: "clerk", Mode: "subagent", Prompt: "You are the clerk.", Tools: map[string]bool{"ask_user": may}, Source: "c.md"})
		a := get(t, c, "clerk")
		if a.Holds("ask_user") != may || strings.Contains(a.Prompt, "No one can be asked") == may || !strings.Contains(a.Prompt, "You were handed one task") {
			t.Errorf("may ask: %v; holds %v, told:\n%s", may, a.Tools, a.Prompt)
		}
	}
	for _, name := range []string{Commander, Planner, Worker, Reviewer} {
		c, notes := with(t, Definition{Name: name, Tools: map[string]bool{"ask_user": true}, Source: "x.md"})
		if get(t, c, name).Holds("ask_user") || len(notes) != 1 || !strings.Contains(notes[0], "does not hold ask_user") {
			t.Errorf("the %s may ask; notes %q", name, notes)
		}
	}
}
