package tui

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/event"
	"centurion/event/toast"
	"centurion/event/view"
	"centurion/text"
)

// told is what a stage's last event is told as, on plain lines.
func (s *stage) told() string {
	st := story{board: &Board{}}
	var lines []string
	for _, e := range s.events {
		lines = nil
		for _, f := range st.apply(e) {
			lines = append(lines, f.plainLine())
		}
	}
	return strings.Join(lines, "\n")
}

// What a single event is told as: who it is of, what happened, and what a person has to know of it.
func TestFacts(t *testing.T) {
	t.Parallel()
	at := func(typ centurion.EventType, session, task string, d any) string {
		return newStage().workers().at(typ, session, task, d).told()
	}
	for name, tt := range map[string]struct{ got, want string }{
		"confinement":           {at(centurion.EventMissionStarted, "", "", event.MissionData{Confinement: &centurion.Confinement{Way: "files", Gaps: []string{"sockets", "UDP"}}}), "◆ |· confinement of commands: files; not stopped: sockets, UDP"},
		"confined when resumed": {at(centurion.EventMissionResumed, "", "", event.MissionData{Confinement: &centurion.Confinement{Way: "none", Gaps: []string{"anything"}}}), "◆ resumed|· confinement of commands: none; not stopped: anything"},
		"a final check":         {at(centurion.EventVerifyPassed, "ses_0", "", event.VerifyData{Command: "make", Final: true}), "✓ commander: final check passed · make"},
		"a check that took":     {at(centurion.EventVerifyPassed, "ses_T2", "tsk_T2", event.VerifyData{Command: "make", DurationMS: 1240}), "✓ worker T2: check passed · make · 1.2s"},
		"a check of the host":   {at(centurion.EventVerifyPassed, "", "", event.VerifyData{Command: "make", Item: "T9"}), "✓ T9: check passed · make"},
		"a final check fails":   {at(centurion.EventVerifyFailed, "ses_0", "", event.VerifyData{Command: "make", Final: true, ExitCode: 2}), "✗ commander: final check failed · make · exit 2"},
		"your work in the way":  {at(centurion.EventMergeConflict, "", "", data{"person": true, "files": []string{"a.go"}}), "✗ not merged: your own work stands in the way · a.go"},
		"a conflict of theirs":  {at(centurion.EventMergeConflict, "ses_T1", "tsk_T1", data{"files": []string{"a.go", "b.go"}}), "↻ worker T1: conflict|a.go b.go"},
		"tried again":           {at(centurion.EventTaskRetrying, "ses_T1", "tsk_T1", data{"reason": "stall", "wait_ms": 4000}), "↻ worker T1: tries again in 4s · stall"},
		"tried again at once":   {at(centurion.EventTaskRetrying, "ses_T1", "tsk_T1", data{"reason": "stall"}), "↻ worker T1: tries again · stall"},
		"a task nobody knows":   {at(centurion.EventTaskDelivered, "", "tsk_T1", data{}), ""},
		"another model":         {at(centurion.EventSessionModel, "ses_T1", "tsk_T1", data{"to": "b/2", "reason": "a/1 is overloaded; continuing with b/2"}), "↻ worker T1: continues with b/2 · a/1 is overloaded"},
		"rewound":               {at(centurion.EventRewound, "ses_0", "", event.RewoundData{To: "msg_1", Undone: 2}), "↶ commander: |msg_1, 2 messages"},
		"rewound, with a mark":  {at(centurion.EventRewound, "ses_0", "", event.RewoundData{To: "msg_1", Undone: 1, Mark: "old"}), "↶ commander: |msg_1, 1 message|, under old"},
		"a countdown":           {at(centurion.EventMissionUpdated, "ses_0", "", data{"countdown_ms": 5000}), "·| in 5s"},
		"a countdown that ends": {at(centurion.EventMissionUpdated, "ses_0", "", data{"countdown_ms": 0}), ""},
		"its own command":       {at(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "bash", Input: []byte(`{"command":"make"}`)}), "· |make"},
		"its own command fails": {at(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "bash", Input: []byte(`{"command":"make"}`), Error: "exit 2"}), "✗ |make|: exit 2"},
		"its own reading":       {at(centurion.EventToolCompleted, "ses_0", "", event.ToolData{Tool: "read", Input: []byte(`{"file_path":"a"}`)}), ""},
		"a worker's command":    {at(centurion.EventToolCompleted, "ses_T1", "tsk_T1", event.ToolData{Tool: "bash", Input: []byte(`{"command":"make"}`)}), ""},
		"a failed session":      {at(centurion.EventSessionError, "ses_T1", "tsk_T1", event.SessionData{Kind: centurion.KindAuth, Error: "refused"}), "✗ worker T1: refused"},
	} {
		got := strings.TrimPrefix(tt.got, "12:03:18 ")
		for part := range strings.SplitSeq(tt.want, "|") { // parts, where it is not all of it
			before, after, ok := strings.Cut(got, part)
			if !ok || tt.want == part && before+after != "" {
				t.Errorf("%s: %q, want %q", name, tt.got, tt.want)
			}
			got = after
		}
	}
	// An answer comes with its part and again with its message, and is told once, whatever was said before.
	s := newStage().start()
	for _, text := range []string{"First.", "Second."} {
		s.at(centurion.EventPartUpdated, "ses_0", "", data{"type": "text", "text": text})
		if got := s.told(); !strings.Contains(got, text) {
			t.Errorf("an answer is told as %q", got)
		}
		s.at(centurion.EventMessageUpdated, "ses_0", "", data{"text": text})
		if got := s.told(); got != "" {
			t.Errorf("an answer is told again as %q", got)
		}
	}
	plan := newStage().start().at(centurion.EventTodoUpdated, "", "", data{"open": 2, "title": "Limits", "items": planItems[:2]}).told()
	if want := "▤ 2 items in 2 waves · Limits"; !strings.Contains(plan, want) || !strings.Contains(plan, "after T1") {
		t.Errorf("a plan: %q", plan)
	}
}

