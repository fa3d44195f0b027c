package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/event/agent"
)

// tones are the names of tones in golden files.
var tones = map[tone]string{plain: "plain", strong: "strong", dim: "dim", good: "good", bad: "bad", warn: "warn", commander: "commander", planner: "planner", worker: "worker", reviewer: "reviewer"}

// dumped is all of the facts of a stage's last event, a line each, and what the plain view writes of them.
func (s *stage) dumped() string {
	st := story{board: &Board{}}
	var facts []fact
	for _, e := range s.events {
		facts = st.apply(e)
	}
	var b strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&b, "  %s %s by %q who %q: %q detail %q body %q foot %q depth %d quiet %t whole %t late %v\n  = %s\n", f.mark, tones[f.tone], f.agent, f.who, f.text, f.detail, f.body, f.foot, f.depth, f.quiet, f.whole, f.at.Sub(s.now), f.plainLine())
	}
	return b.String()
}

// Every event is told with its mark, its tone, whom it is of, and what of it stands where; what is not told is not.
func TestEveryFact(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	at := func(name string, typ centurion.EventType, session, task string, d any) {
		fmt.Fprintf(&b, "%s (%s)\n%s", name, typ, newStage().workers().at(typ, session, task, d).dumped())
	}
	long := strings.Repeat("line\n", 14)
	at("begun", centurion.EventMissionStarted, "ses_0", "", data{"goal": "G", "directory": "/d", "branch": "b", "note": "a note", "confinement": data{"way": "full", "gaps": []string{"x"}}})
	at("resumed", centurion.EventMissionResumed, "ses_0", "", data{"confinement": data{"way": "none"}})
	at("budget", centurion.EventBudgetExceeded, "ses_0", "", event.BudgetData{Limit: "max_cost", Spent: 2.5, Max: 2})
	at("budget with a reason", centurion.EventBudgetExceeded, "ses_0", "", data{"reason": "r", "limit": "max_cost", "max": 2})
	at("budget of nothing", centurion.EventBudgetExceeded, "ses_0", "", data{})
	at("base", centurion.EventMissionUpdated, "ses_0", "", data{"base": centurion.Base{Head: "0123456789ab", Workspaces: "overlay"}, "level": 1, "level_from": centurion.LevelInferred, "note": "n"})
	at("no base", centurion.EventMissionUpdated, "ses_0", "", data{"base": centurion.Base{}, "level": 3, "level_from": centurion.LevelByPerson, "countdown_ms": 1000})
	at("the same level", centurion.EventMissionUpdated, "ses_0", "", data{"level": 2, "countdown_ms": 0})
	stuck := []Item{{ID: "T1", Title: "a", After: []string{"T9", "T8"}}, {ID: "T2", Title: "b", Agent: "worker"}}
	at("a plan with a stuck item", centurion.EventTodoUpdated, "", "", data{"open": 1, "done": 1, "title": "Title", "items": stuck})
	at("a plan without a title", centurion.EventTodoUpdated, "", "", data{"open": 1, "items": stuck[1:]})
	at("queued", centurion.EventTaskQueued, "", "tsk_T1", data{"status": "queued"})
	at("waits", centurion.EventTaskWaiting, "", "tsk_T1", data{"status": "waiting", "reason": "for T2"})
	at("started again", centurion.EventTaskStarted, "ses_T1", "tsk_T1", data{"status": "running", "attempt": 2})
	at("verifying", centurion.EventTaskVerifying, "", "tsk_T1", data{"status": "verifying"})
	at("retrying", centurion.EventTaskRetrying, "", "tsk_T1", data{"reason": "stall", "wait_ms": 1500})
	at("done", centurion.EventTaskCompleted, "", "tsk_T1", data{"status": "completed", "files": []string{"a"}, "result": long, "usage": usage(10, 2, 0.5)})
	at("failed", centurion.EventTaskFailed, "", "tsk_T6", data{"status": "failed", "error": data{"message": "no", "hint": "try"}})
	at("cancelled", centurion.EventTaskCancelled, "", "tsk_T1", data{"status": "cancelled", "reason": "by you"})
	at("blocked", centurion.EventTaskBlocked, "", "tsk_T1", data{"status": "blocked", "reason": "no network"})
	at("an answer", centurion.EventMessageUpdated, "ses_0", "", data{"text": "First.\n" + long})
	at("a thought", centurion.EventPartUpdated, "ses_0", "", data{"type": "reasoning", "text": "Hm."})
	at("a worker's answer", centurion.EventMessageUpdated, "ses_T1", "tsk_T1", data{"text": "Done."})
	at("the goal", centurion.EventMessageCreated, "ses_0", "", data{"origin": "person", "text": "Rate limits for the API"})
	at("a word of a person", centurion.EventMessageCreated, "ses_0", "", data{"origin": "person", "text": "Stop."})
	at("a word to a worker", centurion.EventMessageCreated, "ses_T1", "tsk_T1", data{"origin": "person", "text": "Stop."})
	at("a word of the host", centurion.EventMessageCreated, "ses_0", "", data{"origin": "host", "text": "Stop."})
	at("a call", centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "write", Input: []byte(`{"filePath":"a.go"}`)})
	at("a failed call", centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "edit", Input: []byte(`{"filePath":"a.go"}`), Error: "no"})
	at("an error", centurion.EventSessionError, "ses_0", "", event.SessionData{Kind: centurion.KindAuth})
	at("an error of a worker that waits", centurion.EventSessionError, "ses_T1", "tsk_T1", event.SessionData{Error: "which? (centurion answer que_1 TEXT)"})
	at("stopped", centurion.EventSessionAborted, "ses_0", "", event.AbortData{Reason: "by you"})
	at("a worker is stopped", centurion.EventSessionAborted, "ses_T1", "tsk_T1", event.AbortData{})
	at("forked", centurion.EventForked, "ses_0", "", event.ForkedData{Mission: "msn_0", Session: "ses_9", Message: "msg_1", Messages: 2})
	at("shortened", centurion.EventCompacted, "ses_0", "", event.CompactedData{Reason: event.CompactedAsked, Before: 9000, After: 300})
	at("shortened by the host", centurion.EventCompacted, "ses_T1", "tsk_T1", event.CompactedData{Reason: event.CompactedOverflow, Before: 9000, After: 300, ByHost: true})
	at("shortened by itself", centurion.EventCompacted, "ses_0", "", event.CompactedData{Reason: "auto", Before: 9000, After: 300})
	at("another agent", centurion.EventSessionAgent, "ses_0", "", data{"to": "planner"})
	at("another model", centurion.EventSessionModel, "ses_T1", "tsk_T1", data{"to": "b/2", "reason": "a/1 is busy; continuing with b/2"})
	at("a wait for the model", centurion.EventProviderRetry, "ses_T1", "tsk_T1", event.RetryData{WaitMS: 4000, Reason: string(centurion.KindRateLimit), Error: "429"})
	checkedFacts(at, long)
	asksFacts(at, stuck)
	golden(t, "facts", b.String())
}

