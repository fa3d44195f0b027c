package tools

import (
	"strings"
	"testing"
)

// Lines are those that splitting the whole text would give, wherever the reader's buffer ends.
func FuzzLines(f *testing.F) {
	f.Add("a\r\nb\nc", 0, 10)
	f.Add("\r\n", 64<<10-1, 100)
	f.Add("x\r", 64<<10, 3)
	f.Add("\n\n\r\r\n", 64<<10-3, 1<<20)
	f.Fuzz(func(t *testing.T, text string, pad, keep int) {
		if pad < 0 || pad > 130<<10 || keep < 0 || keep > 1<<20 {
			return
		}
		text = strings.Repeat("p", pad) + text
		want := strings.Split(text, "\n")
		if want[len(want)-1] == "" {
			want = want[:len(want)-1]
		}
		l := newLines(strings.NewReader(text), keep)
		for i, w := range want {
			if !l.next() {
				t.Fatalf("line %d of %d is missing: %v", i+1, len(want), l.err)
			}
			crlf := false
			if i < strings.Count(text, "\n") {
				w, crlf = strings.CutSuffix(w, "\r")
			}
			cut := len(w) > keep
			w = w[:min(len(w), keep)]
			if string(l.line) != w || l.crlf != crlf || l.cut != cut {
				t.Fatalf("line %d: got %d bytes, CRLF %v, cut %v; want %d, %v, %v", i+1, len(l.line), l.crlf, l.cut, len(w), crlf, cut)
			}
		}
		if l.next() {
			t.Fatalf("there is a line too many: %q", l.line)
		}
	})
}

func TestNearest(t *testing.T) {
	wantList(t, "near", nearest("servr.go", []string{"client.go", "server.go", "service.go"}, 3), "server.go", "service.go")
	wantList(t, "contained", nearest("config", []string{"x", "configuration.yaml"}, 3), "configuration.yaml")
	wantList(t, "nothing near", nearest("abc", []string{"xyz"}, 3))
}
