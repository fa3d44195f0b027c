package centurion

import "encoding/json"

// Compaction is what a part of type [PartCompaction] holds. It stands in a user message that the host wrote, directly
// before the assistant message with the summary; together they say that a model is given the summary in place of all
// messages between the session's first one and Tail. Nothing is deleted.
type Compaction struct {
	Auto     bool   `json:"auto"`                    // nobody has asked for it
	Overflow bool   `json:"overflow,omitempty"`      // the provider had refused a request as too long
	Tail     string `json:"tail_start_id,omitempty"` // the id of the first message that is still sent as it is

	// Clips are the tool parts after Tail whose results are sent cut, with the bytes that are left of each. What is stored
	// stays whole, and on another line of the conversation it is sent whole.
	Clips map[string]int `json:"clips,omitempty"`
}

// marshalCompaction writes OpenCode's shape; a part without its data is one that somebody asked for and that keeps nothing.
func (p Part) marshalCompaction(head partHead) ([]byte, error) {
	var c Compaction
	if p.Compaction != nil {
		c = *p.Compaction
	}
	return json.Marshal(struct {
		partHead
		Compaction
	}{head, c})
}
