package workspace

import "testing"

// Issue "What real use showed", A.3: what was reverted says so in the shared texts, every other byte stays, and a redo takes it away.
func TestRevertNotes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, marked string }{
		"one of two":         {"# C\r\n- a (worker)\n## Notes\n\n- a (worker)\r\n- b (worker)\n", "# C\r\n- a (worker)\n## Notes\n\n- a (worker) (reverted)\r\n- b (worker)\n"},
		"the last line":      {"## Notes\n- a (worker)", "## Notes\n- a (worker) (reverted)"},
		"no notes":           {"- a (worker)\n", "- a (worker)\n"},
		"none of it is here": {"## Notes\n- c\n\n## More\n- a (worker)\n", "## Notes\n- c\n\n## More\n- a (worker)\n"},
		"another's":          {"## Notes\n- c (reverted)\n- b (worker) (reverted)\n", "## Notes\n- c (reverted)\n- b (worker) (reverted)\n"},
		"empty":              {"", ""},
	} {
		notes := []string{"a  (worker)"}
		got := RevertNotes(tt.text, notes, true)
		if got != tt.marked {
			t.Errorf("%s: %q, want %q", name, got, tt.marked)
		}
		if same := RevertNotes(tt.text, notes, false); same != tt.text {
			t.Errorf("%s: what is not marked became %q", name, same)
		}
		if again := RevertNotes(got, notes, true); again != got {
			t.Errorf("%s: marked twice: %q", name, again)
		}
		if back := RevertNotes(got, notes, false); back != tt.text {
			t.Errorf("%s: after the redo %q, want %q", name, back, tt.text)
		}
	}
}

func TestRevertText(t *testing.T) {
	t.Parallel()
	reverted := "> Reverted: T1 went.\n\ntext"
	for why, want := range map[string]string{"T2 went.": reverted, "T1 went.": "text"} {
		if got := RevertText(reverted, why, false); got != want {
			t.Errorf("without %s: %q", why, got)
		}
	}
	for _, text := range []string{"# S\n\nDone.\n", "", "> quoted\n\ntext"} {
		one := RevertText(text, "T1 went.", true)
		if want := "> Reverted: T1 went.\n\n" + text; one != want || RevertText(one, "T1 went.", true) != want {
			t.Errorf("%q, want %q", one, want)
		}
		both := RevertText(one, "T2 went.", true)
		if heads, rest := CutReverted(both); rest != text || heads+rest != both {
			t.Errorf("%q is parted into %q and %q", both, heads, rest)
		}
		if got := RevertText(RevertText(both, "T1 went.", false), "T2 went.", false); got != text {
			t.Errorf("after the redo %q, want %q", got, text)
		}
	}
}
