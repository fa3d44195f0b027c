package main

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// R7: what is played is what was recorded: several answers in one file are told apart, and a kind without a client is named.
func TestRecordingsAreRead(t *testing.T) {
	own, err := fs.Sub(recordings, "recordings")
	if err != nil {
		t.Fatal(err)
	}
	all, skipped, err := readRecordings(own)
	if err != nil || len(all) != 9 || len(skipped) != 0 {
		t.Fatalf("%d answers of our own, %q, %v", len(all), skipped, err)
	}
	for _, r := range all {
		text, calls := r.written()
		if h := r.heard; h.err == nil && (h.text != text || len(h.calls) != len(calls) || text == "" && len(calls) == 0) {
			t.Errorf("%s: heard %+v, written %q %q", r.name, h, text, calls)
		}
	}
	two := `{"id":"a","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}` + "\n" + `{"id":"a","usage":{}}` + "\n\n" + `{"id":"b","choices":[{"delta":{"content":"y"},"finish_reason":"stop"}]}`
	all, skipped, err = readRecordings(fstest.MapFS{"chat/two.jsonl": {Data: []byte(two)}, "other/one.jsonl": {}, "chat/readme.md": {}})
	if err != nil || len(all) != 2 || len(all[0].lines) != 2 || all[1].heard.text != "y" || len(skipped) != 1 {
		t.Errorf("%d answers, skipped %q, %v", len(all), skipped, err)
	}
}
