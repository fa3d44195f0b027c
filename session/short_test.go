package session

import (
	"strings"
	"testing"

	"centurion"
)

// Issue "What real use showed", C.18: of a short conversation there is nothing to shorten.
func TestShort(t *testing.T) {
	t.Parallel()
	said := func(n int) centurion.Message {
		return centurion.Message{Role: centurion.RoleUser, Parts: []centurion.Part{{Type: centurion.PartText, Text: strings.Repeat("a", n)}}}
	}
	for name, tt := range map[string]struct {
		history []centurion.Message
		short   bool
	}{
		"nothing":                   {nil, true},
		"a long goal":               {[]centurion.Message{said(50_000)}, true},
		"a long first answer":       {[]centurion.Message{said(10), said(50_000)}, true},
		"a few words":               {[]centurion.Message{said(10), said(200), said(300), said(50_000)}, true},
		"something before the last": {[]centurion.Message{said(10), said(2_000), said(10)}, false},
	} {
		if got := Short(tt.history); got != tt.short {
			t.Errorf("%s: short is %v", name, got)
		}
	}
}
