package tui

import (
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/event/view"
	"centurion/text"
)

// compacted reports in one line that a conversation was shortened.
func (s *story) compacted(e centurion.Event, agent string, root bool) fact {
	f := fact{mark: "·", tone: dim, agent: agent, who: s.who(e), quiet: !root, text: "shortened its conversation"}
	d, err := view.Decode(e)
	if err != nil {
		return f
	}
	why := map[string]string{event.CompactedOverflow: "the model refused it as too long", event.CompactedAsked: "as you asked"}[d.Reason]
	f.detail = text.Dots(fmt.Sprintf("about %s → %s tokens", text.Tokens(d.Before), text.Tokens(d.After)), why,
		text.When(d.ByHost, "summary from the record"))
	return f
}

// compactionLine notes in a conversation that its older part is no longer sent.
func compactionLine(c *centurion.Compaction) string {
	switch {
	case c == nil || c.Auto && !c.Overflow:
		return "shortened: from here on the model is sent a summary in place of the older messages"
	case c.Overflow:
		return "shortened, because the model refused it as too long: a summary takes the place of the older messages"
	}
	return "shortened, as you asked: a summary takes the place of the older messages"
}