func checkedFacts(at func(name string, typ centurion.EventType, session, task string, d any), long string) {
	at("passed", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", event.VerifyData{Command: "make", DurationMS: 1240})
	at("proven", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "proof": centurion.ProofProven, "died": "FAIL"})
	at("proven, silently", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "proof": centurion.ProofProven})
	at("a regression", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "proof": centurion.ProofRegression})
	at("unproven", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "proof": centurion.ProofUnproven, "why": "no test"})
	at("flaky", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "proof": centurion.ProofFlaky})
	at("weakened", centurion.EventVerifyPassed, "ses_T1", "tsk_T1", data{"command": "make", "weakened": []string{"a_test.go lost a test"}})
	at("a final check", centurion.EventVerifyPassed, "", "", data{"command": "make", "final": true})
	at("not yet", centurion.EventVerifyFailed, "", "", data{"command": "make", "early": true})
	at("failed check", centurion.EventVerifyFailed, "ses_T1", "tsk_T1", data{"command": "make", "exit_code": 2, "output": long})
	at("failed final check", centurion.EventVerifyFailed, "", "", data{"command": "make", "final": true, "exit_code": 1, "error": "gone"})
	at("integrated", centurion.EventMergeDone, "ses_T1", "tsk_T1", data{"branch": "centurion/x", "commit": "0123456789abcdef", "files": []string{"a", "b"}})
	at("merged", centurion.EventMergeDone, "", "", data{"branch": "main", "commit": "0123456789abcdef", "changed": 3, "person": true})
	at("a conflict", centurion.EventMergeConflict, "ses_T1", "tsk_T1", data{"files": []string{"a", "b"}})
	at("in the way", centurion.EventMergeConflict, "", "", data{"files": []string{"a"}, "person": true})
	at("reverted", centurion.EventMergeUndone, "ses_T1", "tsk_T1", data{"branch": "main", "commit": "0123456789abcdef", "changed": 1, "person": true})
}

