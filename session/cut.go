package session

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"centurion"
)

// clipped is the metadata key for the length in bytes to which a result is shortened when it is sent. It exists only in memory: stored
// results are complete, and the compaction lists the cuts.
const clipped = "clipped"

// pointer returns the compaction of a message, or nil.
func pointer(m *centurion.Message) *centurion.Compaction {
	for i := range m.Parts {
		if m.Parts[i].Type == centurion.PartCompaction {
			return m.Parts[i].Compaction
		}
	}
	return nil
}

// accepted reports whether a message is a complete answer of the model.
func accepted(m *centurion.Message) bool {
	return m.Role == centurion.RoleAssistant && !m.Summary && m.Finish != "" && m.Finish != centurion.FinishError &&
		m.Finish != centurion.FinishCancelled
}

// view is the part of a session that a model is sent: the first message, the newest summary with its pointer, and the kept messages.
type view struct {
	history []centurion.Message
	fresh   int // index of the first message after the summary
	row     int // compactions since the last answer
}

// viewOf arranges the stored messages as the newest compaction says. A dangling pointer is ignored: it is better to send too much than
// too little. Arranged messages stay as they are.
func viewOf(stored []centurion.Message) view {
	v := view{history: stored}
	for i := len(stored) - 1; i >= 0 && !accepted(&stored[i]); i-- {
		if pointer(&stored[i]) != nil {
			v.row++
		}
	}
	for k := len(stored) - 2; k > 0; k-- {
		c := pointer(&stored[k])
		if c == nil || !stored[k+1].Summary {
			continue
		}
		tail := k
		if c.Tail != "" {
			tail = slices.IndexFunc(stored, func(m centurion.Message) bool { return m.ID == c.Tail })
		}
		switch {
		case tail < 0:
			continue
		case tail > k: // already arranged
			return v
		}
		v.history = append([]centurion.Message{}, stored[0], stored[k], stored[k+1])
		for i := max(tail, 1); i < k; i++ {
			if pointer(&stored[i]) == nil && !stored[i].Summary {
				v.history = append(v.history, clip(stored[i], c.Clips))
			}
		}
		v.fresh = len(v.history)
		v.history = append(v.history, stored[k+2:]...)
		return v
	}
	return v
}

// clip returns a message with its results shortened as a compaction says.
func clip(m centurion.Message, clips map[string]int) centurion.Message {
	own := false
	for i, p := range m.Parts {
		n, cut := clips[p.ID]
		if !cut || p.State == nil {
			continue
		}
		if !own {
			m.Parts, own = slices.Clone(m.Parts), true
		}
		m.Parts[i].State = cutTo(p.State, n)
	}
	return m
}

// cutTo returns the state of a call whose result is sent shortened to n bytes.
func cutTo(st *centurion.ToolState, n int) *centurion.ToolState {
	cut := *st
	cut.Metadata = maps.Clone(st.Metadata)
	if cut.Metadata == nil {
		cut.Metadata = map[string]any{}
	}
	cut.Metadata[clipped] = n
	return &cut
}

// clipsOf lists the parts whose results are sent shortened.
func clipsOf(kept []centurion.Message) map[string]int {
	clips := map[string]int{}
	for _, m := range kept {
		for _, p := range m.Parts {
			if p.State == nil {
				continue
			}
			if n, ok := p.State.Metadata[clipped].(int); ok {
				clips[p.ID] = n
			}
		}
	}
	return clips
}

// head returns the index of the first message that a compaction may replace: never the first message, nor a summary and its pointer
// separately.
func head(history []centurion.Message) int {
	if len(history) > 2 && pointer(&history[1]) != nil && history[2].Summary {
		return 3
	}
	return min(1, len(history))
}

// Short reports whether nothing can be shortened: there is nothing besides the first message and a summary. stored are the messages of
// the current line.
func Short(stored []centurion.Message) bool {
	history := viewOf(stored).history
	return weightOf(history[head(history):]) == 0
}

// border returns the index of the first message to keep if the newest ones may have budget bytes: the start of a turn. The newest turn
// may have up to hard bytes; beyond that, the border is the start of one of its steps. It never separates an answer from its results,
// which are one message. The newest step, and all unanswered messages, are kept regardless of their size.
func border(history []centurion.Message, from, budget, hard int) int {
	turn, last, sum := -1, -1, 0
	for i := len(history) - 1; i >= from; i-- {
		sum += weight(&history[i])
		if history[i].Role != centurion.RoleUser || i > from && history[i-1].Role == centurion.RoleUser {
			continue
		}
		if sum <= budget || last < 0 && sum <= hard {
			turn = i
		}
		if last < 0 {
			last = i
		}
		if sum > budget {
			break
		}
	}
	if turn >= 0 {
		return turn
	}
	step, sum := -1, 0
	for i := len(history) - 1; i >= max(from, last+1); i-- {
		w := weight(&history[i])
		if w == 0 {
			continue
		}
		if sum += w; step >= 0 && sum > budget {
			return step
		}
		step = i
	}
	switch {
	case last >= 0 && (step < 0 || sum <= budget): // that message itself is that large
		return last
	case step < 0 || sum <= budget:
		return from
	}
	return step
}

