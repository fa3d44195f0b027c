package scripted

import (
	"centurion"
	"fmt"
	"slices"
	"strings"
)

// What a program may add to a history. A status at the very end may change with each request; a summary in the first user message
// replaces what a compaction removed; a speaker's mark may come and go with what was removed.
const (
	statusOpen, statusClose = "<status>\n", "\n</status>"
	summaryOpen             = "<summary>\n"
	speaker                 = "From the person:\n"
	brought                 = "Files that the results above have brought:" // if the results themselves have none
)

// hidden replaces a file that is not sent, or no longer: another model does not accept it, or a request may not have more files.
var hidden = centurion.Pattern(`\n\([^\n]* is not shown(?:: this model| any more)[^\n]*\)`)

// line is a history as a session has sent it.
type line struct {
	msgs  []Message
	model string
	api   api
}

// goOn returns why a request does not continue what its session has sent before, or "". A history may only grow: what was sent is sent
// again, unchanged, followed by new results and messages. Two exceptions are legitimate: a compaction, after which the first user
// message holds a summary and the rest is the end of the previous history; and, with Config.Rewinds, going back to an earlier point and
// starting another line from there. Reasoning may be left out, and is not compared between models.
func (s *session) goOn(r Request, msgs []Message, rewinds bool) string {
	now := line{msgs: settled(msgs), model: r.Model, api: r.api}
	if len(s.lines) == 0 {
		s.lines = []line{now}
		return ""
	}
	fault := ""
	for i := len(s.lines) - 1; i >= 0; i-- {
		if f := s.lines[i].before(now, len(s.names) == 0); f == "" {
			s.lines = append(slices.Delete(s.lines, i, i+1), now) // the newest is the last
			return ""
		} else if fault == "" {
			fault = f
		}
	}
	if rewinds && slices.ContainsFunc(s.lines, func(l line) bool { return l.hasBeginningOf(now) }) {
		s.lines = append(s.lines, now)
		return ""
	}
	return fault
}

// before returns why now does not continue l, or "".
func (l line) before(now line, toolless bool) string {
	n := l.common(now)
	switch {
	case n == len(l.msgs), n == len(l.msgs)-1 && n < len(now.msgs) && grown(l.msgs[n], now.msgs[n]):
		return ""
	case toolless && len(l.msgs) == 2 && len(now.msgs) == 2:
		return "" // questions without a history, such as those for a summary
	case len(now.msgs) > 1 && strings.Contains(now.msgs[1].Text, summaryOpen) && n <= 2: // a summary may read like the previous one
		return l.compacted(now)
	case n == len(now.msgs):
		return fmt.Sprintf("the history is shorter than that of the session's previous request: messages[%d], %s, is missing", n, brief(l.msgs[n]))
	}
	return fmt.Sprintf("the history is not that of the session's previous request: messages[%d] was %s and is %s", n, brief(l.msgs[n]), brief(now.msgs[n]))
}

// common returns how many messages l and now have in common at the start.
func (l line) common(now line) int {
	n := 0
	for n < len(l.msgs) && n < len(now.msgs) && l.same(now, l.msgs[n], now.msgs[n]) {
		n++
	}
	return n
}

// hasBeginningOf reports whether now goes back to an earlier point of l: everything up to there is the same, at least the person's
// first message, or nothing follows the system prompt but another one.
func (l line) hasBeginningOf(now line) bool {
	n := l.common(now)
	return n >= 2 || n == 1 && len(now.msgs) == 2 || n == 1 && len(l.msgs) > 1 && len(now.msgs) > 1 && grown(l.msgs[1], now.msgs[1])
}

// same reports whether a, of l, and b, of now, are the same message.
func (l line) same(now line, a, b Message) bool {
	if a.Role != b.Role || hidden().ReplaceAllString(a.Text, "") != hidden().ReplaceAllString(b.Text, "") || len(a.Calls) != len(b.Calls) {
		return false
	}
	// The results before a user's message may have brought its files.
	if !slices.Equal(a.Files, b.Files) && !hidden().MatchString(a.Text+b.Text) && a.Role != "user" {
		return false
	}
	if l.model == now.model && b.Reasoning != "" && a.Reasoning != b.Reasoning {
		return false
	}
	ids := l.api == now.api // another API may use other ids
	if ids && a.CallID != b.CallID {
		return false
	}
	for i := range a.Calls {
		if a.Calls[i].Name != b.Calls[i].Name || a.Calls[i].Arguments != b.Calls[i].Arguments || ids && a.Calls[i].ID != b.Calls[i].ID {
			return false
		}
	}
	return true
}

