package acp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/acp"
	"centurion/acp/acptest"
	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a client and a scripted agent in one process.
type rig struct {
	group  guard.Group
	client *acp.Client
	close  func()

	mu    sync.Mutex
	said  []string
	deny  bool
	files map[string]string
	fault error
}

// open starts an agent with a script and opens a conversation with the id known.
func open(t testing.TB, script, known string) (r *rig, id string, err error) {
	t.Helper()
	r = &rig{files: map[string]string{"/p/a.txt": "one\ntwo\nthree\n"}}
	toAgent, ours := io.Pipe()
	theirs, fromAgent := io.Pipe()
	agent := &acptest.Agent{Script: script}
	r.group.Go("agent", func() error {
		agent.Serve(toAgent, fromAgent)
		return errors.Join(fromAgent.Close(), toAgent.Close())
	})
	r.close = func() {
		if r.client != nil {
			_ = r.client.Close()
		}
		_, _ = theirs.Close(), toAgent.Close()
		if err := r.group.Wait(); err != nil {
			t.Error(err)
		}
	}
	both := struct {
		io.Reader
		io.Writer
		io.Closer
	}{theirs, ours, closer{theirs, ours}}
	r.client, err = acp.Open(t.Context(), both, acp.Options{Name: "helper", Command: "helper acp", Version: "1", Dir: "/p", MaxTurn: 1 << 20, Handler: r})
	if err == nil {
		id, err = r.client.Join(t.Context(), known)
	}
	return r, id, err
}

type closer struct{ a, b io.Closer }

func (c closer) Close() error { return errors.Join(c.a.Close(), c.b.Close()) }

// play is a turn of an agent in a bubble.
func play(t *testing.T, script string, do func(r *rig, end acp.End, err error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r, _, err := open(t, script, "")
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		end, err := r.client.Prompt(t.Context(), "do it")
		do(r, end, err)
	})
}

func (r *rig) add(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, what)
}

func (r *rig) told() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "; ")
}

func (r *rig) Update(u acp.Update) error {
	switch {
	case u.Text != "":
		r.add("text " + centurion.Clip(u.Text, 40))
	case u.Thought != "":
		r.add("thought " + u.Thought)
	case u.Call != nil:
		said := []string{"call", u.Call.ID, u.Call.Kind, u.Call.Title, u.Call.Status, u.Call.Output, strings.Join(u.Call.Paths, ",")}
		r.add(strings.Join(strings.Fields(strings.Join(said, " ")), " "))
	case u.Plan != nil:
		r.add("plan " + u.Plan[0].Content)
	}
	return r.fault
}

func (r *rig) Permit(_ context.Context, c acp.Call) error {
	r.add("asked " + c.Kind + " " + c.Title)
	if r.deny {
		return errors.New("no")
	}
	return nil
}

func (r *rig) Read(_ context.Context, path string) (string, error) {
	content, ok := r.files[path]
	if !ok {
		return "", &centurion.Error{Kind: centurion.KindNotFound, Msg: path + " does not exist", Hint: "look"}
	}
	return content, nil
}

func (r *rig) Write(_ context.Context, path, content string) error {
	if !strings.HasPrefix(path, "/p/") {
		return &centurion.Error{Kind: centurion.KindPermission, Msg: path + " is outside"}
	}
	r.files[path] = content
	return nil
}

// Issue "Plugin host", point 7: everything of a turn comes in its order and before its end, and asks and files are answered.
func TestTurn(t *testing.T) {
	play(t, `on
think I look.
plan first|second
call c1 edit a file
diff c1 /p/a.txt|old|new
done c1 changed
permit execute go test | {"rawInput": {"command": "go test"}}
read /p/a.txt
read /p/none
write /p/b.txt hello
write /etc/passwd x
cost 0.5
say Done.`, func(r *rig, end acp.End, err error) {
		want := `thought I look.; plan first; call c1 edit a file in_progress; call c1 /p/a.txt; call c1 completed changed; asked execute go test ; text [go test : yes]; ` +
			"text [read: one\ntwo\nthree\n]; text [read: /p/none does not exist. look]; text [write: ]; text [write: /etc/passwd is outside]; text Done."
		if err != nil || end.Reason != "end_turn" || end.Silent || end.Cost == nil || *end.Cost != 0.5 || r.files["/p/b.txt"] != "hello" {
			t.Errorf("%+v, %v, %q", end, err, r.files)
		}
		if got := strings.ReplaceAll(r.told(), "go test;", "go test ;"); got != want {
			t.Errorf("told\n%s, want\n%s", got, want)
		}
	})
}

