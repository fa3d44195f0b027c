package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/provider"
)

// The introduction of a summary in the history for a model: in the first message, after its original text.
const (
	longHead    = "Your conversation became too long."
	askedHead   = "The person asked for your conversation to be shortened."
	summaryHead = " What came after the message above and before what follows is left out; this stands for it:\n\n"
	summaryFoot = "\n</summary>"
)

// headed is a summary as it is sent, with the reason for it.
func headed(text string, asked bool) string {
	why := longHead
	if asked {
		why = askedHead
	}
	return "<summary>\n" + why + summaryHead + text + summaryFoot
}

// summarySystem is the whole system prompt of a request for a summary. It names no agent and offers no tools: the only task is to
// write.
const summarySystem = `Write a summary of the record of an agent's work that you are given. It will replace the record: the agent continues its task and knows nothing else of what it did. Do not do the task and do not answer questions that stand in the record.

Say, under short headings and in as few words as possible:
- Task: what is to be reached, and every instruction, limit and decision of the person, word for word where the wording counts.
- Done: what was changed or found, with file paths, names, commands and what came of them.
- State: what works, what fails and with which error, what others are working on, ids of tasks that may be needed.
- Next: what the agent was about to do, and what is still open.

Leave out what was tried and given up, unless it must not be tried again. Do not invent anything.`

// summarize fills in the replacement of the removed messages. The model writes it; if that fails, the host makes one from its records.
// An error ends the session itself.
func (s *Session) summarize(ctx context.Context, p *plan) error {
	limit := summaryBytes(p.room)
	if len(p.gone) == 0 { // only results were shortened: the earlier replacement stays valid
		p.text, p.byHost = "Long results below are cut.", true
		if head(s.history) == 3 {
			p.text = summaryText(&s.history[2])
			p.quotes, p.record = quotes(s.history[1:3], false, limit), record(s.history[1:3], limit/3)
		}
		return nil
	}
	p.quotes, p.record = quotes(p.gone, p.midTurn, limit/2), record(p.gone, limit/3)
	limit -= len(p.record)
	err := s.askSummary(ctx, p, limit)
	if err == nil && p.text != "" {
		return nil
	}
	if cause := ended(ctx); cause != nil {
		return cause
	}
	switch centurion.KindOf(err) {
	case centurion.KindDisk, centurion.KindState, centurion.KindConflict, centurion.KindBudget:
		return err
	}
	if s.leaf != "" {
		return unwritten(err)
	}
	p.text, p.byHost = recordOf(p.gone, limit), true
	return nil
}

// askSummary requests a summary from the model.
func (s *Session) askSummary(ctx context.Context, p *plan, limit int) error {
	out := 4096
	if s.cfg.Window > 0 {
		out = min(out, s.cfg.Window/8)
	}
	target := p.target
	if p.why != event.CompactedOverflow { // after an overflow the assumed window is wrong
		target = max(target, s.limit())
	}
	room := (target-out)*perToken - len(summarySystem) - 500
	prompt := fmt.Sprintf("The record:\n\n%s\n\nWrite the summary now, in at most %d words.", transcript(s.history[0], p.gone, max(room, 2000)), max(limit/8, 50))
	system, prompt := s.hookSummary(ctx, summarySystem, prompt)
	req := provider.Request{Session: s.rec.ID + "-summary", Parent: s.rec.ID, System: system, MaxOutput: out,
		Messages: []provider.Message{{Role: provider.User, Text: prompt}}}
	var text strings.Builder
	var tokens centurion.Tokens
	over, err := s.reserve(ctx, &req, Need{Input: TokensOf(len(req.System) + len(prompt)), MaxOut: out})
	if err != nil {
		return err
	}
	p.asked, p.over = true, over
	err = s.readSummary(ctx, req, &text, &tokens)
	if tokens.Total() == 0 && text.Len() > 0 {
		tokens = estimate(req, text.Len())
	}
	if tokens.Total() > 0 {
		p.usage = s.cfg.Price.Cost(tokens)
	}
	err = errors.Join(err, s.cfg.Host.Waiting(ctx, nil))
	if err == nil {
		p.text = clipMiddle(strings.TrimSpace(text.String()), limit)
	}
	return err
}

func (s *Session) readSummary(ctx context.Context, req provider.Request, text *strings.Builder, tokens *centurion.Tokens) error {
	for d, err := range s.cfg.Model.Stream(ctx, req) {
		if err != nil {
			return err
		}
		switch d.Type {
		case provider.Waiting:
			if err := s.retrying(ctx, d.Wait); err != nil {
				return err
			}
		case provider.Text:
			text.WriteString(d.Text)
		case provider.Done:
			*tokens = d.Tokens
			if d.Finish == centurion.FinishFilter || d.Finish == centurion.FinishError {
				return &centurion.Error{Op: "summarize history", Kind: centurion.KindRefusal, Msg: "the model refused"}
			}
			return nil
		}
	}
	return &centurion.Error{Op: "summarize history", Kind: centurion.KindStreamCut, Msg: "the answer ended without a finish reason"}
}

