package tools

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// R13: what a command prints is stored as text: no colours, no cursor, no bells, and nothing of what was meant to be read is lost.
func TestPrinted(t *testing.T) {
	for in, want := range map[string]string{
		"":                                  "",
		"a\tb\nc\n":                         "a\tb\nc\n",
		"süß \u2713 \U0001f600":             "süß \u2713 \U0001f600",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b[38;2;1;2;3mx\x1b[?25ly":       "xy",
		"\x1b]0;a title\x07after":           "after",
		"\x1b]8;;http://x\x1b\\link":        "link",
		"\x1b]52;never ended":               "52;never ended",
		"\x1b(B\x1b7a\x1b8b\x1bc":           "ab",
		"10%\r20%\r\r\n100%\r\n":            "10%\n20%\n100%\n",
		"a\x00b\x07c\x08d\x7fe\u009bf":      "abcdef",
		"a\xffb\xc3":                        "a\uFFFDb\uFFFD",
		"cut\x1b":                           "cut",
		"cut\x1b[3":                         "cut",
		"broken \x1b[3\nline":               "broken \nline",
		"\x1b\x1b[0mx":                      "x",
		"\x1b[" + strings.Repeat("1", 9000): strings.Repeat("1", 9002-maxSequence),
	} {
		if got := printed(in); got != want {
			t.Errorf("%.60q: got %.60q, want %.60q", in, got, want)
		}
	}
}

func FuzzPrinted(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n\x1b]0;t\x07")
	f.Add("\x1bP\x1b\\\x9b\xc2\x9b\xff\x00")
	f.Fuzz(func(t *testing.T, in string) {
		out := printed(in)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q became %q", in, out)
		}
		if again := printed(out); again != out {
			t.Errorf("%q became %q and then %q", in, out, again)
		}
	})
}

// R13: of a line of a megabyte that matches only the piece that can be shown is kept.
func TestGrepLongLines(t *testing.T) {
	re := regexp.MustCompile("needle|x$")
	hay := bytes.Repeat([]byte("x"), grepLineMax)
	for _, line := range [][]byte{hay, append(hay[:len(hay):len(hay)], "needle"...), append([]byte("needle"), hay...)} {
		if got := clip(re, line); len(got) > rgColumns || !strings.Contains(got, "x") || bytes.Contains(line, []byte("needle")) != strings.Contains(got, "needle") {
			t.Errorf("%d bytes are kept: %.20q", len(got), got)
		}
	}
	if got := clip(re, []byte("short")); got != "short" {
		t.Errorf("got %q", got)
	}
}