// A refusal reaches the agent; a conversation that it cannot load is a new one, and what it tells of an old one does not count.
func TestJoin(t *testing.T) {
	for script, same := range map[string]bool{"load\non\nsay Hi.\npermit edit b": true, "on\nsay Hi.\npermit edit b": false, "load\nforgets\non\nsay Hi.\npermit edit b": false} {
		r, id, err := open(t, script, "own-1")
		if err != nil || (id == "own-1") != same || id == "" {
			t.Errorf("%q: %q, %v", script, id, err)
		}
		r.deny = true
		if _, err := r.client.Prompt(t.Context(), "go"); err != nil || r.told() != "text Hi.; asked edit b; text [b: no]" {
			t.Errorf("%q: %q, %v", script, r.told(), err)
		}
		r.close()
	}
}

// Issue "Plugin host", point 7, bad input: an agent of another version, and one that is not logged in, which is told how.
func TestBadAgents(t *testing.T) {
	for script, want := range map[string]struct {
		kind       centurion.Kind
		text, hint string
	}{
		"version 2":  {centurion.KindConfig, "speaks version 2 of the protocol, not 1", "install a version"},
		"auth":       {centurion.KindAuth, "Authentication required", "run: agent login"},
		"load\nauth": {centurion.KindAuth, "Authentication required", "helper acp"},
	} {
		r, _, err := open(t, script, "own-1")
		if centurion.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.text) || !strings.Contains(centurion.HintOf(err), want.hint) || !strings.Contains(err.Error(), "agent helper") {
			t.Errorf("%s: %s: %v (%s)", script, centurion.KindOf(err), err, centurion.HintOf(err))
		}
		r.close()
	}
}

// Issue "Plugin host", point 7: an agent that dies, answers twice, answers nonsense, floods or fails ends its own turn and nothing else.
func TestMisbehaves(t *testing.T) {
	const good = "says well"
	for name, c := range map[string]struct {
		script string
		kind   centurion.Kind
		text   string
	}{
		"dies":             {"on\nsay half\ndie 3", centurion.KindStreamCut, "has ended"},
		"answers twice":    {"on\nsay " + good + "\ntwice", "", ""},
		"a stray line":     {"on\nraw npm warn old\nraw {\"a\": 1}\nraw [1]\nraw {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\nraw {\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":[7]}\nsay " + good, "", ""},
		"another session":  {"on\nraw {\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"x\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"not mine\"}}}}\nsay " + good, "", ""},
		"nonsense":         {"on\n" + strings.Repeat("raw nonsense\n", 101), centurion.KindStreamCut, "no message of the protocol"},
		"a wrong answer":   {"on\nraw {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":7}\nhang", centurion.KindStreamCut, "not what the protocol says"},
		"floods":           {"on\nflood 2\nhang", centurion.KindStreamCut, "more than 1 MB"},
		"fails":            {"on\nerror -32603 it broke", centurion.KindInternal, "it broke"},
		"a limit":          {"on\nerror -32603 You've hit your usage limit. Try again in 2 hours 5 minutes.", centurion.KindRateLimit, "usage limit"},
		"a login":          {"on\nerror -32603 Please log in with /login", centurion.KindAuth, "log in"},
		"asks often":       {"on\n" + strings.Repeat("read /p/a.txt\n", 65) + "say " + good, "", ""},
		"too many at once": {"on\n" + strings.Repeat("raw {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"session/request_permission\",\"params\":{\"options\":[]}}\n", 3) + "say " + good, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.script, func(r *rig, end acp.End, err error) {
				if centurion.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: %v", centurion.KindOf(err), err)
				}
				if told := r.told(); c.kind == "" && (!strings.Contains(told, "text "+good) || strings.Contains(told, "not mine") || end.Reason != "end_turn") {
					t.Errorf("%q, %+v", told, end)
				}
				var e *centurion.Error
				if name == "a limit" && (!errors.As(err, &e) || e.RetryAfter != 2*time.Hour+5*time.Minute) {
					t.Errorf("it is waited for %v", e.RetryAfter)
				}
			})
		})
	}
}

// One that hangs is told that its turn is over, and not waited for long; one that refuses what it is told ends as well.
func TestCancelled(t *testing.T) {
	for script, most := range map[string]time.Duration{"on\ncall c1 execute wait\nhang": 0, "on\nsleep 1h": 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r, _, err := open(t, script, "")
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			ctx, end := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { end(centurion.ErrCancelled) })
			begun := time.Now()
			if _, err := r.client.Prompt(ctx, "go"); !errors.Is(err, centurion.ErrCancelled) || time.Since(begun) != time.Minute+most {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		})
	}
	for i := range 40 { // what is told last may be read together with the end, in any order
		synctest.Test(t, func(t *testing.T) {
			r, _, err := open(t, []string{"on\nsay one\nhang", "on\nsay one"}[i%2], "")
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			r.fault = centurion.ErrBudget
			if _, err := r.client.Prompt(t.Context(), "go"); !errors.Is(err, centurion.ErrBudget) {
				t.Fatalf("%v", err)
			}
		})
	}
}