// transcript writes messages as a text of about limit bytes, for a reader without tools: it shortens long results first, then omits the
// middle.
func transcript(first centurion.Message, gone []centurion.Message, limit int) string {
	text := ""
	for _, clip := range []int{2000, 500, 120} {
		var b strings.Builder
		b.WriteString("[task]\n" + clipMiddle(textOf(&first), max(limit/4, 200)) + "\n")
		for i := range gone {
			tell(&b, &gone[i], clip)
		}
		if text = b.String(); len(text) <= limit {
			return text
		}
	}
	return clipMiddle(text, limit)
}

func tell(b *strings.Builder, m *centurion.Message, clip int) {
	switch {
	case pointer(m) != nil || m.Finish == centurion.FinishError:
		return
	case m.Summary:
		b.WriteString("\n[summary of what came before]\n" + m.Text() + "\n")
		return
	case m.Role == centurion.RoleUser:
		fmt.Fprintf(b, "\n[%s]\n%s\n", cmp.Or(m.Origin, "user"), clipMiddle(textOf(m), 4*clip))
		return
	}
	if t := m.Text(); t != "" {
		b.WriteString("\n[agent]\n" + clipMiddle(t, 2*clip) + "\n")
	}
	for _, p := range m.Parts {
		if p.Type != centurion.PartTool || !sent(p) {
			continue
		}
		_, failed := p.State.Result()
		fmt.Fprintf(b, "\n[call %s]%s %s\n%s\n", p.Tool, map[bool]string{true: " failed"}[failed], clipMiddle(string(p.State.Input), clip/2),
			clipMiddle(resultOf(p.State), clip))
	}
}

// recordOf makes a summary without a model: calls and their results, changed files, and the newest texts. If there is not room for all,
// the newest of each are kept.
func recordOf(gone []centurion.Message, limit int) string {
	var calls, texts []string
	files := newPathSet()
	earlier := ""
	for i := range gone {
		m := &gone[i]
		switch {
		case m.Summary:
			earlier = summaryText(m)
		case weight(m) == 0:
		case textOf(m) != "":
			who := cmp.Or(string(m.Origin), "you")
			texts = append(texts, fmt.Sprintf("- %s: %s", who, clipMiddle(textOf(m), 500)))
		}
		for _, p := range m.Parts {
			if p.Type != centurion.PartTool || !sent(p) {
				continue
			}
			what := cmp.Or(p.State.Title, centurion.Clip(string(p.State.Input), 100))
			outcome := "done"
			if p.State.Status == centurion.ToolError {
				outcome = "failed: " + centurion.Clip(p.State.Error, 120)
			}
			calls = append(calls, fmt.Sprintf("- %s %s: %s", p.Tool, what, outcome))
			files.add(fileOf(p)...)
		}
	}
	var b strings.Builder
	if earlier != "" {
		b.WriteString(clipMiddle(earlier, limit/3) + "\n\n")
	}
	section(&b, "Files changed", files.sorted(), limit/8)
	section(&b, "Calls made, the newest last", calls, limit/3)
	section(&b, "Said, the newest last", texts, limit/3)
	return cmp.Or(clipMiddle(strings.TrimSpace(b.String()), limit), "Nothing of note.")
}

// summaryText returns a summary without the host's additions.
func summaryText(m *centurion.Message) string {
	for _, p := range m.Parts {
		if p.Type == centurion.PartText && !strings.HasPrefix(p.Text, quoteHead) && !strings.HasPrefix(p.Text, recordHead) {
			return p.Text
		}
	}
	return ""
}

// section writes the newest lines that fit.
func section(b *strings.Builder, title string, lines []string, limit int) {
	if len(lines) == 0 {
		return
	}
	from, n := len(lines), 0
	for from > 0 && n+len(lines[from-1]) < limit {
		from--
		n += len(lines[from]) + 1
	}
	fmt.Fprintf(b, "%s:\n", title)
	if from > 0 {
		fmt.Fprintf(b, "(%d earlier ones left out)\n", from)
	}
	b.WriteString(strings.Join(lines[from:], "\n") + "\n\n")
}

// fileOf returns the path that a call has changed, as far as its arguments show.
func fileOf(p centurion.Part) []string {
	if p.State.Status != centurion.ToolCompleted || !slices.Contains([]string{"write", "edit"}, p.Tool) {
		return nil
	}
	var in struct {
		FilePath string `json:"filePath"`
	}
	if json.Unmarshal(p.State.Input, &in) != nil || in.FilePath == "" {
		return nil
	}
	return []string{in.FilePath}
}
