package session

import (
	"bytes"
	"fmt"
	"strings"

	"centurion"
)

const (
	// tellSame is how many answers in a row may make the same calls and be refused in the same words before their model is told
	// so: a second try is worth it where somebody else works at the same time.
	tellSame = 3
	// maxSame is how many of them end the turn. By then the model was told seven times, and each answer more pays for the whole
	// history again.
	maxSame = 10
)

// sameNote begins what a refusal says that has come before. It parts the refusal from the note when the next is compared.
const sameNote = "\n\n(You have made this same call "

// StuckError ends a turn whose model makes the same call again and again and is refused in the same words: nothing changes by
// another request, and somebody else has to say how it goes on.
type StuckError struct {
	Tool  string // that was called
	Said  string // the refusal
	Times int    // in a row
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("the model has called %s %d times in a row with the same arguments and was refused each time: %s", e.Tool, e.Times, e.Said)
}

// Unwrap makes it an error of centurion.KindTimeout, as that of a turn without an end: it is not recovered by doing it again.
func (e *StuckError) Unwrap() error {
	return &centurion.Error{Op: "run session", Kind: centurion.KindTimeout, Msg: e.Said, Hint: "say what it should do instead"}
}

// told adds to a refusal what it should not have to be told again.
func told(said string, times int) string {
	return said + sameNote + fmt.Sprintf("%d times in a row with the same result: nothing has changed, and nothing will by making it again. "+
		"Do what the refusal says is missing, try another way, or end your turn and say what you need. After %d times your turn is ended.)", times, maxSame)
}

// said is a refusal as it was without such a note.
func said(p *centurion.Part) string {
	text, _, _ := strings.Cut(p.State.Error, sameNote)
	return text
}

// sameRow counts the answers at the end of a history that made the same calls, all of which were refused in the same words:
// 0 if a call of the last one was not refused, 1 if its refusal is new. Whatever else came in between ends the row.
func sameRow(history []centurion.Message) int {
	if len(history) == 0 {
		return 0
	}
	last := toolParts(&history[len(history)-1])
	for _, p := range last {
		if p.State.Status != centurion.ToolError {
			return 0
		}
	}
	if len(last) == 0 {
		return 0
	}
	n := 1
	for i := len(history) - 2; i >= 0 && sameCalls(toolParts(&history[i]), last); i-- {
		n++
	}
	return n
}

// toolParts are the calls of an answer; none of another message.
func toolParts(m *centurion.Message) (all []*centurion.Part) {
	if m.Role != centurion.RoleAssistant {
		return nil
	}
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Type == centurion.PartTool && p.State != nil {
			all = append(all, p)
		}
	}
	return all
}

func sameCalls(a, b []*centurion.Part) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Tool != b[i].Tool || a[i].State.Status != b[i].State.Status || said(a[i]) != said(b[i]) ||
			!bytes.Equal(canonical(a[i].State.Input), canonical(b[i].State.Input)) {
			return false
		}
	}
	return true
}

// noteSame tells the model, in the last call of the newest answer, that the answer repeats what came before. It does so where
// all of its calls have ended together: others may still be running.
func (r *callRun) noteSame(batch []int) {
	history := r.s.history
	if len(history) == 0 || r.msg != &history[len(history)-1] || len(batch) != len(r.parts) {
		return
	}
	p := r.part(batch[len(batch)-1])
	if n := sameRow(history); n >= tellSame && p.State.Status == centurion.ToolError {
		p.State.Error = told(said(p), n)
	}
}

// stuck returns why a turn ends that makes no headway, or nil.
func (s *Session) stuck() error {
	n := sameRow(s.history)
	if n < maxSame {
		return nil
	}
	p := toolParts(&s.history[len(s.history)-1])[0]
	return &StuckError{Tool: p.Tool, Said: said(p), Times: n}
}
