package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

// Bubblewrap is named with where it is.
func TestBubblewrap(t *testing.T) {
	dir := t.TempDir()
	bwrap := filepath.Join(dir, "bwrap")
	for _, want := range []string{"no bubblewrap", "bubblewrap at " + bwrap} {
		t.Setenv("PATH", dir)
		if got := bubblewrap(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if err := os.WriteFile(bwrap, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
