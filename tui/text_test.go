package tui

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// S10
func TestClean(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "go test ./…", "go test ./…"},
		{"colour", "\x1b[31mred\x1b[0m", "red"},
		{"cursor and erase", "a\x1b[2J\x1b[1;1Hb", "ab"},
		{"title", "a\x1b]0;owned\ab", "ab"},
		{"clipboard", "a\x1b]52;c;aGk=\x1b\\b", "ab"},
		{"link", "\x1b]8;;http://evil\x1b\\here\x1b]8;;\x1b\\", "here"},
		{"device string", "a\x1bPq#0\x1b\\b", "ab"},
		{"one-character introducers", "a\u009b31mb\u009d0;x\u009cc", "abc"},
		{"unfinished command keeps the text", "a\x1b]0;all of the rest", "a0;all of the rest"},
		{"command over a line break keeps the text", "a\x1b]0;first\nsecond\ab", "a0;first secondb"},
		{"unfinished control", "a\x1b[", "a"},
		{"lone escape", "a\x1b", "a"},
		{"charset", "a\x1b(0b", "ab"},
		{"carriage return", "good\rbad", "good bad"},
		{"backspace, bell, null", "a\b\a\x00b", "ab"},
		{"tab and line break", "a\tb\r\nc\u2028d", "a b c d"},
		{"direction", "a\u202etxt.exe\u2066\u200f", "atxt.exe"},
		{"no width", "a\u200b\ufeff\u2060b", "ab"},
		{"tags", "a\U000e0041b", "ab"},
		{"invalid", "a\xffb", "a\ufffdb"},
		{"marks", "a" + strings.Repeat("\u0301", 50), "a" + strings.Repeat("\u0301", maxMarks)},
		{"wide", "使い方 🙂", "使い方 🙂"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestCleanLines(t *testing.T) {
	got := CleanLines("one\r\n\ttwo  \r\x1b[31mthree\x1b[m\n\n")
	if want := []string{"one", "    two", "three"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// S10: what a person is asked to allow hides nothing.
func TestEscape(t *testing.T) {
	tests := []struct{ in, want string }{
		{"rm -rf build", "rm -rf build"},
		{"a\x1b[2Jb", `a\x1b[2Jb`},
		{"a\nb\tc\rd", `a\nb\tc\rd`},
		{"\u202etxt", `\u202etxt`},
		{"a\u200d\u200bb", `a\u200d\u200bb`},
		{"\u009b\x7f", `\u009b\x7f`},
		{"\xff", `\xff`},
		{"\U000e0041", `\U000e0041`},
		{"ü 使", "ü 使"},
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{attack, "\x1b[", "\x1b]0;", "\u009b", "a\xc2", "\x1b\x1b[31m", "e\u0301\u200b\u0301\u0301\u0301\u0301", "\x1b(", "\r\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"Clean": Clean(s), "Escape": Escape(s)} {
			if !utf8.ValidString(got) {
				t.Errorf("%s(%q) is not UTF-8: %q", name, s, got)
			}
			for _, r := range got {
				if unicode.Is(unicode.Cc, r) || isHidden(r) || r == 0x2028 || r == 0x2029 {
					t.Errorf("%s(%q) keeps %U: %q", name, s, r, got)
				}
			}
		}
		if once := Clean(s); Clean(once) != once {
			t.Errorf("Clean(%q) = %q, and again %q", s, once, Clean(once))
		}
		for _, w := range []int{0, 1, 7, 40} {
			if got := pad(Clean(s), w); width(got) > w {
				t.Errorf("pad(%q, %d) takes %d cells", s, w, width(got))
			}
		}
	})
}
