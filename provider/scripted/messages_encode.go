package scripted

import (
	"cmp"
	"strconv"
)

// streamMessages builds the events of a Messages API answer.
func (e *encoder) streamMessages() {
	u := e.a.Usage
	if u == nil {
		u = e.estimate()
	}
	e.b = strconv.AppendInt(append(e.b, `event: message_start`+"\n"+`data: {"type":"message_start","message":{"id":"msg_`...), int64(e.req.Number), 10)
	e.b = appendText(append(e.b, `","type":"message","role":"assistant","content":[],"model":`...), e.req.Model)
	e.b = append(e.b, `,"stop_reason":null,"stop_sequence":null,"usage":`...)
	e.b = append(appendMessagesUsage(e.b, u, min(u.Output, 1), 0), "}}\n\n"...)
	e.ends = append(e.ends, len(e.b))

	n := 0
	if s := e.a.Reasoning; s != "" {
		e.blockStart(n, `{"type":"thinking","thinking":"","signature":""}`)
		e.blockPieces(n, s, `{"type":"thinking_delta","thinking":`)
		e.blockDelta(n, `{"type":"signature_delta","signature":`, signatureOf(s))
		e.blockStop(n)
		n++
	}
	if s := e.a.Say; s != "" {
		e.blockStart(n, `{"type":"text","text":""}`)
		e.blockPieces(n, s, `{"type":"text_delta","text":`)
		e.blockStop(n)
		n++
	}
	for i, c := range e.a.Calls {
		head := appendText([]byte(`{"type":"tool_use","id":`), e.callID(i))
		head = append(appendText(append(head, `,"name":`...), c.Name), `,"input":{}}`...)
		e.blockStart(n, string(head))
		e.blockPieces(n, cmp.Or(c.Arguments, "{}"), `{"type":"input_json_delta","partial_json":`)
		e.blockStop(n)
		n++
	}
	if e.a.Cut != "" || e.a.Error != nil {
		return
	}
	content := len(e.ends)
	e.b = appendText(append(e.b, `event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":`...), e.stopReason())
	e.b = append(e.b, `,"stop_sequence":null},"usage":`...)
	e.b = append(appendMessagesUsage(e.b, u, u.Output, u.Reasoning), "}\n\n"...)
	e.named("message_stop", `{"type":"message_stop"}`)
	e.ends = e.ends[:content]
}

// named adds an event.
func (e *encoder) named(event, data string) {
	e.b = append(append(e.b, "event: "...), event...)
	e.b = append(append(append(e.b, "\ndata: "...), data...), "\n\n"...)
	e.ends = append(e.ends, len(e.b))
}

func (e *encoder) blockStart(n int, block string) {
	e.named("content_block_start", `{"type":"content_block_start","index":`+strconv.Itoa(n)+`,"content_block":`+block+`}`)
}

func (e *encoder) blockStop(n int) {
	e.named("content_block_stop", `{"type":"content_block_stop","index":`+strconv.Itoa(n)+`}`)
}

func (e *encoder) blockDelta(n int, before, s string) {
	e.b = append(e.b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	e.b = append(append(strconv.AppendInt(e.b, int64(n), 10), `,"delta":`...), before...)
	e.b = append(appendText(e.b, s), "}}\n\n"...)
	e.ends = append(e.ends, len(e.b))
}

// blockPieces adds a text in chunks.
func (e *encoder) blockPieces(n int, s, before string) {
	for s != "" {
		size := e.piece(s)
		e.blockDelta(n, before, s[:size])
		s = s[size:]
	}
}

func (e *encoder) stopReason() string {
	switch f := e.finish(); f {
	case "stop":
		return "end_turn"
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	default:
		return f
	}
}

// appendMessagesUsage writes a usage; here the input excludes cached tokens.
func appendMessagesUsage(b []byte, u *Usage, output, thinking int) []byte {
	b = strconv.AppendInt(append(b, `{"input_tokens":`...), int64(max(u.Input-u.Cached, 0)), 10)
	b = strconv.AppendInt(append(b, `,"cache_creation_input_tokens":0,"cache_read_input_tokens":`...), int64(u.Cached), 10)
	b = strconv.AppendInt(append(b, `,"output_tokens":`...), int64(output), 10)
	if thinking > 0 {
		b = append(strconv.AppendInt(append(b, `,"output_tokens_details":{"thinking_tokens":`...), int64(thinking), 10), '}')
	}
	return append(b, '}')
}
