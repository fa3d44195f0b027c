package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/permission"
	"centurion/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate answers asks by OpenCode rules and records them.
type gate struct {
	mu    sync.Mutex
	rules []permission.Rule
	asked []Access
	then  func(Access) // called at each ask; may be nil
}

func (g *gate) Ask(_ context.Context, _ *Call, a Access) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, a)
	if g.then != nil {
		g.then(a)
	}
	levels := []permission.Level{{Name: "default", Rules: permission.Defaults(true)}, {Name: "test", Rules: g.rules}}
	if d := permission.Decide(levels, a.Permission, a.Patterns); d.Action != permission.Allow {
		return &centurion.Error{Kind: centurion.KindPermission, Msg: d.Reason}
	}
	return nil
}

func (g *gate) permissions() []string {
	var out []string
	for _, a := range g.asked {
		out = append(out, a.Permission+" "+strings.Join(a.Patterns, ","))
	}
	return out
}

// bench is a project directory and a session in it.
type bench struct {
	*Call
	t    testing.TB
	dir  string
	gate *gate
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	g := &gate{}
	return &bench{t: t, dir: dir, gate: g, Call: &Call{ID: "call_1", Session: "ses_1", Workspace: w, Seen: &Seen{}, Writers: &Writers{},
		Gate: g, Progress: func(string) {}}}
}

// other is a second session in the same project.
func (b *bench) other() *bench {
	call := *b.Call
	call.Session, call.Seen = "ses_2", &Seen{}
	return &bench{t: b.t, dir: b.dir, gate: b.gate, Call: &call}
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bench) age(name string, d time.Duration) {
	b.t.Helper()
	at := time.Now().Add(-d)
	if err := os.Chtimes(filepath.Join(b.dir, name), at, at); err != nil {
		b.t.Fatal(err)
	}
}

// call runs a tool as a session does: repaired and checked first.
func (b *bench) call(name string, input any) (Result, error) {
	b.t.Helper()
	tools, err := Named(name)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, ok := input.(string)
	if !ok {
		enc, err := json.Marshal(input)
		if err != nil {
			b.t.Fatal(err)
		}
		raw = string(enc)
	}
	in, err := Normalize(tools[0], json.RawMessage(raw))
	if err != nil {
		return Result{}, err
	}
	return tools[0].Run(b.t.Context(), b.Call, in)
}

type args = map[string]any

func (b *bench) must(name string, input any) Result {
	b.t.Helper()
	r, err := b.call(name, input)
	if err != nil {
		b.t.Fatalf("%s %v: %v (%s)", name, input, err, centurion.HintOf(err))
	}
	return r
}

// refused runs a tool that has to fail with an error of the kind that says all the words.
func (b *bench) refused(name string, input any, kind centurion.Kind, words ...string) {
	b.t.Helper()
	r, err := b.call(name, input)
	if err == nil {
		b.t.Fatalf("%s %v went through: %s", name, input, r.Output)
	}
	if k := centurion.KindOf(err); k != kind {
		b.t.Errorf("%s %v: kind %s, want %s: %v", name, input, k, kind, err)
	}
	says(b.t, err.Error()+" "+centurion.HintOf(err), words...)
}

func says(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("it does not say %q:\n%s", w, text)
		}
	}
}

func silent(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("it says %q:\n%s", w, text)
		}
	}
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
