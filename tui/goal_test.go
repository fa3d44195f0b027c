package tui

import (
	"fmt"
	"strings"
	"testing"
)

// Issue "What real use showed", C.18: a mission's page begins with the first lines of its goal.
func TestGoalHead(t *testing.T) {
	t.Parallel()
	for goal, want := range map[string]string{
		"":                          " 0",
		"one":                       "one 0",
		"one\n\n  two\tb\r\n":       "one|two b 0",
		"a\nb\nc\nd\n\ne":           "a|b|c 2",
		"aaaa bbbb cccc\ndddd eeee": "aaaa bbbb|cccc|dddd eeee 0",
		"\x1b[31ma\x1b[0m\nb":       "a|b 0",
	} {
		lines, more := goalHead(goal, 10)
		if got := fmt.Sprint(strings.Join(lines, "|"), " ", more); got != want {
			t.Errorf("%q: %q, want %q", goal, got, want)
		}
	}
}
