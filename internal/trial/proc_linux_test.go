package trial

import (
	"os/exec"
	"testing"
	"time"
)

// TRIAL invariant I5: a process that has left the group and lost its parent is found by where it works, and ended.
func TestLeftFindsOrphans(t *testing.T) {
	sc := newScene(t)
	if err := sc.s.Close(); err != nil {
		t.Fatal(err)
	}
	if left := sc.p.left(); len(left) != 0 {
		t.Fatalf("before anything was started there is %q", left)
	}
	var left []string
	for try := 0; try < 3 && len(left) == 0; try++ { // on a machine that is short of memory it may be gone again
		cmd := exec.Command("sh", "-c", "setsid sleep 60 >/dev/null 2>&1 &")
		cmd.Dir, cmd.Env = sc.p.Dir, []string{"PATH=/usr/bin:/bin"}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(3 * time.Second); len(left) == 0 && time.Now().Before(deadline); {
			left = sc.p.left() // it shows nothing while it is just becoming another program
		}
	}
	if len(left) == 0 {
		t.Error("the orphan is not found")
	}
	sc.p.close()
	if left := sc.p.gone(5 * time.Second); len(left) != 0 {
		t.Errorf("still there: %q", left)
	}
}

// A terminal that is closed ends what runs on it.
func TestTerminalGoesAway(t *testing.T) {
	defer hearHangUps()()
	control, terminal, err := openTerminal()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	onTerminal(cmd, terminal, true)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := terminal.Close(); err != nil {
		t.Fatal(err)
	}
	drained := drain(control)
	if err := control.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || err.Error() != "signal: hangup" {
		t.Errorf("it ended with %v, not by the signal of a terminal that is gone", err)
	}
	<-drained
}