// What the board knows after single events, as the header and the panels show it.
func TestBoardKnows(t *testing.T) {
	t.Parallel()
	s := newStage().start()
	b := s.board()
	if b.Slots != 50 || b.Elapsed(curtain.Add(time.Minute)) != time.Minute || (&Board{}).Elapsed(curtain) != 0 || b.Branch != "" {
		t.Errorf("%d slots, %s, branch %q", b.Slots, b.Elapsed(curtain.Add(time.Minute)), b.Branch)
	}
	s.at(centurion.EventMissionUpdated, "ses_0", "", data{"branch": "centurion/1", "reason": "waits", "countdown_ms": 5000})
	if b = s.board(); b.Branch != "centurion/1" || b.Reason != "waits" || !b.Countdown.Equal(curtain.Add(5*time.Second)) {
		t.Errorf("%q %q %s", b.Branch, b.Reason, b.Countdown)
	}
	s.at(centurion.EventMissionUpdated, "ses_0", "", data{"countdown_ms": 0})
	if b = s.board(); !b.Countdown.IsZero() {
		t.Errorf("the countdown goes on to %s", b.Countdown)
	}
	s.at(centurion.EventMergeDone, "", "", data{})
	if b = s.board(); !b.Unmerged {
		t.Error("integrated work is the person's to merge")
	}
	s.at(centurion.EventMergeDone, "", "", data{"person": true})
	if b = s.board(); b.Unmerged {
		t.Error("merged work is still to be merged")
	}
	s.at(centurion.EventMergeUndone, "", "", data{})
	if b = s.board(); b.Unmerged {
		t.Error("what was taken back from the mission's branch is still to be merged")
	}
	s.at(centurion.EventMergeUndone, "", "", data{"person": true})
	if b = s.board(); !b.Unmerged {
		t.Error("what a person took back can be merged again")
	}

	// A task's cost never falls, and an ended task's is what its end said.
	s = newStage().start().task("T1", "worker", "Do it", true).at(centurion.EventTaskUpdated, "ses_T1", "tsk_T1", data{"usage": usage(100, 0, 1)}).
		at(centurion.EventTaskUpdated, "ses_T1", "tsk_T1", data{"usage": usage(50, 0, 0.5)})
	if u := s.board().Tasks[0].Usage; u.USD != 1 {
		t.Errorf("the cost fell to %v", u.USD)
	}
	// Another attempt begins its clock anew.
	s.wait(time.Minute).at(centurion.EventTaskQueued, "", "tsk_T1", data{"status": "queued"}).wait(time.Minute).at(centurion.EventTaskStarted, "ses_T1", "tsk_T1", data{"attempt": 2})
	if age := toast.Age(s.board().Tasks[0].Task, s.now.Add(time.Second)); age != time.Second {
		t.Errorf("the second attempt is %s old", age)
	}
	// A mission that ended without figures has those of its messages.
	s = newStage().start().at(centurion.EventMessageUpdated, "ses_0", "", data{"usage": usage(100, 10, 0.5)}).at(centurion.EventMissionPaused, "", "", data{})
	if u := s.board().Usage(); u.USD != 0.5 {
		t.Errorf("it cost %v", u.USD)
	}
	// A line that streams without an end stays short.
	s = newStage().workers()
	for range 10 {
		s.at(centurion.EventDelta, "ses_T1", "tsk_T1", event.DeltaData{Field: "text", Delta: strings.Repeat("ü", 100)})
	}
	if doing := s.board().Tasks[0].Doing; len(doing) > 400 || strings.Trim(doing, "ü") != "" {
		t.Errorf("%d bytes: %q", len(doing), doing)
	}
	s.at(centurion.EventDelta, "ses_T1", "tsk_T1", event.DeltaData{Field: "text", Delta: "new", Gap: true})
	if doing := s.board().Tasks[0].Doing; doing != "new" {
		t.Errorf("after a gap: %q", doing)
	}
	// An answer without an id is that to its session's ask; another session's stays.
	s = newStage().start().at(centurion.EventPermissionAsked, "ses_1", "", event.AskData{ID: "per_1"}).at(centurion.EventPermissionAsked, "ses_2", "", event.AskData{ID: "per_2"}).
		at(centurion.EventPermissionReplied, "ses_2", "", event.AskData{})
	if b = s.board(); len(b.Asks) != 1 || b.Asks[0].ID != "per_1" {
		t.Errorf("%+v", b.Asks)
	}
	for want, task := range map[string]*Task{"T2": {Task: centurion.Task{ID: "tsk_12345", Item: "T2"}},
		"w7": {Task: centurion.Task{ID: "tsk_12345", Item: "T2"}, Short: "w7"}, "#2345": {Task: centurion.Task{ID: "tsk_12345"}}, "#a": {Task: centurion.Task{ID: "a"}}} {
		if got := task.Name(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Limits are told with what is spent of them, and what living tasks may still spend.
func TestBudgetWords(t *testing.T) {
	t.Parallel()
	m := &centurion.Mission{Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 1500}}, Rounds: 3, ToolCalls: 1, ElapsedMS: 61_000}
	if got := limits(m); len(got) != 0 || reserved(m) != "" {
		t.Errorf("without limits: %q %q", got, reserved(m))
	}
	m.Options.MaxCost, m.Options.MaxTokens, m.Options.MaxRounds, m.Options.MaxToolCalls, m.Options.MaxDuration = 10, 9000, 7, 1, 120_000
	if d := cmp.Diff([]string{"$0.50 of $10.00", "1.5k of 9k tokens", "3 of 7 rounds", "1 of 1 tool call", "1m01s of 2m00s"}, limits(m)); d != "" {
		t.Error(d)
	}
	m.Reserved = centurion.Reserved{Tasks: 2, USD: 0.25, Tokens: 1500, Rounds: 1}
	if got := reserved(m); got != "$0.25 · 1.5k tokens · 1 round · by 2 tasks" {
		t.Error(got)
	}
	m.Reserved = centurion.Reserved{Tasks: 1}
	if got := reserved(m); got != "by 1 task" {
		t.Error(got)
	}
	task := &centurion.Task{Budget: centurion.TaskBudget{Minutes: 1.5, Rounds: 1}}
	if d := cmp.Diff([]string{"0 of 1 round", "at most 1m30s"}, taskBudget(task)); d != "" {
		t.Error(d)
	}
	for want, r := range map[string][2]float64{"": {1, 0}, "about $2.00": {0, 2}, "about $3.00": {3, 3}, "about $1.00–$3.00": {1, 3}} {
		if got := costRange(r[0], r[1]); got != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
}

// Where the work of a mission and of a task stands, in words.
func TestWhereWorkStands(t *testing.T) {
	t.Parallel()
	when := centurion.Time{Time: curtain}
	m := &centurion.Mission{ID: "msn_1", Isolation: "worktree", Status: centurion.MissionCompleted}
	if got := mergedWords(m); got != "not yet: centurion merge msn_1" {
		t.Error(got)
	}
	if m.Status = centurion.MissionRunning; mergedWords(m) != "" {
		t.Error(mergedWords(m))
	}
	m.Merged = &centurion.Merged{}
	if got := mergedWords(m); got != "it was about to be" {
		t.Error(got)
	}
	m.Merged = &centurion.Merged{Branch: "main", Before: "aaaaaaaaaaaa", Commit: "bbbbbbbbbbbb", Only: []string{"T1", "T2"}, Time: when}
	if got := mergedWords(m); got != "main aaaaaaaaaa → bbbbbbbbbb · T1, T2 · 2026-03-01 12:03:07" {
		t.Error(got)
	}
	m.Merged.Branch, m.Merged.Only = "", nil
	if got := mergedWords(m); got != "detached HEAD aaaaaaaaaa → bbbbbbbbbb · 2026-03-01 12:03:07" {
		t.Error(got)
	}
	if m.Isolation = "shared"; mergedWords(m) != "" {
		t.Error(mergedWords(m))
	}
	task := &centurion.Task{Landed: []centurion.Landed{{Commit: "cccccccccccc", Files: []centurion.FileChange{{Path: "a", Added: 2, Deleted: 1}}}, {Commit: "dddddddddddd", Reverts: true}}, Undone: when}
	got := landedWords(task)
	for _, want := range []string{"cccccccccc 1 file changed, +2 −1 · dddddddddd ", " 2026-03-01 12:03:07"} {
		if !strings.Contains(got, want) || strings.Count(got, "changed") != 1 {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	for want, b := range map[string]*centurion.Base{"": nil, "no commit yet": {}, "main aaaaaaaaaa with 1 uncommitted file": {Head: "aaaaaaaaaaaa", Branch: "main", Dirty: 1}, "aaaa": {Head: "aaaa"}} {
		if got := baseWords(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	files := []centurion.FileChange{{Path: "a.go", Status: "added", Added: 3}, {Path: "b.go", Status: "deleted", Deleted: 2}, {Path: strings.Repeat("long/", 20), Status: "modified", Added: 1, Deleted: 1}, {Path: "p.png", Binary: true}, {Path: "m", Status: "modified"}}
	if err := Stat(&out, files, ShowOptions{Width: 40}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" A a.go", "  +3\n", "  −2\n", "  +1 −1\n", "  binary\n", "  0\n", " 5 files changed, +4 −3\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for l := range strings.Lines(out.String()) {
		if text.Width(strings.TrimSuffix(l, "\n")) > 40 {
			t.Errorf("too wide: %q", l)
		}
	}
}

// A call that asks somebody is told by what it asks.
func TestAskedBy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ tool, input, want string }{
		{"ask_user", `{"question":"Which?","choices":["a","b"]}`, "question: Which? (a, b)"},
		{"ask_user", `{"question":"Which\n  one?"}`, "question: Which one?"},
		{"ask_user", `{}`, ""},
		{"delegate_task", `{"prompt":"Do it."}`, "prompt: Do it."},
		{"sub_agent", `{"prompt":""}`, ""},
		{"bash", `{"prompt":"x","question":"y"}`, ""},
		{"ask_user", `{`, ""},
	} {
		if got := askedBy(tt.tool, []byte(tt.input)); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
	var many []centurion.Task
	for i := range maxChanged + 2 {
		many = append(many, centurion.Task{Files: []string{string(rune('a' + i)), "a"}})
	}
	if got := changedFiles(many); !strings.HasPrefix(got, "a b c ") || !strings.HasSuffix(got, " t … and 2 more") {
		t.Error(got)
	}
}

// A long ask is read to its end before it can be allowed, line by line and back.
func TestDialogIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	d := &dialog{ask: &Ask{Fact: view.Fact{Type: "permission", Permission: "bash", Patterns: []string{strings.Repeat("line\n", 9) + "the end"}}}, since: curtain}
	now := curtain.Add(time.Second)
	shown := func() string { return strings.Join(d.lines(theme{}, 60, 8), "\n") }
	if got := shown(); !strings.Contains(got, "lines 1–5 of 10  ↑ ↓") {
		t.Errorf("%s", got)
	}
	if act, _ := d.key("o", "", now); act != nothing || !strings.Contains(shown(), "not all of it was shown yet") {
		t.Error("it was allowed unread")
	}
	d.err = ""
	for range 3 {
		d.key("down", "", now)
	}
	d.key("up", "", now)
	if got := shown(); !strings.Contains(got, "lines 3–7 of 10") {
		t.Errorf("%s", got)
	}
	for range 20 {
		d.key("down", "", now)
	}
	if got := shown(); !strings.Contains(got, "lines 6–10 of 10") || !strings.Contains(got, "the end") {
		t.Errorf("%s", got)
	}
	if act, reply := d.key("o", "", now); act != answer || reply != AnswerOnce {
		t.Errorf("%v %q", act, reply)
	}
	in := input{}
	for _, k := range []string{"a", "b", "c", "home", "delete", "end", "backspace", "home", "backspace", "x", "right", "right", "left", "y"} {
		in.key(k, map[bool]string{true: k}[len(k) == 1])
	}
	if got := string(in.text); got != "xyb" {
		t.Errorf("typed %q", got)
	}
}
