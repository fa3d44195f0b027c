//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"centurion"
	"centurion/guard"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == HelperCommand {
		os.Exit(Helper())
	}
	if do := role(); do != nil {
		if err := do(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err := SealDescriptors(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func run(t *testing.T, r *Runner, script string) centurion.CommandResult {
	t.Helper()
	res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return res
}

func TestRun(t *testing.T) {
	tests := []struct {
		script string
		code   int
		output string
	}{
		{"echo hi", 0, "hi\n"},
		{"exit 3", 3, ""},
		{"echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"},
		{"cat", 0, ""}, // standard input is empty
		{"kill -9 $$", -1, ""},
		{"no-such-program-here 2>/dev/null", 127, ""},
		{"printf 'a\\377b'", 0, "a\uFFFDb"},
		{"echo \"$TERM\"; test -t 0 || echo none", 0, "dumb\nnone\n"},
	}
	for _, test := range tests {
		res := run(t, &Runner{}, test.script)
		if res.ExitCode != test.code || res.Output != test.output || res.TimedOut {
			t.Errorf("%s: got %d %q, want %d %q", test.script, res.ExitCode, res.Output, test.code, test.output)
		}
	}
}

func TestRunInDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "süß und lang")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	res, err := (&Runner{}).Run(t.Context(), centurion.Command{Script: "pwd; echo $EXTRA", Dir: dir, Env: []string{"EXTRA=1"}})
	if err != nil || res.Output != dir+"\n1\n" {
		t.Errorf("got %q, %v", res.Output, err)
	}
	_, err = (&Runner{}).Run(t.Context(), centurion.Command{Script: "true", Dir: filepath.Join(dir, "gone")})
	if centurion.KindOf(err) != centurion.KindNotFound || centurion.HintOf(err) == "" {
		t.Errorf("missing directory: got %v", err)
	}
}

// gone reports whether the process whose number a file holds ends within d. A process that nobody has reaped yet does
// not run any more.
func gone(t *testing.T, file string, d time.Duration) bool {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(d); time.Now().Before(deadline); runtime.Gosched() {
		if syscall.Kill(pid, 0) != nil {
			return true
		}
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

// stopwatch starts to measure the time until it is asked, without the time by which a timer beside it came late: what a busy
// machine withholds from this process, which no bound of a command can know. On a machine with nothing else to do it is the time
// on the clock.
func stopwatch() func() time.Duration {
	const tick = 10 * time.Millisecond
	stop, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		var sum time.Duration
		timer := time.NewTimer(tick)
		for due := time.Now().Add(tick); ; {
			select {
			case <-timer.C:
				sum += max(0, time.Since(due))
				due = time.Now().Add(tick)
				timer.Reset(tick)
			case <-stop:
				late <- sum
				return
			}
		}
	}()
	start := time.Now()
	return func() time.Duration {
		took := time.Since(start)
		close(stop)
		return took - <-late
	}
}

// R10: a tool that ignores SIGTERM and whose grandchild holds the pipe is gone after its timeout and the grace.
func TestTimeoutKillsGroup(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	script := `sh -c 'trap "" TERM; echo $$ > "` + pid + `"; echo ready; while :; do sleep 1; done' & trap "" TERM; wait; wait`
	r := &Runner{Grace: 100 * time.Millisecond}
	watch := stopwatch()
	res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: t.TempDir(), Timeout: 400 * time.Millisecond})
	took := watch()
	if err != nil || !res.TimedOut || res.ExitCode != -1 {
		t.Fatalf("got %+v, %v", res, err)
	}
	if took > 2500*time.Millisecond {
		t.Errorf("took %s", took)
	}
	if res.Output != "ready\n" {
		t.Errorf("output %q", res.Output)
	}
	if !gone(t, pid, time.Second) {
		t.Error("the grandchild survived")
	}
}

func TestTimeoutLetsCleanUp(t *testing.T) {
	r := &Runner{Grace: 5 * time.Second}
	script := `trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done`
	watch := stopwatch()
	res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: t.TempDir(), Timeout: 300 * time.Millisecond})
	if took := watch(); err != nil || !res.TimedOut || res.ExitCode != -1 || !strings.Contains(res.Output, "cleaned") || took > 3*time.Second {
		t.Errorf("got %+v, %v, after %s", res, err, took)
	}
}

