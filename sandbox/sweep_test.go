//go:build linux

package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"centurion"
)

// newMark returns a mark that no other run of these tests uses, and ends what still has it afterwards.
func newMark(t testing.TB) string {
	mark := fmt.Sprintf("test-%d-%s-%d", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano())
	t.Cleanup(func() { _, _ = Sweep(context.Background(), mark) })
	return mark
}

// leave runs a script with a mark, as a host does that is killed right afterwards, and waits until each of the files
// holds the number of a process that the script left behind.
func leave(t *testing.T, mark, script string, files ...string) (pids []int) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), hostVariable+"="+mark)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		pid := 0
		for deadline := time.Now().Add(5 * time.Second); pid == 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not written", f)
			}
			b, _ := os.ReadFile(filepath.Join(dir, f))
			if line, ok := strings.CutSuffix(string(b), "\n"); ok {
				pid, _ = strconv.Atoi(line)
			}
		}
		pids = append(pids, pid)
	}
	return pids
}

func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func commandOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(b)
}

func contains(list []Process, pid int) bool {
	return slices.ContainsFunc(list, func(p Process) bool { return p.PID == pid })
}

// TRIAL R11: what left its group, its session, its terminal and its parents is found by its mark, whatever it does about SIGTERM.
func TestSweepFindsOrphans(t *testing.T) {
	tests := []struct {
		name, script string
		patient      bool // it takes SIGKILL
	}{
		{"background", `sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 &`, false},
		{"setsid nohup double fork", `setsid nohup sh -c 'sh -c "echo \$\$ > pid; exec sleep 60" & exit' >/dev/null 2>&1 &`, false},
		{"ignores SIGTERM", `setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 1; done' >/dev/null 2>&1 &`, true},
		{"stopped", `setsid sh -c 'echo $$ > pid; kill -STOP $$; sleep 60' >/dev/null 2>&1 &`, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			mark := newMark(t)
			pid := leave(t, mark, test.script, "pid")[0]
			for strings.Contains(test.script, "exec ") && !strings.HasPrefix(commandOf(pid), "sleep") { // it has no command while it becomes another one
				runtime.Gosched()
			}
			watch := stopwatch()
			ended, err := Sweep(t.Context(), mark)
			took := watch()
			if err != nil || !contains(ended, pid) {
				t.Fatalf("process %d: ended %v, %v", pid, ended, err)
			}
			if running(pid) {
				t.Errorf("process %d survived", pid)
			}
			if took > sweepLimit || !test.patient && took > sweepGrace {
				t.Errorf("took %s", took)
			}
			for _, p := range ended {
				if p.PID == pid && (p.Command == "" || p.Command == "?") { // others may have none, because they are ending
					t.Errorf("process %d has no command", p.PID)
				}
			}
			if ended, err = Sweep(t.Context(), mark); err != nil || len(ended) != 0 {
				t.Errorf("a second time: %v, %v", ended, err)
			}
		})
	}
}

