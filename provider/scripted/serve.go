package scripted

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion/guard"
)

const maxBody = 256 << 20 // more than any conversation; without a limit a faulty client could use all memory

// ServeHTTP serves chat completions, responses, messages and the model list, at any path that ends like OpenAI's or Anthropic's.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	api := apiOf(r.URL.Path)
	if !m.enter() {
		writeError(w, api, Error{Status: http.StatusServiceUnavailable, Message: "the scripted model is closed"})
		return
	}
	defer m.leave()
	post, list := api != apiNone, strings.HasSuffix(r.URL.Path, "/models")
	switch {
	case m.cfg.Key != "" && r.Header.Get("Authorization") != "Bearer "+m.cfg.Key && r.Header.Get("x-api-key") != m.cfg.Key:
		writeError(w, api, Error{Status: http.StatusUnauthorized, Message: "Incorrect API key provided."})
	case post && r.Method == http.MethodPost:
		m.complete(w, r, api)
	case list && r.Method == http.MethodGet:
		m.list(w)
	case post || list:
		writeError(w, api, Error{Status: http.StatusMethodNotAllowed, Message: "Not allowed to " + r.Method + " on " + r.URL.Path})
	default:
		writeError(w, api, Error{Status: http.StatusNotFound, Message: "Unknown request URL: " + r.Method + " " + r.URL.Path, Code: "unknown_url"})
	}
}

