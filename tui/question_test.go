package tui

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
)

// childQuestion is a question from two levels down, with others behind it.
func childQuestion() *stage {
	s := newStage().workers()
	for i := range 3 {
		s = s.at(centurion.EventQuestionAsked, "ses_T4", "tsk_T4", event.AskData{ID: fmt.Sprint("que_", i), Type: "question",
			Text: "Orders without an owner:\nwhat becomes of them?", Options: []string{"keep them", "delete them"},
			AskFrom: event.AskFrom{Agent: "clerk", Address: "0/1/2", Line: "commander 0/ › planner 0/1"}})
	}
	return s
}

// SUB-24: the person sees who asks what and how many more wait; the arrows choose, a number or words are typed, esc says
// that there is no answer. Several questions come one after the other.
func TestQuestionKeys(t *testing.T) {
	tests := []struct {
		name string
		keys []string
		want string
	}{
		{"first choice", []string{"down", "enter"}, "que_0=keep them"},
		{"second choice", []string{"down", "down", "enter"}, "que_0=delete them"},
		{"round", []string{"down", "down", "down", "enter"}, "que_0=keep them"},
		{"upwards", []string{"up", "enter"}, "que_0=delete them"},
		{"words count before the arrows", []string{"down", "s", "o", "enter"}, "que_0=so"},
		{"words cleared", []string{"down", "s", "backspace", "enter"}, "que_0=keep them"},
		{"by number", []string{"2", "enter"}, "que_0=delete them"},
		{"no choice of that number", []string{"3", "enter"}, ""},
		{"no choice of that number, then one", []string{"3", "enter", "2", "enter"}, "que_0=delete them"},
		{"no choice of that number, then words", []string{"0", "enter", "n", "o", "enter"}, "que_0=no"},
		{"no choice of that number, then the arrows", []string{"-", "1", "enter", "down", "enter"}, "que_0=keep them"},
		{"nothing chosen", []string{"enter"}, ""},
		{"no answer", []string{"x", "esc"}, "que_0=" + event.NoAnswer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := &answers{}
			m := childQuestion().view(t, 80, 24, Options{Answerer: a})
			if s := m.screen(); !strings.Contains(s, "clerk T4 asks") || !strings.Contains(s, "2 more") || !strings.Contains(s, "0/1/2, below commander 0/ › planner 0/1") {
				t.Errorf("it is not said who asks:\n%s", s)
			}
			keys(m, tt.keys...)
			if got := strings.Join(a.got, " "); got != tt.want {
				t.Errorf("answered %q, want %q", got, tt.want)
			}
		})
	}
}

// SUB-24: a number that no choice has is said to be none until the next key, and nothing is sent.
func TestNoSuchChoice(t *testing.T) {
	m := childQuestion().view(t, 80, 24, Options{Answerer: &answers{}})
	const said = "there is no choice 3; the question has 2 choices"
	keys(m, "3", "enter")
	if s := m.screen(); !strings.Contains(s, said) || strings.Contains(s, "› 3") {
		t.Errorf("it is not said, or what was typed is still there:\n%s", s)
	}
	keys(m, "2")
	if s := m.screen(); strings.Contains(s, said) || !strings.Contains(s, "› 2") {
		t.Errorf("it is still said:\n%s", s)
	}
	// Where a choice is itself a number, it is that one.
	a := &answers{}
	m = asked(centurion.EventQuestionAsked, event.AskData{ID: "que_1", Text: "How many?", Options: []string{"2", "30"}}).view(t, 80, 24, Options{Answerer: a})
	keys(m, "3", "0", "enter")
	keys(m, "3", "enter")
	if got := strings.Join(a.got, " "); got != "que_1=30" {
		t.Errorf("answered %q", got)
	}
}

// SUB-24: what is chosen is in sight, however little room there is.
func TestChoiceIsInSight(t *testing.T) {
	var options []string
	for i := range 10 {
		options = append(options, fmt.Sprint("choice-", i))
	}
	m := asked(centurion.EventQuestionAsked, event.AskData{ID: "que_1", Text: strings.Repeat("why? ", 60), Options: options}).view(t, 60, 12, Options{})
	for i := range 10 {
		keys(m, "down")
		if want := fmt.Sprintf("› %d  choice-%d", i+1, i); !strings.Contains(m.screen(), want) {
			t.Fatalf("%q is not in sight:\n%s", want, m.screen())
		}
	}
}
