package trial

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// R5: a mutation changes one of the files, says which, and leaves the original's bytes alone.
func TestMutate(t *testing.T) {
	whole := map[string][]byte{"": bytes.Repeat([]byte("page of the state"), 4096), "-wal": bytes.Repeat([]byte("page of the log. "), 4096)}
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[string]bool{}
	for range 500 {
		files := maps.Clone(whole)
		name, what := mutate(r, files)
		kind, _, _ := strings.Cut(what, " ")
		kinds[kind] = true
		other := map[string]string{"": "-wal", "-wal": ""}[name]
		if !bytes.Equal(files[other], whole[other]) {
			t.Fatalf("%s: it changed centurion.db%s as well", what, other)
		}
		if kind == "flip" && bytes.Equal(files[name], whole[name]) {
			t.Fatalf("%s: nothing is changed", what)
		}
	}
	for name, first := range map[string]string{"": "page of the state", "-wal": "page of the log. "} {
		if !bytes.Equal(whole[name], bytes.Repeat([]byte(first), 4096)) {
			t.Errorf("the original centurion.db%s was changed", name)
		}
	}
	if len(kinds) != len(mutationKinds) {
		t.Errorf("only these kinds were used: %v", kinds)
	}
}

// R2: a frozen copy is equal, holes included, and a changed file is told from it.
func TestFreeze(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	content := make([]byte, 3*imageBlock+17)
	content[0], content[2*imageBlock+5] = 1, 2
	for _, b := range [][]byte{content, content[:imageBlock], content[:1], nil} {
		if err := os.WriteFile(from, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := freeze(from, to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes were copied as %d (%v)", len(b), len(got), err)
		}
	}
	if err := os.WriteFile(from, content[:2], 0o600); err != nil {
		t.Fatal(err)
	}
	if same, err := sameFile(from, to); err != nil || same {
		t.Errorf("a changed file is the same: %v, %v", same, err)
	}
}

// R2, R4: what was acknowledged is missing if it is not in the journal, or is there as something else.
func TestMissing(t *testing.T) {
	event := func(seq int64, data string) centurion.Event {
		return centurion.Event{Seq: seq, Type: centurion.EventTaskCompleted, Mission: "msn_1", Data: json.RawMessage(data)}
	}
	journal := map[int64]centurion.Event{1: event(1, `{"a":1}`), 2: event(2, `{"a":2}`)}
	for _, c := range []struct {
		told centurion.Event
		lost bool
	}{
		{event(1, `{"a":1}`), false},
		{event(1, `{ "a": 1 }`), false},
		{event(1, `{"a":2}`), true},
		{event(3, `{"a":1}`), true},
		{centurion.Event{Seq: 1, Type: centurion.EventTaskFailed, Mission: "msn_1", Data: json.RawMessage(`{"a":1}`)}, true},
	} {
		if got := len(missing([]centurion.Event{c.told}, journal)) > 0; got != c.lost {
			t.Errorf("%+v: lost %v, not %v", c.told, got, c.lost)
		}
	}
}
