package session

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"centurion"
)

const (
	// tellRefused is how many consecutive answers may make the same calls with the same refusals before their model is told: a second
	// try is useful if another agent works at the same time.
	tellRefused = 3
	// endRefused is how many of them end the turn. By then the model was told seven times, and each further answer pays for the whole
	// history again.
	endRefused = 10
	// tellSame and endSame are the limits for successful calls with the same result, since waiting is a reason for repetition.
	tellSame = 10
	endSame  = 20
)

// sameNote begins the note on a repeated result. It separates the result from the note in comparisons.
const sameNote = "\n\n(You have made this same call "

// StuckError ends a turn without progress: its model repeats a call with the same result, or its answers are cut off at the output
// limit. Another request would not help, so someone else has to decide.
type StuckError struct {
	Tool    string // the repeated tool; empty if answers were cut off
	Said    string // its result, or the refusal; the finish reason of a cut-off answer
	Refused bool   // every call was refused
	Times   int    // consecutive repetitions
}

func (e *StuckError) Error() string { return "the model " + e.Did() }

// Did describes what happened: "has called bash 20 times in a row …".
func (e *StuckError) Did() string {
	times := centurion.Count(e.Times, "time")
	switch {
	case e.Tool == "" && e.Said != centurion.FinishLength:
		return fmt.Sprintf("broke off its answer %s in a row before it was complete (%s)", times, e.Said)
	case e.Tool == "":
		return fmt.Sprintf("was cut off at its output limit %s in a row before its answer was complete", times)
	case e.Refused:
		return fmt.Sprintf("has called %s %s in a row with the same arguments and was refused each time: %s", e.Tool, times, e.Said)
	}
	return fmt.Sprintf("has called %s %s in a row with the same arguments and the same result: %s", e.Tool, times, centurion.Clip(e.Said, 400))
}

// Unwrap makes it an error of centurion.KindTimeout, like that of an endless turn, which a retry does not fix.
func (e *StuckError) Unwrap() error {
	return &centurion.Error{Op: "run session", Kind: centurion.KindTimeout, Msg: e.Error(), Hint: "say what it should do instead"}
}

// told adds the note on repetitions to a result.
func told(said string, refused bool, times int) string {
	advice, most := "Use the result that you have and do the next step, try another way, or end your turn and say what you wait for.", endSame
	if refused {
		advice, most = "Do what the refusal says is missing, try another way, or end your turn and say what you need.", endRefused
	}
	return said + sameNote + fmt.Sprintf("%s in a row with the same result: nothing has changed, and repeating the call will not change it. "+
		"%s After %s your turn ends.)", centurion.Count(times, "time"), advice, centurion.Count(most, "time"))
}

// said is the result of a call without such a note.
func said(p *centurion.Part) string {
	text, _ := p.State.Result()
	text, _, _ = strings.Cut(text, sameNote)
	return text
}

// sameRow counts consecutive answers at the end of a history with the same calls and the same results, and reports whether these are
// refusals. Repetitions of a successful call within one answer count, too. It is 0 if the last answer has no calls, or only some were
// refused. Any other message ends the count.
func sameRow(history []centurion.Message) (n int, refused bool) {
	if len(history) == 0 {
		return 0, false
	}
	last := toolParts(&history[len(history)-1])
	if len(last) == 0 {
		return 0, false
	}
	refused = last[0].State.Status == centurion.ToolError
	for _, p := range last {
		if s := p.State.Status; s != last[0].State.Status || s != centurion.ToolError && s != centurion.ToolCompleted {
			return 0, false
		}
	}
	if one := last[len(last)-1]; !refused && allAre(last, one) {
		for _, m := range slices.Backward(history) {
			parts := toolParts(&m)
			for _, p := range slices.Backward(parts) {
				if !sameCall(p, one) {
					return n, false
				}
				n++
			}
			if len(parts) == 0 {
				break
			}
		}
		return n, false
	}
	n = 1
	for i := len(history) - 2; i >= 0 && slices.EqualFunc(toolParts(&history[i]), last, sameCall); i-- {
		n++
	}
	return n, refused
}

func allAre(parts []*centurion.Part, one *centurion.Part) bool {
	return !slices.ContainsFunc(parts, func(p *centurion.Part) bool { return !sameCall(p, one) })
}

// toolParts are the calls of an answer; none for other messages.
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

// sameCall reports whether two calls are the same and had the same result.
func sameCall(a, b *centurion.Part) bool {
	return a.Tool == b.Tool && a.State.Status == b.State.Status && said(a) == said(b) &&
		bytes.Equal(canonical(a.State.Input), canonical(b.State.Input)) &&
		slices.EqualFunc(a.State.Attachments, b.State.Attachments, func(a, b centurion.Part) bool {
			return a.File != nil && b.File != nil && bytes.Equal(a.File.Data, b.File.Data)
		})
}

// noteSame adds a note to the last call of the newest answer if the answer repeats earlier ones. It does so only if all its calls have
// ended together; otherwise some may still run.
func (r *callRun) noteSame(batch []int) {
	history := r.s.history
	if len(history) == 0 || r.msg != &history[len(history)-1] || len(batch) != len(r.parts) {
		return
	}
	p := r.part(batch[len(batch)-1])
	switch n, refused := sameRow(history); {
	case refused && n >= tellRefused:
		p.State.Error = told(said(p), true, n)
	case !refused && n >= tellSame:
		p.State.Output = told(said(p), false, n)
	}
}

// stuck returns the error that ends a turn without progress, or nil.
func (s *Session) stuck() error {
	n, refused := sameRow(s.history)
	if n < endRefused || !refused && n < endSame {
		return nil
	}
	p := toolParts(&s.history[len(s.history)-1])[0]
	return &StuckError{Tool: p.Tool, Said: said(p), Refused: refused, Times: n}
}
