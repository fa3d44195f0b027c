package session

import (
	"iter"

	"centurion"
)

// Calls yields the tool calls of the current line that are sent with their results, oldest first. It omits calls replaced by a
// compaction, and reads whose text was shortened; written text is in the call itself. It may be called only between turns.
func (s *Session) Calls() iter.Seq[centurion.Part] {
	return func(yield func(centurion.Part) bool) {
		for i := range s.history {
			for _, p := range s.history[i].Parts {
				if p.Type != centurion.PartTool || !sent(p) || p.Tool == "read" && p.State.Metadata[clipped] != nil {
					continue
				}
				if !yield(p) {
					return
				}
			}
		}
	}
}
