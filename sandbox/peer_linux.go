package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// Shield keeps other processes of this user, such as the commands of agents, from reading this process's memory, environment and open
// files, and from tracing it; root is not kept off. It leaves no core dumps either. A child that it starts is as other processes are, once
// it runs its program.
func Shield() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// startUnshielded starts a child in a user namespace of its own, whose ids the kernel lets only a process without a shield set. The shield
// is up again once the child runs its program; where such children are used, commands see no process of this namespace. Only one call may
// run at a time.
func startUnshielded(cmd *exec.Cmd) error {
	if dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || dumpable != 0 {
		return errors.Join(err, cmd.Start())
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	return errors.Join(cmd.Start(), Shield())
}

// peerPidFD is SO_PEERPIDFD (Linux 6.5), which package unix does not have.
const peerPidFD = 77

// peerPID returns the process that connected, 0 if this process cannot see it. held reports whether the number still belongs to that
// process, and must be called once; older kernels cannot tell.
func peerPID(c net.Conn) (pid int, held func() bool) {
	held = func() bool { return pid > 0 }
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, held
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, held
	}
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
		if pidfd, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, peerPidFD); err == nil {
			held = func() bool {
				defer unix.Close(pidfd)
				for {
					n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0) // readable once it has ended
					if !errors.Is(err, unix.EINTR) {
						return pid > 0 && n == 0 && err == nil
					}
				}
			}
		}
	})
	return pid, held
}

// look describes a process. One whose environment or namespaces cannot be read could hide its mark, and is refused.
func look(pid int) Peer {
	p, proc := Peer{PID: pid}, "/proc/"+strconv.Itoa(pid)
	args, _ := os.ReadFile(proc + "/cmdline")
	p.Command = commandLine(string(args))
	if f := stat(strconv.Itoa(pid)); len(f) > 4 {
		p.Terminal = f[4] != "0"
	}
	if theirs, err := os.Stat(proc + "/exe"); err == nil {
		own, err := os.Stat("/proc/self/exe")
		p.Own = err == nil && os.SameFile(own, theirs)
	}
	if _, err := readProc(nil, proc+"/environ"); err != nil {
		p.Refused = peerUnknown
		return p
	}
	for _, ns := range []string{"user", "pid", "mnt"} {
		own, err := os.Readlink("/proc/self/ns/" + ns)
		if err != nil { // this kernel has none
			continue
		}
		if theirs, err := os.Readlink(proc + "/ns/" + ns); err != nil || theirs != own {
			p.Refused = peerElsewhere
		}
	}
	return p
}

// parent returns the parent of a process, 0 if there is none.
func parent(pid int) int {
	f := stat(strconv.Itoa(pid))
	if len(f) < 2 {
		return 0
	}
	up, _ := strconv.Atoi(f[1])
	return up
}

func hasMark(pid int, mark string) bool { return marked(pid, mark) }
