package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// scan lists the processes of this user with the entry mark in their environment, except this process and its ancestors. Unreadable
// processes belong to other users or have just ended; zombies have no environment any more.
func scan(ctx context.Context, mark string) ([]Process, error) {
	names, err := processes()
	if err != nil {
		return nil, err
	}
	var found []Process
	var spared map[int]bool // read on first use
	buf := make([]byte, 16<<10)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || ctx.Err() != nil {
			continue
		}
		if buf, err = readProc(buf, "/proc/"+name+"/environ"); err != nil || !holds(buf, mark) {
			continue
		}
		if spared == nil {
			spared = ancestors()
		}
		if spared[pid] || !mine("/proc/"+name) {
			continue
		}
		args, _ := os.ReadFile("/proc/" + name + "/cmdline") // if it is unreadable, the pid has to suffice
		found = append(found, Process{PID: pid, Command: commandLine(string(args))})
	}
	return found, nil
}

// processes lists the names of the processes' directories in /proc.
func processes() ([]string, error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	return slices.DeleteFunc(names, func(name string) bool { return name[0] < '0' || name[0] > '9' }), err
}

// stat returns the state, the parent and the group of a process, and more; nothing if it has just ended.
func stat(pid string) []string {
	b, _ := os.ReadFile("/proc/" + pid + "/stat")
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before may contain anything
}

// marked reports whether a process has the entry mark in its environment.
func marked(pid int, mark string) bool {
	b, err := readProc(nil, "/proc/"+strconv.Itoa(pid)+"/environ")
	return err == nil && holds(b, mark)
}

// holds reports whether an environment, with each entry terminated by a zero byte, contains mark.
func holds(environ []byte, mark string) bool {
	for at := 0; ; at++ {
		i := bytes.Index(environ[at:], []byte(mark))
		if i < 0 {
			return false
		}
		at += i
		end := at + len(mark)
		if (at == 0 || environ[at-1] == 0) && (end == len(environ) || environ[end] == 0) {
			return true
		}
	}
}

// readProc reads a file of /proc into buf, extending it if needed. It is called for every process of the machine, and a file of package
// os costs twice as much.
func readProc(buf []byte, path string) ([]byte, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return buf, err
	}
	defer syscall.Close(fd)
	buf = buf[:0]
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || n <= 0:
			return buf, err
		default:
			buf = buf[:len(buf)+n]
		}
	}
}

// mine reports whether the process with this directory belongs to this user: root can read all.
func mine(dir string) bool {
	var st syscall.Stat_t
	return syscall.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}

// ancestors returns this process, its parent, and so on.
func ancestors() map[int]bool {
	out := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !out[pid]; {
		out[pid] = true
		fields := stat(strconv.Itoa(pid))
		if len(fields) < 2 {
			break
		}
		pid, _ = strconv.Atoi(fields[1]) // 0 ends it
	}
	return out
}

// runs reports whether a process group has a member that is not just a zombie. In a container whose first process does not reap,
// zombies stay forever, and each command would wait out its grace.
func runs(group int) bool {
	names, err := processes()
	return err != nil || slices.ContainsFunc(names, func(name string) bool {
		f := stat(name)
		return len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X"
	})
}
