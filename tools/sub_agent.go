package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// SubAgents is implemented by the orchestrator for the tool that starts sub-agents. Its methods are safe for concurrent use.
type SubAgents interface {
	// Spawn records a sub-agent's task and returns at once; the same call gives the same task, also after a restart. The error has
	// centurion.KindUsage, with a suggestion, for a tool that the caller does not hold and for an unknown model.
	Spawn(ctx context.Context, c *Call, s SubAgent) (centurion.Task, error)
	// Join blocks until the sub-agent has ended and returns its report. It stops a sub-agent that is stalled, or whose caller's turn
	// ends. If the mission stops meanwhile, the task has not ended: it continues with the mission, and its result is delivered as a
	// notice. On an error its state is unknown.
	Join(ctx context.Context, c *Call, task string) (SubReport, error)
}

// SubAgent is a request to start a sub-agent. Empty fields are inherited from its parent.
type SubAgent struct {
	Prompt string   // passed to it verbatim
	Tools  []string // nil: all of its parent's
	Model  string   // provider/model
	System string   // its system prompt
}

// SubReport describes the work of a sub-agent.
type SubReport struct {
	Task  centurion.Task
	Model string // last used, as provider/model
	Calls []SubCall
}

// SubCall is one tool call of a sub-agent.
type SubCall struct {
	ID     string `json:"call"`
	Tool   string `json:"tool"`
	Args   string `json:"args"`             // the beginning of its arguments
	Result string `json:"result,omitempty"` // the beginning of its output
	Error  string `json:"error,omitempty"`
	Millis int64  `json:"ms"`
}

// Limits of a sub-agent's report.
const (
	subTextMax = 24 << 10 // bytes of its last text in its parent's history; its session has the whole
	subCallMax = 100      // calls in the log: the newest
	subBrief   = 200      // bytes of arguments, output and error of one call in the log
)

type subAgentInput struct {
	Prompt       string   `json:"prompt"`
	Tools        []string `json:"tools"`
	Model        string   `json:"model"`
	SystemPrompt string   `json:"system_prompt"`
}

func subAgentTool() Tool {
	return define("sub_agent", object(
		need("prompt", nonEmpty("Everything it must know; it sees nothing of your conversation")),
		may("tools", list("The ones of your tools that it may use (default: all)", str(""))),
		may("model", str("Another model for it, as provider/model (default: yours)")),
		may("system_prompt", str("Instructions in place of your own ones (default: yours)")),
	), func(subAgentInput) Effect { return Effect{Hosted: true, Once: true, Alike: "sub_agent"} }, runSubAgent)
}

func runSubAgent(ctx context.Context, c *Call, in subAgentInput) (Result, error) {
	if c.SubAgents == nil {
		return denied("sub_agent", "your role starts no sub-agents", "do it yourself")
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return Result{}, usage("sub_agent", "say what it is to do", "the prompt is empty")
	}
	t, err := c.SubAgents.Spawn(ctx, c, SubAgent{Prompt: in.Prompt, Tools: trimmed(in.Tools), Model: strings.TrimSpace(in.Model),
		System: strings.TrimSpace(in.SystemPrompt)})
	if err != nil {
		return Result{}, err
	}
	if c.Begun != nil {
		c.Begun()
	}
	c.Progress("sub-agent " + t.Name() + ": " + t.Title)
	rep, err := c.SubAgents.Join(ctx, c, t.ID)
	if err != nil {
		return Result{}, err
	}
	return rep.result(c.Session)
}

func trimmed(names []string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		out[i] = strings.TrimSpace(n)
	}
	return out
}

// result is the report for the parent. It consumes the sub-agent's result in any case.
func (s SubReport) result(parent string) (Result, error) {
	t := s.Task
	r := Result{Title: t.Title, Metadata: s.metadata(parent)}
	if !t.Status.Ended() {
		r.Output = fmt.Sprintf("The work was stopped while sub-agent %s was running. It continues by itself now, "+
			"and its result will follow: do not start it again; end your turn when nothing else is left to do.", t.Name())
		return r, nil
	}
	r.Consumes = []string{t.ID}
	did := s.Did()
	if t.Status == centurion.TaskCompleted {
		r.Output = capped(t.Result, t.Session) + "\n\n(" + did + ")"
		return r, nil
	}
	kind, why := centurion.KindInternal, string(t.Status)
	if t.Error != nil {
		kind, why = t.Error.Kind, t.Error.Message
		if t.Error.Hint != "" {
			why += ". " + t.Error.Hint
		}
	}
	var msg strings.Builder
	fmt.Fprintf(&msg, "the sub-agent %s (%s): %s\nWhat it had done: %s", failedHow(t.Status), kind, why, did)
	for _, c := range s.Calls[max(0, len(s.Calls)-5):] {
		fmt.Fprintf(&msg, "\n- %s %s", c.Tool, c.Args)
		if c.Error != "" {
			msg.WriteString(": " + short(c.Error))
		}
	}
	if text := strings.TrimSpace(t.Result); text != "" {
		msg.WriteString("\nIts last words:\n" + capped(text, t.Session))
	}
	return r, &centurion.Error{Kind: kind, Msg: msg.String()}
}

