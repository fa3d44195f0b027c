package agents

import (
	"slices"
	"strings"
	"testing"

	"centurion"
)

// OPAL-12, OPAL-69, SUB-13, C-16: each profile has its own agents. The mission's are exactly four, none of whom holds
// what the assistant starts sub-agents with or may delegate to it; the assistant holds nothing of a mission's.
func TestProfiles(t *testing.T) {
	var four []string
	for _, a := range Default().All() {
		four = append(four, a.Name)
		if a.Holds("sub_agent") || a.MayDelegate(Assistant) {
			t.Errorf("the %s holds %v and delegates to %v", a.Name, a.Tools, a.Delegates)
		}
	}
	if strings.Join(four, " ") != "commander planner worker reviewer" {
		t.Error(four)
	}
	one := DefaultAssistant().All()
	if len(one) != 1 || one[0].Name != Assistant || DefaultAssistant().Owner() != Assistant || Default().Owner() != Commander {
		t.Fatal(one)
	}
	for _, tool := range slices.Concat(mission(), []string{"update_todo", "update_context"}) {
		if one[0].Holds(tool) {
			t.Errorf("it holds %s", tool)
		}
	}
	worker, err := Default().Get(Worker)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range worker.Tools { // as the worker has them
		if tool != "update_context" && !one[0].Holds(tool) {
			t.Errorf("it does not hold %s", tool)
		}
	}
	child := one[0].SubAgent(one[0].Tools, "")
	if child.Holds("sub_agent") || len(child.Tools) != len(one[0].Tools)-1 || !strings.Contains(child.Prompt, "You work as a sub-agent") {
		t.Errorf("a sub-agent holds %v", child.Tools)
	}
	own, _, err := DefaultAssistant().With(Definition{Name: "scribe", Prompt: "Write."})
	if err != nil {
		t.Fatal(err)
	}
	scribe, err := own.Get("scribe")
	if err != nil {
		t.Fatal(err)
	}
	if a := scribe.SubAgent([]string{"read"}, "Look.").ForTask(); a.Prompt != "Look.\n" || len(a.Tools) != 1 {
		t.Errorf("a sub-agent carries out a task with %q and %v", a.Prompt, a.Tools)
	}
	if p := one[0].SubAgent(nil, "Look."); p.Prompt != "Look.\n" || len(p.Tools) != 0 {
		t.Errorf("%q, %v", p.Prompt, p.Tools)
	}
}

// SUB-16: a sub-agent gets the named ones of its parent's tools, in the parent's order; anything else is refused.
func TestForSubAgent(t *testing.T) {
	own := []string{"read", "grep", "write", "sub_agent"}
	for _, test := range []struct {
		want      []string
		got, fail string
	}{
		{nil, "read grep write", ""},
		{[]string{"write", "read", "read"}, "read write", ""},
		{[]string{}, "", "leave tools out"},
		{[]string{"raed"}, "", `did you mean "read"? it may have read, grep, write`},
		{[]string{"sub_agent", "bash"}, "", "it may have read, grep, write"},
	} {
		got, err := ForSubAgent(own, test.want)
		if strings.Join(got, " ") != test.got || (err == nil) != (test.fail == "") || !strings.Contains(centurion.HintOf(err), test.fail) ||
			err != nil && centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%v: %v, %v (%s)", test.want, got, err, centurion.HintOf(err))
		}
	}
}

// A definition is written once for both profiles: what it says of the other one's agents and tools changes nothing here.
func TestDefinitionsInBothProfiles(t *testing.T) {
	defs := []Definition{
		{Name: "worker", Steps: 40}, {Name: "assistant", Steps: 7, Tools: map[string]bool{"webfetch": false}},
		{Name: "tester", Mode: "subagent", Prompt: "You test."},
		{Name: "lead", Mode: "primary", Prompt: "You lead.", Tools: map[string]bool{"update_todo": true, "sub_agent": false}},
	}
	for _, test := range []struct {
		base *Cast
		want string
	}{{Default(), "commander planner worker reviewer lead tester"}, {DefaultAssistant(), "assistant lead"}} {
		c, notes, err := test.base.With(defs...)
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		var names []string
		for _, a := range c.All() {
			names = append(names, a.Name)
		}
		if strings.Join(names, " ") != test.want {
			t.Errorf("%v, want %s", names, test.want)
		}
		if lead := get(t, c, "lead"); lead.Holds("sub_agent") || lead.Holds("update_todo") == c.one() || lead.Holds("delegate_task") {
			t.Errorf("the lead holds %v", lead.Tools)
		}
	}
	c, _, _ := DefaultAssistant().With(defs...)
	if a := get(t, c, "assistant"); a.Steps != 7 || a.Holds("webfetch") || !a.Holds("websearch") {
		t.Errorf("%+v", a)
	}
}

// The way to hand on work has a name in each profile: whoever takes away one has taken away the other.
func TestDelegatingByEitherName(t *testing.T) {
	for _, key := range []string{"delegate_task", "task", "sub_agent"} {
		c, notes, err := DefaultAssistant().With(Definition{Name: "assistant", Mode: "primary", Tools: map[string]bool{key: false}})
		if err != nil || len(notes) > 0 || get(t, c, "assistant").Holds("sub_agent") {
			t.Errorf("without %s: %v, notes %q, %v", key, get(t, c, "assistant").Tools, notes, err)
		}
	}
}

// Who asks for tools that a sub-agent cannot have is told which, what it may have, and the nearest name.
func TestSubAgentWithoutItsTools(t *testing.T) {
	own := []string{"read", "grep", "sub_agent"}
	for want, names := range map[string][]string{
		"tools is an empty list: a sub-agent without tools can do nothing|leave tools out for all of them; it may have read, grep": {},
		`a sub-agent cannot have the tool "raed", "zzzzzz"|did you mean "read"? it may have read, grep`:                            {"raed", "read", "zzzzzz"},
		`a sub-agent cannot have the tool "zzzzzz"|it may have read, grep`:                                                         {"zzzzzz"},
		`a sub-agent cannot have the tool "sub_agent"|it may have read, grep`:                                                      {"sub_agent"},
	} {
		_, err := ForSubAgent(own, names)
		if got := err.Error() + "|" + centurion.HintOf(err); got != want || centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%q: %s, want %s", names, got, want)
		}
	}
}