// A command that has been stopped is woken, so that it hears that it is to end.
func TestTimeoutWakesWhatIsStopped(t *testing.T) {
	r := &Runner{Grace: 5 * time.Second}
	script := `trap 'echo cleaned; exit 0' TERM; kill -STOP $$; while :; do sleep 0.05; done`
	if res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: t.TempDir(), Timeout: 200 * time.Millisecond}); err != nil || !strings.Contains(res.Output, "cleaned") {
		t.Errorf("got %+v, %v", res, err)
	}
}

// No command may ask for more than the longest time.
func TestTimeoutIsCapped(t *testing.T) {
	r := &Runner{MaxTimeout: 200 * time.Millisecond, Grace: 100 * time.Millisecond}
	if res, err := r.Run(t.Context(), centurion.Command{Script: "sleep 5", Dir: t.TempDir(), Timeout: time.Minute}); err != nil || !res.TimedOut {
		t.Errorf("got %+v, %v", res, err)
	}
}

// What a command asks for counts before what its runner has for all.
func TestLimitsOfACommand(t *testing.T) {
	short := &Runner{DefaultTimeout: 100 * time.Millisecond, Keep: 100, Grace: 100 * time.Millisecond}
	const script = "sleep 0.3; seq 2000"
	for name, tt := range map[string]struct {
		r        *Runner
		c        centurion.Command
		timedOut bool
		kept     int // at most
	}{
		"the runner's":  {short, centurion.Command{}, true, 0},
		"its own":       {short, centurion.Command{Timeout: time.Minute, Keep: 1000}, false, 1100},
		"a shorter one": {&Runner{DefaultTimeout: time.Minute, Grace: 100 * time.Millisecond}, centurion.Command{Timeout: 100 * time.Millisecond}, true, 0},
		"less of it":    {&Runner{Keep: 5000}, centurion.Command{Keep: 200}, false, 300},
	} {
		tt.c.Script, tt.c.Dir = script, t.TempDir()
		res, err := tt.r.Run(t.Context(), tt.c)
		if err != nil || res.TimedOut != tt.timedOut || len(res.Output) > tt.kept || !tt.timedOut && len(res.Output) < tt.kept/2 {
			t.Errorf("%s: timed out %v, %d bytes kept, %v", name, res.TimedOut, len(res.Output), err)
		}
	}
}

func TestNoOrphanAfterNormalEnd(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	watch := stopwatch()
	res := run(t, &Runner{Grace: 50 * time.Millisecond}, `sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $! > "`+pid+`"; echo done`)
	took := watch()
	if res.ExitCode != 0 || res.Output != "done\n" || res.TimedOut {
		t.Errorf("got %+v", res)
	}
	if took > 2*time.Second {
		t.Errorf("took %s", took)
	}
	if !gone(t, pid, time.Second) {
		t.Error("a process was left behind")
	}
}

// A process that has left the group keeps the pipe open; the run does not wait for it.
func TestEscapedProcessDoesNotHang(t *testing.T) {
	if _, err := os.Stat("/usr/bin/setsid"); err != nil {
		t.Skip("no setsid here")
	}
	pid := filepath.Join(t.TempDir(), "pid")
	watch := stopwatch()
	res := run(t, &Runner{}, `setsid sh -c 'echo $$ > "`+pid+`"; sleep 30' & while ! test -s "`+pid+`"; do :; done; echo done`)
	if took := watch(); res.Output != "done\n" || took > 5*time.Second {
		t.Errorf("got %+v after %s", res, took)
	}
	b, _ := os.ReadFile(pid)
	if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
		_ = syscall.Kill(-n, syscall.SIGKILL)
	}
}

