package todotest_test

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"centurion/workspace/todotest"
)

// TRIAL R17, I4: a person's editor and fifty agents at one plan; nothing is lost and the file is never torn. With
// CENTURION_ATTACK=10000 it is the whole trial.
func TestAttack(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("files cannot be exchanged here; see workspace.TodoFile")
	}
	edits := 250
	if n, err := strconv.Atoi(os.Getenv("CENTURION_ATTACK")); err == nil {
		edits = n
	}
	o := todotest.Options{Dir: t.TempDir(), Edits: edits, Seed: 17, Think: 10 * time.Millisecond, Pause: 3 * time.Millisecond}
	r, err := todotest.Attack(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	for _, what := range r.Lost {
		t.Error("lost: ", what)
	}
	if r.Torn > 0 || r.Partial > 0 {
		t.Errorf("%d reads of %d were torn, %d edits were shown a part", r.Torn, r.Reads, r.Partial)
	}
	if r.AgentEdits+r.PersonEdits < edits || r.PersonEdits == 0 || r.Stale == 0 || r.Interleavings < edits/2 || r.Reads == 0 {
		t.Error("this was no attack")
	}
}
