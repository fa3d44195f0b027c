package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestOutput(t *testing.T) {
	tests := []struct {
		keep     int
		in, want string
	}{
		{10, "", ""},
		{10, "0123456789", "0123456789"},
		{10, "0123456789a", "01234\n… 1 bytes left out …\n6789a"},
		{10, "01234abcdefghijklmnop56789", "01234\n… 16 bytes left out …\n56789"},
		{10, "öööabcdefööö", "öö\n… 10 bytes left out …\nöö"}, // no letter is cut
		{8, "abc\ndefghijk", "abc\n… 4 bytes left out …\nhijk"},
	}
	for _, test := range tests {
		for _, slow := range []bool{false, true} {
			o := newOutput(test.keep)
			if slow {
				copyOut(o, iotest.OneByteReader(strings.NewReader(test.in)))
			} else {
				copyOut(o, strings.NewReader(test.in))
			}
			got, total := o.result()
			if got != test.want || total != int64(len(test.in)) {
				t.Errorf("%q: got %q of %d, want %q", test.in, got, total, test.want)
			}
		}
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte("hällo wörld and much more"), 10, 3)
	f.Fuzz(func(t *testing.T, in []byte, keep, chunk int) {
		keep, chunk = 2+abs(keep)%1000, 1+abs(chunk)%100
		o := newOutput(keep)
		for i := 0; i < len(in); i += chunk {
			_, _ = o.Write(in[i:min(i+chunk, len(in))])
		}
		got, total := o.result()
		if total != int64(len(in)) || !utf8.ValidString(got) {
			t.Errorf("%d of %d bytes, valid %v", total, len(in), utf8.ValidString(got))
		}
		if len(in) <= keep/2*2 && got != string(bytes.ToValidUTF8(in, []byte("\uFFFD"))) {
			t.Errorf("short output changed: %q", got)
		}
	})
}

func abs(n int) int { return max(n, -(n + 1)) }

func BenchmarkOutput(b *testing.B) {
	line := fmt.Appendln(nil, strings.Repeat("x", 80))
	o := newOutput(DefaultKeep)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = o.Write(line)
	}
}
