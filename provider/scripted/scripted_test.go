package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openai "github.com/sashabaranov/go-openai"
	"go.uber.org/goleak"

	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scenario makes a model from YAML and closes it at the test's end.
func scenario(t *testing.T, yaml string) *Model {
	t.Helper()
	s, err := Parse("test.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, New(Config{Scenario: s}))
}

func open(t testing.TB, m *Model) *Model {
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// body makes a request body. Messages are "role:text", "call:id,name,arguments" (an answer with one call) or "tool:id=text".
func body(stream bool, messages ...string) string {
	var out []any
	for _, m := range messages {
		role, text, _ := strings.Cut(m, ":")
		switch role {
		case "call":
			f := strings.SplitN(text, ",", 3)
			out = append(out, map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": f[0],
				"type": "function", "function": map[string]any{"name": f[1], "arguments": f[2]}}}})
		case "tool":
			id, result, _ := strings.Cut(text, "=")
			out = append(out, map[string]any{"role": "tool", "tool_call_id": id, "content": result})
		default:
			out = append(out, map[string]any{"role": role, "content": text})
		}
	}
	req := map[string]any{"model": "scripted", "messages": out}
	if stream {
		req["stream"], req["stream_options"] = true, map[string]any{"include_usage": true}
	}
	b, _ := json.Marshal(req)
	return string(b)
}

// post sends a body and returns the status, the headers and what could be read of the answer.
func post(t testing.TB, m *Model, session, body string) (int, http.Header, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if session != "" {
		req.Header.Set("x-session-id", session)
	}
	c := m.Client()
	defer c.CloseIdleConnections()
	res, err := c.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, string(b), err
}

func client(m *Model, session string) *openai.Client {
	cfg := openai.DefaultConfig("sk-test")
	cfg.BaseURL = URL
	cfg.HTTPClient = withSession{m.Client(), session}
	return openai.NewClientWithConfig(cfg)
}

type withSession struct {
	c       *http.Client
	session string
}

func (w withSession) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("x-session-id", w.session)
	return w.c.Do(r)
}

func TestUnmatchedSaysWhatWasTried(t *testing.T) {
	m := scenario(t, `
rules:
  - name: once
    when: {agent: worker, times: 1}
    say: first
  - when: {last: [abc, def]}
    say: second
`)
	ask := body(false, "system:You are the Worker", "user:abc")
	if status, _, _, _ := post(t, m, "a", ask); status != 200 {
		t.Fatalf("first request: %d", status)
	}
	status, _, got, _ := post(t, m, "a", ask)
	if status != 500 {
		t.Errorf("got %d", status)
	}
	for _, want := range []string{"test.yaml", "line 3, rule once: has answered 1 times already", `rule 2: last [\"abc\" \"def\"] does not hold`, "turn 2"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\ndoes not contain %s", got, want)
		}
	}
	if v := m.Violations(); len(v) != 1 || v[0].Number != 2 {
		t.Errorf("violations: %+v", v)
	}
	if u := m.Unused(); !slices.Equal(u, []string{"2"}) {
		t.Errorf("unused: %v", u)
	}
}

func TestPanicInFuncIsTold(t *testing.T) {
	m := open(t, Func(func(Request) Answer { panic("boom") }))
	if status, _, got, _ := post(t, m, "a", body(false, "system:s", "user:u")); status != 500 || !strings.Contains(got, "boom") {
		t.Errorf("got %d %s", status, got)
	}
}

// The clock of a bubble shows every delay, and the client works there without a goroutine outside.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Parse("t", []byte(`
latency: 100ms
pace: 10ms
chunk: 2
rules:
  - {when: {last: plain}, say: aabbcc}
  - {when: {last: slow}, say: aabbcc, delay: 1s, stall: 60s}
  - {when: {last: quick}, say: aabbcc, stall: 5s, chunk: -1}
