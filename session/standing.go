package session

import (
	"iter"

	"centurion"
)

// Calls yields the tool calls of the current line that the model is sent with their results, oldest first. What a compaction
// has taken away is left out, and so is a read whose text it has cut; what was written stands in the call itself. It may be
// called between turns only.
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
