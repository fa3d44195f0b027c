package tui

import (
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// OPAL-57, SUB-15, ORCH-98
func TestFrames(t *testing.T) {
	ask := func() *stage {
		return newStage().workers().at(centurion.EventPermissionAsked, "ses_T4", "tsk_T4", event.AskData{ID: "per_1", Type: "permission",
			Permission: "bash", Patterns: []string{"npm install left-pad"}, Always: []string{"npm install *"}, Title: "installs a package"})
	}
	question := newStage().workers().at(centurion.EventQuestionAsked, "ses_0", "", event.AskData{ID: "que_1", Type: "question",
		Text: "Which database?", Options: []string{"SQLite", "Postgres"}})
	tests := []struct {
		name  string
		stage *stage
		w, h  int
		env   []string
	}{
		{"start", newStage().start(), 80, 24, nil},
		{"plan", newStage().plan(), 80, 24, nil},
		{"workers", newStage().workers(), 100, 30, nil},
		{"workers-80x24", newStage().workers(), 80, 24, nil},
		{"workers-40", newStage().workers(), 40, 24, nil},
		{"workers-color", newStage().workers(), 100, 30, []string{"TERM=xterm"}},
		{"workers-flat", newStage().workers(), 80, 12, nil},
		{"check", newStage().checked(), 80, 24, nil},
		{"ask", ask(), 80, 24, nil},
		{"ask-40", ask(), 40, 24, nil},
		{"ask-flat", ask(), 80, 10, nil},
		{"question", question, 80, 24, nil},
		{"question-child", childQuestion(), 80, 24, nil},
		{"question-40", childQuestion(), 40, 20, nil},
		{"hostile", hostile(), 80, 24, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.stage.view(t, tt.w, tt.h, Options{Env: tt.env})
			golden(t, tt.name, m.screen())
			checkFrame(t, m.content, tt.w, tt.h)
			if tt.env == nil && strings.Contains(m.screen(), "\x1b") {
				t.Error("an escape sequence in spite of NO_COLOR")
			}
		})
	}
}

// checkFrame fails if a frame does not fit its terminal.
func checkFrame(t *testing.T, content string, w, h int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) > h {
		t.Errorf("%d lines on a terminal of %d", len(lines), h)
	}
	for _, l := range lines {
		if text.Width(l) > w {
			t.Errorf("%d cells on a terminal of %d: %q", text.Width(l), w, l)
		}
	}
}

const attack = "\x1b[2J\x1b[H\x1b]0;owned\a\x1b]52;c;ZWNobyBwd25k\x1b\\\x1b]8;;http://evil\x1b\\x\u202etxt.exe\u200b\u009b31m\r\nsecond\tline"

// hostile is a mission whose every text attacks the terminal.
func hostile() *stage {
	return newStage().
		at(centurion.EventMissionStarted, "ses_0", "", data{"goal": attack, "directory": attack, "status": "running"}).
		at(centurion.EventTaskQueued, "", "tsk_1", data{"agent": "wor\x1b[31mker", "title": attack, "item": "T\x1b[1A1"}).
		at(centurion.EventTaskStarted, "ses_1", "tsk_1", data{"status": "running"}).
		at(centurion.EventDelta, "ses_1", "tsk_1", event.DeltaData{Field: "text", Delta: "a\x1b]0;b\ac\x1b[2Jd"}).
		at(centurion.EventVerifyFailed, "ses_1", "tsk_1", event.VerifyData{Command: attack, ExitCode: 1, Output: attack}).
		at(centurion.EventMessageUpdated, "ses_0", "", data{"agent": "commander", "text": attack}).
		at(centurion.EventPermissionAsked, "ses_1", "tsk_1", event.AskData{ID: "per_1", Type: "permission", Permission: "bash",
			Patterns: []string{"echo " + attack}, Always: []string{attack}, Title: attack})
}

// Every frame fits every terminal, whatever is going on.
func TestFramesFit(t *testing.T) {
	for name, s := range map[string]*stage{"plan": newStage().plan(), "workers": newStage().workers(), "hostile": hostile(),
		"check": newStage().checked(), "end": newStage().checked().end()} {
		for w := minWidth; w <= 130; w += 22 {
			for h := 8; h <= 40; h += 16 {
				m := s.view(t, w, h, Options{})
				checkFrame(t, m.content, w, h)
				for _, l := range m.pending {
					if text.Width(l) > w {
						t.Errorf("%s %d×%d: %d cells: %q", name, w, h, text.Width(l), l)
					}
				}
			}
		}
	}
}

func TestManyWorkersAreFolded(t *testing.T) {
	s := newStage().start()
	for i := range 50 {
		id := string(rune('A'+i/10)) + string(rune('0'+i%10))
		s.task(id, "worker", "Do "+id, true)
	}
	m := s.view(t, 80, 24, Options{})
	checkFrame(t, m.content, 80, 24-freeLines)
	for _, want := range []string{"Slots: 50/50", "more workers"} {
		if !strings.Contains(m.content, want) {
			t.Errorf("no %q in\n%s", want, m.content)
		}
	}
}

func TestCountdown(t *testing.T) {
	s := newStage().start().at(centurion.EventMissionUpdated, "ses_0", "", data{"status": "running", "countdown_ms": 2000})
	s.now = s.now.Add(-time.Second) // view moves the clock on by a second
	if m := s.view(t, 80, 24, Options{}); !strings.Contains(m.content, "continues in 2s") {
		t.Errorf("no countdown in\n%s", m.content)
	}
	s.wait(5 * time.Second)
	if m := s.view(t, 80, 24, Options{}); strings.Contains(m.content, "continues in") {
		t.Errorf("a countdown that is over in\n%s", m.content)
	}
}

func BenchmarkFrame50(b *testing.B) {
	s := newStage().start()
	for i := range 50 {
		id := string(rune('A'+i/10)) + string(rune('0'+i%10))
		s.task(id, "worker", "Do "+id, true).tool(id, "bash", data{"command": "go test ./..."})
	}
	board := s.board()
	for b.Loop() {
		frame{board: board, theme: theme{true}, now: s.now, width: 120, height: 60}.lines()
	}
}
