package tui

import (
	"flag"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/event"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// golden compares got with testdata/name.golden. Escapes stand as ␛ in the file, so that it can be read.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = strings.ReplaceAll(got, "\x1b", "␛")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with: go test ./tui -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// stage is a mission that a test plays: it makes events at the time of its clock.
type stage struct {
	now    time.Time
	seq    int64
	events []centurion.Event
}

var curtain = time.Date(2026, 3, 1, 12, 3, 7, 0, time.Local)

func newStage() *stage { return &stage{now: curtain} }

// wait moves the clock.
func (s *stage) wait(d time.Duration) *stage {
	s.now = s.now.Add(d)
	return s
}

// at adds an event that names a session and a task, either of which may be empty.
func (s *stage) at(typ centurion.EventType, session, task string, data any) *stage {
	s.seq++
	s.events = append(s.events, centurion.Event{Seq: s.seq, Time: centurion.Time{Time: s.now}, Type: typ, Mission: "msn_1",
		Session: session, Task: task, Data: event.Data(data)})
	return s
}

type data = map[string]any

func usage(in, out int64, usd float64) data {
	return data{"tokens": data{"input": in, "output": out}, "cost": usd}
}

func (s *stage) start() *stage {
	return s.at(centurion.EventMissionStarted, "ses_0", "", data{"goal": "Rate limits for the API", "status": "planning",
		"directory": "/home/u/api", "options": data{"max_cost": 10, "max_workers": 50}})
}

func (s *stage) plan() *stage {
	return s.start().wait(2*time.Second).
		at(centurion.EventMessageUpdated, "ses_0", "", data{"agent": "commander", "text": "Four items in three waves.", "usage": usage(1200, 300, 0.0021)}).
		at(centurion.EventMissionUpdated, "ses_0", "", data{"level": 2, "status": "planning"}).
		at(centurion.EventTodoUpdated, "", "", event.TodoCounts{Open: 4}).
		at(centurion.EventPlanAsked, "ses_0", "", data{"id": "per_plan", "type": "plan", "cost_low": 0.1, "cost_high": 0.4, "items": planItems})
}

var planItems = []Item{
	{ID: "T1", Title: "Parse limits from the config file", Agent: "worker", Verify: []string{"go test ./config/... -run Limits"}},
	{ID: "T2", Title: "Enforce them", Agent: "worker", After: []string{"T1"}, Verify: []string{"go test ./limit/..."}},
	{ID: "T3", Title: "Describe them", Agent: "worker"},
	{ID: "T4", Title: "Check the whole", Agent: "reviewer", After: []string{"T1", "T2"}},
}

func (s *stage) accepted() *stage {
	return s.wait(3*time.Second).
		at(centurion.EventPlanAnswered, "ses_0", "", event.AskData{ID: "per_plan", Type: "plan", Answer: AnswerOnce, By: "person"}).
		at(centurion.EventMissionUpdated, "ses_0", "", data{"status": "running", "level": 2})
}

// task queues and, with started, starts a task called tsk_ITEM in session ses_ITEM.
func (s *stage) task(item, agent, title string, started bool) *stage {
	s.at(centurion.EventTaskQueued, "", "tsk_"+item, data{"agent": agent, "title": title, "item": item, "status": "queued"})
	if started {
		s.wait(time.Second).at(centurion.EventSessionCreated, "ses_"+item, "tsk_"+item, data{"agent": agent, "address": "0/" + item[1:]}).
			at(centurion.EventTaskStarted, "ses_"+item, "tsk_"+item, data{"status": "running", "attempt": 1})
	}
	return s
}

func (s *stage) tool(item, tool string, input data) *stage {
	return s.at(centurion.EventToolStarted, "ses_"+item, "tsk_"+item, data{"tool": tool, "call": "c", "input": input})
}

// workers has five workers of three roles at work and two more queued.
func (s *stage) workers() *stage {
	return s.plan().accepted().
		task("T1", "worker", "Parse limits from the config file", true).
		task("T2", "worker", "Enforce them in the middleware", true).
		task("T3", "planner", "Find what else reads the config", true).
		task("T4", "worker", "Describe them: 使い方 and examples", true).
		task("T5", "reviewer", "Check the public interface", true).
		task("T6", "worker", "Write the changelog", false).
		task("T7", "reviewer", "Check the whole", false).
		at(centurion.EventTodoUpdated, "", "", event.TodoCounts{Open: 2, Running: 5}).
		tool("T1", "bash", data{"command": "go test ./config/..."}).
		tool("T2", "edit", data{"file_path": "limit/middleware.go"}).
		tool("T3", "grep", data{"pattern": "ReadConfig\\("}).
		at(centurion.EventDelta, "ses_T4", "tsk_T4", event.DeltaData{Field: "text", Delta: "I begin.\nThe README comes fir"}).
		at(centurion.EventDelta, "ses_T4", "tsk_T4", event.DeltaData{Field: "text", Delta: "st, then the"}).
		at(centurion.EventProviderRetry, "ses_T5", "tsk_T5", event.RetryData{Attempt: 2, WaitMS: 4000, Reason: string(centurion.KindRateLimit), Error: "429"}).
		wait(time.Second)
}

// checked has a check of T2 fail, be mended and pass.
func (s *stage) checked() *stage {
	return s.workers().wait(5*time.Second).
		at(centurion.EventVerifyFailed, "ses_T2", "tsk_T2", event.VerifyData{Command: "go test ./limit/...", ExitCode: 1, Item: "T2",
			Output: "--- FAIL: TestLimit (0.00s)\n\tlimit_test.go:12: got 3, want 2\nFAIL\n"}).wait(4*time.Second).
		tool("T2", "edit", data{"file_path": "limit/limit.go"}).wait(3*time.Second).
		at(centurion.EventMessageUpdated, "ses_T2", "tsk_T2", data{"text": "The window was counted from the wrong end.\n\n- limit.go: fixed\n- a test for it",
			"usage": usage(3000, 500, 0.01)}).
		at(centurion.EventVerifyPassed, "ses_T2", "tsk_T2", event.VerifyData{Command: "go test ./limit/...", Item: "T2", DurationMS: 1240}).
		at(centurion.EventTaskCompleted, "ses_T2", "tsk_T2", data{"status": "completed", "files": []string{"limit/limit.go", "limit/limit_test.go"}}).
		at(centurion.EventTodoUpdated, "", "", event.TodoCounts{Open: 2, Running: 4, Done: 1})
}

func (s *stage) end() *stage {
	return s.wait(8*time.Second).at(centurion.EventMissionCompleted, "ses_0", "", event.MissionEnd{
		Tokens: centurion.Tokens{Input: 16000, Output: 3000, Reasoning: 500, Cache: centurion.CacheUsage{Read: 9000}},
		Cost:   0.0521, DurationMS: 42_345, Tasks: map[string]int{"completed": 5, "cancelled": 2}, Tally: centurion.Tally{Verified: 4, Unverified: 1}})
}

// board applies everything so far.
func (s *stage) board() *Board {
	b := &Board{}
	for _, e := range s.events {
		b.Apply(e)
	}
	return b
}

func (s *stage) seqOf() iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for _, e := range s.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// view makes the live model with all events applied, at the stage's time, long after any dialog settled.
func (s *stage) view(t *testing.T, w, h int, o Options) *live {
	t.Helper()
	o.Width, o.Height = w, h
	if o.Env == nil {
		o.Env = []string{"TERM=xterm", "NO_COLOR=1"}
	}
	if o.Now == nil {
		o.Now = func() time.Time { return s.now }
	}
	m := newLive(t.Context(), o)
	m.feed.events = s.events
	m.Update(tickMsg(s.now))
	s.wait(time.Second)
	m.refresh()
	return m
}

// screen is what the live view printed so far, a mark, and its frame.
func (m *live) screen() string {
	return strings.Join(m.pending, "\n") + "\n~~~ live region ~~~\n" + m.content + "\n"
}
