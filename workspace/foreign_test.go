package workspace_test

import (
	"testing"
	"testing/synctest"
	"time"

	"centurion/workspace/todo"
)

// What others write is told once, from what they had read and without what edits did meanwhile; edits are not told, and a file that was gone
// for a moment is no change.
func TestForeign(t *testing.T) {
	w := open(t, nil)
	synctest.Test(t, func(t *testing.T) {
		f := w.Todo()
		const text = "# Plan\n- [ ] T1 one\n- [ ] T2 two\n- [ ] T3 three\n"
		foreign := func(what string, want ...string) {
			t.Helper()
			if _, err := f.Heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range f.Foreign() {
				got = append(got, string(c.From.Bytes()), string(c.To.Bytes()))
			}
			wantTexts(t, what, got, want)
		}
		if _, err := f.Replace(t.Context(), text, nil); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"T1", "T2"} {
			if _, err := f.Edit(t.Context(), mark(id, todo.Running)); err != nil {
				t.Fatal(err)
			}
		}
		foreign("own edits")

		stale := replaced(t, text, "- [ ] T3 three\n", "- [ ] T4 four\n") // of before the marks
		put(t, planFile(w), stale)
		time.Sleep(time.Minute)
		foreign("a save of an older text", text, stale)
		foreign("once")

		now := get(t, w, f.Path())
		put(t, planFile(w), "")
		time.Sleep(time.Minute)
		foreign("emptied")
		put(t, planFile(w), now+"- [ ] T5 five\n")
		time.Sleep(time.Minute)
		foreign("written again", now, now+"- [ ] T5 five\n")
	})
}

func wantTexts(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %q, want %q", what, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%s: text %d is\n%swant\n%s", what, i, got[i], want[i])
		}
	}
}
