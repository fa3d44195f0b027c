package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"centurion"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/redact"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	goal   = "Build the parser."
	system = "You are the Worker. Do what you are told."
)

var ref = centurion.ModelRef{Provider: "test", ID: "scripted"}

// host is what surrounds a session in these tests. Its zero value lets everything happen.
type host struct {
	mu       sync.Mutex
	before   func() ([]centurion.Message, error)
	status   func() string
	spent    []centurion.Usage
	waits    []*provider.Wait
	consumed map[string][]string // tasks by message
}

func (h *host) Before(context.Context) ([]centurion.Message, error) {
	if h.before == nil {
		return nil, nil
	}
	return h.before()
}

func (h *host) Spent(_ *store.Tx, u centurion.Usage) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spent = append(h.spent, u)
	return nil
}

func (h *host) Status() string {
	if h.status == nil {
		return ""
	}
	return h.status()
}

func (h *host) Waiting(_ context.Context, w *provider.Wait) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waits = append(h.waits, w)
	return nil
}

func (h *host) Consume(_ *store.Tx, message string, tasks []string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.consumed == nil {
		h.consumed = map[string][]string{}
	}
	h.consumed[message] = append(h.consumed[message], tasks...)
	return nil
}

// rig is a session, what it speaks to and what it is kept in.
type rig struct {
	t     testing.TB
	path  string // of the store
	store *store.Store
	model *scripted.Model
	host  *host
	cfg   session.Config
	id    string
	*session.Session
}

// newRig makes a session with one message of a person in it. At the end of the test no request of it may have been one
// that a strict provider refuses.
func newRig(t testing.TB, script func(scripted.Request) scripted.Answer, ts ...tools.Tool) *rig {
	t.Helper()
	return newRigOf(t, scripted.Config{Func: script}, ts...)
}

func newRigOf(t testing.TB, c scripted.Config, ts ...tools.Tool) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "state.db"), model: scripted.New(c), host: &host{}}
	r.store = openStore(t, r.path)
	t.Cleanup(func() {
		if err := r.model.Close(); err != nil {
			t.Error(err)
		}
		for _, v := range r.model.Violations() {
			t.Errorf("request %d is faulty: %s", v.Number, v.Message)
		}
	})
	r.cfg = session.Config{Store: r.store, Model: client(r.model.Client(), scripted.URL), Ref: ref, Tools: ts, Host: r.host,
		Price: &centurion.Price{Input: 1, Output: 2, CacheRead: 0.5}, Root: "/project", Call: tools.Call{Mission: "msn_1", Task: "tsk_1", Keys: &redact.Keys{}}}
	r.id = r.create()
	r.reopen()
	return r
}

func client(c *http.Client, url string) *provider.Client {
	return provider.New(provider.Endpoint{Model: ref, BaseURL: url, HTTP: c})
}

