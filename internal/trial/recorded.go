package trial

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// recordings are answers written by us, like those of real endpoints.
//
//go:embed recordings
var recordings embed.FS

// wireOf returns the wire for recordings of a kind, and whether it is known; the kind is the recording's directory.
func wireOf(kind string) (w provider.Wire, known bool) {
	switch kind {
	case "chat":
		return nil, true
	case "responses":
		return provider.Responses{}, true
	case "anthropic":
		return anthropic.Wire{}, true
	}
	return nil, false
}

// kinds are those that wireOf knows. The configuration's option api uses the same names.
var kinds = [...]string{"chat", "responses", "anthropic"}

// recording is one answer of a provider, one event per line.
type recording struct {
	name  string
	kind  string
	lines []string
	heard heard // its content when played whole
}

// heard is the content of a received answer.
type heard struct {
	text  string
	calls []provider.Call // the complete ones
	err   error
}

func (h heard) same(o heard) bool { return h.text == o.text && slices.Equal(h.calls, o.calls) }

// readRecordings reads all recordings below a directory, and returns the names of those that cannot be played.
func readRecordings(from fs.FS) (all []*recording, skipped []string, err error) {
	err = fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".jsonl") {
			return err
		}
		kind := path.Base(path.Dir(name))
		if _, known := wireOf(kind); !known {
			skipped = append(skipped, name)
			return nil
		}
		b, err := fs.ReadFile(from, name)
		for i, lines := range answersIn(string(b)) {
			r := &recording{name: name, kind: kind, lines: lines}
			if i > 0 {
				r.name = fmt.Sprintf("%s, answer %d", name, i+1)
			}
			r.heard = ask(r.client(r.body(r.lines)))
			all = append(all, r)
		}
		return err
	})
	return all, skipped, err
}

// answersIn splits a recording into answers: the requests of one turn are often recorded into one file. The events of an answer have
// the same id, or start with one that says it was created, or end with one that says it is over.
func answersIn(text string) (all [][]string) {
	var id, last string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var e struct{ ID, Type string }
		_ = json.Unmarshal([]byte(line), &e) // without an id it is empty
		if len(all) == 0 || e.Type == "response.created" || last == "message_stop" || e.ID != "" && id != "" && e.ID != id {
			all = append(all, nil)
		}
		id, last = cmp.Or(e.ID, id), e.Type
		all[len(all)-1] = append(all[len(all)-1], line)
	}
	return all
}

// body builds a stream of events.
func (r *recording) body(lines []string) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString("data: " + line + "\n\n")
	}
	if r.kind == "chat" {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// model returns a reasoning model, so that its thinking is requested and sent back.
func (r *recording) model() centurion.ModelRef {
	return centurion.ModelRef{Provider: "recorded", ID: "gpt-5"}
}

func (r *recording) wire() provider.Wire {
	w, _ := wireOf(r.kind) // others are not read
	return w
}

// client returns the real client, with body as its every answer.
func (r *recording) client(body string) *provider.Client {
	return provider.New(provider.Endpoint{Model: r.model(), BaseURL: "http://recorded.invalid/v1", Wire: r.wire(), MaxRetries: -1,
		HTTP: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
				Body: io.NopCloser(strings.NewReader(body))}, nil
		})}})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// ask reads one answer.
func ask(c *provider.Client) (h heard) {
	var open []provider.Call
	var text strings.Builder
	for d, err := range c.Stream(context.Background(), provider.Request{}) {
		switch {
		case err != nil:
			h.err = err
		case d.Type == provider.Text:
			text.WriteString(d.Text)
		case d.Type == provider.CallStart:
			open = append(open, provider.Call{ID: d.CallID, Name: d.Name})
		case d.Type == provider.CallInput:
			open[d.Index].Arguments += d.Text
		case d.Type == provider.CallEnd:
			h.calls = append(h.calls, open[d.Index])
		}
	}
	h.text = text.String()
	return h
}

// written returns a recording's own content, read in the simplest way and not by the client under test.
func (r *recording) written() (text string, calls []string) {
	if r.kind == "anthropic" {
		return r.writtenBlocks()
	}
	type fn struct{ Name, Arguments string }
	var order []string
	args := map[string]*fn{}
	call := func(key string) *fn {
		if args[key] == nil {
			args[key] = &fn{}
			order = append(order, key)
		}
		return args[key]
	}
	for _, line := range r.lines {
		var e struct {
			Choices []struct {
				Delta struct {
					Content   any
					ToolCalls []struct {
						Index    int
						Function fn
					} `json:"tool_calls"`
				}
			}
			Type   string
			Output int `json:"output_index"`
			Item   struct {
				Type, Name, Arguments, Input string
				Content                      []struct{ Text string }
			}
		}
		_ = json.Unmarshal([]byte(line), &e) // fields of other types belong to events that are ignored
		for _, c := range e.Choices {
			text += said(c.Delta.Content)
			for _, t := range c.Delta.ToolCalls {
				f := call(fmt.Sprint(t.Index))
				f.Name = cmp.Or(f.Name, t.Function.Name)
				f.Arguments += t.Function.Arguments
			}
		}
		if e.Type != "response.output_item.done" {
			continue
		}
		for _, c := range e.Item.Content {
			text += c.Text
		}
		if f := (fn{e.Item.Name, e.Item.Arguments}); e.Item.Type == "function_call" {
			*call(fmt.Sprint(e.Output)) = f
		} else if e.Item.Type == "custom_tool_call" {
			b, _ := json.Marshal(map[string]string{"input": e.Item.Input})
			*call(fmt.Sprint(e.Output)) = fn{f.Name, string(b)}
		}
	}
	for _, key := range order {
		calls = append(calls, args[key].Name+" "+args[key].Arguments)
	}
	return text, calls
}

