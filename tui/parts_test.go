package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"centurion"
)

// same compares a list of pairs: what came, and what was wanted.
func same(t *testing.T, pairs ...[2]string) {
	t.Helper()
	for i, p := range pairs {
		if p[0] != p[1] {
			t.Errorf("%d: got\n%s\nwant\n%s", i, p[0], p[1])
		}
	}
}

// Colours of a change and of a patch stand where they belong, and only there.
func TestChangeWhole(t *testing.T) {
	t.Parallel()
	files := []centurion.FileChange{{Path: "a.go", Status: "modified", Added: 2, Deleted: 1}, {Path: "b", Status: "added", Added: 1}, {Path: "c", Status: "deleted", Deleted: 3},
		{Path: "d", Old: "e", Status: "renamed"}, {Path: "f", Old: "f", Status: "added", Binary: true}}
	var stat, patch, none strings.Builder
	if err := Stat(&stat, files, ShowOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if err := Patch(&patch, "# one\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\r\n+\tb\n c\ndiff --git a/y b/y\n+++ b/y\n", ShowOptions{Color: true}); err != nil {
		t.Fatal(err)
	}
	if err := Stat(&none, nil, ShowOptions{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "change", stat.String()+patch.String()+none.String())
}

// The work of a task and of a mission says where it stands.
func TestLandedWhole(t *testing.T) {
	t.Parallel()
	at := centurion.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)}
	task := &centurion.Task{Landed: []centurion.Landed{{Commit: "0123456789ab", Files: []centurion.FileChange{{Path: "a", Added: 1}}}, {Commit: "abc"}, {Commit: "def", Reverts: true, Files: []centurion.FileChange{{Path: "a"}}}}, Undone: at}
	m := func(change func(*centurion.Mission)) string {
		m := &centurion.Mission{ID: "msn_1", Isolation: "worktree", Status: centurion.MissionCompleted}
		change(m)
		return mergedWords(m)
	}
	same(t, [2]string{landedWords(task), "0123456789 1 file changed, +1 −0 · abc · def reverts it · reverted 2026-03-01 12:00:00"}, [2]string{landedWords(&centurion.Task{}), ""},
		[2]string{m(func(*centurion.Mission) {}), "not yet: centurion merge msn_1"}, [2]string{m(func(m *centurion.Mission) { m.Isolation = "shared" }), ""},
		[2]string{m(func(m *centurion.Mission) { m.Status = centurion.MissionPaused }), ""}, [2]string{m(func(m *centurion.Mission) { m.Merged = &centurion.Merged{} }), "it was about to be"},
		[2]string{m(func(m *centurion.Mission) {
			m.Merged = &centurion.Merged{Before: "0123456789ab", Commit: "abcdef0123456", Only: []string{"T1", "T2"}, Time: at}
		}), "detached HEAD 0123456789 → abcdef0123 · T1, T2 · 2026-03-01 12:00:00"},
		[2]string{baseWords(nil), ""}, [2]string{baseWords(&centurion.Base{Branch: "main"}), "main no commit yet"}, [2]string{baseWords(&centurion.Base{Branch: "main", Head: "0123456789ab"}), "main 0123456789"})
}

// A line that is typed is edited as in a shell, and shown around its cursor.
func TestInputWhole(t *testing.T) {
	t.Parallel()
	typed := func(start string, pos int, keys ...string) string {
		in := &input{text: []rune(start), pos: pos}
		for _, k := range keys {
			in.key(k, k)
		}
		return fmt.Sprintf("%s@%d", string(in.text), in.pos)
	}
	same(t, [2]string{typed("ab", 1, "left", "left", "x"), "xab@1"}, [2]string{typed("ab", 1, "right", "right", "x"), "abx@3"}, [2]string{typed("ab", 1, "home", "x"), "xab@1"}, [2]string{typed("ab", 1, "ctrl+a"), "ab@0"},
		[2]string{typed("ab", 1, "end"), "ab@2"}, [2]string{typed("ab", 1, "ctrl+e"), "ab@2"}, [2]string{typed("abc", 1, "backspace", "backspace"), "bc@0"}, [2]string{typed("abc", 1, "delete", "delete", "delete"), "a@1"},
		[2]string{typed("abc", 1, "ctrl+u"), "bc@0"}, [2]string{typed("a bc  d", 6, "ctrl+w"), "a d@2"}, [2]string{typed("bc d", 2, "ctrl+w"), " d@0"}, [2]string{typed("", 0, "a\nb\rc\td\x1be\u0085f\u2028g\u2029\x7f~\u00a0"), "a b c defg~\u00a0@12"})
	line := func(s string, pos, w int) string { return (&input{text: []rune(s), pos: pos}).line(w) }
	same(t, [2]string{line("abc", 1, 10), "a▏bc"}, [2]string{line("abcdef", 6, 4), "ef▏"}, [2]string{line("abcdef", 0, 4), "▏ab…"}, [2]string{line("abcdef", 3, 5), "abc▏…"})
}

