package session_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
)

// call stores an answer with one call that is done.
func (p *past) call(tool, input, title, output string, meta map[string]any) error {
	m := centurion.Message{ID: centurion.NewID(centurion.PrefixMessage), SessionID: p.rec.ID, Role: centurion.RoleAssistant,
		Agent: p.rec.Agent, Model: ref, Finish: centurion.FinishToolCalls}
	p.n++
	return errors.Join(p.tx.PutMessage(&m), p.tx.PutPart(&centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: p.rec.ID, MessageID: m.ID,
		Type: centurion.PartTool, CallID: fmt.Sprintf("call_%d", p.n), Tool: tool, State: &centurion.ToolState{Status: centurion.ToolCompleted,
			Input: json.RawMessage(input), Title: title, Output: output, Metadata: meta}}))
}

// LOOP-20, C-17: whatever the model makes of what goes, the host keeps the person's answers with the questions, the files that
// were changed and in short what others have found, through one compaction after another, and within bounds.
func TestSummaryLosesNoDecision(t *testing.T) {
	model := &answerer{summary: func(provider.Request) (string, error) { return "Nothing to add.", nil }}
	r := rigOf(t, model, func(p *past) error {
		err := errors.Join(
			p.call("ask_user", `{"question":"Keep orphans?"}`, "Keep orphans?", "delete them, but keep a list", map[string]any{"question": "Keep orphans?", "answer": "x"}),
			p.call("write", `{"filePath":"lexer.go"}`, "lexer.go", "created", nil),
			p.call("edit", `{"filePath":"parse.go"}`, "parse.go", "edited", nil),
			p.call("read", `{"filePath":"untouched.go"}`, "untouched.go", "package x", nil),
			p.call("sub_agent", `{"prompt":"x"}`, "find the leak", "The leak is in pool.go:12.\n"+strings.Repeat("More words. ", 400), nil),
			p.user(centurion.OriginHost, "Task "+centurion.NewID(centurion.PrefixTask)+" (worker: T1 the codec) is completed.\nCost: 1 token.\n<result>\nThe codec is done.\n</result>"))
		for i := range 200 {
			err = errors.Join(err, p.call("write", fmt.Sprintf(`{"filePath":"made/%03d.go"}`, i%2), "x", "created", nil))
		}
		return errors.Join(err, rounds(30, 2000)(p))
	})
	r.cfg.Window = 16000
	r.reopen()
	kept := []string{"You asked: Keep orphans?\nThe answer: delete them, but keep a list", "\n- lexer.go\n- parse.go\n- made/000.go\n- made/001.go\n",
		"sub_agent, find the leak: The leak is in pool.go:12.", "(worker: T1 the codec) is completed. The codec is done.", "Nothing to add."}
	for n := range 3 {
		r.turn()
		if d := r.compactions(); len(d) != n+1 || d[n].ByHost {
			t.Fatalf("%d: %+v", n, d)
		}
		first := model.asked[len(model.asked)-1].Messages[0].Text
		for _, want := range kept {
			if strings.Count(first, want) != 1 {
				t.Errorf("compaction %d: %q stands %d times in:\n%s", n+1, want, strings.Count(first, want), first)
			}
		}
		if _, others, _ := strings.Cut(first, "\nWhat others did for you:\n"); !strings.Contains(others, kept[2]) || !strings.Contains(others, kept[3]) || strings.Contains(others, "\n- lexer.go") {
			t.Errorf("compaction %d: what others did stands among the files:\n%s", n+1, first)
		}
		if len(first) > 16000 || strings.Contains(first, "untouched.go") {
			t.Errorf("the summary has %d bytes: %s", len(first), first)
		}
		r.append(rounds(30, 2000))
	}
}

// Who asked for a shorter conversation is not told that it was too long, and the other way round.
func TestWhyThereIsASummary(t *testing.T) {
	for _, asked := range []bool{true, false} {
		model := &answerer{}
		r := rigOf(t, model, rounds(40, 1500))
		if !asked {
			r.cfg.Window = 16000
		}
		was := !asked
		r.cfg.Asked = func() bool { now := !was; was = true; return now }
		r.reopen()
		r.turn()
		r.reopen() // it is the same from the store
		r.say("and next")
		r.turn()
		for i, q := range model.asked {
			text := q.Messages[0].Text
			if strings.Contains(text, "The person asked for your conversation to be shortened.") != asked || strings.Contains(text, "became too long") == asked {
				t.Errorf("asked for: %v; request %d says: %.300s", asked, i, text)
			}
		}
	}
}
