package tui

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event/view"
)

// shown prints something whole.
func shown(t *testing.T, s Shown) string {
	t.Helper()
	var b strings.Builder
	if err := Show(&b, s, ShowOptions{Now: curtain, Width: 120}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lacks names what a text lacks, line by line.
func lacks(t *testing.T, what, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%s: no %q in\n%s", what, w, got)
		}
	}
}

// A mission that is shown whole says what is known of it: where it stands, what it cost, what it may and what it has proven.
func TestShowAllOfAMission(t *testing.T) {
	t.Parallel()
	m := centurion.Mission{ID: "msn_1", Goal: "one\ntwo\nthree\nfour\nfive", Status: centurion.MissionCompleted, Directory: "/p", Branch: "centurion/1", Isolation: centurion.IsolationWorktree,
		Base: &centurion.Base{Head: "aaaaaaaaaaaa", Branch: "main"}, Merged: &centurion.Merged{Branch: "main", Before: "aaaaaaaaaaaa", Commit: "bbbbbbbbbbbb", Time: ago(0)},
		Level: 2, LevelFrom: "person", ElapsedMS: 61_000, Rounds: 7, Summary: "All is done.", Evidence: centurion.EvidenceNone, Tally: centurion.Tally{Verified: 2, Unverified: 1},
		Options: centurion.MissionOptions{Model: "p/m", MaxCost: 3}, Usage: centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 1000}}, Reserved: centurion.Reserved{Tasks: 1, Rounds: 2}}
	got := shown(t, Shown{Mission: &m})
	lacks(t, "complete", got, "◆ one\n", "  two\n", "… 2 lines more: centurion report msn_1", "each writer in a checkout of its own", "main aaaaaaaaaa", "→ bbbbbbbbbb", "model     p/m",
		"level 2", "1m01s · 7 rounds", "1k tokens · $0.50", "items     2 verified, 1 not", "evidence  ", "$0.50 of $3.00", "reserved  2 rounds · by 1 task")
	if !strings.HasSuffix(got, "  All is done.\n") {
		t.Errorf("its summary is not last:\n%s", got)
	}
	m.Goal = "one\ntwo\nthree\nfour"
	lacks(t, "one line less", shown(t, Shown{Mission: &m}), "… 1 line more: centurion report msn_1")
	m.Status, m.Tally, m.Reason = centurion.MissionRunning, centurion.Tally{}, "waits"
	if got = shown(t, Shown{Mission: &m}); strings.Contains(got, "All is done") || strings.Contains(got, "evidence") || strings.Contains(got, "items ") || !strings.Contains(got, "running · waits") {
		t.Errorf("running:\n%s", got)
	}
}

// A task and a session that are shown whole say what they may, what they have spent, alone and with their children, and where they work.
func TestShowAllOfATask(t *testing.T) {
	t.Parallel()
	task := centurion.Task{ID: "tsk_1", Number: 7, Agent: "worker", Title: "Do it", Status: centurion.TaskRunning, Attempt: 2, Session: "ses_1", Resumes: "tsk_0", Reason: "again",
		Usage: centurion.Usage{USD: 0.25}, Budget: centurion.TaskBudget{Cost: 1}, Files: []string{"a.go", "b.go"}, Outside: []string{"c.go"}, Checkout: &centurion.Checkout{Dir: "/checkouts/1"},
		Landed: []centurion.Landed{{Commit: "cccccccccccc"}}, Error: &centurion.TaskError{Kind: centurion.KindTimeout, Message: "no answer", Hint: "wait"}, Result: "Half of it."}
	lacks(t, "a task", shown(t, Shown{Task: &task}), "w7 · tsk_1 · running · attempt 2 · again", "agent     worker · ses_1", "resumes   tsk_0", "$0.25 of $1.00", "files     a.go b.go",
		"outside   its item's files: c.go", "works in  /checkouts/1", "landed    cccccccccc", "error     timeout: no answer (wait)", "  Half of it.\n")
	ses := centurion.Session{ID: "ses_1", Title: "Its title", Agent: "worker", Cost: 0.5, Tokens: centurion.Tokens{Input: 1000}, Metadata: centurion.SessionMeta{Address: "0/3",
		OwnModel: &centurion.SessionModel{Provider: "p", ID: "own"}}, Model: &centurion.SessionModel{Provider: "p", ID: "other"}}
	own := centurion.Spent{Usage: centurion.Usage{USD: 0.5}, ElapsedMS: 4000}
	total := centurion.Spent{Usage: centurion.Usage{USD: 2, Tokens: centurion.Tokens{Input: 3000}}, ElapsedMS: 9000}
	got := shown(t, Shown{Session: &ses, Own: own, Total: total})
	lacks(t, "a session", got, "Its title\n", "session   ses_1 · worker · 0/3", "usage     1k tokens · $0.50 · 4s", "total     3k tokens · $2.00 · 9s · with its children", "model     p/other instead of p/own")
	if got = shown(t, Shown{Session: &ses, Own: own, Total: own}); strings.Contains(got, "total") {
		t.Errorf("without children:\n%s", got)
	}
	if got = shown(t, Shown{Task: &task, Session: &ses, Own: own, Total: total}); strings.Contains(got, "Its title") || strings.Contains(got, "total") {
		t.Errorf("with its task:\n%s", got)
	}
}

