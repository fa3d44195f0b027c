//go:build unix

package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/redact"
)

// S7: wherever a key stands in an output, at the end of what is kept or across two writes, nothing of it is kept.
func TestOutputHasNoKeys(t *testing.T) {
	const key = "zq7-0wn-service-key"
	r := &Runner{Redact: redact.New(redact.Key{Name: "OWN", Value: key}), Keep: 200}
	for at := 80; at <= 120; at += 5 {
		script := fmt.Sprintf("printf %%s '%s%s'; sleep 0.01; printf %%s '%s%s'", strings.Repeat("x", at), key[:7], key[7:], strings.Repeat("y", 250))
		if res := run(t, r, script); strings.Contains(res.Output, key[:4]) || strings.Contains(res.Output, key[len(key)-4:]) {
			t.Fatalf("behind %d bytes: %q", at, res.Output)
		}
	}
	s := newSpool(t, 1000)
	if _, err := r.RunBackground(t.Context(), centurion.Command{Script: "printf 'a " + key + "'; printf '\\nb zq7-'", Dir: t.TempDir()}, s, nil); err != nil {
		t.Fatal(err)
	}
	s.End()
	if got, _ := s.Since(0, 1000); got != "a [key OWN]\nb zq7-" {
		t.Errorf("in the background: %q", got)
	}
}
