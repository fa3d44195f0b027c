//go:build linux || darwin

package orchestrator

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
)

const fullEnv = "CENTURION_ORCHESTRATOR_FULL"

// limitFiles lets no file of this process grow beyond n bytes, which a write then meets as it meets a full disk.
func limitFiles(t *testing.T, n uint64) {
	t.Helper()
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &now); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: min(n, now.Max), Max: now.Max}); err != nil {
		t.Fatal(err)
	}
}

// TRIAL R4, I1: the disk that holds the state is really full, twice, for as long as it takes to be noticed. The mission waits,
// goes on by itself, and neither loses nor repeats anything. The limit holds for a whole process, so it is another one.
func TestFullStateDisk(t *testing.T) {
	if os.Getenv(fullEnv) == "" {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFullStateDisk$", "-test.v", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), fullEnv+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestFullStateDisk") {
			t.Errorf("%s (%v)", out, err)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	bubble(t, map[string]script{"commander": steps(do(work("", "x"), work("", "y")), say("I wait")), "worker": minutes(4, "made")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		for range 2 {
			time.Sleep(75 * time.Second)
			synctest.Wait()
			info, err := os.Stat(r.store.Path() + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			limitFiles(t, uint64(info.Size()))
			for range 150 {
				if r.host.Space.Reason(m.ID) != "" {
					break
				}
				time.Sleep(time.Second)
				synctest.Wait()
			}
			has(t, r.host.Space.Reason(m.ID), "waiting for space: ")
			seq := r.store.LastSeq()
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if r.host.Space.Reason(m.ID) == "" || r.store.LastSeq() != seq {
				t.Error("it does not wait")
			}
			limitFiles(t, 1<<40)
		}
		m = l.settled()
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "told", r.told(m.Session, "made"), 2)
		for _, task := range r.tasks(m.ID) {
			equal(t, "status", task.Status, centurion.TaskCompleted)
			equal(t, "result", task.Result, "made")
		}
		equal(t, "ends that were told", r.count(m.ID, centurion.EventTaskCompleted), 2)
	})
}
