package centurion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"centurion"
)

// A line is what leads to its last message, also where it was rewound, and where a message was lost.
func TestLine(t *testing.T) {
	all := func(pairs ...string) (out []centurion.Message) { // id<prev
		for _, p := range pairs {
			id, prev, _ := strings.Cut(p, "<")
			out = append(out, centurion.Message{ID: id, Prev: prev})
		}
		return out
	}
	for name, tt := range map[string]struct {
		all        []centurion.Message
		leaf, want string
	}{
		"straight":                {all("a", "b<a", "c<b"), "c", "a b c"},
		"up to an older one":      {all("a", "b<a", "c<b"), "b", "a b"},
		"one":                     {all("a"), "a", "a"},
		"none":                    {nil, "a", ""},
		"no such":                 {all("a", "b<a"), "x", ""},
		"rewound":                 {all("a", "b<a", "c<b", "d<a", "e<d"), "e", "a d e"},
		"the line before":         {all("a", "b<a", "c<b", "d<a", "e<d"), "c", "a b c"},
		"rewound to nothing":      {all("a", "b<a", "c"), "c", "c"},
		"one was lost":            {all("a", "b<a", "d<lost", "e<d"), "e", "a b d e"},
		"lost, and rewound":       {all("a", "b<a", "d<lost", "e<a", "f<e"), "d", "a b d"},
		"a circle that is damage": {all("a", "b<c", "c<b"), "c", "a b c"},
		"itself":                  {all("a", "b<b"), "b", "a b"},
	} {
		var got []string
		for _, m := range centurion.Line(tt.all, tt.leaf) {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	var s centurion.SessionMeta
	if got := s.Leaf("c"); got != "c" {
		t.Errorf("never rewound: %s", got)
	}
	s.Rewound = &centurion.Rewound{Leaf: "a", Last: "c"}
	if rewound, after := s.Leaf("c"), s.Leaf("d"); rewound != "a" || after != "d" {
		t.Errorf("rewound: %s, after another message: %s", rewound, after)
	}
}

// LOOP-76: how an answer ended, and when, stands in the message under these words, which others read.
func TestFinishWords(t *testing.T) {
	for want, finish := range map[string]string{"stop": centurion.FinishStop, "tool-calls": centurion.FinishToolCalls, "cancelled": centurion.FinishCancelled,
		"length": centurion.FinishLength, "content-filter": centurion.FinishFilter, "error": centurion.FinishError, "unknown": centurion.FinishUnknown} {
		m := centurion.Message{Role: centurion.RoleAssistant, Finish: finish, Time: centurion.MessageTime{Created: 7, Completed: 9}}
		b, err := json.Marshal(m)
		if err != nil || !strings.HasSuffix(string(b), `"finish":"`+want+`"}`) || !strings.Contains(string(b), `"completed":9`) {
			t.Errorf("%s is written as %s, %v", want, b, err)
		}
	}
}

// What cannot be read is an error, never a message or a part with less in it.
func TestUnreadable(t *testing.T) {
	for text, to := range map[string]any{
		`{"role":5}`:                                  new(centurion.Message),
		`{"role":"user","time":"x"}`:                  new(centurion.Message),
		`{"role":"assistant","tokens":1}`:             new(centurion.Message),
		`{"status":"completed","output":1}`:           new(centurion.ToolState),
		`{"type":"text","text":1}`:                    new(centurion.Part),
		`{"type":"file","mime":1}`:                    new(centurion.Part),
		`{"type":"file","url":"data:x;base64,%"}`:     new(centurion.Part),
		`{"type":"file","mime":"image/png","url":{}}`: new(centurion.File),
	} {
		if err := json.Unmarshal([]byte(text), to); err == nil {
			t.Errorf("%s was read as %+v", text, to)
		}
	}
	b, err := json.Marshal(centurion.Part{ID: "prt_1", Type: centurion.PartCompaction})
	if err != nil || string(b) != `{"id":"prt_1","sessionID":"","messageID":"","type":"compaction","auto":false}` {
		t.Errorf("a compaction without data: %s, %v", b, err)
	}
}
