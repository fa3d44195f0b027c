package centurion

import "slices"

// Rewound means that a session's line continues from an older message. It applies until something is stored after Last: that message is
// stored under Leaf and becomes the line's newest message.
type Rewound struct {
	Leaf string `json:"leaf"` // the last message of the line
	Last string `json:"last"` // the last stored message at the time of the rewind
	// Whole means that the files went back, too, but for those that are Kept because others have changed them since.
	Whole bool     `json:"whole,omitempty"`
	Kept  []string `json:"kept,omitempty"`
}

// Revert is the end of a conversation that a person has reverted. It stands until the next message removes it, or the person brings it back.
type Revert struct {
	Message string   `json:"message"`          // the user message from which on it is reverted
	Files   []Landed `json:"files,omitempty"`  // went back, from the tree Commit to the tree Before
	Kept    []string `json:"kept,omitempty"`   // files that others have changed since: they stay as they are
	Patch   string   `json:"patch,omitempty"`  // how Files were changed; empty if it is long
	Moving  bool     `json:"moving,omitempty"` // Files are on their way back
	Next    *string  `json:"next,omitempty"`   // Files are brought again, to revert from this message on instead, or nothing for ""
}

// Leaf returns the id of the newest message of the session's current line; last is the message stored last.
func (s *SessionMeta) Leaf(last string) string {
	if s.Rewound != nil && s.Rewound.Last == last {
		return s.Rewound.Leaf
	}
	return last
}

// Line returns the messages of the line that ends with leaf, oldest first, from all messages of a session in storage order. It is empty
// if there is no such message. If a message was lost, the line continues with the message stored before the one after the gap.
func Line(all []Message, leaf string) []Message {
	end := len(all)
	for end > 0 && all[end-1].ID != leaf {
		end--
	}
	linear := end
	for linear > 1 && all[linear-1].Prev == all[linear-2].ID {
		linear--
	}
	if linear <= 1 { // no rewind ever happened on it
		return all[:end:end]
	}
	index := make(map[string]int, end)
	for i := range all[:end] {
		index[all[i].ID] = i
	}
	var line []Message
	for i := end - 1; i >= 0; {
		line = append(line, all[i])
		before, ok := index[all[i].Prev]
		switch {
		case all[i].Prev == "":
			before = -1
		case !ok || before >= i:
			before = i - 1
		}
		i = before
	}
	slices.Reverse(line)
	return line
}
