package tools

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// R13: of a line of a megabyte that matches only the piece that can be shown is kept.
func TestGrepLongLines(t *testing.T) {
	re := regexp.MustCompile("needle|x$")
	hay := bytes.Repeat([]byte("x"), grepLineMax)
	for _, line := range [][]byte{hay, append(hay[:len(hay):len(hay)], "needle"...), append([]byte("needle"), hay...)} {
		if got := clip(re, line); len(got) > grepKeep || !strings.Contains(got, "x") || bytes.Contains(line, []byte("needle")) != strings.Contains(got, "needle") {
			t.Errorf("%d bytes are kept: %.20q", len(got), got)
		}
	}
	if got := clip(re, []byte("short")); got != "short" {
		t.Errorf("got %q", got)
	}
}
