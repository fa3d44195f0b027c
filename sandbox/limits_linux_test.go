package sandbox

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"centurion"
	"centurion/sandbox/confine"
)

// family is a shell in a group of its own with two children, one of which is in another group. All of them wait.
func family(t *testing.T) (shell int, children []string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", "sleep 600 & setsid sleep 601 & echo ready; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	shell = cmd.Process.Pid
	below := func() []string {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(shell) + "/task/" + strconv.Itoa(shell) + "/children")
		return strings.Fields(string(b))
	}
	t.Cleanup(func() {
		for _, c := range below() {
			if pid, err := strconv.Atoi(c); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = syscall.Kill(-shell, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if children = below(); len(children) != 2 {
		t.Fatalf("children are not listed: %v", children)
	}
	return shell, children
}

// What a helper sees of its commands: whose a process is, what it takes, and which limit all of them exceed.
func TestLooksAtLimits(t *testing.T) {
	shell, children := family(t)
	h := &serving{way: confine.Files, commands: map[int]string{}, exceeded: map[int]string{}}
	if names, reason, weigh := h.over(confine.Limits{Processes: 1, Memory: 1}); names != nil || reason != "" || weigh != nil {
		t.Errorf("without a command: %v, %q", names, reason)
	}
	h.commands[shell] = "c"
	names, err := h.processes()
	own := strconv.Itoa(os.Getpid())
	all := append([]string{strconv.Itoa(shell)}, children...)
	if err != nil || names[0] != own || slices.ContainsFunc(all, func(n string) bool { return !slices.Contains(names, n) }) {
		t.Errorf("processes %v, %v; want %s and %v", names, err, own, all)
	}
	for _, name := range all {
		pid, _ := strconv.Atoi(name)
		if got := h.commandOf(pid); got != shell {
			t.Errorf("%s is of %d, not of %d", name, got, shell)
		}
		for start := time.Now(); resident(name) < 100<<10 && time.Since(start) < 20*time.Second; time.Sleep(10 * time.Millisecond) { // it becomes its program
		}
		rss, pss := resident(name), proportional(name)
		if ended(name) || rss < 100<<10 || rss > 1<<30 || rss%int64(os.Getpagesize()) != 0 || pss <= 0 || pss > rss+1<<20 {
			t.Errorf("%s: ended %t, %d and %d bytes", name, ended(name), rss, pss)
		}
	}
	if h.commandOf(os.Getpid()) != 0 || h.commandOf(os.Getppid()) != 0 || h.commandOf(1<<30) != 0 {
		t.Error("what is no command's is taken for one's")
	}
	if !ended("1073741824") || resident("1073741824") != 0 || proportional("1073741824") != 0 {
		t.Error("a process that is not there takes something")
	}
	one := func(string) int64 { return 1 }
	if got := used(names, one); got != int64(len(names)-1) || used(all, one) != 3 {
		t.Errorf("%d of %d processes count", got, len(names))
	}
	n := len(names) - 1
	for _, tt := range []struct {
		limits confine.Limits
		want   string
	}{
		{confine.Limits{}, ""}, {confine.Limits{Processes: n}, ""}, {confine.Limits{Processes: n - 1}, strconv.Itoa(n-1) + " processes"},
		{confine.Limits{Memory: 1 << 40}, ""}, {confine.Limits{Memory: 1 << 10}, "1 KB of memory"}, {confine.Limits{Processes: 1, Memory: 1 << 10}, "1 processes"},
	} {
		seen, got, weigh := h.over(tt.limits)
		if got != tt.want || (weigh == nil) != (got == "") || got != "" && !slices.Contains(seen, all[0]) {
			t.Errorf("%+v: %q, %v, want %q", tt.limits, got, seen, tt.want)
		}
	}
}

// The heaviest command ends, with what it started in other groups, and the reason is kept for it.
func TestHeaviestEnds(t *testing.T) {
	shell, children := family(t)
	other, _ := family(t)
	h := &serving{way: confine.Files, commands: map[int]string{shell: "a", other: "b"}, exceeded: map[int]string{}}
	names := append([]string{strconv.Itoa(os.Getpid()), strconv.Itoa(shell), strconv.Itoa(other), "none"}, children...)
	h.endHeaviest(names, "the limit", func(pid string) int64 {
		return map[string]int64{strconv.Itoa(shell): 2, children[0]: 2, children[1]: 2, strconv.Itoa(other): 5, strconv.Itoa(os.Getpid()): 100}[pid]
	})
	if !maps.Equal(h.exceeded, map[int]string{shell: "the limit"}) {
		t.Errorf("exceeded: %v", h.exceeded)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(shell, &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("the command ended by %v, %v", status.Signal(), err)
	}
	for _, c := range children {
		for range 1000 {
			if ended(c) {
				break
			}
			_ = exec.Command("true").Run() // gives it time to end
		}
		if !ended(c) {
			t.Errorf("%s goes on", c)
		}
	}
	if ended(strconv.Itoa(other)) {
		t.Error("the other command has ended, too")
	}
}

// What has ended and is not reaped yet counts as no process, and pages that several processes share count once.
func TestWhatCountsForLimits(t *testing.T) {
	family(t) // shares pages with the next one

	cmd := exec.Command("sh", "-c", "for i in 1 2 3; do : & done; exec sleep 600") // which reaps nothing
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	h := &serving{way: confine.Files, commands: map[int]string{cmd.Process.Pid: "c"}, exceeded: map[int]string{}}
	var names, alive []string
	for range 1000 {
		names, _ = h.processes()
		if alive = slices.DeleteFunc(slices.Clone(names), ended); len(names) >= len(alive)+3 {
			break
		}
		_ = exec.Command("true").Run() // gives them time to end
	}
	n, most, least := len(alive)-1, used(names, resident), used(names, proportional)
	if len(names) < n+4 || least >= most {
		t.Fatalf("%d of %d processes live, with %d or %d bytes", n, len(names), most, least)
	}
	for _, tt := range []struct {
		limits confine.Limits
		want   string
	}{
		{confine.Limits{Processes: n}, ""}, {confine.Limits{Processes: n - 1}, strconv.Itoa(n-1) + " processes"},
		{confine.Limits{Memory: (most + least) / 2}, ""}, {confine.Limits{Memory: least / 2}, centurion.Bytes(least/2) + " of memory"},
	} {
		if _, got, _ := h.over(tt.limits); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.limits, got, tt.want)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("/proc/meminfo")
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 2 || fields[0] != "MemTotal:" {
		t.Fatal("the machine's memory is not known", err)
	}
	kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
	if got := DefaultLimits(); got.Processes != 512 || got.Memory < kilobytes<<9-1<<20 || got.Memory > kilobytes<<9+1<<20 {
		t.Errorf("%+v, with %d kB", got, kilobytes)
	}
}
