package session

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion"
)

// What counts as the same call in a row: a letter is a call with its result, an upper case one was refused, "|" parts answers and " "
// is a message of somebody.
func TestSameRow(t *testing.T) {
	for _, tt := range []struct {
		history string
		n       int
		refused bool
	}{
		{"", 0, false}, {"a", 1, false}, {"a|a|a", 3, false}, {"b|a|a", 2, false}, {"a|b", 1, false},
		{"A|A|A", 3, true}, {"A|a", 1, false}, {"a|A", 1, true},
		{"ab|ab|ab", 3, false}, {"ab|ba", 1, false}, {"ab|a", 1, false},
		{"aaa", 3, false}, {"a|aa|aaa", 6, false}, {"ba|aa", 3, false}, {"AAA", 1, true},
		{"a|a| |a", 1, false}, {"a|a|", 0, false}, {"aA|aA", 0, false},
	} {
		var history []centurion.Message
		for answer := range strings.SplitSeq(tt.history, "|") {
			m := centurion.Message{Role: centurion.RoleAssistant}
			if answer == " " {
				m.Role = centurion.RoleUser
			}
			for _, c := range strings.TrimSpace(answer) {
				name := string(c)
				st := &centurion.ToolState{Status: centurion.ToolCompleted, Input: json.RawMessage(`{"x": "` + strings.ToLower(name) + `"}`), Output: name}
				if strings.ToUpper(name) == name {
					st.Status, st.Output, st.Error = centurion.ToolError, "", name
				}
				m.Parts = append(m.Parts, centurion.Part{Type: centurion.PartTool, Tool: "look", State: st})
			}
			history = append(history, m)
		}
		if n, refused := sameRow(history); n != tt.n || refused != tt.refused {
			t.Errorf("%q: %d in a row, refused %v; want %d, %v", tt.history, n, refused, tt.n, tt.refused)
		}
	}
}
