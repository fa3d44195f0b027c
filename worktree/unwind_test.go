package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A file goes back as far as nobody else has changed it, and stays if somebody has changed it since.
func TestUnwind(t *testing.T) {
	t.Parallel()
	x, s := shade(t, map[string]string{"plain": "0\n", "between": "0\n", "since": "0\n", "gone": "0\n", "same": "0\n", "other": "0\n"})
	ctx := t.Context()
	var steps []Written
	step := func(paths []string, write func()) {
		before := x.save(s, "before")
		write()
		steps = append(steps, Written{before, x.save(s, "after"), paths})
	}
	drop := func(name string) {
		if err := os.Remove(filepath.Join(x.top, name)); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"plain", "between", "since", "gone", "same", "new", "brief"}
	step(all, func() {
		for _, name := range []string{"plain", "between", "since", "same", "new", "brief"} {
			x.write(name, "1\n")
		}
		drop("gone")
		x.write("other", "nobody says who\n")
	})
	x.write("between", "of the person\n")
	step(all, func() {
		for _, name := range []string{"plain", "between"} {
			x.write(name, "2\n")
		}
		x.write("same", "0\n")
		drop("brief")
	})
	x.write("since", "of the person\n")
	back, kept, err := s.Unwind(ctx, steps, x.save(s, "now"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Written{{steps[1].Before, steps[1].After, []string{"between"}}, {steps[0].Before, steps[0].After, []string{"gone", "new"}},
		{steps[0].Before, steps[1].After, []string{"plain"}}}
	if fmt.Sprint(back) != fmt.Sprint(want) || fmt.Sprint(kept) != "[between since]" {
		t.Fatalf("back %v, want %v; kept %v", back, want, kept)
	}
	for _, w := range back {
		if _, changed, err := s.Restore(ctx, w.Before, w.After, false, w.Paths...); err != nil || len(changed) > 0 {
			t.Errorf("restored %v: %v, %v", w, changed, err)
		}
	}
	for name, want := range map[string]string{"plain": "0\n", "between": "of the person\n", "since": "of the person\n", "gone": "0\n", "other": "nobody says who\n"} {
		if got := x.files()[name]; got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
	if got, there := x.files()["new"]; there {
		t.Errorf("new is there: %q", got)
	}
}