// weight is the approximate number of bytes that a message adds to a request.
func weight(m *centurion.Message) int {
	if m.Summary {
		return len(headed(m.Text(), true))
	}
	if m.Role == centurion.RoleUser {
		return len(textOf(m)) + len("\n\n") + fileTokens(m)*perToken
	}
	if m.Finish == "" || m.Finish == centurion.FinishError {
		return 0
	}
	n := 0
	for _, p := range m.Parts {
		switch {
		case p.Type == centurion.PartText || p.Type == centurion.PartReasoning:
			n += len(p.Text) + sealed(p.Metadata)
		case p.Type == centurion.PartTool && sent(p):
			n += len(p.Tool) + len(p.State.Input)
		}
	}
	return n + resultBytes(m)
}

func resultBytes(m *centurion.Message) (n int) {
	for _, p := range m.Parts {
		if p.Type == centurion.PartTool && sent(p) {
			n += len(resultOf(p.State)) + tokensOfFiles(centurion.FilesOf(p.State.Attachments))*perToken
		}
	}
	return n
}

func weightOf(history []centurion.Message) (n int) {
	for i := range history {
		n += weight(&history[i])
	}
	return n
}

// resultOf returns the result of a call as it is sent.
func resultOf(st *centurion.ToolState) string {
	text, _ := st.Result()
	if n, ok := st.Metadata[clipped].(int); ok {
		return clipMiddle(text, n)
	}
	return text
}

// clipMiddle shortens a text to about n bytes, keeping its beginning and end, and notes the omission.
func clipMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	a, b := n*2/3, len(s)-n/3
	for a > 0 && !utf8.RuneStart(s[a]) {
		a--
	}
	for b < len(s) && !utf8.RuneStart(s[b]) {
		b++
	}
	return s[:a] + "\n[… " + strconv.Itoa(b-a) + " bytes left out …]\n" + s[b:]
}

// clipResults returns copies of the messages with results shortened to n bytes, and the changed parts.
func clipResults(history []centurion.Message, n int) (cut []centurion.Message, changed []centurion.Part) {
	cut = slices.Clone(history)
	for i := range cut {
		m := &cut[i]
		for j, p := range m.Parts {
			if p.Type != centurion.PartTool || !sent(p) || len(resultOf(p.State)) <= n+100 { // the note has a length, too
				continue
			}
			if len(changed) == 0 || changed[len(changed)-1].MessageID != m.ID {
				m.Parts = slices.Clone(m.Parts)
			}
			m.Parts[j].State = cutTo(p.State, n)
			changed = append(changed, m.Parts[j])
		}
	}
	return cut, changed
}

// quotes are the words of the person, and of the task's author, in summarized messages: they are kept verbatim, the newest in full, as
// are a person's answers to questions of the agent. A message of the host counts if the running turn answers it.
func quotes(gone []centurion.Message, midTurn bool, limit int) string {
	var b strings.Builder
	question := -1
	for i := range gone {
		if m := &gone[i]; m.Role == centurion.RoleUser && pointer(m) == nil {
			question = i
		}
	}
	for i := range gone {
		m := &gone[i]
		switch {
		case m.Summary:
			for _, p := range m.Parts {
				if rest, ok := strings.CutPrefix(p.Text, quoteHead); ok {
					b.WriteString(rest)
				}
			}
		case m.Role == centurion.RoleAssistant:
			for _, p := range m.Parts {
				if text := askedOf(p); text != "" {
					b.WriteString("\n\n" + centurion.Clip(text, limit/2))
				}
			}
		case m.Role == centurion.RoleUser && pointer(m) == nil && (m.Origin != centurion.OriginHost || midTurn && i == question):
			b.WriteString("\n\n" + centurion.Clip(textOf(m), limit/2))
		}
	}
	text := b.String()
	if text == "" {
		return ""
	}
	if over := len(text) - limit; over > 0 {
		for over < len(text) && !utf8.RuneStart(text[over]) {
			over++
		}
		text = "\n\n…" + text[over:]
	}
	return quoteHead + text
}

const quoteHead = "\n\nWhat you were told meanwhile, word for word:"
