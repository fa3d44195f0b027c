package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"centurion"
	"centurion/sandbox/confine"
)

// limitPoll is how often a helper looks at what its commands use.
const limitPoll = 100 * time.Millisecond

// defaultProcesses leaves room for a parallel build on a large machine.
const defaultProcesses = 512

// DefaultLimits returns the limits of a workspace's commands: 512 processes, and half of the machine's memory.
func DefaultLimits() confine.Limits {
	limits := confine.Limits{Processes: defaultProcesses}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		limits.Memory = int64(info.Totalram) * int64(info.Unit) / 2
	}
	return limits
}

// tasksPerProcess is how many threads and processes the kernel allows for each process of the limit: it counts threads, too, and a fork
// bomb has to be held until the next look.
const tasksPerProcess = 4

// capTasks makes the kernel bound the processes of this helper's namespaces, before it has any. Root is exempt from the limit of a
// person's processes; the numbers of processes belong to their namespace since Linux 6.14, and before to the machine, which is left alone.
func capTasks(limits confine.Limits) {
	if limits.Processes <= 0 {
		return
	}
	most := uint64(limits.Processes * tasksPerProcess)
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}) // a lower one that is there stays
	var uts unix.Utsname
	if unix.Uname(&uts) != nil {
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &major, &minor); err == nil && (major > 6 || major == 6 && minor >= 14) {
		_ = os.WriteFile("/proc/sys/kernel/pid_max", fmt.Appendf(nil, "%d", most+reservedNumbers), 0) // where it may not, the looks remain
	}
}

// reservedNumbers are the lowest process numbers, which are not used again once the numbers wrap.
const reservedNumbers = 300

// watch kills all commands of this helper when they use more than the limits.
func (h *serving) watch(limits confine.Limits) error {
	poll := time.NewTicker(limitPoll)
	defer poll.Stop()
	for range poll.C {
		if over := h.over(limits); over != "" {
			h.mu.Lock()
			for pid := range h.commands {
				h.exceeded[pid] = over
			}
			_ = unix.Kill(-1, unix.SIGKILL) // every process of this namespace but the helper, at once; none is there for ESRCH
			h.mu.Unlock()
		}
	}
	return nil
}

// over returns the limit that the running commands exceed, "" for none.
func (h *serving) over(limits confine.Limits) string {
	h.mu.Lock()
	idle := len(h.commands) == 0
	h.mu.Unlock()
	if idle {
		return ""
	}
	names, err := processes()
	if err != nil {
		return ""
	}
	if limits.Processes > 0 && len(names)-1 > limits.Processes {
		return fmt.Sprintf("%d processes", limits.Processes)
	}
	if limits.Memory > 0 && used(names, resident) > limits.Memory && used(names, proportional) > limits.Memory {
		return centurion.Bytes(limits.Memory) + " of memory"
	}
	return ""
}

// used adds what the processes use, without this one.
func used(names []string, size func(pid string) int64) (total int64) {
	own := strconv.Itoa(os.Getpid())
	for _, name := range names {
		if name != own {
			total += size(name)
		}
	}
	return total
}

// resident returns the memory of a process, in bytes, with pages that it shares. It is cheap to read.
func resident(pid string) int64 {
	b, _ := os.ReadFile("/proc/" + pid + "/statm")
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// proportional returns the memory of a process, in bytes, with its part of the pages that it shares.
func proportional(pid string) int64 {
	b, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
	_, rest, _ := bytes.Cut(b, []byte("\nPss:"))
	fields := strings.Fields(string(rest))
	if len(fields) == 0 {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(fields[0], 10, 64)
	return kilobytes << 10
}