// said returns the text of a chunk's content: a string, or parts.
func said(content any) (s string) {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		for _, p := range c {
			part, _ := p.(map[string]any)
			text, _ := part["text"].(string)
			s += text
		}
	}
	return s
}

// player plays answers to sessions.
type player struct {
	t        *T
	store    *store.Store
	model    *scripted.Model
	http     *http.Client
	sessions int
	body     string // a session's first answer
}

const sessionsPerModel = 500 // a model remembers its requests

func newPlayer(t *T, dir string) *player {
	s, err := store.Open(t.ctx, dir)
	t.Must(err)
	return &player{t: t, store: s}
}

func (p *player) fresh() {
	p.closeModel()
	p.model = scripted.New(scripted.Config{Chunk: -1, Func: func(q scripted.Request) scripted.Answer {
		if q.Turn == 1 {
			return scripted.Answer{Raw: p.body}
		}
		return scripted.Answer{Say: "Done."}
	}})
	p.http = p.model.Client()
}

func (p *player) closeModel() {
	if p.model == nil {
		return
	}
	p.http.CloseIdleConnections()
	p.t.Must(p.model.Close())
	for _, v := range p.model.Violations() {
		p.t.Failf("I3 a request after a broken answer is one that a strict provider refuses: %s", v.Message)
	}
	p.model = nil
}

func (p *player) close() {
	p.closeModel()
	p.t.Must(p.store.Close())
}

// played is the result of an answer for a session.
type played struct {
	first error    // of its first turn
	text  string   // of the stored answer
	ran   []string // the executed calls, with their input, in order
	asks  int      // requests of the session
}

// play gives a session body as its first answer, and a good one to every later request. A failed turn is retried once, as a recovery
// does.
func (p *player) play(r *recording, body string) (out played) {
	if p.sessions%sessionsPerModel == 0 {
		p.fresh()
	}
	p.sessions++
	p.body = body
	ref := r.model()
	rec := session.New(centurion.Session{Agent: "worker", Model: &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider},
		Metadata: centurion.SessionMeta{Mission: "msn_1", System: "You are the Worker."}}, centurion.Now())
	p.t.Must(p.store.Update(p.t.ctx, func(tx *store.Tx) error { return session.Create(tx, &rec, centurion.OriginPerson, "Go.") }))
	cfg := session.Config{Store: p.store, Ref: ref, Host: alone{}, Call: tools.Call{Mission: "msn_1"}, Model: provider.New(provider.Endpoint{
		Model: ref, BaseURL: scripted.URL, HTTP: p.http, Wire: r.wire(), MaxRetries: -1})}
	names := map[string]bool{}
	for _, c := range r.heard.calls {
		if !names[c.Name] {
			names[c.Name] = true
			cfg.Tools = append(cfg.Tools, witness{c.Name, func(in string) { out.ran = append(out.ran, compactCall(c.Name+" "+in)) }})
		}
	}
	s, err := session.Open(p.t.ctx, cfg, rec.ID)
	p.t.Must(err)
	_, out.first = s.Turn(p.t.ctx)
	if out.first != nil {
		if _, err := s.Turn(p.t.ctx); err != nil {
			p.t.Failf("%s: after %v nothing goes on any more: %v", r.name, out.first, err)
		}
	}
	msgs, err := p.store.Messages(p.t.ctx, rec.ID)
	p.t.Must(err)
	for _, m := range msgs {
		if m.Role == centurion.RoleAssistant {
			out.asks++
			out.text = cmp.Or(out.text, m.Text())
		}
	}
	return out
}

// alone is an empty environment for a session.
type alone struct{}

func (alone) Before(context.Context) ([]centurion.Message, error)   { return nil, nil }
func (alone) Spent(*store.Tx, centurion.Usage) error                { return nil }
func (alone) Status() string                                        { return "" }
func (alone) Waiting(context.Context, *provider.Wait) error         { return nil }
func (alone) Consume(_ *store.Tx, _ string, _ []string) (err error) { return nil }

// witness is a tool that reports its calls.
type witness struct {
	name string
	ran  func(input string)
}

func (w witness) Name() string                        { return w.name }
func (w witness) Description() string                 { return "Does " + w.name + "." }
func (w witness) Schema() *jsonschema.Schema          { return &jsonschema.Schema{Type: "object"} }
func (w witness) Effect(json.RawMessage) tools.Effect { return tools.Effect{} }
func (w witness) Run(_ context.Context, _ *tools.Call, in json.RawMessage) (tools.Result, error) {
	w.ran(string(in))
	return tools.Result{Output: "ok"}, nil
}

// compactCall writes a call's input in the form it is executed in.
func compactCall(call string) string {
	name, args, _ := strings.Cut(call, " ")
	var b bytes.Buffer
	if json.Compact(&b, []byte(cmp.Or(args, "{}"))) != nil {
		return call
	}
	return name + " " + b.String()
}

// isCut reports whether an error says that an answer is incomplete.
func isCut(err error) bool {
	e, ok := errors.AsType[*centurion.Error](err)
	return ok && e.Kind != centurion.KindInternal && e.Kind != "" && e.Msg != ""
}
