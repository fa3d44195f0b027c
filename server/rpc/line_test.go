package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

type closer struct{ bytes.Buffer }

func (*closer) Close() error { return nil }

// What is read are the lines that are not empty and not too long, whatever the input; each that is too long is answered once.
func FuzzLines(f *testing.F) {
	f.Add("{}\n{\"a\":1}\r\n\n  \n[]")
	f.Add(strings.Repeat("x", 40) + "\n{}\n" + strings.Repeat("y", 33))
	f.Add("\n" + strings.Repeat("z", 32))
	f.Add(strings.Repeat("x", 64<<10) + "{\"a\":1}\n{\"b\":2}\n") // what is left of a long line may look like a message
	f.Fuzz(func(t *testing.T, in string) {
		const most = 32
		var out closer
		l := NewLines(strings.NewReader(in), &out, most)
		var got []string
		for {
			line, err := l.Recv()
			if err != nil {
				if !errors.Is(err, io.EOF) || len(line) > 0 {
					t.Fatalf("%q, %v", line, err)
				}
				break
			}
			got = append(got, string(line))
		}
		var want []string
		long := 0
		for line := range strings.SplitSeq(in, "\n") {
			switch {
			case len(line) > most:
				long++
			case strings.TrimSpace(line) != "" && len(bytes.TrimSpace([]byte(line))) > 0:
				want = append(want, line)
			}
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
			t.Errorf("read %q, want %q", got, want)
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != long {
			t.Errorf("%d answers to %d lines that are too long", n, long)
		}
	})
}

// A message is one line, however it was written.
func TestSendIsOneLine(t *testing.T) {
	var out closer
	if err := NewLines(strings.NewReader(""), &out, MaxLine).Send([]byte("{\"a\":\n 1}")); err != nil {
		t.Fatal(err)
	}
	if s := out.String(); s != "{\"a\":1}\n" || !json.Valid(out.Bytes()) {
		t.Errorf("sent %q", s)
	}
}
