package centurion

import "slices"

// Rewound means that a session's line continues from an older message. It applies until something is stored after Last: that message is
// stored under Leaf and becomes the line's newest message.
type Rewound struct {
	Leaf string `json:"leaf"` // the last message of the line
	Last string `json:"last"` // the last stored message at the time of the rewind
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