func TestCancelTellsCause(t *testing.T) {
	custom := errors.New("something else")
	tests := []struct {
		cause error
		want  centurion.Kind
	}{
		{nil, centurion.KindCancelled}, {centurion.ErrCancelled, centurion.KindCancelled}, {centurion.ErrShutdown, centurion.KindInterrupted},
		{centurion.ErrBudget, centurion.KindBudget}, {custom, centurion.KindCancelled},
	}
	for _, test := range tests {
		ctx, cancel := context.WithCancelCause(t.Context())
		fifo := filepath.Join(t.TempDir(), "ready")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		var group guard.Group
		group.Go("cancel", func() error {
			_, err := os.ReadFile(fifo) // the command runs
			cancel(test.cause)
			return err
		})
		res, err := (&Runner{}).Run(ctx, centurion.Command{Script: `echo said; echo > "` + fifo + `"; sleep 30`, Dir: t.TempDir()})
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if centurion.KindOf(err) != test.want || res.Output != "said\n" || res.ExitCode != -1 || res.TimedOut {
			t.Errorf("%v: got %v (%s), %+v", test.cause, err, centurion.KindOf(err), res)
		}
		if test.cause != nil && !errors.Is(err, test.cause) {
			t.Errorf("%v is not told: %v", test.cause, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if res, err := (&Runner{}).Run(ctx, centurion.Command{Script: "true", Dir: t.TempDir()}); centurion.KindOf(err) != centurion.KindInterrupted || res.ExitCode != -1 {
		t.Errorf("ended before its start: got %v, %+v", err, res)
	}
}

func TestOutputIsCapped(t *testing.T) {
	res := run(t, &Runner{Keep: 1000}, `i=0; while [ $i -lt 100000 ]; do echo line$i; i=$((i+1)); done`)
	if res.Bytes < 900_000 || len(res.Output) > 1100 {
		t.Errorf("%d bytes, %d kept", res.Bytes, len(res.Output))
	}
	if !strings.HasPrefix(res.Output, "line0\nline1\n") || !strings.HasSuffix(res.Output, "line99999\n") || !strings.Contains(res.Output, " bytes left out …\n") {
		t.Errorf("kept %q", res.Output)
	}
}

// R13: a flood costs no memory. This one ends by itself: ending a command reads the list of processes, which is as long as the
// machine has many.
func TestFloodIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	res, err := (&Runner{}).Run(t.Context(), centurion.Command{Script: "yes | head -c 50000000", Dir: t.TempDir(), Timeout: time.Hour})
	runtime.ReadMemStats(&after)
	if err != nil || res.ExitCode != 0 || res.Bytes != 50_000_000 {
		t.Errorf("got %d bytes, exit code %d, %v", res.Bytes, res.ExitCode, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("allocated %d bytes for %d bytes of output", grown, res.Bytes)
	}
}

// S7
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{"OPENAI_API_KEY": "canary1", "GITHUB_TOKEN": "canary2", "MY_SETTING": "canary3", "npm_config__authToken": "canary4",
		"PIP_PASSWORD": "canary5", "http_proxy": "http://user:canary6@proxy", "AWS_SECRET_ACCESS_KEY": "canary7", "SSH_AUTH_SOCK": "canary8", "CENTURION_HOME": "canary9",
		"GOFLAGS": "-mod=mod", "LC_ALL": "C", "WANTED": "yes", "WANTED_TOKEN": "canary0", "https_proxy": "http://proxy:3128"} {
		t.Setenv(name, value)
	}
	res := run(t, &Runner{Env: []string{"WANTED", "WANTED_TOKEN"}}, "env")
	if strings.Contains(res.Output, "canary") {
		t.Errorf("a secret reached the child: %s", res.Output)
	}
	for _, want := range []string{"PATH=", "GOFLAGS=-mod=mod\n", "LC_ALL=C\n", "TERM=dumb\n", "WANTED=yes\n", "https_proxy=http://proxy:3128\n"} {
		if !strings.Contains(res.Output, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestSlots(t *testing.T) {
	var shared Turns
	alone := &Runner{Slots: 2}
	oneOf, otherOf := &Runner{Slots: 2, Turns: &shared}, &Runner{Slots: 1, Turns: &shared}
	t.Run("alone", func(t *testing.T) { atMostTwo(t, alone, alone) })
	t.Run("of two runners", func(t *testing.T) { atMostTwo(t, oneOf, otherOf) })
}

// atMostTwo runs commands of two runners, of which two may run at once.
func atMostTwo(t *testing.T, runners ...*Runner) {
	dir := t.TempDir()
	var group guard.Group
	for i := range 6 { // a third at the same time would find two directories
		group.Go("run", func() error {
			res, err := runners[i%2].Run(t.Context(), centurion.Command{Dir: dir,
				Script: `mkdir d$$; n=$(ls -d d* | wc -l); sleep 0.05; rmdir d$$; test $n -le 2`})
			if err == nil && res.ExitCode != 0 {
				err = errors.New("more than two ran at once")
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// Runners that share turns have as many as the one with the most, in whatever order they come.
func TestTurnsAreThoseOfTheWidest(t *testing.T) {
	for _, slots := range [][]int{{3}, {1, 3}, {3, 1}, {1, 2, 3, 2}, {3, 3}} {
		var turns Turns
		for _, n := range slots {
			turns.widen(&Runner{Slots: n, Checks: n + 2})
		}
		for _, c := range []centurion.Command{{}, {Check: true}} {
			most := int64(3)
			if c.Check {
				most += 2
			}
			if q := turns.of(c); q.TryAcquire(most+1) || !q.TryAcquire(most) {
				t.Errorf("slots %v: check %v: not %d at once", slots, c.Check, most)
			}
		}
	}
}

// Checks have slots of their own: as many run at once as are configured, while agents' commands have all of theirs.
func TestSlotsOfChecks(t *testing.T) {
	r := &Runner{Slots: 1, Checks: 2}
	dir := t.TempDir()
	var group guard.Group
	for i := range 3 { // each waits for the others: one slot less, and none ends well
		group.Go("run", func() error {
			res, err := r.Run(t.Context(), centurion.Command{Dir: dir, Check: i > 0, Timeout: 20 * time.Second,
				Script: fmt.Sprintf("touch %d; until test -e 0 -a -e 1 -a -e 2; do sleep 0.01; done", i)})
			if err == nil && res.ExitCode != 0 {
				err = fmt.Errorf("%d ended with %+v", i, res)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i := range 6 { // and not one more
		group.Go("run", func() error {
			res, err := r.Run(t.Context(), centurion.Command{Dir: dir, Check: true,
				Script: fmt.Sprintf(`mkdir d%d; n=$(ls -d d* | wc -l); sleep 0.05; rmdir d%d; test $n -le 2`, i, i)})
			if err == nil && res.ExitCode != 0 {
				err = errors.New("more than two ran at once")
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// The wait for a slot can be cancelled, and counts for no timeout.
func TestWaitForSlot(t *testing.T) {
	r := &Runner{Slots: 1}
	dir := t.TempDir()
	var group guard.Group
	started := make(chan struct{})
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	group.Go("holder", func() error {
		_, err := r.Run(t.Context(), centurion.Command{Dir: dir, Script: `echo x > fifo; sleep 1.2`})
		return err
	})
	group.Go("reader", func() error {
		defer close(started)
		_, err := os.ReadFile(fifo)
		return err
	})
	<-started
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, centurion.ErrCancelled)
	defer cancel()
	if _, err := r.Run(ctx, centurion.Command{Dir: dir, Script: "touch ran"}); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran although it was cancelled")
	}
	res, err := r.Run(t.Context(), centurion.Command{Dir: dir, Script: "echo ok", Timeout: time.Second})
	if err != nil || res.TimedOut || res.Output != "ok\n" {
		t.Errorf("got %+v, %v", res, err)
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	text := strings.Join((&Runner{}).Describe(), "\n")
	for _, want := range []string{"2m", "30000 bytes"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q does not say %q", text, want)
		}
	}
	if how := (&Runner{}).Confinement(); how.Way != "none" || !strings.Contains(how.String(), "not stopped: anything") {
		t.Errorf("unconfined: %s", how)
	}
}

// role is what this process does instead of the tests; nil for the tests.
var role = func() func() error { return nil }