func openStore(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s.Redact(&redact.Keys{})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// create records a new session and returns its id.
func (r *rig) create() string {
	r.t.Helper()
	rec := session.New(centurion.Session{Agent: "worker", Model: &centurion.SessionModel{ID: ref.ID, Provider: ref.Provider},
		Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1", Address: "0/1", System: system}}, centurion.Now())
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) error {
		return session.Create(tx, &rec, centurion.OriginPerson, goal)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return rec.ID
}

// reopen loads the session from the store, as after a restart.
func (r *rig) reopen() {
	r.t.Helper()
	s, err := session.Open(r.t.Context(), r.cfg, r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	r.Session = s
}

// crash leaves everything as it is on disk now and opens a copy of it, as a new process does after the old one was
// killed. The session of the old process is not touched.
func (r *rig) crash() *rig {
	r.t.Helper()
	after := *r
	after.path = filepath.Join(r.t.TempDir(), "state.db")
	for _, end := range []string{"", "-wal"} {
		b, err := os.ReadFile(r.path + end)
		if err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(after.path+end, b, 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	after.store = openStore(r.t, after.path)
	after.cfg.Store = after.store
	after.reopen()
	return &after
}

// turn runs a turn that has to end well.
func (r *rig) turn() session.Outcome {
	r.t.Helper()
	out, err := r.Turn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// fails runs a turn that has to end with an error of this kind.
func (r *rig) fails(kind centurion.Kind) session.Outcome {
	r.t.Helper()
	out, err := r.Turn(r.t.Context())
	if centurion.KindOf(err) != kind {
		r.t.Fatalf("the turn ended with %q (%v), want %q", centurion.KindOf(err), err, kind)
	}
	return out
}

func (r *rig) say(text string) {
	r.t.Helper()
	if err := r.Say(r.t.Context(), centurion.OriginPerson, text); err != nil {
		r.t.Fatal(err)
	}
}

// messages returns what is stored.
func (r *rig) messages() []centurion.Message {
	r.t.Helper()
	m, err := r.store.Messages(context.WithoutCancel(r.t.Context()), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

// last returns the newest stored message.
func (r *rig) last() centurion.Message { m := r.messages(); return m[len(m)-1] }

// record returns the session's row.
func (r *rig) record() centurion.Session {
	r.t.Helper()
	rec, err := r.store.Session(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

// events returns the session's facts of these types, or all, in order.
func (r *rig) events(types ...centurion.EventType) []centurion.Event {
	r.t.Helper()
	all, err := r.store.Events(r.t.Context(), store.EventQuery{})
	if err != nil {
		r.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e centurion.Event) bool {
		return e.Session != r.id || len(types) > 0 && !slices.Contains(types, e.Type)
	})
}

// calls returns the tool parts of a message.
func calls(m centurion.Message) []centurion.Part {
	return slices.DeleteFunc(slices.Clone(m.Parts), func(p centurion.Part) bool { return p.Type != centurion.PartTool })
}

// outcomes returns "tool: text" for every call of a message, with "!" before the text of an error.
func outcomes(m centurion.Message) []string {
	var out []string
	for _, p := range calls(m) {
		text, bad := p.State.Result()
		if !p.State.Ended() {
			text = "(" + string(p.State.Status) + ")"
		} else if bad {
			text = "!" + text
		}
		out = append(out, p.Tool+": "+text)
	}
	return out
}

// inOrder answers the n-th request of a session with the n-th answer, and everything after that with "done".
func inOrder(answers ...scripted.Answer) func(scripted.Request) scripted.Answer {
	return func(r scripted.Request) scripted.Answer {
		if r.Turn <= len(answers) {
			return answers[r.Turn-1]
		}
		return scripted.Answer{Say: "done"}
	}
}

// call makes an answer that calls tools, each written as `name {"argument": …}`.
func call(list ...string) scripted.Answer {
	var a scripted.Answer
	for _, s := range list {
		name, args, _ := strings.Cut(s, " ")
		a.Calls = append(a.Calls, scripted.Call{Name: name, Arguments: args})
	}
	return a
}

// tool is a small tool. Without a run it returns its own name.
type tool struct {
	name   string
	effect func(json.RawMessage) tools.Effect
	run    func(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error)
}

// anything is a schema that accepts every object.
var anything = &jsonschema.Schema{Type: "object"}

func (t tool) Name() string               { return t.name }
func (t tool) Description() string        { return "Does " + t.name + "." }
func (t tool) Schema() *jsonschema.Schema { return anything }

func (t tool) Effect(in json.RawMessage) tools.Effect {
	if t.effect == nil {
		return tools.Effect{}
	}
	return t.effect(in)
}

func (t tool) Run(ctx context.Context, c *tools.Call, in json.RawMessage) (tools.Result, error) {
	if t.run == nil {
		return tools.Result{Output: t.name}, nil
	}
	return t.run(ctx, c, in)
}

func readOnly(json.RawMessage) tools.Effect { return tools.Effect{ReadOnly: true} }

// writes is the effect of a tool that writes the file at its argument "path".
func writes(in json.RawMessage) tools.Effect {
	return tools.Effect{Writes: []string{argument(in, "path")}}
}

func argument(in json.RawMessage, name string) string {
	var m map[string]any
	_ = json.Unmarshal(in, &m)
	if m[name] == nil {
		return ""
	}
	return fmt.Sprint(m[name])
}

// valid says what a strict provider would refuse about a history, or "".
func valid(msgs []provider.Message) string {
	var open []string // ids of calls without a result
	for i, m := range msgs {
		if len(open) > 0 && m.Role != provider.Tool {
			return fmt.Sprintf("message %d: %s has no result", i, open[0])
		}
		switch m.Role {
		case provider.User:
			if m.Text == "" || i > 0 && msgs[i-1].Role == provider.User && !m.Fleeting {
				return fmt.Sprintf("message %d: a user message is empty or follows another", i)
			}
		case provider.Assistant:
			if i == 0 || msgs[i-1].Role == provider.Assistant {
				return fmt.Sprintf("message %d: an answer to nothing", i)
			}
			if m.Text == "" && len(m.Calls) == 0 {
				return fmt.Sprintf("message %d: an empty answer", i)
			}
			for _, c := range m.Calls {
				var object map[string]any
				if c.ID == "" || c.Name == "" || slices.Contains(open, c.ID) || json.Unmarshal([]byte(c.Arguments), &object) != nil || object == nil {
					return fmt.Sprintf("message %d: a faulty call: %+v", i, c)
				}
				open = append(open, c.ID)
			}
		case provider.Tool:
			if len(open) == 0 || open[0] != m.CallID {
				return fmt.Sprintf("message %d: a result for %s that is not due", i, m.CallID)
			}
			open = open[1:]
		}
	}
	if len(msgs) == 0 || len(open) > 0 || msgs[len(msgs)-1].Role == provider.Assistant {
		return "the end is no question"
	}
	return ""
}
