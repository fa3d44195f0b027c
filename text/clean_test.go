package text

import (
	"encoding/json"
	"errors"
	"reflect"
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
		{"command that another begins in keeps the text", "a\x1b]0;x\x1b[31my\ab", "a0;xyb"},
		{"other line breaks", "a\u2029b\vc\fd", "a b c d"},
		{"family", "👩\u200d👧", "👩\u200d👧"},
		{"unassigned tags", "a\U000e0080\U000e0fffb", "ab"},
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
		{"title with a letter that has the byte of a terminator", "a\x1b]0;✓ 漜\ab", "ab"},
		{"no width, private, soft", "a\ue000\u00ad\u3164b", "ab"},
		{"fillers that look like nothing", "a\u115f\u1160\uffa0b", "ab"},
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
	for in, want := range map[string]string{"": "", "\n \n": "", "a\n\n  b\n": "a||  b", "one\r\n\ttwo  \r\x1b[31mthree\x1b[m\n\n": "one|    two|three"} {
		if got := strings.Join(CleanLines(in), "|"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCleanText(t *testing.T) {
	for in, want := range map[string]string{
		"a\x00b\x1b[31mc\u202ed\u200be\xff": "abcde\ufffd", "\x1b]8;;http://x\x07y": "y", "a\r\nb\rc\td": "a\nb\nc    d",
		"a\u2028b\u2029c\vd\fe": "a\nb\nc\nd\ne", "a\u00a0b": "a\u00a0b", "a\x7fb": "ab", "\x1fa": "a", "a\n b": "a\n b",
		"o\u0301\u0301\u0301\u0301\u0301\u0301": "o\u0301\u0301\u0301\u0301", "\u0301\u0301\u0301\u0301\u0301": "\u0301\u0301\u0301\u0301"} {
		if got := CleanText(in); got != want || CleanText(got) != got {
			t.Errorf("CleanText(%q) is %q, want %q", in, got, want)
		}
	}
}

// S10: a notice has no byte that another program could take for more than a letter.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"a\u200d\ufffdb\U0010fffe": "ab", " grüße\n日本 ": "grüße 日本", "\x1b[31mred\xff": "red"} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) is %q, want %q", in, got, want)
		}
	}
}

// S10: a line that is broken for the screen keeps every space of what a person is asked to allow.
func TestWrapExact(t *testing.T) {
	for in, want := range map[string][]string{"rm  -rf": {"rm ", " -r", "f"}, "abc de": {"abc", " de"}, "ab": {"ab"}} {
		if got := WrapExact(in, 3); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
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
		{"\ufffd", "\ufffd"},
		{"\u2028\u2029\u115f\u1160\u3164\uffa0\x1f", `\u2028\u2029\u115f\u1160\u3164\uffa0\x1f`},
		{"\U000dffff\U000e0000\U000e0fff\U000e1000", "\U000dffff" + `\U000e0000\U000e0fff` + "\U000e1000"},
		{strings.Repeat("\u0301", maxMarks+1), strings.Repeat("\u0301", maxMarks) + `\u0301`},
		{"a" + strings.Repeat("\u0301", maxMarks) + "b", "a" + strings.Repeat("\u0301", maxMarks) + "b"},
		{"a" + strings.Repeat("\u0301", maxMarks+1), "a" + strings.Repeat("\u0301", maxMarks) + `\u0301`},
	}
	for _, tt := range tests {
		if got := Escape(tt.in); got != tt.want {
			t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
	if got := EscapeWords(" a\n\tb\x1b "); got != `a b\x1b` {
		t.Errorf("words became %q", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"\x1b[2J\x1b]0;owned\a\x1b]52;c;ZWNobyBwd25k\x1b\\\x1b]8;;http://evil\x1b\\x\u202etxt.exe\u009b31m", "\x1b]0;✓ 漜\a", "\x1b[1<m", "\x1b\u009b", "\x1b[", "\x1b]0;", "\u009b", "a\xc2", "\x1b\x1b[31m", "e\u0301\u200b\u0301\u0301\u0301\u0301", "\x1b(", "\r\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, got := range map[string]string{"Clean": Clean(s), "Escape": Escape(s), "Printable": Printable(s), "CleanText": strings.ReplaceAll(CleanText(s), "\n", " ")} {
			if !utf8.ValidString(got) {
				t.Errorf("%s(%q) is not UTF-8: %q", name, s, got)
			}
			for _, r := range got {
				if unicode.Is(unicode.Cc, r) || Unsafe(r) {
					t.Errorf("%s(%q) keeps %U: %q", name, s, r, got)
				}
			}
		}
		if once := Clean(s); Clean(once) != once {
			t.Errorf("Clean(%q) = %q, and again %q", s, once, Clean(once))
		}
		for _, w := range []int{0, 1, 7, 40} {
			if got := Pad(Clean(s), w); Width(got) > w {
				t.Errorf("Pad(%q, %d) takes %d cells", s, w, Width(got))
			}
		}
	})
}

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
		"a\xff\xfeb":                        "a\uFFFDb",
		"cut\x1b":                           "cut",
		"10%\r":                             "10%\n",
		"cut\x1b[3":                         "cut",
		"broken \x1b[3\nline":               "broken \nline",
		"\x1b\x1b[0mx":                      "x",
		"\x1b[" + strings.Repeat("1", 9000): strings.Repeat("1", 9002-maxSequence),
	} {
		if got := Printed(in); got != want {
			t.Errorf("%.60q: got %.60q, want %.60q", in, got, want)
		}
	}
}

