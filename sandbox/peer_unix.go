//go:build linux || darwin

package sandbox

import (
	"net"
	"os"
)

// Peer describes the process that connected to a unix socket, and refuses those that this host's commands started: its descendants by
// their parents, and detached ones by the mark in their environment or in that of a parent. A process that has left its parents and has
// cleared its own environment and theirs is not recognised. Call it right after the connection is accepted.
func (r *Runner) Peer(c net.Conn) Peer {
	pid, held := peerPID(c)
	if pid == os.Getpid() {
		return Peer{PID: pid, Own: true}
	}
	p := look(pid)
	if p.Refused == "" && r.started(pid) {
		p.Refused = peerMarked
	}
	if !held() { // another process may have got the number meanwhile
		return Peer{PID: pid, Refused: peerUnknown}
	}
	return p
}

// Started reports whether this process is a command of a host with the mark, or descends from one, like [Runner.Peer].
func (r *Runner) Started() bool { return r.started(os.Getppid()) }

// started reports whether a process or one of its ancestors is a command of this host or has its mark.
func (r *Runner) started(pid int) bool {
	r.mu.Lock()
	commands := map[int]bool{}
	for _, cmd := range r.running {
		commands[cmd.pid()] = true
	}
	r.mu.Unlock()
	seen := map[int]bool{os.Getpid(): true}
	for ; pid > 1 && !seen[pid]; pid = parent(pid) {
		seen[pid] = true
		if commands[pid] || r.Mark != "" && hasMark(pid, hostVariable+"="+r.Mark) {
			return true
		}
	}
	return false
}