func failedHow(s centurion.TaskStatus) string {
	switch s {
	case centurion.TaskCancelled:
		return "was stopped"
	case centurion.TaskBlocked:
		return "was blocked"
	}
	return "failed"
}

// capped is a text shortened for its reader's history, with a reference to the whole.
func capped(s, session string) string {
	s = strings.TrimRight(s, "\n")
	if len(s) <= subTextMax {
		return s
	}
	head := strings.ToValidUTF8(s[:subTextMax], "")
	return head + fmt.Sprintf("\n… (%d of %d bytes; the whole: centurion show %s)", len(head), len(s), session)
}

// Did summarizes the sub-agent's work and cost in one line: "12 tool calls: read ×9, bash ×3; 3 files changed; 41k tokens, $0.12, 34
// s". An unknown cost is omitted.
func (s SubReport) Did() string {
	counts, order := map[string]int{}, []string{}
	for _, c := range s.Calls {
		if counts[c.Tool]++; counts[c.Tool] == 1 {
			order = append(order, c.Tool)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(counts[b], counts[a]) })
	for i, t := range order {
		order[i] = fmt.Sprintf("%s ×%d", t, counts[t])
	}
	did := centurion.Count(len(s.Calls), "tool call")
	if len(order) > 0 {
		did += ": " + strings.Join(order, ", ")
	}
	t := s.Task
	if n := len(t.Files); n > 0 {
		did += "; " + centurion.Count(n, "file") + " changed"
	}
	did += "; " + text.Tokens(t.Usage.Tokens.Total()) + " tokens"
	if !t.Usage.Unpriced { // a model has no use for an unknown cost
		did += ", " + text.Cost(t.Usage)
	}
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		did += ", " + text.Took(t.Ended.Sub(t.Started.Time))
	}
	return did
}

// metadata is the data for clients; those that know OpenCode's task tool find the session by the same keys.
func (s SubReport) metadata(parent string) map[string]any {
	t := s.Task
	log := s.Calls[max(0, len(s.Calls)-subCallMax):]
	brief := make([]SubCall, len(log))
	for i, c := range log {
		c.Result, c.Error = short(c.Result), short(c.Error)
		brief[i] = c
	}
	m := map[string]any{"task": t.ID, "agent": t.Agent, "status": string(t.Status), "sessionId": t.Session, "parentSessionId": parent,
		"tool_calls": len(s.Calls), "log": brief, "files": t.Files, "tokens": t.Usage.Tokens.Total(), "cost": t.Usage.USD}
	if provider, id, ok := strings.Cut(s.Model, "/"); ok {
		m["model"] = map[string]string{"providerID": provider, "modelID": id}
	}
	if !t.Started.IsZero() && !t.Ended.IsZero() {
		m["ms"] = t.Ended.Sub(t.Started.Time).Milliseconds()
	}
	return m
}

func short(s string) string { return centurion.Clip(strings.Join(strings.Fields(s), " "), subBrief) }

// SubCalls are the tool calls in a conversation, in order.
func SubCalls(messages []centurion.Message) []SubCall {
	calls := []SubCall{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Type != centurion.PartTool || p.State == nil || m.Role != centurion.RoleAssistant {
				continue
			}
			st := p.State
			c := SubCall{ID: p.CallID, Tool: p.Tool, Args: short(string(compact(st.Input))), Result: centurion.Clip(st.Output, 4*subBrief), Error: centurion.Clip(st.Error, 4*subBrief)}
			if !st.Ended() {
				c.Error = "has not ended"
			} else if st.Time.Start > 0 {
				c.Millis = max(0, st.Time.End-st.Time.Start)
			}
			calls = append(calls, c)
		}
	}
	return calls
}

// compact is JSON without the model's formatting.
func compact(in json.RawMessage) json.RawMessage {
	var v any
	if json.Unmarshal(in, &v) != nil {
		return in
	}
	b, err := json.Marshal(v)
	if err != nil {
		return in
	}
	return b
}
