package provider

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"centurion"
)

// The format of the events of /responses. As in chunks, a field of an unexpected type counts as absent.
type (
	wireEvent struct {
		Type      text            `json:"type"`
		Seq       *int64          `json:"sequence_number"`
		Output    *int            `json:"output_index"`
		ItemID    text            `json:"item_id"`
		Content   int             `json:"content_index"`
		Summary   int             `json:"summary_index"`
		Delta     text            `json:"delta"`
		Text      text            `json:"text"`
		Refusal   text            `json:"refusal"`
		Arguments arguments       `json:"arguments"`
		Input     text            `json:"input"`
		Item      *wireItem       `json:"item"`
		Response  json.RawMessage `json:"response"`
		Error     json.RawMessage `json:"error"`
		Object    text            `json:"object"`
	}
	wireItem struct {
		Type      text       `json:"type"`
		ID        text       `json:"id"`
		CallID    text       `json:"call_id"`
		Name      text       `json:"name"`
		Arguments arguments  `json:"arguments"`
		Input     text       `json:"input"`
		Content   []wirePart `json:"content"`
		Summary   []wirePart `json:"summary"`
		Encrypted text       `json:"encrypted_content"`
	}
	wirePart struct {
		Type    text `json:"type"`
		Text    text `json:"text"`
		Refusal text `json:"refusal"`
	}
	wireResponse struct {
		Status     text            `json:"status"`
		Error      json.RawMessage `json:"error"`
		Output     []wireItem      `json:"output"`
		Incomplete struct {
			Reason text `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input        float64 `json:"input_tokens"`
			Output       float64 `json:"output_tokens"`
			Total        float64 `json:"total_tokens"`
			InputDetails struct {
				Cached     float64 `json:"cached_tokens"`
				CacheWrite float64 `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
			OutputDetails struct {
				Reasoning float64 `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
	}
)

// items converts the events of /responses to deltas. An answer is a list of items: thoughts, texts and calls. An item is sent twice, in
// pieces and whole; pieces are passed on immediately, and missing parts are taken from the whole. If a call's pieces differ from its
// whole, it is never run: events were lost or reordered, and the answer counts as cut off.
type items struct {
	d   *decoder
	seq int64 // of the newest event; -1 before the first
	all []*item
}

// item is one item of an answer in progress.
type item struct {
	key   string // its position in the output, or its id
	call  *call
	free  bool // the call's input is not JSON: it is yielded as {"input": …}
	input strings.Builder
	texts map[string]int // yielded bytes, by part
	done  bool
}

func newItems(d *decoder) *items { return &items{d: d, seq: -1} }

// Over reports whether the complete response arrived; later events do not belong to the answer.
func (s *items) Over() bool { return s.d.finish != "" }

// Event takes one event.
func (s *items) Event(raw []byte) (piece bool, err error) { return true, s.event(raw) }

func (s *items) event(raw []byte) error {
	var e wireEvent
	if err := lenient(raw, &e); err != nil {
		return notJSON(raw)
	}
	if e.Object == "response" && e.Type == "" { // an answer that was not streamed
		return s.end(raw)
	}
	if e.Type == "error" || present(e.Error) || e.Object == "error" {
		return providerError(0, nil, raw)
	}
	if e.Seq != nil {
		if *e.Seq <= s.seq {
			return nil // a repetition
		}
		s.seq = *e.Seq
	}
	switch e.Type {
	case "response.output_item.added":
		if e.Item != nil {
			s.begin(s.find(&e, e.Item), e.Item)
		}
	case "response.output_item.done":
		if e.Item != nil {
			return s.whole(s.find(&e, e.Item), e.Item)
		}
	case "response.output_text.delta":
		s.say(s.find(&e, nil), Text, partKey("c", e.Content), string(e.Delta))
	case "response.output_text.done":
		s.rest(s.find(&e, nil), Text, partKey("c", e.Content), string(e.Text))
	case "response.refusal.delta":
		s.d.refused = true
		s.say(s.find(&e, nil), Text, partKey("c", e.Content), string(e.Delta))
	case "response.refusal.done":
		s.d.refused = true
		s.rest(s.find(&e, nil), Text, partKey("c", e.Content), string(e.Refusal))
	case "response.reasoning_summary_text.delta":
		s.say(s.find(&e, nil), Reasoning, partKey("s", e.Summary), string(e.Delta))
	case "response.reasoning_summary_text.done":
		s.rest(s.find(&e, nil), Reasoning, partKey("s", e.Summary), string(e.Text))
	case "response.reasoning_text.delta":
		s.say(s.find(&e, nil), Reasoning, partKey("r", e.Content), string(e.Delta))
	case "response.reasoning_text.done":
		s.rest(s.find(&e, nil), Reasoning, partKey("r", e.Content), string(e.Text))
	case "response.function_call_arguments.delta":
		s.args(s.find(&e, nil), string(e.Delta))
	case "response.function_call_arguments.done":
		return s.allArgs(s.find(&e, nil), string(e.Arguments))
	case "response.custom_tool_call_input.delta":
		it := s.find(&e, nil)
		it.free = true
		it.input.WriteString(string(e.Delta))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return s.end(e.Response)
	}
	return nil // the rest repeats other events, or belongs to tools that are not offered here
}

func partKey(kind string, n int) string { return kind + strconv.Itoa(n) }

// find returns the item of an event, a new one for its first event. The position takes precedence over the id: some gateways give every
// event another id.
func (s *items) find(e *wireEvent, w *wireItem) *item {
	id := string(e.ItemID)
	if w != nil {
		id = string(w.ID)
	}
	key := "id " + id
	if e.Output != nil {
		key = strconv.Itoa(*e.Output)
	}
	for i := len(s.all) - 1; i >= 0; i-- {
		it := s.all[i]
		if it.key != key {
			continue
		}
		if w != nil && it.call != nil && w.CallID != "" && it.call.given != "" && string(w.CallID) != it.call.given {
			break // another call at the same position
		}
		return it
	}
	return s.add(key)
}

func (s *items) add(key string) *item {
	it := &item{key: key, texts: map[string]int{}}
	s.all = append(s.all, it)
	return it
}

// begin handles an item's start, which names its type.
func (s *items) begin(it *item, w *wireItem) {
	if w.Type != "function_call" && w.Type != "custom_tool_call" {
		return
	}
	c := s.called(it)
	if c.given == "" && !c.begun {
		c.given = string(w.CallID)
	}
	if c.name == "" {
		c.name = string(w.Name)
	}
	it.free = it.free || w.Type == "custom_tool_call"
	if c.name != "" && !it.free {
		s.d.calls.tell(c, s.d.emit)
	}
}

// called returns the item's call.
func (s *items) called(it *item) *call {
	if it.call == nil {
		it.call = s.d.calls.start(-1, "")
	}
	return it.call
}

// args adds a piece of a call's arguments.
func (s *items) args(it *item, piece string) {
	if it.done {
		return
	}
	c := s.called(it)
	c.args.WriteString(piece)
	if c.name != "" {
		s.d.calls.tell(c, s.d.emit)
	}
}

// allArgs handles a call's whole arguments.
func (s *items) allArgs(it *item, full string) error {
	c := s.called(it)
	rest, ok := strings.CutPrefix(full, c.args.String())
	if !ok && full != "" {
		return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the pieces of a call's arguments are not what the call as a whole has: events were lost"}
	}
	c.args.WriteString(rest)
	if c.name != "" {
		s.d.calls.tell(c, s.d.emit)
	}
	return nil
}

// say yields a piece of a text and counts it.
func (s *items) say(it *item, t DeltaType, part, piece string) {
	if piece == "" || it.done {
		return
	}
	if t == Reasoning {
		if it.texts[part] == 0 && len(it.texts) > 0 {
			piece = "\n\n" + piece
			it.texts[part] -= 2
		}
	}
	it.texts[part] += len(piece)
	s.d.emit(Delta{Type: t, Text: piece})
}

// rest yields the part of a text that was not yielded in pieces.
func (s *items) rest(it *item, t DeltaType, part, full string) {
	if n := it.texts[part]; n < len(full) && utf8.RuneStart(full[n]) {
		s.say(it, t, part, full[n:])
	}
}

// whole handles a complete item.
func (s *items) whole(it *item, w *wireItem) error {
	s.begin(it, w)
	if it.done {
		return nil
	}
	switch w.Type {
	case "message":
		for i, p := range w.Content {
			if p.Type == "refusal" {
				s.d.refused = true
			}
			s.rest(it, Text, partKey("c", i), string(p.Text+p.Refusal))
		}
	case "reasoning":
		for i, p := range w.Summary {
			s.rest(it, Reasoning, partKey("s", i), string(p.Text))
		}
		for i, p := range w.Content {
			s.rest(it, Reasoning, partKey("r", i), string(p.Text))
		}
		if w.Encrypted != "" {
			s.d.emit(Delta{Type: ReasoningEnd, Metadata: map[string]any{metaOwner: map[string]any{metaItem: string(w.ID), metaEncrypted: string(w.Encrypted)}}})
		} else if len(it.texts) > 0 {
			s.d.emit(Delta{Type: ReasoningEnd})
		}
	case "function_call":
		if err := s.allArgs(it, string(w.Arguments)); err != nil {
			return err
		}
	case "custom_tool_call":
		it.input.Reset()
		it.input.WriteString(string(w.Input))
		b, _ := json.Marshal(map[string]string{"input": it.input.String()}) // a map of strings can always be marshalled
		if err := s.allArgs(it, string(b)); err != nil {
			return err
		}
	}
	it.done = true
	return nil
}

// end handles the complete response, the last event.
func (s *items) end(raw json.RawMessage) error {
	var r wireResponse
	if len(raw) > 0 {
		_ = lenient(raw, &r)
	}
	if u := r.Usage; u != nil && (u.Input > 0 || u.Output > 0) {
		w := wireUsage{Prompt: u.Input, Completion: u.Output, Total: u.Total}
		w.PromptDetails.Cached, w.PromptDetails.CacheWrite = u.InputDetails.Cached, u.InputDetails.CacheWrite
		w.CompletionDetails.Reasoning = u.OutputDetails.Reasoning
		s.d.tokens = w.tokens()
	}
	switch r.Status {
	case "completed":
		if err := s.complete(r.Output); err != nil {
			return err
		}
		s.d.finish = "completed"
	case "incomplete":
		s.d.finish = map[text]string{"max_output_tokens": "length", "content_filter": "content_filter"}[r.Incomplete.Reason]
		if s.d.finish == "" {
			s.d.finish = "incomplete" // the reason is unknown
		}
	default:
		if present(r.Error) {
			e := providerError(0, nil, r.Error)
			if readComplaint(r.Error).Code == "invalid_prompt" { // the prompt was refused for its content
				e.Kind = centurion.KindRefusal
			}
			return e
		}
		return &centurion.Error{Kind: centurion.KindOverloaded, Msg: "the provider broke the answer off: " + string(r.Status)}
	}
	return s.d.end()
}

// complete yields missing parts from the complete output, and fails if a call is still incomplete. Positions in that list are
// unreliable, because some endpoints omit items: calls are found by their ids, and other items count only if none was yielded before.
func (s *items) complete(output []wireItem) error {
	told := len(s.all) > 0
	for i := range output {
		w := &output[i]
		var it *item
		if w.Type == "function_call" || w.Type == "custom_tool_call" {
			if n := slices.IndexFunc(s.all, func(it *item) bool { return it.call != nil && it.call.given == string(w.CallID) }); n >= 0 {
				it = s.all[n]
			}
		} else if told {
			continue
		}
		if it == nil {
			it = s.add("whole " + strconv.Itoa(i))
		}
		if err := s.whole(it, w); err != nil {
			return err
		}
	}
	for _, it := range s.all {
		if c := it.call; c != nil && !it.done && !c.whole() {
			return &centurion.Error{Kind: centurion.KindStreamCut, Msg: "the answer ended, but not one of its calls: events were lost"}
		}
	}
	return nil
}
