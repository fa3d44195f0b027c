package centurion

import "encoding/json"

// Compaction is the content of a part of type [PartCompaction]. The part is in a user message written by the host, directly before the
// assistant message with the summary. Together they mean that a model gets the summary instead of all messages between the session's
// first one and Tail. Nothing is deleted.
type Compaction struct {
	Auto     bool   `json:"auto"`                    // it was not requested
	Overflow bool   `json:"overflow,omitempty"`      // the provider refused a request as too long
	Tail     string `json:"tail_start_id,omitempty"` // the id of the first message that is still sent unchanged

	// Clips are the tool parts after Tail whose results are sent shortened, with their lengths in bytes. The stored results stay
	// complete, and are sent complete on other lines of the conversation.
	Clips map[string]int `json:"clips,omitempty"`
}

// marshalCompaction writes OpenCode's format; a part without data is a requested compaction that keeps nothing.
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
