package tui

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// message prints a message with its tool calls as nested blocks.
func (p *page) message(m centurion.Message, o ShowOptions) {
	who, c := text.Clean(m.Agent), roleTone(m.Agent)
	if m.Role == centurion.RoleUser {
		who, c = string(cmp.Or(m.Origin, "prompt")), strong
	}
	p.line("")
	when := text.When(m.Time.Created != 0, time.UnixMilli(m.Time.Created).In(o.Now.Location()).Format("15:04:05"))
	finish := m.Finish
	if finish == centurion.FinishStop || finish == centurion.FinishToolCalls {
		finish = ""
	}
	if m.Summary {
		finish = "summary of the older messages"
	}
	p.line(p.theme.paint(c, "◇ "+who) + p.theme.paint(dim, "  "+text.Dots(when, finish)))
	for _, part := range m.Parts {
		switch part.Type {
		case centurion.PartCompaction:
			p.text(compactionLine(part.Compaction), dim, o)
		case centurion.PartText:
			p.text(part.Text, plain, o)
		case centurion.PartReasoning:
			p.text(part.Text, dim, o)
		case centurion.PartFile:
			if part.File != nil {
				p.text(part.File.Label(), plain, o)
			}
		case centurion.PartTool:
			p.tool(part, o)
		}
	}
	if m.Error != nil {
		said, c := errorLine(m.Error)
		p.text(said, c, o)
	}
}

func (p *page) text(s string, c tone, o ShowOptions) {
	lines := text.CleanLines(s)
	if c == dim && !o.Full {
		lines = clip(lines, maxTail)
	}
	fence := ""
	for _, l := range lines {
		whole := fence != "" || strings.HasPrefix(l, "    ")
		fence = fenced(fence, l)
		if whole { // a command or code: broken into lines it could not be pasted
			p.line("  " + p.theme.paint(c, l))
			continue
		}
		for _, l := range text.Wrap(l, o.Width-2) {
			p.line("  " + p.theme.paint(c, l))
		}
	}
}

// fenced is the fence of the code block that continues after a line, or "" outside of one. in is the same before the line.
func fenced(in, line string) string {
	line = strings.TrimSpace(line)
	switch ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]; {
	case len(ticks) < 3 || in != "" && (len(ticks) < len(in) || line != ticks):
		return in
	case in != "":
		return ""
	default:
		return ticks
	}
}

func (p *page) tool(part centurion.Part, o ShowOptions) {
	st := cmp.Or(part.State, &centurion.ToolState{Status: centurion.ToolPending})
	f := fact{mark: "·", tone: dim, agent: "", who: text.Clean(part.Tool),
		text: cmp.Or(text.Clean(st.Title), view.ToolSubject(part.Tool, st.Input)), foot: string(st.Status)}
	out, failed := st.Result()
	f.body = text.CleanLines(out)
	if !o.Full {
		f.body = clip(f.body, maxSaid)
	}
	if said := askedBy(part.Tool, st.Input); said != "" {
		told := []string{text.Fit(said, o.Width-6)}
		if question := askedLines(part.Tool, st.Input, o.Width-6); len(question) > 0 {
			told = question
		}
		f.body = append(told, f.body...)
	}
	switch {
	case failed:
		f.tone, f.foot = bad, "failed"
	case st.Ended():
		f.tone, f.foot = good, "done"
	}
	if part.Tool == "ask_user" && !st.Ended() {
		f.tone, f.foot = warn, "waits for your answer"
	}
	f.foot += text.When(st.Time.End > 0, " "+text.Took(text.Millis(st.Time.End-st.Time.Start)))
	f.foot += byPlugins(st.Metadata["plugins"])
	for _, l := range f.block(p.theme, o.Width-2) {
		p.line("  " + l)
	}
}

// byPlugins says what of a call plugins have changed.
func byPlugins(record any) string {
	b, err := json.Marshal(record)
	var by map[string][]string
	if err != nil || json.Unmarshal(b, &by) != nil {
		return ""
	}
	var said strings.Builder
	for _, what := range slices.Sorted(maps.Keys(by)) {
		said.WriteString(" · " + what + " by " + text.Clean(strings.Join(by[what], ", ")))
	}
	return said.String()
}
