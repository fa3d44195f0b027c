package trial

import (
	"io/fs"
	"slices"
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

// R7: of a long recording every kind of event is cut at every byte, wherever in it it stands, and no line between is played so
// often that the whole takes time with the square of its length.
func TestSelection(t *testing.T) {
	lines := slices.Repeat([]string{`{"type":"delta","text":"a word"}`}, 4000)
	lines[3000] = `{"type":"usage","n":1}`
	lines[3001] = `{"type":"delta","text":"a word","more":null}`
	s := selectionOf(lines, 40*len(lines), false)
	for at, want := range map[int]bool{0: true, 1: true, 2: false, 2999: false, 3000: true, 3001: true, 3002: false, 3999: true, 4000: true} {
		if s.whole(at) != want || want && !s.looked(at) {
			t.Errorf("line %d is cut at every byte: %v, want %v", at, s.whole(at), want)
		}
	}
	looked := 0
	for i := range lines {
		if s.looked(i) {
			looked++
		}
	}
	if bytes := looked * 40 * len(lines); bytes > 2*selectBytes || bytes < selectBytes/2 {
		t.Errorf("%d lines are played, %d bytes", looked, bytes)
	}
	for _, all := range []selection{selectionOf(lines, 40*len(lines), true), selectionOf(lines[:9], 360, false)} {
		if !all.whole(5) || !all.looked(5) {
			t.Error("a short one, or all with -full, is not cut at every byte")
		}
	}
}