// grown reports whether b is the user message a with text appended. A remaining status does not count as text.
func grown(a, b Message) bool {
	more, ok := strings.CutPrefix(b.Text, a.Text+"\n\n")
	return ok && a.Role == "user" && b.Role == "user" && !strings.Contains(more, statusOpen)
}

// compacted returns why now is no compaction of l, or "".
func (l line) compacted(now line) string {
	if l.common(now) < 1 {
		return "the system prompt changed with a compaction"
	}
	first, _, _ := strings.Cut(now.msgs[1].Text, "\n\n"+summaryOpen)
	if len(l.msgs) < 2 || !strings.HasPrefix(l.msgs[1].Text, first) {
		return "after a compaction the first message of the user does not begin as it did"
	}
	if len(now.msgs) == 2 {
		return ""
	}
	fault := ""
	for k := 2; k < len(l.msgs); k++ {
		if l.msgs[k].Role != "assistant" || !l.same(now, l.msgs[k], now.msgs[2]) {
			continue
		}
		f := l.kept(now, k)
		if f == "" {
			return ""
		}
		fault = f
	}
	return fault // if nothing is kept, the rest is new
}

// kept returns why now does not keep l from k on, or "".
func (l line) kept(now line, k int) string {
	for i, a := range l.msgs[k:] {
		at := 2 + i
		if at >= len(now.msgs) {
			return fmt.Sprintf("after a compaction the end of the history is missing: %s", brief(a))
		}
		b := now.msgs[at]
		newest := k+i == len(l.msgs)-1
		x, y := a, b
		x.Text, y.Text = strings.ReplaceAll(a.Text, speaker, ""), strings.ReplaceAll(b.Text, speaker, "")
		if a.Role == "tool" && shortened(a.Text, b.Text) {
			x.Text = y.Text
		}
		if !l.same(now, x, y) && !(newest && grown(x, y)) {
			return fmt.Sprintf("after a compaction messages[%d] was %s and is %s", at, brief(a), brief(b))
		}
	}
	return ""
}

// shortened reports whether b is a with its middle cut out.
func shortened(a, b string) bool {
	const note = 60 // maximum bytes of the note about it
	if len(b) >= len(a) {
		return false
	}
	head := commonPrefix([]byte(a), []byte(b))
	tail := 0
	for tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head+tail >= len(b)-note
}

// settled drops the parts of a request's messages that only belong to the newest one, and those between results and the following
// messages that last only as long as their files are sent.
func settled(msgs []Message) []Message {
	var out []Message
	for _, m := range withoutStatus(msgs) {
		if rest, ok := strings.CutPrefix(m.Text, brought); ok && m.Role == "user" {
			if m.Text = strings.TrimPrefix(rest, "\n\n"); m.Text == "" {
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

func withoutStatus(msgs []Message) []Message {
	n := len(msgs)
	if n == 0 || msgs[n-1].Role != "user" || !strings.HasSuffix(msgs[n-1].Text, statusClose) {
		return msgs
	}
	last := msgs[n-1]
	at := strings.LastIndex(last.Text, statusOpen)
	if at < 0 {
		return msgs
	}
	last.Text = strings.TrimSuffix(last.Text[:at], "\n\n")
	if last.Text == "" {
		return msgs[:n-1]
	}
	return append(slices.Clone(msgs[:n-1]), last)
}

// brief quotes a message.
func brief(m Message) string {
	text := m.Text
	for _, c := range m.Calls {
		text += " [call " + c.ID + " of " + c.Name + " " + c.Arguments + "]"
	}
	if m.CallID != "" {
		text = "[result of " + m.CallID + "] " + text
	}
	if len(text) > 120 {
		text = strings.ToValidUTF8(text[:60], "") + " … " + strings.ToValidUTF8(text[len(text)-50:], "")
	}
	return fmt.Sprintf("%s %q", m.Role, text)
}
