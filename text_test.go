package centurion_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"centurion"
)

func TestNearest(t *testing.T) {
	for _, tt := range []struct {
		given string
		names []string
		want  string
	}{
		{"worker", []string{"worker"}, "worker"},
		{"wroker", []string{"planner", "worker"}, "worker"},
		{"WORKER", []string{"planner", "worker"}, "worker"},
		{"reviwer", []string{"planner", "Reviewer"}, "Reviewer"},
		{"edit", []string{"exit", "edits"}, "exit"}, // the first of equals
		{"commandr", []string{"command", "commander"}, "command"},
		{"tost", []string{"toast", "cost"}, "toast"},
		{"T9", []string{"X", "T1"}, "T1"}, // one letter of a short word is allowed
		{"wordy", []string{"sword"}, ""},  // two of five are not
		{"grün", []string{"gruen"}, ""},   // letters are counted, not bytes
		{"äöü", []string{"äöo"}, "äöo"},
		{"xyüd", []string{"äöüd"}, ""},
		{"äöüd", []string{"xyüd"}, ""},
		{"reda", []string{"read"}, "read"}, // a swap is one change
		{"banana", []string{"worker", "planner"}, ""},
		{"a", []string{"b"}, ""}, // nothing alike
		{"", []string{"x", ""}, ""},
		{"x", nil, ""},
		{"worker", []string{"worker", "workers"}, "worker"},
		{"abcdefghi", []string{"abcdefxyz"}, "abcdefxyz"}, // three of nine
		{"abcdefgh", []string{"abcdexyz"}, ""},
		{"ab", []string{"ba"}, "ba"},
		{"xab", []string{"xba"}, "xba"},
		{"abcd", []string{"badc"}, ""},
		{"abxxxx", []string{"baxxyy"}, ""},
	} {
		if got := centurion.Nearest(tt.given, tt.names); got != tt.want {
			t.Errorf("Nearest(%q, %q) = %q, want %q", tt.given, tt.names, got, tt.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{
		{"", 0, ""},
		{"abc", 3, "abc"},
		{"abc", 2, "ab…"},
		{"abc", 0, "…"},
		{"abc", -1, "…"},
		{"aäb", 2, "a…"},
		{"aäb", 3, "aä…"},
		{"🙂🙂", 7, "🙂…"},
		{"🙂🙂", 3, "…"},
		{"\x80\x80", 1, "\x80…"},
		{"a\x80\x80\x80\x80", 4, "a\x80\x80\x80…"},
		{"\x80\x80\x80\x80\x80\x80", 5, "\x80\x80\x80\x80\x80…"}, // not a text: nothing to keep whole
	} {
		if got := centurion.Clip(tt.s, tt.n); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}

func FuzzClip(f *testing.F) {
	f.Add("aäb🙂", 3)
	f.Add("\x80\xff\x80", 2)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := centurion.Clip(s, n)
		if len(s) <= n {
			if got != s {
				t.Fatalf("a short text became %q", got)
			}
			return
		}
		head, cut := strings.CutSuffix(got, "…")
		if s != "" && (!cut || !strings.HasPrefix(s, head) || len(head) > max(n, 0) || len(head) < n-3) {
			t.Fatalf("Clip(%q, %d) = %q", s, n, got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("Clip(%q, %d) = %q splits a character", s, n, got)
		}
	})
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 items":    centurion.Count(0, "item"),
		"1 item":     centurion.Count(1, "item"),
		"2 items":    centurion.Count(2, "item"),
		"1 match":    centurion.Count(1, "match"),
		"3 matches":  centurion.Count(3, "match"),
		"1 entry":    centurion.Count(1, "entry"),
		"9 entries":  centurion.Count(9, "entry"),
		"2 chapters": centurion.Count(2, "chapter"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A few names are all told, of many the first ones and how many more there are.
func TestNames(t *testing.T) {
	names := []string{"a", "b", "c"}
	for n, want := range map[int]string{4: "a, b, c", 3: "a, b, c", 2: "a, b and 1 more", 1: "a and 2 more"} {
		if got := centurion.Names(names, n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// IKI-8, IKI-10: an address names the way from the root down.
func TestChildAddress(t *testing.T) {
	for _, tt := range []struct {
		parent string
		serial int
		want   string
	}{
		{"0/", 0, "0/0"},
		{"0/", 3, "0/3"},
		{"0/3", 1, "0/3/1"},
		{"0/3/1", 12, "0/3/1/12"},
		{"2/", 10, "2/10"},
		{"", 3, "/3"},
	} {
		if got := centurion.ChildAddress(tt.parent, tt.serial); got != tt.want {
			t.Errorf("ChildAddress(%q, %d) = %q, want %q", tt.parent, tt.serial, got, tt.want)
		}
	}
}