// What a plan costs is told roughly, its items with all that runs when it is accepted.
func TestPlanWhole(t *testing.T) {
	t.Parallel()
	same(t, [2]string{costRange(0, 0), ""}, [2]string{costRange(0.004, 0.004), ""}, [2]string{costRange(0, 0.104), "about $0.10"}, [2]string{costRange(0.104, 0.396), "about $0.10–$0.40"}, [2]string{costRange(0.101, 0.102), "about $0.10"},
		[2]string{roles([]Item{{Agent: "Worker"}, {Agent: "worker"}, {Agent: "reviewer"}, {}}), "1 reviewer, 2 worker"})
	items := []Item{{ID: "T1", Title: "a", Agent: "worker", After: []string{"T9", "T8"}, Verify: []string{"make", "make test"}}, {ID: "T2", Title: strings.Repeat("long ", 20), Agent: "reviewer", After: []string{"T3", "T4"}}}
	drawn := func(w int, d dialog) string {
		title, body, keys := d.plan(theme{true}, w)
		return title + "\n" + strings.Join(body, "\n") + "\n" + strings.Join(keys, "\n") + "\n"
	}
	asks := func(items []Item, words string, low, high float64) *Ask {
		a := &Ask{}
		a.Items, a.Text, a.CostLow, a.CostHigh = items, words, low, high
		return a
	}
	golden(t, "plan-items", drawn(80, dialog{ask: asks(items[1:], "", 0, 0), items: append(items, Item{ID: "T3", Title: "b"}), read: true, level: 2})+drawn(40, dialog{ask: asks(items, "", 1, 2)})+drawn(60, dialog{ask: asks(nil, "nothing to do", 0, 0)})+drawn(60, dialog{ask: asks(nil, "", 0, 0)}))
}

// A conversation shows each kind of part, how each call ended, and what is cut.
func TestMessagesWhole(t *testing.T) {
	t.Parallel()
	var b page
	o := ShowOptions{Width: 60, Now: curtain, Color: true}.defaults()
	b.theme, b.w = theme{true}, 60
	call := func(tool, input string, st centurion.ToolState) centurion.Part {
		st.Input = json.RawMessage(input)
		return centurion.Part{Type: centurion.PartTool, Tool: tool, State: &st}
	}
	long := strings.Repeat("line\n", 14)
	done := centurion.ToolState{Status: centurion.ToolCompleted, Output: long, Metadata: map[string]any{"plugins": map[string][]string{"output": {"a", "b"}, "input": {"c"}}}}
	done.Time.Start, done.Time.End = 1000, 2500
	messages := []centurion.Message{
		{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartText, Text: "Do it.\n```\n" + strings.Repeat("x", 70) + "\n```\n" + strings.Repeat("word ", 14)}, {Type: centurion.PartFile}, {Type: centurion.PartFile, File: &centurion.File{Name: "a.txt", Mime: "text/plain"}}}},
		{Role: centurion.RoleUser, Origin: centurion.OriginHost, Parts: []centurion.Part{{Type: centurion.PartCompaction, Compaction: &centurion.Compaction{Auto: true}}, {Type: centurion.PartCompaction, Compaction: &centurion.Compaction{Auto: true, Overflow: true}}, {Type: centurion.PartCompaction, Compaction: &centurion.Compaction{}}, {Type: centurion.PartCompaction}}},
		{Role: centurion.RoleAssistant, Agent: "worker", Finish: "length", Time: centurion.MessageTime{Created: curtain.UnixMilli()}, Parts: []centurion.Part{{Type: centurion.PartReasoning, Text: long},
			call("bash", `{"command":"make"}`, done), call("bash", `{"command":"make"}`, centurion.ToolState{Status: centurion.ToolError, Error: "exit 2"}), call("ask_user", `{"question":"which?","options":["a","b"]}`, centurion.ToolState{Status: centurion.ToolRunning}),
			call("delegate_task", `{"agent":"worker","prompt":"Do that"}`, centurion.ToolState{Status: centurion.ToolRunning, Title: "T"}), {Type: centurion.PartTool, Tool: "read"}}},
		{Role: centurion.RoleAssistant, Agent: "worker", Finish: centurion.FinishStop, Summary: true}, {Role: centurion.RoleAssistant, Agent: "worker", Finish: centurion.FinishToolCalls, Error: &centurion.MessageError{Name: "UnknownError", Data: centurion.MessageErrorData{Message: "no"}}},
		{Role: centurion.RoleAssistant, Agent: "reviewer", Finish: centurion.FinishStop},
	}
	for _, m := range messages {
		b.message(m, o)
	}
	o.Full = true
	b.message(messages[2], o)
	golden(t, "messages", b.String())
}

// One key answers a question: a letter of it in either case, or the default for those that leave it.
func TestChoosing(t *testing.T) {
	t.Parallel()
	for key, want := range map[tea.KeyPressMsg]string{{Code: 'y', Text: "y"}: "Go? y", {Code: 'Y', Text: "Y"}: "Go? y", {Code: 'z', Text: "z"}: "Go? ", {Code: tea.KeyEnter}: "Go? n", {Code: tea.KeyEscape}: "Go? n",
		{Code: 'c', Mod: tea.ModCtrl}: "Go? n", {Code: tea.KeyTab}: "Go? "} {
		m := &choosing{Choice: Choice{Text: "Go?", Keys: "yN"}, answer: "n"}
		if got := m.View().Content; got != "Go? " {
			t.Errorf("before: %q", got)
		}
		_, cmd := m.Update(key)
		if got := m.View().Content; got != want || (cmd != nil) != m.done || m.done != (want != "Go? ") {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	m := &choosing{}
	if _, cmd := m.Update(tea.WindowSizeMsg{}); cmd != nil || m.done {
		t.Error("a window answers")
	}
}
