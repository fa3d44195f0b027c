package anthropic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"

	"centurion"
	"centurion/provider"
)

// The format of events. A field of an unexpected type counts as absent.
type (
	wireEvent struct {
		Type    string          `json:"type"`
		Index   int             `json:"index"`
		Message wireAnswer      `json:"message"`
		Block   wireBlock       `json:"content_block"`
		Delta   wireDelta       `json:"delta"`
		Usage   wireUsage       `json:"usage"`
		Error   json.RawMessage `json:"error"`

		// Of an answer that was not streamed: it is itself the message.
		Content     []wireBlock `json:"content"`
		StopReason  string      `json:"stop_reason"`
		StopDetails wireDetails `json:"stop_details"`
	}
	wireAnswer struct {
		ID    string    `json:"id"`
		Usage wireUsage `json:"usage"`
	}
	wireBlock struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		Input     json.RawMessage `json:"input"`
	}
	wireDelta struct {
		Type        string      `json:"type"`
		Text        string      `json:"text"`
		Thinking    string      `json:"thinking"`
		Signature   string      `json:"signature"`
		PartialJSON string      `json:"partial_json"`
		StopReason  string      `json:"stop_reason"`
		StopDetails wireDetails `json:"stop_details"`
	}
	wireDetails struct {
		Explanation string `json:"explanation"`
	}
	wireUsage struct {
		Input         float64 `json:"input_tokens"`
		Output        float64 `json:"output_tokens"`
		CacheRead     float64 `json:"cache_read_input_tokens"`
		CacheWrite    float64 `json:"cache_creation_input_tokens"`
		OutputDetails struct {
			Thinking float64 `json:"thinking_tokens"`
		} `json:"output_tokens_details"`
	}
)

// decoder reads one answer. Its blocks stream one after the other, each between its start and its stop.
type decoder struct {
	emit   func(provider.Delta)
	id     string
	begun  bool // message_start came
	over   bool
	told   bool // something for the reader came
	reason string
	why    string // the provider's explanation of a refusal
	usage  wireUsage
	open   map[int]*blockState
	ids    map[string]bool // of yielded calls
	calls  int
	whole  []int // complete calls: yielded only at the end, because none may be run if the answer is cut off
}

// blockState is an open block.
type blockState struct {
	kind      string
	call      int // index of the call for the reader
	args      strings.Builder
	initial   string // arguments in the block's start, for a block without pieces
	signature strings.Builder
	data      string
}

// Decoder returns the decoder for one answer.
func (Wire) Decoder(emit func(provider.Delta)) provider.Decoder {
	return &decoder{emit: emit, open: map[int]*blockState{}, ids: map[string]bool{}}
}

// Over reports whether message_stop came.
func (d *decoder) Over() bool { return d.over }

// Event takes one event.
func (d *decoder) Event(data []byte) (piece bool, err error) {
	var e wireEvent
	if err := json.Unmarshal(data, &e); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok {
			return false, cut("an event is not JSON: " + provider.Excerpt(data))
		}
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		return false, provider.Refusal(data)
	}
	switch e.Type {
	case "message_start":
		return true, d.start(e.Message)
	case "content_block_start":
		return true, d.begin(e.Index, e.Block)
	case "content_block_delta":
		return true, d.grow(e.Index, e.Delta)
	case "content_block_stop":
		d.end(e.Index)
	case "message_delta":
		d.usage.add(e.Usage)
		if e.Delta.StopReason != "" {
			d.reason, d.why = e.Delta.StopReason, e.Delta.StopDetails.Explanation
		}
	case "message_stop":
		return true, d.finish()
	case "message":
		return true, d.document(e)
	default:
		return false, nil // a ping, or a newer type of event
	}
	return true, nil
}

func cut(msg string) error { return &centurion.Error{Kind: centurion.KindStreamCut, Msg: msg} }

// start handles the beginning of an answer. Some gateways send it twice; another answer in the middle means that the first was
// abandoned, and it is unknown which parts count.
func (d *decoder) start(m wireAnswer) error {
	if d.begun && (m.ID != d.id || d.told) {
		return cut("another answer began in the middle of this one")
	}
	d.begun, d.id = true, m.ID
	d.usage.add(m.Usage)
	return nil
}

func (d *decoder) begin(index int, b wireBlock) error {
	if d.open[index] != nil {
		return cut("a block of the answer began twice")
	}
	s := &blockState{kind: b.Type, data: b.Data, initial: string(b.Input)}
	d.open[index] = s
	switch b.Type {
	case "text":
		d.say(provider.Text, b.Text)
	case "thinking":
		s.signature.WriteString(b.Signature)
		d.say(provider.Reasoning, b.Thinking)
	case "tool_use":
		if b.Name == "" {
			return cut("a call of a tool has no name")
		}
		id := b.ID
		if id == "" || d.ids[id] {
			id = "toolu_" + rand.Text()
		}
		d.ids[id] = true
		d.told = true
		s.call = d.calls
		d.calls++
		d.emit(provider.Delta{Type: provider.CallStart, Index: s.call, CallID: id, Name: b.Name})
	}
	return nil
}

