package provider

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// framesOf reads the events of a stream as a decoder gets them.
func framesOf(r io.Reader) (all []string, err error) {
	events := newFrames(r, "text/event-stream")
	for {
		data, err := events.next()
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
		whole, err := framesOf(bytes.NewReader(b))
		slow, serr := framesOf(iotest.OneByteReader(bytes.NewReader(b)))
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
