package tools

import (
	"encoding/json"
	"testing"

	"centurion"
)

// What a stored call has told of a file is known again from its result alone, as it comes back from the store: the version
// that was seen, not that the file was seen. What did not end well has told nothing.
func TestRecall(t *testing.T) {
	for _, tt := range []struct {
		tool string
		in   args
	}{
		{"read", args{"filePath": "a.txt", "limit": 1}},
		{"write", args{"filePath": "a.txt", "content": "mine too\n"}},
		{"edit", args{"filePath": "a.txt", "oldString": "mine", "newString": "mine too"}},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			b := newBench(t)
			b.put("a.txt", "mine\nand more\n")
			if tt.tool != "read" {
				b.must("read", args{"filePath": "a.txt"})
			}
			r := b.must(tt.tool, tt.in)
			raw, err := json.Marshal(r.Metadata[knows])
			if err != nil || len(raw) > 150 {
				t.Errorf("what is kept of it: %s, %v", raw, err)
			}
			var stored map[string]any
			if err := json.Unmarshal(raw, &stored); err != nil {
				t.Fatal(err)
			}
			part := centurion.Part{State: &centurion.ToolState{Status: centurion.ToolError, Metadata: map[string]any{knows: stored}}}
			write := args{"filePath": "a.txt", "content": "new\n"}

			later := b.other()
			later.Seen.Recall(part)
			later.refused("write", write, centurion.KindUsage, "you have not read it")
			part.State.Status = centurion.ToolCompleted
			later.Seen.Recall(part)
			was := b.get("a.txt")
			b.put("a.txt", "theirs\n")
			later.refused("write", write, centurion.KindConflict, "has changed since you read it")
			b.put("a.txt", was)
			later.must("write", write)
		})
	}
}
