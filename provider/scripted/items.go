package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// The parts of a request to /responses that are read.
type (
	itemsBody struct {
		Model        json.RawMessage `json:"model"`
		Stream       bool            `json:"stream"`
		Store        *bool           `json:"store"`
		Instructions string          `json:"instructions"`
		Include      []string        `json:"include"`
		Input        []inputItem     `json:"input"`
		Tools        []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		} `json:"tools"`
		Messages json.RawMessage `json:"messages"`
	}
	inputItem struct {
		Type      string      `json:"type"`
		Role      string      `json:"role"`
		Content   itemContent `json:"content"`
		CallID    string      `json:"call_id"`
		Name      string      `json:"name"`
		Arguments string      `json:"arguments"`
		Output    itemContent `json:"output"`
		Summary   []itemText  `json:"summary"`
		Encrypted string      `json:"encrypted_content"`
	}
	itemText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	chatBody struct {
		Model    json.RawMessage `json:"model,omitempty"`
		Stream   bool            `json:"stream"`
		Tools    []chatTool      `json:"tools,omitempty"`
		Messages []chatMessage   `json:"messages"`
	}
)

const seal = "sealed by "

// sealedBy marks encrypted reasoning of ours with its model; another model refuses it.
func sealedBy(model string) string { return seal + model + ": " }

