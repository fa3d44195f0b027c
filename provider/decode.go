package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"centurion"
)

// The format of a chunk. A field of an unexpected type counts as absent.
type (
	wireChunk struct {
		Choices []wireChoice    `json:"choices"`
		Usage   *wireUsage      `json:"usage"`
		Error   json.RawMessage `json:"error"`
		Type    text            `json:"type"`
		Object  text            `json:"object"`
		Message json.RawMessage `json:"message"`
	}
	wireChoice struct {
		Delta        wireDelta       `json:"delta"`
		Message      *wireDelta      `json:"message"` // of an answer that did not stream
		FinishReason text            `json:"finish_reason"`
		Error        json.RawMessage `json:"error"`
	}
	wireDelta struct {
		Content          content       `json:"content"`
		Refusal          text          `json:"refusal"`
		ReasoningContent text          `json:"reasoning_content"`
		Reasoning        text          `json:"reasoning"`
		ReasoningDetails []wireDetail  `json:"reasoning_details"`
		ToolCalls        []wireCall    `json:"tool_calls"`
		FunctionCall     *wireFunction `json:"function_call"` // from before tools
	}
	wireDetail struct {
		Text    text `json:"text"`
		Summary text `json:"summary"`
	}
	wireCall struct {
		Index    *int         `json:"index"`
		ID       text         `json:"id"`
		Function wireFunction `json:"function"`
	}
	wireFunction struct {
		Name      text      `json:"name"`
		Arguments arguments `json:"arguments"`
	}
	wireUsage struct {
		Prompt        float64 `json:"prompt_tokens"`
		Completion    float64 `json:"completion_tokens"`
		Total         float64 `json:"total_tokens"`
		CacheHit      float64 `json:"prompt_cache_hit_tokens"`     // DeepSeek
		Cached        float64 `json:"cached_tokens"`               // Moonshot
		CacheRead     float64 `json:"cache_read_input_tokens"`     // gateways to Anthropic
		CacheCreation float64 `json:"cache_creation_input_tokens"` // gateways to Anthropic
		PromptDetails struct {
			Cached     float64 `json:"cached_tokens"`
			CacheWrite float64 `json:"cache_write_tokens"` // OpenRouter
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
)

// text is a string; everything else is empty.
type text string

// UnmarshalJSON never fails.
func (t *text) UnmarshalJSON(b []byte) error {
	*t = text(unquote(b))
	return nil
}

// unquote returns the value of a JSON string, and "" for anything else. Most pieces need no unescaping, and some are megabytes long.
func unquote(b []byte) (s string) {
	if len(b) < 2 || b[0] != '"' {
		return ""
	}
	if in := b[1 : len(b)-1]; bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return string(in)
	}
	_ = json.Unmarshal(b, &s)
	return s
}

// arguments is a string of JSON, or, from some gateways, the JSON itself.
type arguments string

// UnmarshalJSON never fails.
func (a *arguments) UnmarshalJSON(b []byte) error {
	switch {
	case len(b) > 0 && b[0] == '{':
		*a = arguments(b)
	default:
		*a = arguments(unquote(b))
	}
	return nil
}

// content is a string or, from Mistral, a list of typed parts.
type content struct{ text, reasoning string }

// UnmarshalJSON never fails.
func (c *content) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '[' {
		c.text = unquote(b)
		return nil
	}
	var parts []struct {
		Text     text    `json:"text"`
		Thinking content `json:"thinking"`
	}
	_ = lenient(b, &parts)
	for _, p := range parts {
		c.text += string(p.Text)
		c.reasoning += p.Thinking.reasoning + p.Thinking.text
	}
	return nil
}

