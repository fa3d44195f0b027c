package sandbox

import (
	"bytes"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Shield does nothing: the system asks before a program without its permission reads the memory of another.
func Shield() error { return nil }

// peerPID returns the process that connected, 0 if it is unknown. The system cannot tell whether the number still belongs to it.
func peerPID(c net.Conn) (pid int, held func() bool) {
	held = func() bool { return pid > 0 && unix.Kill(pid, 0) == nil }
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, held
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, held
	}
	_ = raw.Control(func(fd uintptr) { pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID) })
	return pid, held
}

// look describes a process. The path of its program comes first in its arguments.
func look(pid int) Peer {
	p := Peer{PID: pid}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		p.Refused = peerUnknown
		return p
	}
	p.Terminal = info.Eproc.Tdev != -1
	path, args := arguments(pid)
	p.Command = commandLine(args)
	if theirs, err := os.Stat(path); err == nil {
		self, _ := os.Executable()
		own, err := os.Stat(self)
		p.Own = err == nil && os.SameFile(own, theirs)
	}
	return p
}

// arguments returns the path of a process's program and its arguments, each terminated by a zero byte.
func arguments(pid int) (path, args string) {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(b) < 4 {
		return "", ""
	}
	n := int(b[0]) | int(b[1])<<8
	head, rest, _ := bytes.Cut(b[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	all := bytes.SplitAfterN(rest, []byte{0}, n+1)
	return string(head), string(bytes.Join(all[:min(n, len(all))], nil))
}

// parent returns the parent of a process, 0 if there is none.
func parent(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}

// hasMark reports whether a process has the entry mark in its environment, as far as the system shows it.
func hasMark(pid int, mark string) bool {
	b, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(b, []byte("\x00"+mark+"\x00"))
}