// TRIAL R11: a process that starts another before it ends is chased until nothing is left.
func TestSweepChasesForks(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	leave(t, mark, `cat > again.sh <<'X'
trap 'setsid sh again.sh >/dev/null 2>&1 & exit' TERM
echo $$ > pid
while :; do sleep 0.01; done
X
setsid sh again.sh >/dev/null 2>&1 &`, "pid")
	ended, err := Sweep(t.Context(), mark)
	if err != nil || len(ended) < 2 {
		t.Errorf("ended %v, %v", ended, err)
	}
	if left, err := scan(t.Context(), hostVariable+"="+mark); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestSweepSparesOthers(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	script := `sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 &`
	others := map[string]int{}
	for _, other := range []string{mark + "x", "x" + mark, strings.ToUpper(mark)} {
		others[other] = leave(t, other, script, "pid")[0]
	}
	// the right words in the wrong variable, and as an argument
	others["variable"] = leave(t, "other"+mark, fmt.Sprintf(`X%s=%s sh -c 'echo $$ > pid; exec sleep 60' %[1]s=%[2]s >/dev/null 2>&1 &`, hostVariable, mark), "pid")[0]
	defer func() {
		for _, pid := range others {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	mine := leave(t, mark, script, "pid")[0]
	ended, err := Sweep(t.Context(), mark)
	if err != nil || len(ended) != 1 || ended[0].PID != mine {
		t.Errorf("ended %v, %v, want process %d", ended, err, mine)
	}
	for name, pid := range others {
		if !running(pid) {
			t.Errorf("%s: process %d was ended", name, pid)
		}
	}
}

// Root can look at everybody's processes, and ends none of another user's.
func TestScanSparesOtherUsers(t *testing.T) {
	t.Parallel()
	users := []int{os.Geteuid()}
	if os.Geteuid() == 0 { // nobody else can start one as somebody else, or look at it
		users = append(users, 65534)
	}
	for _, uid := range users {
		mark := newMark(t)
		cmd := exec.Command("sleep", "60")
		cmd.Env = append(os.Environ(), hostVariable+"="+mark)
		if uid != os.Geteuid() {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); !marked(cmd.Process.Pid, hostVariable+"="+mark) && time.Now().Before(end); { // it has no environment while it begins
			runtime.Gosched()
		}
		found, err := scan(t.Context(), hostVariable+"="+mark)
		if err != nil || contains(found, cmd.Process.Pid) != (uid == os.Geteuid()) {
			t.Errorf("of user %d: found %v, %v", uid, found, err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// The number of a process that has ended may be given to another one between the look and the signal.
func TestSignalSparesWhoGotTheNumber(t *testing.T) {
	mark := newMark(t)
	pid := leave(t, mark, `sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 &`, "pid")[0]
	if err := signalMarked(pid, hostVariable+"="+mark+"x", syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	time.Sleep(50 * time.Millisecond)
	if !running(pid) {
		t.Error("a process without the mark was ended")
	}
}

// A host that a command of a dead host started sweeps as well: not itself, not the shells above it, but its siblings.
func TestSweepSparesItself(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", `sleep 60 & sh -c '"$0" -test.run "^TestSweepHelper$" -test.v; echo parent lives' "$0"; echo grandparent lives`, os.Args[0])
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), hostVariable+"="+mark, "SWEEP_HELPER="+mark)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "ended 1: sleep 60\n") || !strings.Contains(text, "parent lives\ngrandparent lives\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestSweepHelper is a process of TestSweepSparesItself.
func TestSweepHelper(t *testing.T) {
	mark := os.Getenv("SWEEP_HELPER")
	if mark == "" {
		t.Skip("part of another test")
	}
	ended, err := Sweep(t.Context(), mark)
	if err != nil || len(ended) != 1 {
		t.Fatalf("%v, %v", ended, err)
	}
	fmt.Printf("ended %d: %s\n", len(ended), ended[0].Command)
}

func TestSweepErrors(t *testing.T) {
	for _, mark := range []string{"", "a b", "a\x00", "a\n"} {
		if _, err := Sweep(t.Context(), mark); centurion.KindOf(err) != centurion.KindUsage || centurion.HintOf(err) == "" {
			t.Errorf("%q: %v", mark, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if _, err := Sweep(ctx, newMark(t)); centurion.KindOf(err) != centurion.KindInterrupted {
		t.Errorf("cancelled: %v", err)
	}
}

// The runner marks its commands, and what a command says about itself does not count.
func TestRunnerMarks(t *testing.T) {
	t.Setenv(hostVariable, "the host above this one")
	for mark, want := range map[string]string{"": "none\n", "abc": "abc\n"} {
		res, err := (&Runner{Mark: mark}).Run(t.Context(), centurion.Command{Dir: t.TempDir(), Script: "echo ${" + hostVariable + "-none}"})
		if err != nil || res.Output != want {
			t.Errorf("%q: %q, %v", mark, res.Output, err)
		}
	}
	res, err := (&Runner{Mark: "abc"}).Run(t.Context(), centurion.Command{Dir: t.TempDir(), Script: "env", Env: []string{hostVariable + "=mine"}})
	if err != nil || !strings.Contains(res.Output, hostVariable+"=abc\n") || strings.Contains(res.Output, "=mine") {
		t.Errorf("%q, %v", res.Output, err)
	}
	marked, plain := strings.Join((&Runner{Mark: "abc"}).Describe(), "\n"), strings.Join((&Runner{}).Describe(), "\n")
	if !strings.Contains(marked, sweepInForce) || strings.Contains(plain, sweepInForce) {
		t.Error("a runner without a mark must not promise a sweep")
	}
}

// What a real command left behind goes the same way.
func TestSweepAfterRunner(t *testing.T) {
	t.Parallel()
	mark := newMark(t)
	pid := filepath.Join(t.TempDir(), "pid")
	res, err := (&Runner{Mark: mark}).Run(t.Context(), centurion.Command{Dir: t.TempDir(),
		Script: `setsid nohup sh -c 'echo $$ > "` + pid + `"; exec sleep 60' >/dev/null 2>&1 & while ! test -s "` + pid + `"; do :; done`})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	if ended, err := Sweep(t.Context(), mark); err != nil || len(ended) != 1 || !gone(t, pid, time.Second) {
		t.Errorf("ended %v, %v", ended, err)
	}
}

func FuzzHolds(f *testing.F) {
	f.Add([]byte("A=1\x00CENTURION_HOST=x\x00"), "x")
	f.Add([]byte("XCENTURION_HOST=x\x00CENTURION_HOST=xx\x00"), "x")
	f.Fuzz(func(t *testing.T, environ []byte, mark string) {
		if mark == "" || strings.Contains(mark, "\x00") {
			return
		}
		if got, want := holds(environ, mark), slices.Contains(strings.Split(string(environ), "\x00"), mark); got != want {
			t.Errorf("%q in %q: got %v", mark, environ, got)
		}
	})
}

// BenchmarkSweep looks for nothing among 300 processes more than the machine has.
func BenchmarkSweep(b *testing.B) {
	other := newMark(b)
	cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt 300 ]; do sleep 600 >/dev/null 2>&1 & i=$((i+1)); done`)
	cmd.Env = append(os.Environ(), hostVariable+"="+other)
	if err := cmd.Run(); err != nil {
		b.Fatal(err)
	}
	mark := newMark(b)
	for b.Loop() {
		if ended, err := Sweep(b.Context(), mark); err != nil || len(ended) > 0 {
			b.Fatal(ended, err)
		}
	}
}
