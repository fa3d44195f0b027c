package session

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"centurion"
)

// clipped is the mark of a tool part whose result is sent cut to so many bytes. Only the memory has it: what is stored stays whole, and the
// compaction lists the cuts.
const clipped = "clipped"

// pointer returns the compaction that a message stands for, or nil.
func pointer(m *centurion.Message) *centurion.Compaction {
	for i := range m.Parts {
		if m.Parts[i].Type == centurion.PartCompaction {
			return m.Parts[i].Compaction
		}
	}
	return nil
}

// accepted reports whether a message is a whole answer of the model.
func accepted(m *centurion.Message) bool {
	return m.Role == centurion.RoleAssistant && !m.Summary && m.Finish != "" && m.Finish != centurion.FinishError &&
		m.Finish != centurion.FinishCancelled
}

// view is what a model is sent of a session: the first message, the newest summary with its pointer, and what is kept.
type view struct {
	history []centurion.Message
	fresh   int // index of the first message that is newer than the summary
	row     int // compactions since the last answer
}

// viewOf lays the stored messages out as the newest compaction says. A pointer that leads nowhere does not count: then
// too much is sent rather than too little. What is laid out already stays as it is.
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
		case tail > k: // laid out already
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

// clip returns a message whose results are sent cut as a compaction says.
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

// cutTo returns the state of a call whose result is sent cut to n bytes.
func cutTo(st *centurion.ToolState, n int) *centurion.ToolState {
	cut := *st
	cut.Metadata = maps.Clone(st.Metadata)
	if cut.Metadata == nil {
		cut.Metadata = map[string]any{}
	}
	cut.Metadata[clipped] = n
	return &cut
}

// clipsOf lists the parts whose results are sent cut.
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

// head returns the index of the first message that a compaction may replace: the first message is never replaced, and
// a summary with its pointer goes with what it stands for.
func head(history []centurion.Message) int {
	if len(history) > 2 && pointer(&history[1]) != nil && history[2].Summary {
		return 3
	}
	return min(1, len(history))
}

// minGone is the size in bytes below which the older part of a conversation is not worth a summary: that would be no shorter.
const minGone = 1000

// Short reports whether nothing of a conversation can be shortened: beside its first message, a summary and its newest message there is
// hardly anything. The messages are those of its current line.
func Short(stored []centurion.Message) bool {
	history := viewOf(stored).history
	from := head(history)
	return weightOf(history[from:max(from, len(history)-1)]) < minGone
}

// border returns the index of the first message that stays when the newest messages may have so many bytes: the start of
// a turn. The newest turn may be larger, up to hard; beyond that the border is the start of one of its steps. An answer and
// the results of its calls are one message, so that no border parts them. The newest step stays however large it is, and
// all that nobody has answered.
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
	case last >= 0 && (step < 0 || sum <= budget): // it is that message itself that is so large
		return last
	case step < 0 || sum <= budget:
		return from
	}
	return step
}

// weight is how many bytes a message adds to a request, about.
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
			n += len(resultOf(p.State)) + tokensOfFiles(filesOf(p.State.Attachments))*perToken
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

// clipMiddle keeps the beginning and the end of a text that has more than n bytes, and says what is missing.
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

// clipResults returns copies of the messages in which no result is longer than n bytes, with the parts that changed.
func clipResults(history []centurion.Message, n int) (cut []centurion.Message, changed []centurion.Part) {
	cut = slices.Clone(history)
	for i := range cut {
		m := &cut[i]
		for j, p := range m.Parts {
			if p.Type != centurion.PartTool || !sent(p) || len(resultOf(p.State)) <= n+100 { // the note has its length, too
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

// quotes are the words of people, and of whoever gave the task, that a summary stands for: they are kept as they were
// said, the newest in full, and so are a person's answers to what the agent asked, with the question. A message of the host
// counts if it is what the running turn answers to.
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
