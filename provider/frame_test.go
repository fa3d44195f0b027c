package provider

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// frames reads the events of a stream as a decoder gets them.
func frames(r io.Reader) (all []string, err error) {
	lines := bufio.NewReaderSize(newSieve(r, "text/event-stream"), readBlock)
	for {
		data, err := nextData(lines)
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

// FuzzFrames reads server-sent events whole and byte by byte: how a network cuts a stream changes nothing of what is read.
func FuzzFrames(f *testing.F) {
	for _, s := range []string{"", "data: {}\n\n", "data:{\"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", ": ping\n\ndata: {}\n\n", "event: error\ndata: {\"message\":\"m\"}\n\n",
		"event: a\nid: 7\nretry: 5\ndata: {\"b\":\"ü\"}\n\n", "\xEF\xBB\xBFdata: {}\n\n", "data: {\"cut", `{"error":{"message":"m"}}`, "<html>", "data:\n\ndata: {}\n",
		"data: {}\rdata: {}\r\r", "data: " + strings.Repeat("x", 2*readBlock) + "\n\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		whole, err := frames(bytes.NewReader(b))
		slow, serr := frames(iotest.OneByteReader(bytes.NewReader(b)))
		if !slices.Equal(whole, slow) || (err == io.EOF) != (serr == io.EOF) {
			t.Fatalf("whole: %q, %v; byte by byte: %q, %v", whole, err, slow, serr)
		}
		for _, data := range whole {
			if data == "" || strings.Contains(data, "\n") {
				t.Fatalf("an event is %q", data)
			}
		}
	})
}