func (m *Model) list(w http.ResponseWriter) {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	names := m.cfg.Models
	if len(names) == 0 {
		names = []string{"scripted"}
	}
	data := []model{}
	for _, n := range names {
		data = append(data, model{n, "model", 1700000000, "scripted"})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

func (m *Model) complete(w http.ResponseWriter, r *http.Request, api api) {
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, api, Error{Status: http.StatusBadRequest, Message: "the body could not be read: " + err.Error()})
		return
	}
	body, err = m.asChat(api, r.Header, body)
	if err != nil {
		m.violation(&Request{Number: int(m.number.Add(1)), Session: r.Header.Get("x-session-id")}, err.Error())
		writeError(w, api, Error{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	req, err := m.open(r, body)
	req.api = api
	if err != nil {
		m.violation(&req, err.Error())
		writeError(w, api, Error{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	if !m.cfg.NoCheck {
		if fault := check(req, m.rewinds.Load(), m.recasts.Load()); fault != "" {
			m.violation(&req, fault)
			index := m.record(req)
			m.answered(index, "", http.StatusBadRequest)
			writeError(w, api, Error{Status: http.StatusBadRequest, Message: fault})
			return
		}
	}
	index := m.record(req)
	if len(m.cfg.Models) > 0 && !slices.Contains(m.cfg.Models, req.Model) {
		m.answered(index, "", http.StatusNotFound)
		writeError(w, api, Error{Status: http.StatusNotFound,
			Message: fmt.Sprintf("The model `%s` does not exist; there are: %s", req.Model, strings.Join(m.cfg.Models, ", "))})
		return
	}
	var a Answer
	err = guard.Call("answer from the script", func() (err error) {
		a, err = m.script(req)
		return err
	})
	if err != nil {
		m.violation(&req, err.Error())
		m.answered(index, a.Rule, http.StatusInternalServerError)
		writeError(w, api, Error{Status: http.StatusInternalServerError, Message: err.Error(), Code: "scenario"})
		return
	}
	status := http.StatusOK
	if a.Error != nil && !a.Error.Stream {
		status = cmp.Or(a.Error.Status, http.StatusInternalServerError)
	}
	m.answered(index, a.Rule, status)
	m.wait(r.Context(), m.cfg.Latency+a.Delay)
	m.write(w, r, &req, &a)
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if n := r.ContentLength; n > 0 && n <= maxBody {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
}

// open reads what every request needs and finds its session.
func (m *Model) open(r *http.Request, body []byte) (Request, error) {
	req := Request{Number: int(m.number.Add(1)), Session: r.Header.Get("x-session-id"),
		Parent: r.Header.Get("x-parent-session-id"), Bytes: len(body)}
	if !m.cfg.NoCheck {
		req.Header = r.Header
	}
	in, err := scan(body)
	if err != nil {
		return req, err
	}
	req.in = in
	req.Stream = string(in.fields["stream"]) == "true"
	_ = json.Unmarshal(in.fields["model"], &req.Model) // the check finds other types
	if req.Session == "" {
		req.Session = madeUpSession(in.messages)
	}
	m.mu.Lock()
	s := m.sessions[req.Session]
	if s == nil {
		s = &session{nth: len(m.sessions) + 1}
		m.sessions[req.Session] = s
	}
	m.mu.Unlock()
	in.sess = s
	s.begin(&req, in.messages)
	return req, nil
}

// madeUpSession names a session without a header by how it starts.
func madeUpSession(messages []byte) string {
	errEnough := errors.New("enough")
	var first, n = "", 0
	_ = eachElement(messages, 0, func(element []byte, _ int) error {
		first += string(element)
		if n++; n == 2 {
			return errEnough
		}
		return nil
	})
	return "without header: " + first
}

// record stores a request and returns its index.
func (m *Model) record(r Request) int {
	if m.cfg.NoCheck {
		r.in = nil
	} else {
		r.in.keep()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	return len(m.requests) - 1
}

func (m *Model) answered(index int, rule string, status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[index].Rule, m.requests[index].Status = rule, status
}

func writeError(w http.ResponseWriter, api api, e Error) {
	e.Status = cmp.Or(e.Status, http.StatusInternalServerError)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_, _ = w.Write(errorBody(api, e))
}

// errorBody writes an error in an API's form.
func errorBody(api api, e Error) []byte {
	if api == apiMessages {
		return appendMessagesError(nil, e)
	}
	return appendError(nil, e)
}

func appendError(b []byte, e Error) []byte {
	t, code := wireError(e.Status)
	b = appendText(append(b, `{"error":{"message":`...), cmp.Or(e.Message, http.StatusText(e.Status), "overloaded"))
	b = appendText(append(b, `,"type":`...), cmp.Or(e.Type, t))
	b = append(b, `,"param":null,"code":`...)
	if code = cmp.Or(e.Code, code); code == "" {
		b = append(b, "null"...)
	} else {
		b = appendText(b, code)
	}
	return append(b, "}}"...)
}

// wireError returns OpenAI's type and code for a status.
func wireError(status int) (errorType, code string) {
	switch {
	case status == http.StatusUnauthorized:
		return "invalid_request_error", "invalid_api_key"
	case status == http.StatusNotFound:
		return "invalid_request_error", "model_not_found"
	case status == http.StatusTooManyRequests:
		return "requests", "rate_limit_exceeded"
	case status >= 500:
		return "server_error", ""
	}
	return "invalid_request_error", ""
}

// write sends an answer.
func (m *Model) write(w http.ResponseWriter, r *http.Request, req *Request, a *Answer) {
	switch {
	case a.Raw != "":
		contentType := "application/json"
		if req.Stream {
			contentType = "text/event-stream"
		}
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, a.Raw)
		return
	case a.Error != nil && !a.Error.Stream:
		writeError(w, req.api, *a.Error)
		return
	}
	e, _ := m.encoders.Get().(*encoder)
	if e == nil {
		e = new(encoder)
	}
	defer m.encoders.Put(e)
	e.reset(req, a, cmp.Or(a.Chunk, m.cfg.Chunk))
	if !req.Stream {
		m.writeWhole(w, r, e)
		return
	}
	switch req.api {
	case apiMessages:
		e.streamMessages()
		m.think(e)
	case apiResponses:
		e.streamItems()
	default:
		e.stream()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	m.writeStream(w, r, e)
}

func (m *Model) writeWhole(w http.ResponseWriter, r *http.Request, e *encoder) {
	m.wait(r.Context(), e.a.Stall)
	e.whole()
	w.Header().Set("Content-Type", "application/json")
	if e.a.Cut == "" && e.a.Error == nil {
		_, _ = w.Write(e.b)
		return
	}
	_, _ = w.Write(e.b[:len(e.b)/2])
	panic(http.ErrAbortHandler)
}

func (m *Model) writeStream(w http.ResponseWriter, r *http.Request, e *encoder) {
	pace := max(0, cmp.Or(e.a.Pace, m.cfg.Pace))
	chunks := e.ends[:e.chunks()]
	first := chunks[min(1, len(chunks)-1)] // the very first chunk only has the role
	var stops []int                        // where the stream pauses
	switch {
	case pace > 0:
		stops = chunks
	case e.a.Stall > 0:
		stops = []int{first}
	}
	flusher, _ := w.(http.Flusher)
	sent := 0
	for _, end := range stops {
		if _, err := w.Write(e.b[sent:end]); err != nil {
			return
		}
		sent = end
		if flusher != nil {
			flusher.Flush()
		}
		pause := pace
		if end == first {
			pause += e.a.Stall
		}
		m.wait(r.Context(), pause)
	}
	rest := e.b
	if len(chunks) < len(e.ends) {
		rest = e.b[:chunks[len(chunks)-1]]
	}
	if _, err := w.Write(rest[sent:]); err != nil {
		return
	}
	if e.a.Error != nil {
		head := "data: "
		if e.req.api == apiMessages {
			head = "event: error\ndata: "
		}
		_, _ = w.Write([]byte(head + string(errorBody(e.req.api, *e.a.Error)) + "\n\n"))
	}
	if e.a.Cut == CutReset {
		if flusher != nil {
			flusher.Flush()
		}
		panic(http.ErrAbortHandler)
	}
}