// S10
func TestCleanSchema(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","description":"plain"}`: `{"type":"object","description":"plain"}`,
		`{"const":"\u001b"}`:                      `{"const":"\u001b"}`,
		`[{"title":"\u001b"},{"title":""}]`:       `[{"title":""},{"title":""}]`,
		`{"a":{"b":1},"b":{"c":1},"c":{"d":1},"d":{"$comment":"\u001b"},"e":{"f":1},"f":{"g":1},"g":{},"h":{}}`:          `{"a":{"b":1},"b":{"c":1},"c":{"d":1},"d":{"$comment":""},"e":{"f":1},"f":{"g":1},"g":{},"h":{}}`,
		`{"anyOf":[{"title":"\u001b[2Jred","properties":{"description":{"description":"a\u202eb","enum":["\u001b"]}}}]}`: `{"anyOf":[{"title":"red","properties":{"description":{"description":"ab","enum":["\u001b"]}}}]}`,
	} {
		var got, expected any
		if err := errors.Join(json.Unmarshal([]byte(in), &got), json.Unmarshal([]byte(want), &expected)); err != nil {
			t.Fatal(err)
		}
		if changed := CleanSchema(got); changed != (in != want) || !reflect.DeepEqual(got, expected) {
			t.Errorf("%s: got %v (%v), want %s", in, got, changed, want)
		}
	}
}

func FuzzPrinted(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\n\x1b]0;t\x07")
	f.Add("\x1bP\x1b\\\x9b\xc2\x9b\xff\x00")
	f.Fuzz(func(t *testing.T, in string) {
		out := Printed(in)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q became %q", in, out)
		}
		if again := Printed(out); again != out {
			t.Errorf("%q became %q and then %q", in, out, again)
		}
	})
}

// A tail begins with a whole letter, and says that something is missing.
func TestTail(t *testing.T) {
	for _, x := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "…\nbcd"}, {"aébc", 5, "aébc"}, {"aaébc", 3, "…\nbc"}, {"a€b", 2, "…\nb"}, {"", 0, ""}, {"a\x80\x80\x80\x80", 4, "…\n\x80\x80\x80\x80"}} {
		if got := Tail(x.s, x.n); got != x.want {
			t.Errorf("the last %d bytes of %q are %q, want %q", x.n, x.s, got, x.want)
		}
	}
}

// A text that was cut anywhere ends in a whole letter.
func TestWhole(t *testing.T) {
	for _, x := range [][2]string{{"", ""}, {"ab", "ab"}, {"aé", "aé"}, {"a\xc3", "a"}, {"a\xe2\x82", "a"}, {"a\xf0\x9f\x99", "a"}, {"\xf0\x9f\x99", ""}, {"aé\xc3", "aé"}, {"🙂", "🙂"}, {"a\xff", "a\xff"}} {
		if got := Whole(x[0]); got != x[1] {
			t.Errorf("%q became %q, want %q", x[0], got, x[1])
		}
	}
}

// JSON that is shown means what it meant, in letters that no terminal obeys.
func TestEscapeJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"ü 使 🙂"}`:      `{"a":"ü 使 🙂"}`,
		"\"\u202e\u007f ü\"": `"\u202e\u007f ü"`,
		"\"a\U000e0041b\"":   `"a\udb40\udc41b"`,
		"{\n\t\"a\": 1}":     "{\n\t\"a\": 1}",
	} {
		got := EscapeJSON([]byte(in))
		if string(got) != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		var before, after any
		if err := errors.Join(json.Unmarshal([]byte(in), &before), json.Unmarshal(got, &after)); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q means %v, not %v (%v)", got, after, before, err)
		}
	}
}
