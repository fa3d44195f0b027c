package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Neighbour describes the program of this machine that connected to a TCP port, if a command of one of these runners started it or it hides who it is:
// then Refused says so. A program of another user cannot be looked at, such as a forwarder for another machine; it is the zero Peer, like
// any other that may connect.
func Neighbour(c net.Conn, runners ...*Runner) Peer {
	inode, uid := socketOf(c)
	if inode == "" || uid != os.Getuid() {
		return Peer{}
	}
	pid := ownerOf(inode)
	switch {
	case pid == 0: // of our own user, and it cannot be looked at
		return Peer{Refused: peerUnknown}
	case pid == os.Getpid():
		return Peer{}
	}
	p := look(pid)
	if p.Refused == "" && slices.ContainsFunc(runners, func(r *Runner) bool { return r.started(pid) }) {
		p.Refused = peerMarked
	}
	if p.Refused == "" {
		return Peer{}
	}
	return p
}

// socketOf finds the other end of a connection within this machine: its inode, "" if it is none, and the user it belongs to.
func socketOf(c net.Conn) (inode string, uid int) {
	far, ok := c.RemoteAddr().(*net.TCPAddr)
	near, ok2 := c.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 || !far.IP.IsLoopback() {
		return "", 0
	}
	theirs, ours := fmt.Sprintf(":%04X", far.Port), fmt.Sprintf(":%04X", near.Port)
	for _, table := range []string{"tcp", "tcp6"} {
		b, _ := os.ReadFile("/proc/net/" + table) // without it nothing is found
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line) // number, local, remote, state, queues, timer, retransmissions, user, timeout, inode
			if len(f) > 9 && strings.HasSuffix(f[1], theirs) && strings.HasSuffix(f[2], ours) {
				uid, _ = strconv.Atoi(f[7])
				return f[9], uid
			}
		}
	}
	return "", 0
}

// ownerOf finds a process that has a socket, 0 if there is none that can be looked at. The oldest of several is the one that
// made it.
func ownerOf(inode string) int {
	all, _ := filepath.Glob("/proc/[0-9]*")
	pids := make([]int, 0, len(all))
	for _, dir := range all {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range pids {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && to == "socket:["+inode+"]" {
				return pid
			}
		}
	}
	return 0
}
