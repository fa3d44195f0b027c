package tools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"centurion"
)

// book is the orchestrator as far as update_context sees it.
type book struct{ got []ContextUpdate }

func (b *book) UpdateContext(_ context.Context, _ *Call, u ContextUpdate) (string, error) {
	b.got = append(b.got, u)
	return "kept", nil
}

// ORCH-59, ORCH-60: what reaches the host of a call, and what does not go that far.
func TestUpdateContext(t *testing.T) {
	b, kept := newBench(t), &book{}
	b.refused("update_context", args{"note": "x"}, centurion.KindPermission, "your role does not write what the sessions share", "say it in your answer")
	b.Notebook = kept
	want(t, "answer", b.must("update_context", args{"context": "\n# C\n\ntext\n\n", "summary": " s ", "note": " n "}).Output, "kept")
	want(t, "update", kept.got[0], ContextUpdate{Context: "# C\n\ntext", Summary: "s", Note: "n"})
	b.refused("update_context", args{}, centurion.KindUsage, "nothing was given to write", "give context, summary or note")
	b.refused("update_context", args{"note": "  "}, centurion.KindUsage, "nothing was given to write")
	b.refused("update_context", args{"note": strings.Repeat("x", 501)}, centurion.KindUsage, "501 bytes, more than 500")
	b.refused("update_context", args{"notes": "x"}, centurion.KindUsage, `"notes" is not a property`, `did you mean "note"?`)
	want(t, "calls that went through", len(kept.got), 1)
	b.Seen.Saw(".opencode/context.md", "v1")
	b.Seen.Saw(".opencode/summary.md", "v2")
	for in, known := range map[string]string{"context": "context", "note": "context", "summary": "summary"} {
		got, _ := json.Marshal(b.must("update_context", args{in: "x"}).Metadata[knows])
		for _, file := range []string{"context", "summary"} {
			want(t, in+" makes known "+file, strings.Contains(string(got), file+".md"), file == known)
		}
	}
}

// ORCH-7, ORCH-57: who may only add notes is offered nothing else, and is refused the rest by the schema.
func TestNotesOnly(t *testing.T) {
	tl := NotesOnly()
	want(t, "name", tl.Name(), "update_context")
	want(t, "signature", signature(tl), "{note}")
	if n := strings.Count(tl.Description(), "\n") + 1; n > 12 {
		t.Errorf("%d lines", n)
	}
	checkExample(t, tl)
	for _, in := range []string{`{"note": "x", "context": "y"}`, `{"summary": "y"}`} {
		if err := Check(tl, []byte(in)); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s: %v", in, err)
		}
	}
	if got := string(Spec(tl).Schema); strings.Contains(got, "summary") || strings.Contains(got, `"context"`) || !strings.Contains(got, `"note"`) {
		t.Errorf("schema %s", got)
	}
	kept := &book{}
	if r, err := tl.Run(t.Context(), &Call{Notebook: kept}, []byte(`{"note": "x"}`)); err != nil || r.Output != "kept" || kept.got[0].Note != "x" {
		t.Errorf("%+v, %v", r, err)
	}
}

// ORCH-59, ORCH-60, ORCH-62: no file tool writes what belongs to the host, and every one may read it.
func TestSharedFilesAreNotWrittenByFileTools(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{".opencode/context.md", ".opencode/summary.md", ".opencode/archive/context-1.md", ".opencode/docs/x.md"} {
		b.put(name, "text of "+name+"\n")
		says(t, b.must("read", args{"filePath": name}).Output, "text of "+name)
		b.refused("write", args{"filePath": name, "content": "x"}, centurion.KindPermission, name+" is not written by file tools", "update_context")
		b.refused("edit", args{"filePath": name, "oldString": "text", "newString": "x"}, centurion.KindPermission, name+" is not written by file tools")
		want(t, name, b.get(name), "text of "+name+"\n")
	}
}
