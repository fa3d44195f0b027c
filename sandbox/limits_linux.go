package sandbox

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// limitPoll is how often a helper looks at what its commands use.
const limitPoll = 100 * time.Millisecond

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

// keptThreads are more threads than this helper ever needs at once.
const keptThreads = 24

// keepThreads makes the threads of this helper in advance: the runtime keeps idle ones, and ends the process if it cannot make one, as while
// a bomb has used up all numbers.
func keepThreads() error {
	var group guard.Group
	var all sync.WaitGroup
	all.Add(keptThreads)
	for range keptThreads {
		group.Go("make thread", func() error {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			all.Done()
			all.Wait() // so that each has a thread of its own
			return nil
		})
	}
	return group.Wait()
}

// reservedNumbers are the lowest process numbers, which are not used again once the numbers wrap.
const reservedNumbers = 300

// watch ends the command that uses most when all of this helper together use more than the limits, and everything if that did not help.
func (h *serving) watch(limits confine.Limits) error {
	poll := time.NewTicker(limitPoll)
	defer poll.Stop()
	looks := 0 // in a row at which it was too much
	for range poll.C {
		names, over, weigh := h.over(limits)
		if over == "" {
			looks = 0
			continue
		}
		looks++
		h.mu.Lock()
		if looks < patience {
			h.endHeaviest(names, over, weigh)
		} else {
			for pid := range h.commands {
				h.exceeded[pid] = over
			}
			h.killAll()
		}
		h.mu.Unlock()
	}
	return nil
}

// processes lists this helper and what runs below it.
func (h *serving) processes() ([]string, error) {
	if h.way == confine.Full {
		return processes()
	}
	names := []string{strconv.Itoa(os.Getpid())}
	for i := 0; i < len(names); i++ { // it grows
		threads, _ := os.ReadDir("/proc/" + names[i] + "/task") // none if it has just ended
		for _, t := range threads {
			children, _ := os.ReadFile("/proc/" + names[i] + "/task/" + t.Name() + "/children")
			names = append(names, strings.Fields(string(children))...)
		}
	}
	return names, nil
}

// killAll kills every process below this helper.
func (h *serving) killAll() {
	if h.way == confine.Full {
		_ = unix.Kill(-1, unix.SIGKILL) // every process of this namespace but the helper, at once; none is there for ESRCH
		return
	}
	names, _ := h.processes() // it does not fail there
	for _, name := range names[1:] {
		if pid, err := strconv.Atoi(name); err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// endAll ends everything below a helper without a process namespace, whose end would only orphan it. A process may fork while it is killed,
// so that only an empty list is the end.
func (h *serving) endAll() {
	for end := time.Now().Add(endTime); h.way != confine.Full && time.Now().Before(end); time.Sleep(time.Millisecond) {
		h.killAll()
		if names, _ := h.processes(); len(slices.DeleteFunc(names, ended)) <= 1 {
			return
		}
	}
}

// endTime is how long a helper tries to end what runs below it.
const endTime = 5 * time.Second

// patience is the number of looks in a row at which everything ends: several commands may have to end one after the other, and on a busy
// machine a killed one is still there at the next look.
const patience = 8

// endHeaviest kills the command that weighs most, with its group and its descendants, or what commands have left behind if that weighs
// more than any of them. The caller holds the mutex.
func (h *serving) endHeaviest(names []string, over string, weigh func(pid string) int64) {
	weights, members := map[int]int64{}, map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		root := h.commandOf(pid)
		weights[root] += weigh(name)
		members[root] = append(members[root], pid)
	}
	heaviest := slices.MaxFunc(append(slices.Collect(maps.Keys(weights)), 0), func(a, b int) int { return cmp.Compare(weights[a], weights[b]) })
	if heaviest != 0 {
		h.exceeded[heaviest] = over
		_ = unix.Kill(-heaviest, unix.SIGKILL) // at once, so that a bomb does not outrun it
	}
	for _, pid := range members[heaviest] {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// commandOf returns the command to whose group a process belongs or from which it descends; 0 if it has left both.
func (h *serving) commandOf(pid int) int {
	for range maxParents {
		if _, ok := h.commands[pid]; ok {
			return pid
		}
		f := stat(strconv.Itoa(pid)) // state, parent, group ...
		if len(f) < 3 {
			return 0
		}
		if group, _ := strconv.Atoi(f[2]); h.commands[group] != "" {
			return group
		}
		if pid, _ = strconv.Atoi(f[1]); pid <= 1 || pid == os.Getpid() {
			return 0
		}
	}
	return 0
}

// maxParents bounds the walk to a command, since numbers may be used again meanwhile.
const maxParents = 1000

// over returns the processes, the limit that they exceed, "" for none, and how much of it a process uses.
func (h *serving) over(limits confine.Limits) (names []string, reason string, weigh func(pid string) int64) {
	h.mu.Lock()
	idle := len(h.commands) == 0
	h.mu.Unlock()
	if idle {
		return nil, "", nil
	}
	names, err := h.processes()
	if err != nil {
		return nil, "", nil
	}
	if limits.Processes > 0 && len(names)-1 > limits.Processes {
		names = slices.DeleteFunc(names, ended)
	}
	if limits.Processes > 0 && len(names)-1 > limits.Processes {
		return names, fmt.Sprintf("%d processes", limits.Processes), func(string) int64 { return 1 }
	}
	if limits.Memory > 0 && used(names, resident) > limits.Memory && used(names, proportional) > limits.Memory {
		return names, centurion.Bytes(limits.Memory) + " of memory", proportional
	}
	return nil, "", nil
}

// ended reports whether a process has ended and is only in the list of processes until its parent has noticed.
func ended(pid string) bool {
	f := stat(pid)
	return len(f) == 0 || f[0] == "Z" || f[0] == "X"
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
