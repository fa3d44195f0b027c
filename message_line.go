package centurion

import "slices"

// Rewound says that a session's line goes on from an older message. It holds for as long as nothing was stored after
// Last: what comes then is written under Leaf and is the line's newest message itself.
type Rewound struct {
	Leaf string `json:"leaf"` // the message that the line ends with
	Last string `json:"last"` // the message that had been stored last when it was rewound
}

// Leaf returns the id of the newest message of the session's current line, when last is the one that was stored last.
func (s *SessionMeta) Leaf(last string) string {
	if s.Rewound != nil && s.Rewound.Last == last {
		return s.Rewound.Leaf
	}
	return last
}

// Line returns the messages of the line that ends with leaf, oldest first, out of all messages of a session in the order
// in which they were stored. It is empty if there is no such message. If a message was lost, the line goes on with the
// message that was stored before the one after the gap.
func Line(all []Message, leaf string) []Message {
	end := len(all)
	for end > 0 && all[end-1].ID != leaf {
		end--
	}
	linear := end
	for linear > 1 && all[linear-1].Prev == all[linear-2].ID {
		linear--
	}
	if linear <= 1 { // nothing was ever rewound on it
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
