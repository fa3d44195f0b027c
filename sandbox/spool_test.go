package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"centurion"
)

func newSpool(t testing.TB, limit int) *Spool {
	t.Helper()
	s, err := NewSpool(filepath.Join(t.TempDir(), "new", "bg_1"), limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Remove() })
	return s
}

func put(t testing.TB, s *Spool, text string) {
	t.Helper()
	if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(text), err)
	}
}

// ORCH-53: what is new since the last look, head and tail.
func TestSpool(t *testing.T) {
	tests := []struct {
		name  string
		limit int // of the file
		keep  int // of one look
		in    []string
		want  []string // after each write
	}{
		{"as it comes", 100, 100, []string{"a\n", "b\n", "", "c"}, []string{"a\n", "b\n", "", "c"}},
		{"more than one look shows", 100, 10, []string{"0123456789", "0123456789a"}, []string{"0123456789", "01234\n… 1 bytes left out …\n6789a"}},
		{"exactly the file", 10, 10, []string{"0123456789"}, []string{"0123456789"}},
		{"more than the file", 10, 20, []string{"0123456789a"}, []string{"01234\n… 1 bytes left out …\n6789a"}},
		{"far more than the file", 10, 20, []string{"01234" + strings.Repeat("x", 1000) + "vwxyz"}, []string{"01234\n… 1000 bytes left out …\nvwxyz"}},
		{"round the ring", 10, 20, []string{"0123456", "789", "abc"}, []string{"0123456", "789", "abc"}},
		{"the beginning of what is new is gone", 10, 20, []string{"0123456", "789abcdef"}, []string{"0123456", "… 4 bytes left out …\nbcdef"}},
		{"head and tail of the file, less in one look", 20, 4, []string{"0123456789abcdefghijklm"}, []string{"01\n… 19 bytes left out …\nlm"}},
		{"a letter in two pieces", 100, 100, []string{"a\xc3", "\xb6b"}, []string{"a", "öb"}},
		{"no letter is cut", 100, 6, []string{"ööööööö"}, []string{"ö\n… 10 bytes left out …\nö"}},
		{"no UTF-8", 100, 100, []string{"a\xffb"}, []string{"a\uFFFDb"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpool(t, tt.limit)
			seen := int64(0)
			for i, in := range tt.in {
				put(t, s, in)
				var got string
				if got, seen = s.Since(seen, tt.keep); got != tt.want[i] {
					t.Errorf("look %d: %q, want %q", i, got, tt.want[i])
				}
			}
			if got, want := s.Total(), int64(len(strings.Join(tt.in, ""))); got != want {
				t.Errorf("%d bytes, want %d", got, want)
			}
			if info, err := s.file.Stat(); err != nil || info.Size() > int64(tt.limit) {
				t.Errorf("the file has %d bytes, %v", info.Size(), err)
			}
		})
	}
}

// The last piece of what is no letter is shown when nothing more comes.
func TestSpoolEnds(t *testing.T) {
	s := newSpool(t, 100)
	put(t, s, "a\xc3")
	got, seen := s.Since(0, 100)
	s.End()
	rest, _ := s.Since(seen, 100)
	if got != "a" || rest != "\uFFFD" {
		t.Errorf("%q, then %q", got, rest)
	}
}

// FuzzSpool compares with a memory that keeps everything: what is shown is what was printed.
func FuzzSpool(f *testing.F) {
	f.Add([]byte("hällo wörld and much more"), 10, 3, 8)
	f.Add(bytes.Repeat([]byte("0123456789"), 30), 40, 7, 400)
	f.Fuzz(func(t *testing.T, in []byte, limit, chunk, keep int) {
		limit, chunk, keep = 2+abs(limit)%200, 1+abs(chunk)%100, 2+abs(keep)%300
		s := newSpool(t, limit)
		var seen int64
		for i := 0; i < len(in); i += chunk {
			put(t, s, string(in[i:min(i+chunk, len(in))]))
			if i/chunk%3 == 0 {
				_, seen = s.Since(seen, keep)
			}
		}
		s.End()
		got, next := s.Since(seen, keep)
		if next != int64(len(in)) || !utf8.ValidString(got) {
			t.Fatalf("next %d of %d, valid %v", next, len(in), utf8.ValidString(got))
		}
		fresh := in[seen:]
		head, tail, cut := strings.Cut(got, " bytes left out …\n")
		if !cut {
			if got != string(bytes.ToValidUTF8(fresh, []byte("\uFFFD"))) {
				t.Fatalf("shown %q of %q", got, fresh)
			}
			return
		}
		i := strings.LastIndex(head, "… ")
		var left int
		if _, err := fmt.Sscan(head[i+len("… "):], &left); err != nil || left <= 0 {
			t.Fatalf("%q: %v", got, err)
		}
		if !isASCII(in) {
			return // what is replaced changes lengths
		}
		head = strings.TrimSuffix(head[:i], "\n")
		shown := len(head) + left + len(tail)
		if !bytes.HasPrefix(fresh, []byte(head)) || !bytes.HasSuffix(fresh, []byte(tail)) || shown != len(fresh) && shown != len(fresh)-1 {
			t.Fatalf("%q of %q", got, fresh)
		}
		if len(head)+len(tail) > keep || len(fresh) <= min(keep/2*2, limit/2) {
			t.Fatalf("%d bytes shown of %d, keep %d, limit %d", len(head)+len(tail), len(fresh), keep, limit)
		}
	})
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// A full disk neither stops the command nor is kept secret.
func TestSpoolThatFails(t *testing.T) {
	s := newSpool(t, 100)
	put(t, s, "kept\n")
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "lost")
	put(t, s, "lost as well")
	got, next := s.Since(0, 100)
	if !strings.Contains(got, "the rest could not be kept") || strings.Contains(got, "lost") || next != 5 || s.Total() != 21 {
		t.Errorf("%q, %d of %d", got, next, s.Total())
	}
}

// A write that fails may have hit older bytes of the ring: they are not shown as if they were still what was printed.
func TestSpoolHidesWhatAFailedWriteMayHaveHit(t *testing.T) {
	s := newSpool(t, 10)
	put(t, s, "0123456789")
	whole := s.file
	t.Cleanup(func() { _ = whole.Close() })
	read, err := os.Open(whole.Name()) // it cannot be written
	if err != nil {
		t.Fatal(err)
	}
	s.file = read
	put(t, s, "abc")
	for range 2 {
		if got, next := s.Since(0, 100); !strings.HasPrefix(got, "01234\n… 3 bytes left out …\n89\n… the rest could not be kept") || next != 10 {
			t.Errorf("%q, %d", got, next)
		}
		s.file = whole // what comes after a gap would stand in the wrong place
		put(t, s, "de")
	}
}

func TestSpoolFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "bg_1")
	s, err := NewSpool(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewSpool(path, 0); !errors.Is(err, fs.ErrExist) || centurion.KindOf(err) != centurion.KindDisk {
		t.Errorf("a second one: %v", err)
	}
	if s.half != DefaultSpool/2 {
		t.Errorf("half %d", s.half)
	}
	if fi, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
		t.Errorf("others may read what a command prints: %v, %v", fi.Mode(), err)
	}
	if err := s.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}
