package background

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/sandbox"
)

// ORCH-52: many short commands do not fill the disk: of those that have ended the output of the newest is kept.
func TestEndedBackgroundsAreLetGo(t *testing.T) {
	dir := t.TempDir()
	s := Commands{}
	files := func() int {
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for i := range 3 * keepEnded {
		id := fmt.Sprintf("bg_%d", i+1)
		spool, err := sandbox.NewSpool(filepath.Join(dir, id), 100)
		if err != nil {
			t.Fatal(err)
		}
		b := &command{id: id, session: "ses_1", spool: spool, done: make(chan struct{})}
		if err := s.add(b); err != nil {
			t.Fatal(err)
		}
		if _, err := spool.Write([]byte("printed\xc3")); err != nil {
			t.Fatal(err)
		}
		s.end(b, centurion.CommandResult{Bytes: 8}, nil, nil)
		if n := files(); n != min(i, keepEnded)+1 {
			t.Fatalf("%d files after %d commands", n, i+1)
		}
	}
	all := s.of("ses_1")
	if first := s.look(all[0], true); first.Output != "… what it printed is not kept any more …" || first.Bytes != 8 || first.ExitCode != 0 {
		t.Errorf("the first: %+v", first)
	}
	last := all[len(all)-1]
	if got := s.look(last, true).Output; got != "printed\uFFFD" { // no more comes of the letter that has begun
		t.Errorf("the last: %v", got)
	}
	if got := s.look(last, true).Output; got != "" {
		t.Errorf("the last, again: %v", got)
	}
	for _, b := range all {
		b.drop()
	}
	if got := files(); got != 0 {
		t.Errorf("files: %v", got)
	}
}

// The end of an attempt ends its own commands, and not those of one that came after it in the same session.
func TestEndIsOfAnAttempt(t *testing.T) {
	s := Commands{}
	c := &agent.Conversation{Attempt: 1} // of the session ""
	ended := map[string]error{}
	for _, b := range []*command{{id: "bg_1", attempt: 1}, {id: "bg_2", attempt: 2}, {id: "bg_3", session: "ses_2", attempt: 1}} {
		b.done = make(chan struct{})
		b.cancel = func(cause error) {
			ended[b.id] = cause
			close(b.done)
		}
		if err := s.add(b); err != nil {
			t.Fatal(err)
		}
	}
	lost := s.End(c)
	if len(ended) != 1 || ended["bg_1"] != error(errTaskOver) || len(lost) != 1 || !strings.Contains(lost[0], "bg_1") {
		t.Errorf("ended %v, told %q", ended, lost)
	}
}

// Lost commands come before the words of their agent; the verdict of a review stays its first word.
func TestLostCommandsComeFirst(t *testing.T) {
	lost := []string{"its background command bg_1 \"watch\", which was still running when its turn ended", "its background command bg_2 \"serve\""}
	const told = "(The host ended its background command bg_1 \"watch\", which was still running when its turn ended)\n(The host ended its background command bg_2 \"serve\")"
	for agent, want := range map[string]string{"worker": told + "\n\nA watcher runs.", "reviewer": "A watcher runs.\n\n" + told} {
		if got := WithLost(agent, "A watcher runs.\n", lost); got != want {
			t.Errorf("%s: %q, want %q", agent, got, want)
		}
		if got := WithLost(agent, "A watcher runs.\n", nil); got != "A watcher runs.\n" {
			t.Errorf("%s, nothing lost: %q", agent, got)
		}
	}
}
