//go:build failpoint

package failpoint

import "testing"

// A step without a number, or with one that cannot be read, is meant for the first time.
func TestParse(t *testing.T) {
	for s, want := range map[string]int{"ask-stored": 1, "ask-stored:3": 3, "ask-stored:x": 1, "ask-stored:": 1} {
		if p, n := parse(s); p != AskStored || n != want {
			t.Errorf("%s: %s for time %d, want %d", s, p, n, want)
		}
	}
}
