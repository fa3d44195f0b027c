package session

import (
	"strings"
	"testing"

	"centurion"
)

// Issue "What real use showed", C.18: without an answer there is nothing to shorten; the shortest one is enough.
func TestShort(t *testing.T) {
	t.Parallel()
	said := func(n int) centurion.Message {
		return centurion.Message{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartText, Text: strings.Repeat("a", n)}}}
	}
	summed := []centurion.Message{said(10), said(10), {Role: centurion.RoleAssistant, Summary: true, Parts: []centurion.Part{{Type: centurion.PartText, Text: strings.Repeat("s", 5000)}}}}
	summed[1].Parts = append(summed[1].Parts, centurion.Part{Type: centurion.PartCompaction, Compaction: &centurion.Compaction{}})
	for name, tt := range map[string]struct {
		history []centurion.Message
		short   bool
	}{
		"nothing":                   {nil, true},
		"a long goal":               {[]centurion.Message{said(50_000)}, true},
		"a first answer":            {[]centurion.Message{said(10), said(2)}, false},
		"one that failed":           {[]centurion.Message{said(10), {Role: centurion.RoleAssistant, Finish: centurion.FinishError}}, true},
		"a long summary":            {summed, true},
		"something after a summary": {append(summed, said(10)), false},
	} {
		if got := Short(tt.history); got != tt.short {
			t.Errorf("%s: short is %v", name, got)
		}
	}
}
