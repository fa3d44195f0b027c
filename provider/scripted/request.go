package scripted

import (
	"centurion"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Request is one received request. Its methods read the messages on first use; with Config.NoCheck they only work inside a Func, and
// [Model.Requests] returns only figures.
type Request struct {
	Number  int    // of the request, counted from 1
	Session string // x-session-id; without the header derived from the system prompt and the first user message
	Parent  string // x-parent-session-id
	Nth     int    // number of the session, counted from 1
	Turn    int    // number of the request in its session, counted from 1
	Model   string
	Stream  bool
	Bytes   int         // of the body
	Prefix  int         // leading bytes of the message list equal to those of the session's previous request
	Before  int         // bytes of the session's previous message list
	Rule    string      // of the scenario that answered
	Status  int         // of the answer; 0 without one
	Header  http.Header // nil with Config.NoCheck

	in  *input
	api api
}

// session is the state of a conversation.
type session struct {
	nth int

	mu    sync.Mutex
	turns int
	raw   []byte // the message list of the newest request

	parsed []byte // the message list of msgs and ends
	msgs   []Message
	ends   []int // offsets in parsed where the messages end

	known   bool // system and tools are those of the first request, or of the first one of another agent
	system  string
	tools   []byte
	names   []string
	fault   string // of tools
	summary string // of the newest compaction
	lines   []line // its histories, the newest last; more than one only with Config.Rewinds
}

// input is the body of a request.
type input struct {
	sess     *session
	fields   map[string]json.RawMessage // all but messages
	messages []byte

	once  sync.Once
	msgs  []Message
	fault string // the first message that is faulty on its own
}

// Messages returns the messages, starting with the system prompt. The caller must not change them.
func (r Request) Messages() []Message {
	if r.in == nil {
		return nil
	}
	r.in.read()
	return r.in.msgs
}

// System returns the system prompt.
func (r Request) System() string {
	if m := r.Messages(); len(m) > 0 && m[0].Role == "system" {
		return m[0].Text
	}
	return ""
}

var agentName = centurion.Pattern(`(?i)^you are (?:the |an? )?([\w-]+)`)

// Agent returns the lower-case name in a system prompt that starts with "You are the Name", or "".
func (r Request) Agent() string { return agentIn(r.System()) }

func agentIn(system string) string {
	if g := agentName().FindStringSubmatch(system); g != nil {
		return strings.ToLower(g[1])
	}
	return ""
}

// First returns the text of the first user message.
func (r Request) First() string {
	for _, m := range r.Messages() {
		if m.Role == "user" {
			return m.Text
		}
	}
	return ""
}

// Last returns the text of the newest message of any role. Consecutive user messages count as one.
func (r Request) Last() string {
	var texts []string
	for _, m := range slices.Backward(r.Messages()) {
		if len(texts) > 0 && m.Role != "user" {
			break
		}
		if texts = append(texts, m.Text); m.Role != "user" {
			break
		}
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n\n")
}

// Step returns 1 plus the number of answers in the history.
func (r Request) Step() int {
	n := 1
	for _, m := range r.Messages() {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// Results returns the tool results after the newest answer, in order.
func (r Request) Results() []string {
	var out []string
	for _, m := range slices.Backward(r.Messages()) {
		if m.Role == "assistant" {
			break
		}
		if m.Role == "tool" {
			out = append(out, m.Text)
		}
	}
	slices.Reverse(out)
	return out
}

// Tools returns the names of the offered tools, in order.
func (r Request) Tools() []string {
	if r.in == nil {
		return nil
	}
	s := r.in.sess
	s.mu.Lock()
	names, known := s.names, s.known && string(s.tools) == string(r.in.fields["tools"])
	s.mu.Unlock()
	if !known {
		names, _ = readTools(r.in.fields["tools"])
	}
	return slices.Clone(names)
}

// Field returns an unparsed field of the body, or nil. Messages are excluded.
func (r Request) Field(name string) json.RawMessage {
	if r.in == nil {
		return nil
	}
	return r.in.fields[name]
}

// Find searches the messages, newest first, and returns the first group of the match, or the whole match.
func (r Request) Find(re *regexp.Regexp) (string, bool) {
	for _, m := range slices.Backward(r.Messages()) {
		if g := re.FindStringSubmatch(m.Text); g != nil {
			return g[min(1, len(g)-1)], true
		}
		for _, c := range m.Calls {
			if g := re.FindStringSubmatch(c.Arguments); g != nil {
				return g[min(1, len(g)-1)], true
			}
		}
	}
	return "", false
}

// scan finds the fields of a body without decoding them.
func scan(body []byte) (*input, error) {
	in := &input{fields: map[string]json.RawMessage{}}
	err := eachField(body, func(key string, value []byte) {
		if key == "messages" {
			in.messages = value
			return
		}
		in.fields[key] = value
	})
	return in, err
}

// keep copies what is needed after the answer, so that a request does not hold its whole body.
func (in *input) keep() {
	in.sess.mu.Lock()
	defer in.sess.mu.Unlock()
	for k, v := range in.fields {
		if k == "tools" && string(v) == string(in.sess.tools) {
			in.fields[k] = in.sess.tools
			continue
		}
		in.fields[k] = slices.Clone(v)
	}
}

// read decodes the messages, reusing those shared with the session's previous request.
func (in *input) read() {
	in.once.Do(func() {
		s := in.sess
		s.mu.Lock()
		defer s.mu.Unlock()
		shared := commonPrefix(s.parsed, in.messages)
		n, _ := slices.BinarySearch(s.ends, shared+1)
		from := 0
		if n > 0 {
			from = s.ends[n-1]
		}
		msgs, ends := s.msgs[:n:n], s.ends[:n:n]
		err := eachElement(in.messages, from, func(element []byte, end int) error {
			msgs, ends = append(msgs, readMessage(element)), append(ends, end)
			return nil
		})
		in.msgs = msgs[:len(msgs):len(msgs)]
		messages := in.messages
		in.messages = nil // it would hold the whole body as long as the request exists
		if err != nil {
			in.fault = err.Error()
			return
		}
		s.parsed, s.msgs, s.ends = messages, msgs, ends
	})
}

// begin counts a request of the session and compares it with the previous one.
func (s *session) begin(r *Request, messages []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	r.Nth, r.Turn = s.nth, s.turns
	r.Prefix, r.Before = commonPrefix(s.raw, messages), len(s.raw)
	s.raw = messages
}