func (d *decoder) say(t provider.DeltaType, text string) {
	if text != "" {
		d.told = true
		d.emit(provider.Delta{Type: t, Text: text})
	}
}

func (d *decoder) grow(index int, x wireDelta) error {
	s := d.open[index]
	switch {
	case s == nil && x.Type == "input_json_delta":
		return cut("a piece of a call came before it began or after it ended: events were lost")
	case s == nil: // a piece of text has no effects
	case s.kind == "text" && x.Type == "text_delta":
		d.say(provider.Text, x.Text)
	case s.kind == "thinking" && x.Type == "thinking_delta":
		d.say(provider.Reasoning, x.Thinking)
	case s.kind == "thinking" && x.Type == "signature_delta":
		s.signature.WriteString(x.Signature)
	case s.kind == "tool_use" && x.Type == "input_json_delta" && x.PartialJSON != "":
		s.args.WriteString(x.PartialJSON)
		d.emit(provider.Delta{Type: provider.CallInput, Index: s.call, Text: x.PartialJSON})
	}
	return nil
}

// end ends a block. Only then is a call complete, and a block of thinking signed.
func (d *decoder) end(index int) {
	s := d.open[index]
	if s == nil {
		return
	}
	delete(d.open, index)
	switch s.kind {
	case "thinking":
		if sig := s.signature.String(); sig != "" {
			d.thought(signatureKey, sig)
		} else {
			d.emit(provider.Delta{Type: provider.ReasoningEnd})
		}
	case "redacted_thinking":
		if s.data != "" {
			d.thought(redactedKey, s.data)
		}
	case "tool_use":
		if strings.TrimSpace(s.args.String()) == "" {
			d.emit(provider.Delta{Type: provider.CallInput, Index: s.call, Text: string(object(s.initial))})
		}
		d.whole = append(d.whole, s.call)
	}
}

func (d *decoder) thought(key, value string) {
	d.told = true
	d.emit(provider.Delta{Type: provider.ReasoningEnd, Metadata: map[string]any{metadataKey: map[string]any{key: value}}})
}

// finish handles the end of the answer. An answer that stopped at its limit may leave its last call open; one that waits for results
// may not.
func (d *decoder) finish() error {
	if d.reason == "" {
		return cut("the answer ended without a stop reason")
	}
	finish := finishOf(d.reason)
	clean := finish == centurion.FinishStop || finish == centurion.FinishToolCalls
	switch {
	case clean && len(d.whole) < d.calls:
		return cut("the answer ended in the middle of a call")
	case clean && d.calls > 0:
		finish = centurion.FinishToolCalls
	case clean:
		finish = centurion.FinishStop
	case finish == centurion.FinishFilter && !d.told:
		d.say(provider.Text, d.why)
	}
	d.over = true
	for _, call := range d.whole {
		d.emit(provider.Delta{Type: provider.CallEnd, Index: call})
	}
	d.emit(provider.Delta{Type: provider.Done, Finish: finish, Tokens: d.usage.tokens()})
	return nil
}

// document handles an answer that came whole, from a gateway without streaming.
func (d *decoder) document(e wireEvent) error {
	d.usage.add(e.Usage)
	d.reason, d.why = e.StopReason, e.StopDetails.Explanation
	for i, b := range e.Content {
		if err := d.begin(i, b); err != nil {
			return err
		}
		d.end(i)
	}
	return d.finish()
}

// finishOf translates a stop reason. A pause asks for a continuation, like an answer at its limit.
func finishOf(reason string) string {
	switch reason {
	case "end_turn", "stop_sequence":
		return centurion.FinishStop
	case "tool_use":
		return centurion.FinishToolCalls
	case "max_tokens", "model_context_window_exceeded", "pause_turn":
		return centurion.FinishLength
	case "refusal":
		return centurion.FinishFilter
	}
	return centurion.FinishUnknown
}

// add handles a later count. Counts are cumulative, and events omit some of them.
func (u *wireUsage) add(v wireUsage) {
	u.Input, u.Output = max(u.Input, v.Input), max(u.Output, v.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, v.CacheRead), max(u.CacheWrite, v.CacheWrite)
	u.OutputDetails.Thinking = max(u.OutputDetails.Thinking, v.OutputDetails.Thinking)
}

// tokens splits a count into disjoint kinds. Here the input never includes cached tokens; the output includes the thinking.
func (u *wireUsage) tokens() centurion.Tokens {
	whole := func(f float64) int64 { // add keeps it from being negative
		if f > 1e15 {
			return 0
		}
		return int64(f)
	}
	output := whole(u.Output)
	thinking := min(whole(u.OutputDetails.Thinking), output)
	return centurion.Tokens{Input: whole(u.Input), Output: output - thinking, Reasoning: thinking,
		Cache: centurion.CacheUsage{Read: whole(u.CacheRead), Write: whole(u.CacheWrite)}}
}