// lenient is json.Unmarshal without errors for fields of the wrong type.
func lenient(b []byte, v any) error {
	err := json.Unmarshal(b, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// decoder converts the chunks of chat completions to deltas.
type decoder struct {
	emit    func(Delta)
	over    bool
	finish  string // as the provider said it
	refused bool
	calls   calls
	tokens  centurion.Tokens
}

// Over reports whether Done was emitted.
func (d *decoder) Over() bool { return d.over }

// Event takes one chunk.
func (d *decoder) Event(data []byte) (piece bool, err error) { return true, d.chunk(data) }

// chunk takes one chunk. An error is of type [*centurion.Error], without its operation.
func (d *decoder) chunk(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil {
			for _, r := range list {
				if err := d.chunk(r); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var c wireChunk
	if err := lenient(raw, &c); err != nil {
		return notJSON(raw)
	}
	if present(c.Error) || c.Type == "error" || c.Object == "error" {
		return providerError(0, nil, raw)
	}
	if u := c.Usage; u != nil && (u.Prompt > 0 || u.Completion > 0) {
		d.tokens = u.tokens() // some endpoints send a running count: the last one counts
	}
	for i := range c.Choices {
		if err := d.choice(&c.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

// present reports whether an error field is set: not null or one of the empty values that some endpoints send with every chunk.
func present(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "[]", "false", "0":
		return false
	}
	return true
}

func (d *decoder) choice(c *wireChoice) error {
	if present(c.Error) {
		return providerError(0, nil, c.Error)
	}
	delta := &c.Delta
	if c.Message != nil {
		delta = c.Message
	}
	if s := delta.thought(); s != "" {
		d.emit(Delta{Type: Reasoning, Text: s})
	}
	if s := delta.Content.text; s != "" {
		d.emit(Delta{Type: Text, Text: s})
	}
	if s := delta.Refusal; s != "" {
		d.refused = true
		d.emit(Delta{Type: Text, Text: string(s)})
	}
	if len(delta.ToolCalls) > 0 {
		d.finish = "" // a call follows the finish reason: only the next one is final
	}
	for _, call := range delta.ToolCalls {
		d.calls.add(call, d.emit)
	}
	if f := delta.FunctionCall; f != nil {
		legacy := 0
		d.calls.add(wireCall{Index: &legacy, Function: *f}, d.emit)
	}
	switch c.FinishReason {
	case "", "null":
	case "error", "network_error", "insufficient_system_resource":
		return &centurion.Error{Kind: centurion.KindOverloaded, Msg: "the provider broke the answer off: " + string(c.FinishReason)}
	default:
		d.finish = string(c.FinishReason)
	}
	return nil
}

// thought returns the piece of reasoning, which endpoints send under several names, sometimes two at once.
func (w *wireDelta) thought() string {
	switch {
	case w.Content.reasoning != "":
		return w.Content.reasoning
	case w.ReasoningContent != "":
		return string(w.ReasoningContent)
	case w.Reasoning != "":
		return string(w.Reasoning)
	}
	var s strings.Builder
	for _, r := range w.ReasoningDetails {
		s.WriteString(string(r.Text) + string(r.Summary))
	}
	return s.String()
}

// end emits the end of an answer with a finish reason.
func (d *decoder) end() error {
	if d.calls.nameless() {
		return errNameless
	}
	finish := finishOf(d.finish)
	clean := finish == centurion.FinishStop || finish == centurion.FinishToolCalls
	n := d.calls.end(clean, d.emit)
	switch {
	case clean && n > 0:
		finish = centurion.FinishToolCalls
	case clean && d.refused:
		finish = centurion.FinishFilter
	case clean:
		finish = centurion.FinishStop
	}
	d.emit(Delta{Type: Done, Finish: finish, Tokens: d.tokens})
	d.over = true
	return nil
}

// notJSON is the error for an unreadable event.
func notJSON(event []byte) error {
	return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "an event is not JSON: " + excerpt(event)}
}

func finishOf(reason string) string {
	switch strings.ToLower(reason) {
	case "stop", "end_turn", "stop_sequence", "eos", "eos_token", "completed":
		return centurion.FinishStop
	case "tool_calls", "tool_use", "function_call":
		return centurion.FinishToolCalls
	case "length", "max_tokens", "model_length", "model_context_window_exceeded":
		return centurion.FinishLength
	case "content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist", "sensitive":
		return centurion.FinishFilter
	}
	return centurion.FinishUnknown
}

// tokens splits a count into disjoint kinds. In OpenAI's format the prompt includes cached tokens, and the completion includes
// reasoning; endpoints that count them separately are recognised by sums that do not match.
func (u *wireUsage) tokens() centurion.Tokens {
	whole := func(f float64) int64 {
		if math.IsNaN(f) || f < 0 || f > 1e15 {
			return 0
		}
		return int64(f)
	}
	prompt, completion, reasoning := whole(u.Prompt), whole(u.Completion), whole(u.CompletionDetails.Reasoning)
	read := whole(max(u.PromptDetails.Cached, u.CacheHit, u.Cached, u.CacheRead))
	write := whole(max(u.PromptDetails.CacheWrite, u.CacheCreation))
	t := centurion.Tokens{Input: prompt - read - write, Output: completion - reasoning, Reasoning: reasoning,
		Cache: centurion.CacheUsage{Read: read, Write: write}}
	if t.Input < 0 {
		t.Input = prompt
	}
	if t.Output < 0 || reasoning > 0 && whole(u.Total) == prompt+completion+reasoning {
		t.Output = completion
	}
	return t
}
