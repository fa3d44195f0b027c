package scripted

import (
	"bytes"
	"cmp"
	"strconv"
	"time"
	"unicode/utf8"
)

// encoder writes one answer in wire format. It builds everything before sending the first byte, so that an answer without delays takes
// one write.
type encoder struct {
	req   *Request
	a     *Answer
	chunk int
	b     []byte
	head  []byte
	ends  []int // where the chunks with content end; the finish reason, the usage and the end mark follow
}

// reset prepares the encoder for another answer and keeps its memory.
func (e *encoder) reset(req *Request, a *Answer, chunk int) {
	*e = encoder{req: req, a: a, chunk: chunk, b: e.b[:0], head: e.head[:0], ends: e.ends[:0]}
}

// chunks returns how many of the chunks with content are sent.
func (e *encoder) chunks() int {
	n := len(e.ends)
	if e.a.Cut == CutHalf || e.a.Cut == CutReset || e.a.Error != nil {
		return max(1, n/2)
	}
	return n
}

// stream builds the events of a streamed answer.
func (e *encoder) stream() {
	e.head = e.appendHead(append(e.head, "data: "...), "chat.completion.chunk")
	e.event(`{"role":"assistant","content":""}`, "")
	e.pieces(e.a.Reasoning, `{"reasoning_content":`, `}`)
	e.pieces(e.a.Say, `{"content":`, `}`)
	for i, c := range e.a.Calls {
		index := strconv.Itoa(i)
		d := appendText([]byte(`{"tool_calls":[{"index":`+index+`,"id":`), e.callID(i))
		d = appendText(append(d, `,"type":"function","function":{"name":`...), c.Name)
		e.event(string(append(d, `,"arguments":""}}]}`...)), "")
		e.pieces(cmp.Or(c.Arguments, "{}"), `{"tool_calls":[{"index":`+index+`,"function":{"arguments":`, `}}]}`)
	}
	if e.a.Cut != "" || e.a.Error != nil {
		return
	}
	content := len(e.ends)
	e.event("{}", e.finish())
	e.ends = e.ends[:content]
	if bytes.Contains(e.req.Field("stream_options"), []byte(`"include_usage":true`)) {
		e.b = append(append(e.b, e.head...), `,"choices":[],"usage":`...)
		e.b = append(e.appendUsage(e.b), "}\n\n"...)
	}
	e.b = append(e.b, "data: [DONE]\n\n"...)
}

// event adds a chunk with a delta.
func (e *encoder) event(delta, finish string) {
	e.b = append(append(e.b, e.head...), `,"choices":[{"index":0,"delta":`...)
	e.b = append(append(e.b, delta...), `,"finish_reason":`...)
	if finish == "" {
		e.b = append(e.b, "null"...)
	} else {
		e.b = appendText(e.b, finish)
	}
	e.b = append(e.b, "}]}\n\n"...)
	e.ends = append(e.ends, len(e.b))
}

// pieces adds a text in chunks.
func (e *encoder) pieces(s, before, after string) {
	for s != "" {
		n := e.piece(s)
		e.b = append(append(e.b, e.head...), `,"choices":[{"index":0,"delta":`...)
		e.b = append(appendText(append(e.b, before...), s[:n]), after...)
		e.b = append(e.b, `,"finish_reason":null}]}`+"\n\n"...)
		e.ends = append(e.ends, len(e.b))
		s = s[n:]
	}
}

// piece returns how many bytes of s are in the next chunk.
func (e *encoder) piece(s string) int {
	if e.chunk <= 0 {
		return len(s)
	}
	n := 0
	for range e.chunk {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	return n
}

// whole builds the body of a non-streaming answer.
func (e *encoder) whole() {
	b := append(e.appendHead(e.b, "chat.completion"), `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if e.a.Say == "" && len(e.a.Calls) > 0 {
		b = append(b, "null"...)
	} else {
		b = appendText(b, e.a.Say)
	}
	if e.a.Reasoning != "" {
		b = appendText(append(b, `,"reasoning_content":`...), e.a.Reasoning)
	}
	for i, c := range e.a.Calls {
		sep := `,{"id":`
		if i == 0 {
			sep = `,"tool_calls":[{"id":`
		}
		b = appendText(append(b, sep...), e.callID(i))
		b = appendText(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(appendText(append(b, `,"arguments":`...), cmp.Or(c.Arguments, "{}")), "}}"...)
	}
	if len(e.a.Calls) > 0 {
		b = append(b, ']')
	}
	b = append(appendText(append(b, `},"finish_reason":`...), e.finish()), `}],"usage":`...)
	e.b = append(e.appendUsage(b), '}')
}

// appendHead adds the fields at the start of every chunk and every answer; the object stays open.
func (e *encoder) appendHead(b []byte, object string) []byte {
	b = strconv.AppendInt(append(b, `{"id":"chatcmpl-`...), int64(e.req.Number), 10)
	b = append(append(b, `","object":"`...), object...)
	b = strconv.AppendInt(append(b, `","created":`...), time.Now().Unix(), 10)
	return appendText(append(b, `,"model":`...), e.req.Model)
}

func (e *encoder) appendUsage(b []byte) []byte {
	u := e.a.Usage
	if u == nil {
		u = e.estimate()
	}
	b = strconv.AppendInt(append(b, `{"prompt_tokens":`...), int64(u.Input), 10)
	b = strconv.AppendInt(append(b, `,"completion_tokens":`...), int64(u.Output), 10)
	b = strconv.AppendInt(append(b, `,"total_tokens":`...), int64(u.Input+u.Output), 10)
	b = strconv.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), int64(u.Cached), 10)
	b = strconv.AppendInt(append(b, `},"completion_tokens_details":{"reasoning_tokens":`...), int64(u.Reasoning), 10)
	return append(b, "}}"...)
}

// estimate counts four bytes as a token, and the part shared with the session's previous request as cached.
func (e *encoder) estimate() *Usage {
	out := len(e.a.Say) + len(e.a.Reasoning)
	for _, c := range e.a.Calls {
		out += len(c.Name) + len(c.Arguments)
	}
	return &Usage{Input: e.req.Bytes/4 + e.req.fileTokens(), Cached: e.req.Prefix / 4, Output: (out + 3) / 4, Reasoning: len(e.a.Reasoning) / 4}
}

func (e *encoder) finish() string {
	if e.a.Finish == "" && len(e.a.Calls) > 0 {
		return "tool_calls"
	}
	return cmp.Or(e.a.Finish, "stop")
}

// callID returns the id of the i-th call. Ids are unique within a model.
func (e *encoder) callID(i int) string {
	if id := e.a.Calls[i].ID; id != "" {
		return id
	}
	return "call_" + strconv.Itoa(e.req.Number) + "_" + strconv.Itoa(i)
}

const hexDigits = "0123456789abcdef"

// appendText adds s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}