// fromItems translates a request to /responses. The error is what a strict provider would refuse about it; the demands of chat
// completions are checked later.
func fromItems(body []byte) ([]byte, error) {
	var in itemsBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("the body is no request to /responses: %w", err)
	}
	switch {
	case len(in.Messages) > 0:
		return nil, errors.New("unknown parameter: messages")
	case in.Store == nil || *in.Store:
		return nil, errors.New("store is not false: what was said would be kept at the provider")
	case !in.Stream:
		return nil, errors.New("the scripted model serves /responses as a stream only")
	}
	out := chatBody{Model: in.Model, Stream: true}
	if in.Instructions != "" {
		out.Messages = append(out.Messages, chatMessage{Role: "system", Content: in.Instructions})
	}
	for _, t := range in.Tools {
		if t.Strict == nil || *t.Strict {
			return nil, fmt.Errorf("the tool %q is strict: its schema would have to require every property", t.Name)
		}
		out.Tools = append(out.Tools, chatTool{t.Type, chatFunction{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	var model string
	_ = json.Unmarshal(in.Model, &model)
	for i, it := range in.Input {
		if err := out.add(it, model, in.Input[i+1:]); err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	return json.Marshal(out)
}

// add adds one item; rest are the items after it.
func (b *chatBody) add(it inputItem, model string, rest []inputItem) error {
	textType := cmp.Or(map[string]string{"assistant": "output_text"}[it.Role], "input_text")
	text, files, err := it.Content.read(textType, it.Role == "user")
	if err != nil {
		return fmt.Errorf("%w in a message of role %s", err, it.Role)
	}
	switch cmp.Or(it.Type, "message") {
	case "message":
		if it.Role == "assistant" {
			b.answer().Content += text
			return nil
		}
		b.Messages = append(b.Messages, chatMessage{Role: it.Role, Content: text, Files: files})
	case "function_call":
		a := b.answer()
		a.ToolCalls = append(a.ToolCalls, chatCall{it.CallID, "function", chatFunction{Name: it.Name, Arguments: &it.Arguments}})
	case "function_call_output":
		text, files, err := it.Output.read("input_text", true)
		if err != nil {
			return fmt.Errorf("%w in a function_call_output", err)
		}
		b.Messages = append(b.Messages, chatMessage{Role: "tool", ToolCallID: it.CallID, Content: text, Files: files})
	case "reasoning":
		if it.Encrypted == "" || strings.HasPrefix(it.Encrypted, seal) && !strings.HasPrefix(it.Encrypted, sealedBy(model)) {
			return fmt.Errorf("the encrypted content could not be verified: %.40q is not of %s", it.Encrypted, model)
		}
		if len(rest) == 0 || rest[0].Type != "reasoning" && rest[0].Type != "function_call" && rest[0].Role != "assistant" {
			return errors.New("a reasoning item was provided without the item that followed it")
		}
		a := b.answer()
		for _, s := range it.Summary {
			a.Reasoning += s.Text
		}
	default:
		return fmt.Errorf("unknown type %q", it.Type)
	}
	return nil
}

// answer returns the answer whose items are being read.
func (b *chatBody) answer() *chatMessage {
	if n := len(b.Messages); n == 0 || b.Messages[n-1].Role != "assistant" {
		b.Messages = append(b.Messages, chatMessage{Role: "assistant"})
	}
	return &b.Messages[len(b.Messages)-1]
}

// streamItems builds the events of an answer over /responses.
func (e *encoder) streamItems() {
	seq, place := 0, 0
	emit := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, seq
		seq++
		raw, _ := json.Marshal(fields) // texts, numbers and maps of them always marshal
		e.named(kind, string(raw))
	}
	// item writes one item: its start, its text in pieces, and the whole.
	item := func(id, delta, text string, begun, whole, more map[string]any) {
		begun["id"], whole["id"] = id, id
		emit("response.output_item.added", map[string]any{"output_index": place, "item": begun})
		for text != "" {
			n := e.piece(text)
			fields := map[string]any{"output_index": place, "item_id": id, "delta": text[:n]}
			maps.Copy(fields, more)
			emit(delta, fields)
			text = text[n:]
		}
		emit("response.output_item.done", map[string]any{"output_index": place, "item": whole})
		place++
	}
	response := map[string]any{"id": "resp_" + strconv.Itoa(e.req.Number), "object": "response", "model": e.req.Model, "status": "in_progress", "output": []any{}}
	emit("response.created", map[string]any{"response": response})
	n := strconv.Itoa(e.req.Number)
	if r := e.a.Reasoning; r != "" {
		item("rs_"+n, "response.reasoning_summary_text.delta", r, map[string]any{"type": "reasoning", "summary": []any{}},
			map[string]any{"type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": r}}, "encrypted_content": sealedBy(e.req.Model) + n},
			map[string]any{"summary_index": 0})
	}
	if e.a.Say != "" || len(e.a.Calls) == 0 {
		item("msg_"+n, "response.output_text.delta", e.a.Say, map[string]any{"type": "message", "role": "assistant", "content": []any{}},
			map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": e.a.Say}}},
			map[string]any{"content_index": 0})
	}
	for i, c := range e.a.Calls {
		args, id := cmp.Or(c.Arguments, "{}"), e.callID(i)
		item("fc_"+n+"_"+strconv.Itoa(i), "response.function_call_arguments.delta", args,
			map[string]any{"type": "function_call", "call_id": id, "name": c.Name, "arguments": ""},
			map[string]any{"type": "function_call", "call_id": id, "name": c.Name, "arguments": args}, nil)
	}
	if e.a.Cut != "" || e.a.Error != nil {
		return
	}
	content := len(e.ends)
	u := e.a.Usage
	if u == nil {
		u = e.estimate()
	}
	response["usage"] = map[string]any{"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details": map[string]any{"cached_tokens": u.Cached}, "output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
	response["status"] = "completed"
	kind := "response.completed"
	if reason := incomplete(e.a.Finish); reason != "" {
		kind, response["status"] = "response.incomplete", "incomplete"
		response["incomplete_details"] = map[string]any{"reason": reason}
	}
	emit(kind, map[string]any{"response": response})
	e.ends = e.ends[:content]
}

// incomplete returns why an answer over /responses is incomplete, "" if it is complete. An unknown reason is passed on.
func incomplete(finish string) string {
	switch finish {
	case "", "stop", "tool_calls":
		return ""
	case "length":
		return "max_output_tokens"
	}
	return finish
}