func asksFacts(at func(name string, typ centurion.EventType, session, task string, d any), items []Item) {
	bash := event.AskData{ID: "per_1", Type: "permission", Permission: "bash", Title: "make\u202e all", Patterns: []string{"make all"}}
	edit := event.AskData{ID: "per_1", Type: "permission", Permission: "edit", Patterns: []string{"a", "b"}}
	question := event.AskData{ID: "que_1", Type: "question", Text: "which?", Options: []string{"red", "blue"}}
	at("a permission", centurion.EventPermissionAsked, "ses_T1", "tsk_T1", bash)
	at("another permission", centurion.EventPermissionAsked, "ses_0", "", edit)
	at("a question", centurion.EventQuestionAsked, "ses_T1", "tsk_T1", question)
	at("a plan asked", centurion.EventPlanAsked, "ses_0", "", data{"id": "per_2", "type": "plan", "items": append(items, Item{ID: "T3", Title: "c", Agent: "reviewer", After: []string{"T2", "T1"}, Verify: []string{"make", "make test"}})})
	for _, c := range []struct{ name, answer, by string }{{"once", "once", "person"}, {"always", "always", "program"}, {"silently", "", "always"}, {"rejected", "reject", "person"}, {"in own words", "not there", "policy"}} {
		bash, edit, question := bash, edit, question
		bash.Answer, bash.By, edit.Answer, edit.By, question.Answer, question.By = c.answer, c.by, c.answer, c.by, c.answer, c.by
		at("a permission "+c.name, centurion.EventPermissionReplied, "ses_T1", "tsk_T1", bash)
		at("another permission "+c.name, centurion.EventPermissionReplied, "ses_0", "", edit)
		at("a question "+c.name, centurion.EventQuestionAnswered, "ses_T1", "tsk_T1", question)
		at("a plan "+c.name, centurion.EventPlanAnswered, "ses_0", "", event.AskData{ID: "per_plan", Type: "plan", Answer: c.answer, By: c.by})
	}
}

// What one agent's own events are, in lines, and nothing for what is no event of the view.
func TestEveryAgentLine(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		typ  centurion.EventType
		v    any
		want string
	}{
		{agent.Start, agent.StartData{Agent: "worker", Address: "0/1", Text: "do\nit", Title: "T"}, "▶ worker 0/1: do it"},
		{agent.Start, agent.StartData{Agent: "worker", Title: "T"}, "▶ worker: T"},
		{agent.ToolStart, agent.ToolStartData{Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, `⚙ bash {"command":"ls"}`},
		{agent.ToolEnd, agent.ToolEndData{Name: "bash", Result: "ok"}, "✓ bash: ok"},
		{agent.ToolEnd, agent.ToolEndData{Name: "bash", Error: "no", Result: "ok"}, "✗ bash: no"},
		{agent.ToolEnd, agent.ToolEndData{Name: "bash"}, "✓ bash"},
		{agent.Retrying, agent.RetryData{WaitMS: 1001, Reason: "r"}, "↻ again in 2 s: r"},
		{agent.Compact, agent.CompactData{Before: 9000, After: 300}, "≡ history shortened: about 9k → 300 tokens"},
		{centurion.EventSessionAborted, event.AbortData{Reason: "by you"}, "‖ idle: by you"},
		{centurion.EventRewound, event.RewoundData{To: "msg_1", Undone: 2}, "↶ " + branched(centurion.EventRewound, event.Data(event.RewoundData{To: "msg_1", Undone: 2}))},
		{agent.End, nil, "■ done"},
		{agent.Error, agent.ErrorData{Reason: "gone"}, "■ ended: gone"},
		{centurion.EventTodoUpdated, nil, ""},
	} {
		if got := strings.Join(agentLines(c.typ, event.Data(c.v)), "\n"); got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}

// Each limit stands beside what was used of it, and what has none is not shown.
func TestEveryLimit(t *testing.T) {
	t.Parallel()
	m := &centurion.Mission{Rounds: 3, ToolCalls: 4, ElapsedMS: 60_000}
	m.Usage.USD, m.Usage.Tokens.Input = 0.5, 1000
	o := &m.Options
	o.MaxCost, o.MaxTokens, o.MaxRounds, o.MaxToolCalls = 2, 9000, 1, 50
	if got := strings.Join(limits(m), " | "); got != "$0.50 of $2.00 | 1k of 9k tokens | 3 of 1 round | 4 of 50 tool calls" {
		t.Error(got)
	}
	if got := limits(&centurion.Mission{}); len(got) != 0 {
		t.Errorf("without limits: %q", got)
	}
	task := &centurion.Task{Rounds: 2, ToolCalls: 1}
	task.Budget = centurion.TaskBudget{Minutes: 1.5, Rounds: 5, ToolCalls: 1}
	if got := strings.Join(taskBudget(task), " | "); got != "2 of 5 rounds | 1 of 1 tool call | at most 1m30s" {
		t.Error(got)
	}
	m.Reserved.USD, m.Reserved.Tokens, m.Reserved.Rounds, m.Reserved.Tasks = 1, 2000, 3, 2
	if got := reserved(m); got != "$1.00 · 2k tokens · 3 rounds · by 2 tasks" {
		t.Error(got)
	}
	if m.Reserved.Tasks = 0; reserved(m) != "" {
		t.Error("nothing is reserved by nobody")
	}
	for _, c := range [][4]int{{0, 4, 10, 0}, {1, 4, 10, 2}, {3, 4, 10, 7}, {4, 4, 10, 10}, {5, 4, 10, 10}} {
		if full, empty := bar(c[0], c[1], c[2]); len([]rune(full)) != c[3] || len([]rune(empty)) != c[2]-c[3] {
			t.Errorf("%d of %d: %q%q", c[0], c[1], full, empty)
		}
	}
}
