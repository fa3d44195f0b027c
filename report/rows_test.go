package report

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

// Rows of what was asked, said and went wrong are whole lines: who, what, and how it ended, with long texts cut.
func TestRowsWhole(t *testing.T) {
	t.Parallel()
	at := centurion.Time{Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	long := strings.Repeat("x", 700)
	cut := func(n int) string { return centurion.Clip(long, n) }
	r := &Report{Running: true,
		Decisions: []Decision{{Time: at, Type: "permission", Agent: "worker", Address: "0/1", Task: "T1", Asked: "bash make", Answer: "once", By: "person", WaitMS: 2000}, {Time: at, Type: "question", Agent: "commander", Task: "T1 one", Asked: "T1 one asks", Answer: long}, {Time: at, Type: "plan", Asked: long}},
		Messages:  []Said{{Time: at, Text: long, Agent: "worker", Address: "0/1", Task: "T1", Files: []string{"a.png", "b.png"}, Read: at}, {Time: at, Text: "stop"}},
		Troubles:  []Trouble{{Time: at, Where: long, What: long, Then: "went on", Repeat: 2}, {Time: at, Where: "T1", What: "no", Then: "sent back", Repeat: 1}, {Time: at, Where: "T2", What: "no", Then: "failed"}},
		Undone:    []string{"T1"}, Next: []Command{{"centurion show m", "see all"}}}
	m := &markdown{r: r}
	m.decisions()
	m.troubles()
	m.next()
	const when = "2026-03-01 12:00:00 UTC"
	want := "## What was asked, and the answers\n\n" +
		"- " + when + " permission of worker 0/1 · T1: bash make → **once**, by person, after 2s\n- " + when + " question of commander: T1 one asks → **" + cut(600) + "**\n- " + when + " plan: " + cut(600) + " → **waits**\n\n" +
		"## What you wrote to agents\n\n- " + when + " to worker 0/1 · T1: " + cut(600) + ", with a.png, b.png (read at " + when + ")\n- " + when + " to an agent: stop (not read yet)\n\n" +
		"## What went wrong, and what became of it\n\n- " + when + " " + cut(120) + ": " + cut(400) + " (2 more times) → went on\n- " + when + " T1: no (1 more time) → sent back\n- " + when + " T2: no → failed\n\n" +
		"## What you can do now\n\n" + inline(r.where()) + "\n\n- reverted: T1\n- `centurion show m` see all\n"
	if got := m.b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	r = &Report{}
	m = &markdown{r: r}
	m.decisions()
	m.troubles()
	if got := m.b.String(); got != "## What was asked, and the answers\n\nNo questions were asked.\n\n## What went wrong, and what became of it\n\nNothing.\n\n" {
		t.Errorf("of nothing: %q", got)
	}
}

// A command of the report is named with what it does.
func TestNextWhole(t *testing.T) {
	t.Parallel()
	said := func(m centurion.Mission) string {
		var b strings.Builder
		for _, c := range next(&Report{Mission: m}) {
			b.WriteString(c.Line + ": " + c.What + "\n")
		}
		return b.String()
	}
	for want, m := range map[string]centurion.Mission{
		"centurion asks: see what it waits for\ncenturion resume m: continue it\ncenturion diff m: see what it changed\ncenturion merge m: put its work on your branch\ncenturion undo m: revert what it changed\n": {ID: "m", Status: centurion.MissionBlocked, Branch: "b"},
		"centurion attach m: watch it\ncenturion pause m: pause it; it can be resumed\n":           {ID: "m", Status: centurion.MissionRunning},
		"centurion diff m: see what it changed\ncenturion undo m: take it off your branch again\n": {ID: "m", Status: centurion.MissionCompleted, Branch: "b", Merged: &centurion.Merged{Commit: "c"}},
	} {
		got := said(m)
		if before, last, ok := strings.Cut(got, "centurion show m: "); !ok || before != want || strings.TrimSpace(last) == "" {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