// In the list a mission that waits for the person says so, one that stopped says why, and one that is complete only what it lacks.
func TestMissionsSayWhatTheyLack(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	err := Missions(&b, []centurion.Mission{{ID: "msn_1", Status: centurion.MissionRunning, Reason: "waits"}, {ID: "msn_2", Status: centurion.MissionCompleted, Reason: "old"},
		{ID: "msn_3", Status: centurion.MissionCompleted, Evidence: centurion.EvidenceNone, Level: 3}, {ID: "msn_4", Status: centurion.MissionFailed, Reason: "no key"}},
		ShowOptions{Now: curtain, Width: 100, NeedsYou: map[string]bool{"msn_1": true}})
	if err != nil {
		t.Fatal(err)
	}
	lacks(t, "the list", b.String(), "msn_1  needs you  ", "  waits\n", "  no key\n", "L3 · ")
	word := centurion.MissionCompleted.Word(centurion.EvidenceNone, "")
	if strings.Contains(b.String(), "old") || word != string(centurion.MissionCompleted) && !strings.Contains(b.String(), "  "+word+": ") {
		t.Errorf("%s", b.String())
	}
}

// The end of a mission says what to do next, and names questions only where their answers are still read.
func TestSummaryNamesTheNextStep(t *testing.T) {
	t.Parallel()
	question := &Ask{Fact: view.Fact{Type: "question", ID: "que_1", Agent: "worker", Text: "so?"}}
	other := &Ask{Fact: view.Fact{Type: "question", ID: "que_2", Agent: "worker", Text: "how?"}}
	for name, tt := range map[string]struct {
		b          Board
		next, asks string
	}{
		"paused":             {Board{ID: "msn_1", Status: centurion.MissionPaused}, "centurion resume msn_1", ""},
		"blocked":            {Board{ID: "msn_1", Status: centurion.MissionBlocked, Asks: []*Ask{question}}, "centurion answer que_1 TEXT, then centurion resume msn_1", "worker asks: so?"},
		"two questions":      {Board{ID: "msn_1", Status: centurion.MissionBlocked, Asks: []*Ask{question, other}}, "centurion asks, then centurion resume msn_1", "worker asks: how?"},
		"failed":             {Board{ID: "msn_1", Status: centurion.MissionFailed, Asks: []*Ask{question}}, "centurion show msn_1, then centurion resume msn_1", ""},
		"complete, unmerged": {Board{ID: "msn_1", Status: centurion.MissionCompleted, Unmerged: true}, "centurion merge msn_1", ""},
		"complete":           {Board{ID: "msn_1", Status: centurion.MissionCompleted}, "", ""},
		"cancelled":          {Board{ID: "msn_1", Status: centurion.MissionCancelled, Unmerged: true}, "", ""},
	} {
		got := strings.Join(summary(&tt.b, theme{}), "\n")
		if (tt.next == "") == strings.Contains(got, "next: ") || !strings.HasSuffix(got, tt.next) || (tt.asks != "") != strings.Contains(got, "asks: ") || !strings.Contains(got, tt.asks) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	by := map[string]centurion.PassedBy{"T1": {}, "T2": {}}
	if got := provenWords(centurion.Tally{Verified: 2, Unverified: 1, Unproven: []string{"T2"}, Reviewed: by, CancelledItems: []string{"T3"}}); !strings.HasPrefix(got, "2 verified (1 by a review alone), 1 not, unproven: T2") || !strings.HasSuffix(got, "cancelled: T3") {
		t.Errorf("%q", got)
	}
}

// A request for permission shows each command, one reason and what "always" would allow; while an answer is sent no key counts.
func TestDialogOfAPermission(t *testing.T) {
	t.Parallel()
	d := &dialog{who: "worker T1", left: 2, since: curtain, ask: &Ask{Fact: view.Fact{Type: "permission", Permission: "bash", Patterns: []string{"make all"}, Always: []string{"make *"},
		Title: "make all", Metadata: map[string]any{"reason": "it builds"}}}}
	got := strings.Join(d.lines(theme{}, 60, 20), "\n")
	lacks(t, "the dialog", got, "worker T1 needs your permission: bash", "2 more", "  make all", "why: it builds", `"always" allows: make *`, "[o]nce  [a]lways  [r]eject")
	if strings.Count(got, "make all") != 1 {
		t.Errorf("the command is its own reason:\n%s", got)
	}
	for key, want := range map[string]string{"o": AnswerOnce, "a": AnswerAlways, "r": AnswerReject, "x": ""} {
		if act, reply := d.key(key, key, curtain.Add(settle-1)); act != nothing || reply != "" {
			t.Errorf("%s counts at once", key)
		}
		if act, reply := d.key(key, key, curtain.Add(settle)); reply != want || (act == answer) != (want != "") {
			t.Errorf("%s: %q", key, reply)
		}
	}
	d.sent = true
	if act, _ := d.key("o", "o", curtain.Add(time.Minute)); act != nothing || !strings.Contains(strings.Join(d.lines(theme{}, 60, 20), "\n"), "sending…") {
		t.Error("it is answered twice")
	}
	in := input{text: []rune("one two  three"), pos: 9}
	in.key("ctrl+w", "")
	if got := string(in.text); got != "one three" || in.pos != 4 {
		t.Errorf("a word is deleted: %q at %d", got, in.pos)
	}
	in.key("ctrl+u", "")
	if got := string(in.text); got != "three" || in.pos != 0 {
		t.Errorf("the line is deleted: %q at %d", got, in.pos)
	}
	in.insert("a\tb\n\x07c")
	if got := string(in.text); got != "a b cthree" {
		t.Errorf("pasted: %q", got)
	}
}
