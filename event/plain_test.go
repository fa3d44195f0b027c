package event

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"centurion"
)

// A question's header is at most as long as OpenCode shows, its ellipsis included, and is its first line.
func TestQuestionHeader(t *testing.T) {
	for _, said := range []string{"Which one?", "Which of the many drivers for the database do you want?", strings.Repeat("ü", 40), "Which?\nThere are two."} {
		q := NewQuestion("ses_1", "", "", said, nil).Questions[0]
		if first, _, _ := strings.Cut(said, "\n"); utf8.RuneCountInString(q.Header) > headerLen || !strings.HasPrefix(first, strings.TrimSuffix(q.Header, "…")) || q.Header == "" {
			t.Errorf("%q has the header %q", said, q.Header)
		}
	}
	if h := NewQuestion("ses_1", "", "", strings.Repeat("x", 40), nil).Questions[0].Header; h != strings.Repeat("x", 29)+"…" {
		t.Errorf("a long one is %q", h)
	}
}

// OPAL-54: within the process an event is handed on as it is: everybody gets the same bytes, and nothing is written out and
// read again on the way. No other program and no module that is not ours stands in between.
func TestHubHandsOnAsItIs(t *testing.T) {
	var h Hub
	var got [3]<-chan centurion.Event
	for i := range got {
		got[i] = h.Subscribe(t.Context())
	}
	sent := delta(1, "ses_1", "prt_1", "x")
	h.Publish(sent)
	for i, c := range got {
		if e := <-c; &e.Data[0] != &sent.Data[0] || e.After != 1 || e.Session != "ses_1" {
			t.Errorf("subscriber %d got another event: %+v", i, e)
		}
	}
	if n := testing.AllocsPerRun(20, func() { h.Publish(sent) }); n > 0 {
		t.Errorf("publishing allocates %v times", n)
	}

	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			first, _, _ := strings.Cut(p, "/")
			if strings.Contains(first, ".") || first == "net" || p == "os/exec" {
				t.Errorf("%s imports %s", file, p)
			}
		}
	}
}

// A file that was renamed is told under both its names and counted once, and a plan has as many items as are not cancelled.
func TestCounts(t *testing.T) {
	renamed, plain := centurion.FileChange{Path: "b", Old: "a"}, centurion.FileChange{Path: "c"}
	if d := (MergeData{Commit: "1"}).WithFiles([]centurion.FileChange{renamed, plain}); d.Changed != 2 || len(d.Files) != 3 || d.Commit != "1" {
		t.Errorf("with a renamed file: %+v", d)
	}
	if d := (MergeData{Changed: 9}).WithFiles([]centurion.FileChange{plain}); d.Changed != 0 || len(d.Files) != 1 {
		t.Errorf("without one: %+v", d)
	}
	if n := (TodoCounts{Open: 1, Running: 2, Done: 4, Cancelled: 8, Blocked: 16}).Total(); n != 23 {
		t.Errorf("%d items", n)
	}
}

// A question keeps its whole text, each choice and the call that asks, as OpenCode has them.
func TestQuestionIsWhole(t *testing.T) {
	got := NewQuestion("ses_1", "msg_1", "call_1", "Which?\nThere are two.", []string{"a", "b"})
	q := got.Questions[0]
	if got.SessionID != "ses_1" || len(got.Questions) != 1 || q.Question != "Which?\nThere are two." || q.Header != "Which?" || len(q.Options) != 2 || q.Options[0].Label != "a" || q.Options[1].Label != "b" {
		t.Errorf("%+v", got)
	}
	if got.Tool == nil || *got.Tool != (QuestionTool{MessageID: "msg_1", CallID: "call_1"}) {
		t.Errorf("the call: %+v", got.Tool)
	}
	if got = NewQuestion("ses_1", "msg_1", "", "Which?", nil); got.Tool != nil || got.Questions[0].Options == nil {
		t.Errorf("of the host: %+v", got)
	}
}

// A long text is repeated by its end, marked as such and never in the middle of a character.
func TestShortKeepsTheEnd(t *testing.T) {
	exact := strings.Repeat("x", toolOutput)
	if got := Short(exact); got != exact {
		t.Errorf("what fits is cut to %d bytes", len(got))
	}
	for _, long := range []string{exact + "the end", strings.Repeat("ü", toolOutput) + "the end", strings.Repeat("ü", toolOutput) + "xthe end"} {
		got := Short(long)
		if len(got) > toolOutput || len(got) < toolOutput-utf8.UTFMax || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "the end") || !utf8.ValidString(got) {
			t.Errorf("%d bytes: %.20q … %q", len(got), got, got[max(0, len(got)-10):])
		}
	}
	if got := Short(strings.Repeat("\x80", toolOutput+1)); got != "…" {
		t.Errorf("what is no text: %q", got)
	}
	if d, err := Decode[ToolData](centurion.Event{Data: []byte(`{"tool":5}`)}); err == nil {
		t.Errorf("data of another form is read as %+v", d)
	}
	if got := string(Data(nil)); got != "{}" {
		t.Errorf("no data is %s", got)
	}
	if got := string(Data(func() {})); !strings.HasPrefix(got, `{"error":"`) {
		t.Errorf("data that is none is %s", got)
	}
}
