package peer

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"centurion/guard"
)

// streams are a process that writes what is in Reader, and takes what write does.
type streams struct {
	io.Reader
	write func([]byte) (int, error)
	gone  chan struct{}
}

func (s *streams) Write(b []byte) (int, error) { return s.write(b) }
func (s *streams) Close() error                { close(s.gone); return nil }

// open returns the lines of a process.
func open(t *testing.T, in io.Reader, write func(s *streams, b []byte) (int, error)) (*Lines, *int) {
	t.Helper()
	var group guard.Group
	s := &streams{Reader: in, gone: make(chan struct{})}
	s.write = func(b []byte) (int, error) { return write(s, b) }
	closed := 0
	var l *Lines
	l = New(s, &group, 1, func() {
		if closed++; guard.Closed(l.Done) {
			t.Error("last is called after Done was closed")
		}
	})
	t.Cleanup(func() {
		l.Close(io.EOF)
		if err := group.Wait(); err != nil || closed != 1 {
			t.Errorf("the writer ended with %v; last was called %d times", err, closed)
		}
	})
	return l, &closed
}

func takes(_ *streams, b []byte) (int, error) { return len(b), nil }

func TestNext(t *testing.T) {
	long := strings.Repeat("x", 200<<10) // longer than the reader's buffer
	l, _ := open(t, iotest.HalfReader(strings.NewReader("\n  \none\r\n"+long+"\n\nno end")), takes)
	for _, want := range []string{"one", long} {
		if got, err := l.Next(); err != nil || string(got) != want {
			t.Fatalf("got %.20q, %v; want %.20q", got, err, want)
		}
	}
	if l.Reason() != nil {
		t.Error("an open one has a reason for its end")
	}
	if got, err := l.Next(); err != io.EOF || got != nil || l.Reason() != io.EOF || !guard.Closed(l.Done) {
		t.Errorf("the end is %q, %v, with the reason %v", got, err, l.Reason())
	}
	l, _ = open(t, io.MultiReader(bytes.NewReader(make([]byte, MaxMessage)), strings.NewReader("x\n")), takes)
	if _, err := l.Next(); !errors.Is(err, ErrTooLong) || err.Error() != "it sent a message of more than 64 MB" {
		t.Errorf("a message above the limit: %v", err)
	}
}

// A line counts with its break.
func TestReadLine(t *testing.T) {
	for text, want := range map[string]string{"7\n": "7", "abc\n": "abc", "\n \n x \n": "x"} {
		if got, err := ReadLine(bufio.NewReader(strings.NewReader(text)), 4); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got, err := ReadLine(bufio.NewReader(strings.NewReader("abcd\n")), 4); err != ErrTooLong {
		t.Errorf("a longer one: %q, %v", got, err)
	}
}

// A process that takes what it is sent stays, however long that was ago, and needs nobody who hears of its end.
func TestTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group guard.Group
		s := &streams{Reader: strings.NewReader(""), gone: make(chan struct{}), write: func(b []byte) (int, error) { return len(b), nil }}
		l := New(s, &group, 1, nil)
		l.Out <- []byte("a\n")
		time.Sleep(2 * writeLimit)
		if l.Reason() != nil {
			t.Errorf("closed for %v", l.Reason())
		}
		l.Close(io.EOF)
		if err := group.Wait(); err != nil || l.Reason() != io.EOF {
			t.Errorf("closed for %v, %v", l.Reason(), err)
		}
	})
}

func TestWriting(t *testing.T) {
	for name, test := range map[string]struct {
		write func(s *streams, b []byte) (int, error)
		want  error
		after time.Duration
	}{
		"takes nothing":    {func(s *streams, _ []byte) (int, error) { <-s.gone; return 0, io.ErrClosedPipe }, ErrDeaf, writeLimit},
		"closed its input": {func(*streams, []byte) (int, error) { return 0, io.ErrClosedPipe }, io.EOF, lull},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l, closed := open(t, iotest.ErrReader(io.ErrNoProgress), test.write)
				l.Out <- []byte("a\n")
				<-l.Done
				if l.Reason() != test.want || time.Since(began) != test.after || *closed != 1 {
					t.Errorf("closed for %v after %s; want %v after %s", l.Reason(), time.Since(began), test.want, test.after)
				}
				if _, err := l.Next(); err != test.want || test.want == ErrDeaf && err.Error() != "it does not take what it is sent" {
					t.Errorf("reading it says %v", err)
				}
			})
		})
	}
}

func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Rate{Max: 3}
		for range 2 { // in each second
			if err := r.Hit(3); err != nil {
				t.Fatal(err)
			}
			if err := r.Hit(1); err == nil || err.Error() != "it sent more than 3 messages in a second" {
				t.Fatalf("a fourth message: %v", err)
			}
			time.Sleep(time.Second)
		}
	})
}
