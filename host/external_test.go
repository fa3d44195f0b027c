package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"centurion"
)

// What a source had is kept as long as it is the same source; a tool whose schema has changed is another one.
func TestMemory(t *testing.T) {
	tool := func(schema string) []centurion.ExternalTool {
		return []centurion.ExternalTool{{Name: "linear_find", Description: "finds", Schema: json.RawMessage(schema)}}
	}
	m := memory{filepath.Join(t.TempDir(), "mcp", "linear.json"), "sum"}
	if had := recall[centurion.ExternalTool](m); had != nil {
		t.Errorf("before: %v", had)
	}
	kept := remember(m, nil, tool(`{"type":"object"}`))
	kept = remember(m, kept, tool(`{"type":"object","required":["q"]}`))
	if had := recall[centurion.ExternalTool](m); len(had) != 1 || string(had[0].Schema) != `{"type":"object","required":["q"]}` {
		t.Errorf("after a change of the schema: %+v", had)
	}
	if err := os.Remove(m.file); err != nil {
		t.Fatal(err)
	}
	remember(m, kept, tool(`{"type":"object","required":["q"]}`))
	if _, err := os.Stat(m.file); err == nil {
		t.Error("what is kept already was written again")
	}
	remember(m, kept, nil)
	if had := recall[centurion.ExternalTool](m); had == nil || len(had) != 0 {
		t.Errorf("of a source without tools: %v", had)
	}
	if had := recall[centurion.ExternalTool](memory{m.file, "other"}); had != nil {
		t.Errorf("of another source: %v", had)
	}
	if err := os.WriteFile(m.file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if had := recall[centurion.ExternalTool](m); had != nil {
		t.Errorf("of a broken file: %v", had)
	}
}
