package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"centurion/guard"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// watch starts a watch and returns a function that waits for a call after which the file has the content text, "" for
// no file, and returns how many calls came.
func watch(t *testing.T, w *workspace.Workspace) (until func(what, text string) int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan string, 100)
	var g guard.Group
	g.Go("watch", func() error {
		return w.Todo().Watch(ctx, func() {
			b, _ := os.ReadFile(planFile(w))
			called <- string(b)
		})
	})
	t.Cleanup(func() {
		cancel()
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	})
	return func(what, text string) int {
		t.Helper()
		timeout := time.After(30 * time.Second)
		for n := 1; ; n++ {
			select {
			case got := <-called:
				if got == text {
					return n
				}
			case <-timeout:
				t.Fatalf("not told: %s", what)
			}
		}
	}
}

// replace saves a file as most editors do.
func replace(t *testing.T, file, text string) {
	t.Helper()
	put(t, file+"~", text)
	if err := os.Rename(file+"~", file); err != nil {
		t.Fatal(err)
	}
}

// ORCH-11: whoever changes the plan, and however, it is noticed.
func TestWatch(t *testing.T) {
	t.Parallel()
	w := open(t, nil)
	file := planFile(w)
	if _, _, err := w.Todo().Load(); err != nil {
		t.Fatal(err)
	}
	until := watch(t, w)
	put(t, file, smallPlan)
	until("the directory and the file appear", smallPlan)
	d, err := w.Todo().Edit(t.Context(), mark("T1", todo.Done))
	if err != nil {
		t.Fatal(err)
	}
	until("the host's own edit", string(d.Bytes()))
	put(t, file, smallPlan)
	until("written in place", smallPlan)
	replace(t, file, "# renamed\n")
	until("renamed over", "# renamed\n")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	until("deleted", "")
	put(t, file, smallPlan)
	until("made again", smallPlan)
	if err := os.Rename(filepath.Dir(file), filepath.Dir(file)+"-away"); err != nil {
		t.Fatal(err)
	}
	until("the directory moved away", "")
	put(t, file, "# other\n")
	until("another directory", "# other\n")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	until("deleted again", "")
	if err := os.Mkdir(file, 0o755); err != nil {
		t.Fatal(err)
	}
	until("not to be read", "")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	until("the directory of its name is gone", "")
	begun := time.Now()
	for i := range 30 {
		replace(t, file, fmt.Sprint(i))
	}
	// The file is looked at 50 ms after a change, and every 5 s: a machine that is slow to make the changes is told more often.
	n, took := until("a burst", "29"), time.Since(begun)
	if most := 2 + int(took/(50*time.Millisecond)) + int(took/(5*time.Second)); n > most {
		t.Errorf("30 changes in %s were told %d times, want at most %d", took, n, most)
	}
}

// What changed after Load and before Watch is not missed; what has the same content is not told.
func TestWatchBaseline(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": smallPlan})
	if _, _, err := w.Todo().Load(); err != nil {
		t.Fatal(err)
	}
	replace(t, planFile(w), "# changed\n")
	until := watch(t, w)
	if n := until("a change before the watch", "# changed\n"); n != 1 {
		t.Errorf("told %d times", n)
	}
	replace(t, planFile(w), "# changed\n")
	put(t, filepath.Join(w.Dir(), ".opencode", "context.md"), "x")
	put(t, filepath.Join(w.Dir(), "main.go"), "x")
	time.Sleep(100 * time.Millisecond) // twice the time in which a wrong call would come
	replace(t, planFile(w), "# changed again\n")
	if n := until("one more change", "# changed again\n"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A change of which the system tells nothing, as on network file systems, is noticed all the same: the file is looked at every few seconds.
func TestWatchWithoutNotice(t *testing.T) {
	t.Parallel()
	w := open(t, map[string]string{".opencode/todo.md": smallPlan})
	if _, _, err := w.Todo().Load(); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "link") // in a directory that nobody watches
	if err := os.Link(planFile(w), elsewhere); err != nil {
		t.Fatal(err)
	}
	until := watch(t, w)
	put(t, elsewhere, "# first\n") // it may come before the watch begins
	until("before or after the watch begins", "# first\n")
	put(t, elsewhere, "# changed\n")
	until("a change without a notice", "# changed\n")
}
