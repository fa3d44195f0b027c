package orchestrator

import (
	"fmt"
	"strings"
	"testing"
)

// Of many who are at work, a status names the ones beside the own files with theirs, and the others only by name.
func TestWhoElse(t *testing.T) {
	t.Parallel()
	m := &mission{}
	for i := range 30 {
		m.claims.take(fmt.Sprintf("T%02d", i), []string{fmt.Sprintf("d%02d/f.go", i)})
	}
	m.claims.take("near", []string{"d07/g.go"})
	got := m.whoElse("near")
	has(t, got, "T07 is being worked on by somebody else: d07/f.go\n", "T00 is being worked on", "22 more are being worked on, on other files: T08, T09")
	if lines := strings.Count(got, "\n"); lines != othersTold+1 || !strings.HasPrefix(got, "T07 ") || strings.Contains(got, "near") {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}