// An agent that does not say that its turn has ended, and only that one, has ended it when it is idle, has not changed for 3 s and has real
// output, which is looked at each 500 ms, 600 times at most. A busy one that is silent has not ended it.
//
// Issue "Plugin host", point 7; ORCH-117, ORCH-119, ORCH-120, ORCH-121, ORCH-139
func TestTurnWithoutAnEnd(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		took   time.Duration
		kind   centurion.Kind
	}{
		"idle":             {"on\nsay done\nsilent", 3 * time.Second, ""},
		"changes":          {"on\nsay one\nlate\nsleep 2700ms\nsay two\nsleep 200ms\nhang", 6 * time.Second, ""},
		"says it":          {"on\nsay done", 0, ""},
		"no output":        {"on\nthink hm\nsilent", 5 * time.Minute, centurion.KindTimeout},
		"blank output":     {"on\nsay  \\n\nsilent", 5 * time.Minute, centurion.KindTimeout},
		"busy":             {"on\nsay I test.\ncall c1 execute go test\nsilent", 5 * time.Minute, centurion.KindTimeout},
		"busy for a while": {"on\nsay I test.\ncall c1 execute go test\nlate\nsleep 1m\ndone c1 ok\nhang", time.Minute + 3*time.Second, ""},
		"dies":             {"on\nsay one\nlate\nsleep 1s\ndie 1", time.Second, centurion.KindStreamCut},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, _, err := open(t, c.script, "")
				if err != nil {
					t.Fatal(err)
				}
				defer r.close()
				begun := time.Now()
				end, err := r.client.Prompt(t.Context(), "go")
				if took := time.Since(begun); took != c.took || centurion.KindOf(err) != c.kind {
					t.Errorf("%v after %v, want %s after %v", err, took, c.kind, c.took)
				}
				if end.Silent != (name != "says it") {
					t.Errorf("%+v", end)
				}
			})
		})
	}
}

// Each turn is looked at for itself: what an earlier one has told, answered or left open neither ends it nor keeps it from its end.
func TestTurnsAreApart(t *testing.T) {
	script := "on much\nsay " + strings.Repeat("x", 600<<10) + "\non wait\ncall c1 execute wait\nhang\non think\nthink hm\nsilent\non quiet\nsay done\nsilent"
	for first, c := range map[string]struct {
		then string
		took time.Duration
		kind centurion.Kind
	}{
		"much":  {"much", 0, ""}, // together more than one turn may tell
		"wait":  {"quiet", 3 * time.Second, ""},
		"quiet": {"think", 5 * time.Minute, centurion.KindTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, _, err := open(t, script, "")
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, centurion.ErrCancelled)
			defer cancel()
			if _, err := r.client.Prompt(ctx, first); (err != nil) != (first == "wait") {
				t.Errorf("%s: %v", first, err)
			}
			begun := time.Now()
			_, err = r.client.Prompt(t.Context(), c.then)
			if took := time.Since(begun); took != c.took || centurion.KindOf(err) != c.kind {
				t.Errorf("%s after %s: %v after %v, want %s after %v", c.then, first, err, took, c.kind, c.took)
			}
		})
	}
}

// A usage limit is found in what agents say, and when it is over.
func TestLimit(t *testing.T) {
	now := time.Date(2026, 11, 28, 14, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"Claude AI usage limit reached|1796052600":                                          time.Unix(1796052600, 0).Sub(now),
		"You've hit your limit · resets 5pm (UTC)":                                          150 * time.Minute,
		"5-hour limit reached ∙ resets 3am":                                                 12*time.Hour + 30*time.Minute,
		"You've hit your usage limit. Try again in 3 days 4 hours 1 minute.":                76*time.Hour + time.Minute,
		`Rate limit exceeded {"retry_after": 90}`:                                           90 * time.Second,
		`{"type":"usage_limit_reached","resets_at":1796052600,"message":"usage limit hit"}`: time.Unix(1796052600, 0).Sub(now),
		"Too many requests": 0,
	} {
		if got, limited := acp.Limit(text, now); !limited || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, limited, want)
		}
	}
	for text, want := range map[string]bool{
		"Claude AI usage limit reached|1796052600": true, "You've hit your limit · resets 5pm (UTC)": true, "5-hour limit reached ∙ resets 3am": true,
		"I added a rate limit to the server and tested it.": false, "The usage limit is now checked in limit.go: " + strings.Repeat("x", 300): false, "Done.": false,
	} {
		if acp.IsLimit(text) != want {
			t.Errorf("%s is taken for a notice: %v", text, !want)
		}
	}
	if _, limited := acp.Limit("the index is out of its limits", now); limited {
		t.Error("a text without a usage limit is taken for one")
	}
}

// Our part of a call takes at most 5 ms: see issue "Plugin host", "Measured".
func BenchmarkUpdate(b *testing.B) {
	script := "on\n" + strings.Repeat("call c1 execute go test\ndone c1 ok\n", 500) + "say done"
	for b.Loop() {
		r, _, err := open(b, script, "")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.client.Prompt(context.Background(), "go"); err != nil {
			b.Fatal(err)
		}
		r.close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/call")
}