`))
		if err != nil {
			t.Fatal(err)
		}
		m := New(Config{Scenario: s})
		defer m.Close()
		for last, want := range map[string]time.Duration{
			"plain": 140 * time.Millisecond, // four chunks: the role and three pieces
			"slow":  61*time.Second + 140*time.Millisecond,
			"quick": 5*time.Second + 120*time.Millisecond,
		} {
			start := time.Now()
			_, _, got, err := post(t, m, last, body(true, "system:s", "user:"+last))
			if err != nil || !strings.Contains(got, "[DONE]") {
				t.Errorf("%s: %v %s", last, err, got)
			}
			if d := time.Since(start); d != want {
				t.Errorf("%s took %v, want %v", last, d, want)
			}
		}
	})
}

func TestStallIsHeardOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Func(func(Request) Answer { return Answer{Say: "a", Stall: time.Hour} })
		defer m.Close()
		c := m.Client()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, URL+"/chat/completions", strings.NewReader(body(true, "system:s", "user:u")))
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if !strings.Contains(string(got), `"content":"a"`) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestCloseEndsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := Func(func(Request) Answer { return Answer{Delay: time.Hour} })
		var g guard.Group
		g.Go("ask", func() error {
			if _, _, _, err := post(t, m, "a", body(true, "system:s", "user:u")); err == nil {
				return errors.New("an answer of a closed model")
			}
			return nil
		})
		synctest.Wait()
		start := time.Now()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("closing took %v", d)
		}
		if _, err := m.DialContext(t.Context(), "tcp", "x:1"); err == nil {
			t.Error("a closed model accepts a connection")
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestPeakAndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := Parse("t", []byte("latency: 1s\nrules:\n  - {when: {times: 3}, say: few}\n  - {default: true, say: many}\n"))
		m := New(Config{Scenario: s})
		defer m.Close()
		var g guard.Group
		answers := make(chan string, 50)
		for i := range 50 {
			g.Go("ask", func() error {
				_, _, got, err := post(t, m, fmt.Sprint("ses", i), body(false, "system:s", "user:u"))
				answers <- got
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		few := 0
		for range 50 {
			if strings.Contains(<-answers, "few") {
				few++
			}
		}
		if few != 3 {
			t.Errorf("a rule for three requests answered %d", few)
		}
		if m.Peak() != 50 {
			t.Errorf("peak %d", m.Peak())
		}
		seen := map[int]bool{}
		for _, r := range m.Requests() {
			seen[r.Nth] = true
		}
		if len(seen) != 50 || !seen[1] || !seen[50] {
			t.Errorf("sessions are numbered %v", seen)
		}
	})
}

func TestRequestsRemember(t *testing.T) {
	m := open(t, New(Config{Rewinds: true, Func: func(r Request) Answer { return Answer{Say: "hi"} }}))
	one := body(false, "system:You are the Planner of x", "user:Ä goal")
	two := body(false, "system:You are the Planner of x", "user:Ä goal", "assistant:hi", "user:more")
	three := body(false, "system:You are the Planner of x", "user:Ä goal", "assistant:hi", "user:changed", "assistant:hi", "user:x")
	for _, b := range []string{one, two, three} {
		if status, _, got, err := post(t, m, "ses_a", b); status != 200 {
			t.Fatal(got, err)
		}
	}
	rs := m.Requests()
	if len(rs) != 3 {
		t.Fatalf("%d requests", len(rs))
	}
	list := func(s string) int { return strings.Index(s, `,"model"`) - len(`{"messages":`) }
	if rs[0].Prefix != 0 || rs[1].Prefix != list(one)-1 || rs[1].Before != list(one) {
		t.Errorf("prefixes %d, %d of %d; want 0, %d of %d", rs[0].Prefix, rs[1].Prefix, rs[1].Before, list(one)-1, list(one))
	}
	if want := strings.Index(two, "more") - len(`{"messages":`); rs[2].Prefix != want {
		t.Errorf("prefix of the third %d, want %d", rs[2].Prefix, want)
	}
	r := rs[2]
	if r.Turn != 3 || r.Step() != 3 || r.Agent() != "planner" || r.First() != "Ä goal" || r.Last() != "x" || r.Status != 200 ||
		string(r.Field("model")) != `"scripted"` || r.Bytes != len(three) || len(r.Messages()) != 6 || r.Messages()[3].Text != "changed" {
		t.Errorf("got %+v, messages %+v", r, r.Messages())
	}
}

func TestRequestWithoutHeader(t *testing.T) {
	m := open(t, Func(func(r Request) Answer { return Answer{Say: "hi"} }))
	for _, b := range []string{body(false, "system:s", "user:a"), body(false, "system:s", "user:b"), body(false, "system:s", "user:a", "assistant:hi", "user:c")} {
		_, _, _, _ = post(t, m, "", b)
	}
	rs := m.Requests()
	if rs[0].Nth != 1 || rs[1].Nth != 2 || rs[2].Nth != 1 || rs[2].Turn != 2 {
		t.Errorf("got sessions %d, %d, %d and turn %d", rs[0].Nth, rs[1].Nth, rs[2].Nth, rs[2].Turn)
	}
}

func TestUsageIsEstimated(t *testing.T) {
	m := open(t, Func(func(r Request) Answer { return Answer{Say: strings.Repeat("x", 40)} }))
	one := body(false, "system:"+strings.Repeat("s", 400), "user:a")
	two := body(false, "system:"+strings.Repeat("s", 400), "user:a", "assistant:b", "user:c")
	_, _, _, _ = post(t, m, "a", one)
	_, _, got, _ := post(t, m, "a", two)
	var v struct{ Usage openai.Usage }
	if err := json.Unmarshal([]byte(got), &v); err != nil {
		t.Fatal(err)
	}
	if u := v.Usage; u.PromptTokens != len(two)/4 || u.CompletionTokens != 10 || u.PromptTokensDetails.CachedTokens < 100 {
		t.Errorf("got %+v", u)
	}
}

func TestWithoutChecks(t *testing.T) {
	m := open(t, New(Config{NoCheck: true, Func: func(r Request) Answer { return Answer{Say: r.First() + "/" + r.Last()} }}))
	_, _, got, _ := post(t, m, "a", body(false, "user:first", "assistant:", "tool:nothing=orphan"))
	if !strings.Contains(got, "first/orphan") {
		t.Errorf("got %s", got)
	}
	if len(m.Violations()) != 0 || len(m.Requests()) != 1 || m.Requests()[0].Messages() != nil {
		t.Errorf("got %v, %v", m.Violations(), m.Requests())
	}
}

// discard is the cheapest response writer.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkRequest is the model's own cost a request, with a history of 20 rounds and 50 sessions.
func BenchmarkRequest(b *testing.B) {
	history := []string{"system:" + strings.Repeat("You are the Worker. ", 100), "user:go"}
	for i := range 20 {
		history = append(history, fmt.Sprintf(`call:c%d,read,{"filePath":"a.go"}`, i), fmt.Sprintf("tool:c%d=%s", i, strings.Repeat("line of code\n", 100)))
	}
	bodies := [][]byte{[]byte(body(true, history[:len(history)-2]...)), []byte(body(true, history...))}
	for _, noCheck := range []bool{true, false} {
		b.Run(map[bool]string{true: "unchecked", false: "checked"}[noCheck], func(b *testing.B) {
			m := New(Config{NoCheck: noCheck, Func: func(r Request) Answer {
				return Answer{Calls: []Call{{Name: "read", Arguments: `{"filePath":"a.go"}`}}}
			}})
			b.SetBytes(int64(len(bodies[1])))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				req, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/chat/completions", bytes.NewReader(bodies[n/50%2]))
				req.Header.Set("x-session-id", fmt.Sprint(n%50))
				m.ServeHTTP(discard{http.Header{}}, req)
				n++
			}
			if v := m.Violations(); len(v) > 0 {
				b.Fatal(v[0])
			}
		})
	}
}
