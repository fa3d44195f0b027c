package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/event/agent"
	"centurion/text"
)

// maxAgentText limits the characters of a text, of arguments or of a result in a line.
const maxAgentText = 200

// RunAgents prints the agent view of a session (see package event/agent) for people: the work of a child appears inside a border below
// its parent's call. If several children of one parent work at once, each line names its child. Only complete texts are shown, no
// pieces. It returns when the events or ctx end, or with the first error of either side.
func RunAgents(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error]) error {
	t := agentTree{open: map[string]*openChild{}}
	return writeEach(ctx, w, events, func(e centurion.Event) (b []byte, _ error) {
		for _, line := range t.apply(e) {
			b = append(b, line+"\n"...)
		}
		return b, nil
	})
}

// agentTree tracks the running children.
type agentTree struct{ open map[string]*openChild }

// openChild is a running child.
type openChild struct {
	parent, name string // the session that started it; its agent with its address
}

// apply returns the lines of an event.
func (t agentTree) apply(e centurion.Event) []string {
	typ, data, chain, parent := e.Type, e.Data, []string(nil), e.Session
	for typ == agent.SubAgentEvent {
		var v agent.SubAgentData
		if json.Unmarshal(data, &v) != nil {
			return nil
		}
		if t.open[v.Sub] == nil {
			t.open[v.Sub] = &openChild{parent: parent, name: v.Sub}
		}
		chain, parent = append(chain, v.Sub), v.Sub
		typ, data = v.Event.Type, v.Event.Data
	}
	if typ.EndsMission() {
		return []string{"● " + string(typ)}
	}
	depth := len(chain)
	if depth == 0 {
		return agentLines(typ, data)
	}
	child := t.open[chain[depth-1]]
	switch typ {
	case agent.Start:
		v := decoded[agent.StartData](data)
		child.name = strings.TrimSpace(v.Agent + " " + v.Address)
		return []string{t.border(chain[:depth-1]) + "┌─ " + child.name + given(cmp.Or(v.Title, v.Text))}
	case agent.End, agent.Error:
		last := agentLines(typ, data)
		line := t.border(chain[:depth-1]) + "└─ " + child.name + ": " + strings.TrimPrefix(strings.Join(last, " "), "■ ")
		delete(t.open, chain[depth-1])
		return []string{line}
	}
	lines := agentLines(typ, data)
	for i := range lines {
		lines[i] = t.border(chain) + lines[i]
	}
	return lines
}

// border is the prefix of a line inside the given children, outermost first.
func (t agentTree) border(chain []string) string {
	var b strings.Builder
	for _, id := range chain {
		b.WriteString("│ ")
		beside := 0
		for _, c := range t.open {
			if c.parent == t.open[id].parent {
				beside++
			}
		}
		if beside > 1 {
			b.WriteString("[" + t.open[id].name + "] ")
		}
	}
	return b.String()
}

// agentLines returns the lines of one agent's own event.
func agentLines(typ centurion.EventType, data json.RawMessage) []string {
	switch typ {
	case agent.Start:
		v := decoded[agent.StartData](data)
		return []string{"▶ " + strings.TrimSpace(v.Agent+" "+v.Address) + given(cmp.Or(v.Text, v.Title))}
	case agent.TurnEnd:
		if text := decoded[agent.TurnData](data).Message.Text; strings.TrimSpace(text) != "" {
			return []string{"  " + brief(text)}
		}
	case agent.ToolStart:
		v := decoded[agent.ToolStartData](data)
		return []string{"⚙ " + brief(v.Name) + " " + brief(plainJSON(v.Args))}
	case agent.ToolEnd:
		v := decoded[agent.ToolEndData](data)
		if v.Error != "" {
			return []string{"✗ " + brief(v.Name) + given(v.Error)}
		}
		return []string{"✓ " + brief(v.Name) + given(v.Result)}
	case agent.Retrying:
		v := decoded[agent.RetryData](data)
		return []string{fmt.Sprintf("↻ again in %d s%s", (v.WaitMS+999)/1000, given(cmp.Or(v.Error, v.Reason)))}
	case agent.Compact:
		v := decoded[agent.CompactData](data)
		return []string{fmt.Sprintf("≡ history shortened: about %s → %s tokens", text.Tokens(v.Before), text.Tokens(v.After))}
	case centurion.EventSessionAborted:
		return []string{"‖ idle" + given(decoded[event.AbortData](data).Reason)}
	case centurion.EventRewound, centurion.EventForked:
		return []string{"↶ " + brief(branched(typ, data))}
	case agent.End:
		return []string{"■ done"}
	case agent.Error:
		return []string{"■ ended" + given(decoded[agent.ErrorData](data).Reason)}
	}
	return nil
}

// decoded decodes the data of an event; unreadable data is empty.
func decoded[T any](data json.RawMessage) (v T) {
	_ = json.Unmarshal(data, &v)
	return v
}

func given(text string) string {
	if text = brief(text); text == "" {
		return ""
	}
	return ": " + text
}

// brief is a text in one line.
func brief(s string) string { return text.Cut(text.Clean(s), maxAgentText) }
