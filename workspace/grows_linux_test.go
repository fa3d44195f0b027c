package workspace_test

import (
	"strings"
	"testing"

	"centurion"
	"centurion/workspace"
)

// A file that has become longer than it was told to be, as those of /proc are, is too large and not cut.
func TestReadFileThatGrows(t *testing.T) {
	w, err := workspace.Open("/proc/self")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b, fi, err := w.ReadFile("status", 1<<20)
	if err != nil || fi.Size() != 0 || len(b) < 100 {
		t.Fatalf("/proc/self/status has %d bytes: %v", len(b), err)
	}
	if b, _, err := w.ReadFile("status", 50); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), "more than the 50") {
		t.Errorf("%q, %v", b, err)
	}
}
