package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"centurion"
	"centurion/sandbox/confine"
)

// part is the variable that makes this test binary play a part: there may be no shell on the machine, and a test must know what its
// command does.
const part = "SANDBOX_TEST_PART"

func TestMain(m *testing.M) {
	if do := parts[os.Getenv(part)]; do != nil {
		if err := do(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var parts = map[string]func() error{
	"hello": func() error {
		fmt.Println("hello")
		os.Exit(3)
		return nil
	},
	"sleep": func() error {
		time.Sleep(time.Minute)
		return nil
	},
	// A tree: a child of this one, which ends, and a child of that one. Each says its number.
	"tree": func() error {
		fmt.Println(os.Getpid())
		return spawn("branch", 0)
	},
	"branch": func() error {
		fmt.Println(os.Getpid())
		return spawn("leaf", 0)
	},
	"leaf": func() error {
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
		return nil
	},
	"breakaway": func() error { return spawn("sleep", windows.CREATE_BREAKAWAY_FROM_JOB) },
	"bomb": func() error {
		for range 20 {
			if err := spawn("sleep", 0); err != nil {
				return err
			}
		}
		return nil
	},
	"hog": func() error {
		var held [][]byte
		for range 40 {
			b := make([]byte, 16<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			held = append(held, b)
		}
		fmt.Println(len(held))
		return nil
	},
	// A host that starts a tree and waits to be killed.
	"host": func() error {
		_, err := begin("tree", os.Stdout, confine.Limits{})
		time.Sleep(time.Minute)
		return err
	},
}

// spawn starts this binary in another part, with the same output, and does not wait for it.
func spawn(name string, flags uint32) error {
	cmd := playing(name)
	cmd.Stdout, cmd.SysProcAttr = os.Stdout, &windows.SysProcAttr{CreationFlags: flags}
	return cmd.Start()
}

func playing(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), part+"="+name)
	return cmd
}

// begin starts a part as a command.
func begin(name string, out *os.File, limits confine.Limits) (*job, error) {
	return startJob(centurion.Command{}, []string{os.Args[0]}, append(os.Environ(), part+"="+name), streams{out: out}, limits)
}

// piped starts a part as a command and returns its output.
func piped(t *testing.T, name string, limits confine.Limits) (*job, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	j, err := begin(name, w, limits)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	t.Cleanup(j.release)
	return j, bufio.NewReader(r)
}

// leaf returns the number of the last process of a tree, when it runs.
func leaf(t *testing.T, out *bufio.Reader) (pid uint32) {
	t.Helper()
	for range 3 {
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
	}
	return pid
}

// stays reports whether a process has not ended within a time.
func stays(pid uint32, patience time.Duration) bool {
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	event, err := windows.WaitForSingleObject(h, uint32(patience.Milliseconds()))
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// A command runs to its end in its job, with its output and exit code.
func TestJobRuns(t *testing.T) {
	j, out := piped(t, "hello", confine.Limits{Processes: 8, Memory: 1 << 30})
	if line, err := out.ReadString('\n'); strings.TrimSpace(line) != "hello" {
		t.Errorf("%q, %v", line, err)
	}
	if code, over := j.wait(), j.exceeded(); code != 3 || over != "" {
		t.Errorf("exit code %d, %q", code, over)
	}
	if alive(j) {
		t.Error("it is alive after its end")
	}
}

// R10: a command is alive while anything that it started runs, and ends as a whole, also what its children started.
func TestJobEndsAsAWhole(t *testing.T) {
	for how, end := range map[string]func(*job){"kill": func(j *job) { kill(j) }, "terminate": func(j *job) { terminate(j) }, "release": (*job).release} {
		j, out := piped(t, "tree", confine.Limits{})
		last := leaf(t, out)
		if j.wait(); !alive(j) || !stays(last, 0) {
			t.Errorf("%s: what a command started is not alive", how)
		}
		end(j)
		if stays(last, 10*time.Second) {
			t.Errorf("%s: process %d outlived its command", how, last)
		}
		if alive(j) {
			t.Errorf("%s: it is alive", how)
		}
	}
	j, _ := piped(t, "sleep", confine.Limits{})
	kill(j)
	if code := j.wait(); code != -1 {
		t.Errorf("exit code of a killed command: %d", code)
	}
}

// R11: nothing outlives a host that is killed.
func TestJobEndsWithItsHost(t *testing.T) {
	host := playing("host")
	out, err := host.StdoutPipe()
	if err == nil {
		err = host.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	last := leaf(t, bufio.NewReader(out))
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	if stays(last, 10*time.Second) {
		t.Errorf("process %d outlived its host", last)
	}
}

// Nothing leaves its job.
func TestJobIsNotLeft(t *testing.T) {
	if j, _ := piped(t, "breakaway", confine.Limits{}); j.wait() == 0 && !alive(j) {
		t.Error("a process has left its job")
	}
}

// R12: what starts too many processes or takes too much memory ends, and is told why.
func TestJobLimits(t *testing.T) {
	wine := windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
	for _, test := range []struct {
		name    string
		limits  confine.Limits
		message uint32
		over    string
	}{
		{"bomb", confine.Limits{Processes: 8}, msgProcesses, "8 processes"},
		{"hog", confine.Limits{Memory: 200 << 20}, msgMemory, "200 MB of memory"},
	} {
		name := test.name
		if wine { // it keeps the limits and does not enforce them: its part is played here
			name = "sleep"
		}
		j, out := piped(t, name, test.limits)
		if wine {
			_ = windows.PostQueuedCompletionStatus(windows.Handle(j.route.port), test.message, 0, nil)
		}
		_, _ = io.Copy(io.Discard, out) // until the last process has ended
		if code := j.wait(); code != -1 || j.exceeded() != test.over {
			t.Errorf("%s: exit code %d, exceeded %q", test.name, code, j.exceeded())
		}
	}
	if limits := DefaultLimits(); limits.Processes != 512 || limits.Memory < 100<<20 {
		t.Errorf("default limits: %+v", limits)
	}
}
