package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"centurion/guard"
	"centurion/sandbox/confine"
)

// helperSocket is the descriptor of a helper's end of the socket.
const helperSocket = 3

// maxMessage limits a message between host and helper, in bytes: the kernel limits a single argument to 128 KB, and a script is one.
const maxMessage = 200_000

// toHelper is a message to a helper. The first has a policy; each other one starts a command. The descriptors that come with it are the
// command's output, its input if it has one, and its errors if they are apart.
type toHelper struct {
	Policy  *confine.Policy `json:",omitempty"`
	Way     confine.Way     `json:",omitempty"`
	Limits  confine.Limits  `json:",omitzero"`
	ID      string          `json:",omitempty"`
	Args    []string        `json:",omitempty"`
	Dir     string          `json:",omitempty"`
	Env     []string        `json:",omitempty"`
	Network bool            `json:",omitempty"`
	Input   bool            `json:",omitempty"`
	// Lend is a directory to lend until Back, but for the names in it.
	Lend  string   `json:",omitempty"`
	Names []string `json:",omitempty"`
	Back  bool     `json:",omitempty"`
}

// fromHelper answers the policy, without an ID, brings the listening socket for connections by name, or tells that a command has begun or
// exited. Where the helper has a process namespace, the process id comes as the sender's credentials, which the kernel translates.
type fromHelper struct {
	ID     string `json:",omitempty"`
	Door   bool   `json:",omitempty"` // the socket comes with it
	PID    int    `json:",omitempty"`
	Error  string `json:",omitempty"`
	Exited bool   `json:",omitempty"`
	Code   int    `json:",omitempty"`
	// Exceeded is the limit for which the helper killed the command.
	Exceeded string `json:",omitempty"`
}

// Helper runs the helper process of a workspace, until the host closes the socket, and returns the exit code. It must be called before
// anything else in a process whose first argument is [HelperCommand]. Every process below it ends with it: it is the first one of a
// process namespace, or at least adopts what outlives its parent.
func Helper() int {
	debug.SetGCPercent(100) // its start allocates more than it ever needs again
	if err := confine.SealDescriptors(); err != nil {
		return helperFailed(err)
	}
	file := os.NewFile(helperSocket, "host")
	conn, err := net.FileConn(file)
	if err != nil {
		return helperFailed(err)
	}
	_ = file.Close()
	h := &serving{conn: conn.(*net.UnixConn), commands: map[int]string{}, exceeded: map[int]string{}}
	if err := h.serve(); err != nil {
		return helperFailed(err)
	}
	return 0
}

func helperFailed(err error) int {
	fmt.Fprintln(os.Stderr, "centurion "+HelperCommand+":", err)
	return 1
}

// serving is a helper at work.
type serving struct {
	conn   *net.UnixConn
	way    confine.Way
	policy confine.Policy // once entered

	offline, online *confine.Launcher // nil before the first command

	mu       sync.Mutex     // held from a fork until the command is known, so that no exit is missed
	commands map[int]string // the ids of running commands
	exceeded map[int]string // the limit for which a running command was killed
}

// serve reads the policy, confines this process by it, and starts what the host asks for.
func (h *serving) serve() error {
	// A command can signal the helper, which is its first process: without handlers the default action would end everything.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	first, _, err := h.receive()
	if err != nil || first.Policy == nil {
		return err
	}
	if err := keepThreads(); err != nil {
		return err
	}
	h.way = first.Way
	if err := h.enter(*first.Policy, first.Limits); err != nil {
		return h.send(fromHelper{Error: err.Error()}, nil)
	}
	defer h.endAll() // however the host's end of the socket closes
	var group guard.Group
	group.Go("reap processes", func() error {
		for range children {
			h.reap()
		}
		return nil
	})
	group.Go("watch limits", func() error { return h.watch(first.Limits) })
	if err := h.send(fromHelper{}, nil); err != nil {
		return err
	}
	for {
		m, fds, err := h.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Lend != "" {
			if err := h.lend(m); err != nil {
				return err
			}
			continue
		}
		if err := h.start(m, fds); err != nil {
			return err
		}
	}
}

// lend lets commands write below a directory, or no more, and tells the host.
func (h *serving) lend(m toHelper) error {
	err := errors.ErrUnsupported
	switch {
	case h.way != confine.Full:
	case m.Back:
		err = h.policy.Take(m.Lend)
	default:
		err = h.policy.Give(m.Lend, m.Names)
	}
	if err != nil {
		return h.send(fromHelper{ID: m.ID, Error: err.Error()}, nil)
	}
	return h.send(fromHelper{ID: m.ID, Exited: true}, nil)
}

// enter confines this process.
func (h *serving) enter(p confine.Policy, limits confine.Limits) (err error) {
	if h.way == confine.Full {
		capTasks(limits)
		p, err = confine.Enter(p)
	} else {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	h.policy = p
	return err
}

// launch makes the confined threads, with a network of its own for the one without network. It is done for the first command: a workspace
// whose files are only read and written needs none. A command could exchange what a later thread is confined by, so both are made before it.
func (h *serving) launch() (err error) {
	if h.offline == nil {
		offline, err := h.policy.Launch(h.way, false)
		if err == nil && h.way == confine.Full {
			err = h.openDoor(offline)
		}
		if err != nil {
			return err
		}
		h.offline = offline
	}
	if h.online == nil {
		h.online, err = h.policy.Launch(h.way, true)
	}
	return err
}

// openDoor listens in the network of a confined thread, and gives the socket to the host, which accepts.
func (h *serving) openDoor(offline *confine.Launcher) error {
	var door *os.File
	err := offline.Do(func() error {
		l, err := net.Listen("tcp4", doorAddress)
		if err != nil {
			return err
		}
		defer l.Close()
		door, err = l.(*net.TCPListener).File()
		return err
	})
	if err != nil {
		return err
	}
	defer door.Close()
	return h.send(fromHelper{Door: true}, unix.UnixRights(int(door.Fd())))
}

// receive reads the next message and the descriptors that came with it.
func (h *serving) receive() (m toHelper, fds []int, err error) {
	buf, oob := make([]byte, maxMessage), make([]byte, 64)
	n, rights, _, _, err := h.conn.ReadMsgUnix(buf, oob)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return m, nil, err
	}
	if err := json.Unmarshal(buf[:n], &m); err != nil {
		return m, nil, err
	}
	return m, descriptors(oob[:rights]), nil
}

// descriptors returns the descriptors in the control part of a message.
func descriptors(oob []byte) (fds []int) {
	control, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range control {
		if some, err := unix.ParseUnixRights(&control[i]); err == nil {
			fds = append(fds, some...)
		}
	}
	return fds
}

// firstOf returns the first descriptor, or -1.
func firstOf(fds []int) int {
	if len(fds) == 0 {
		return -1
	}
	return fds[0]
}

// start starts a command and tells the host. An error means that the host is gone.
func (h *serving) start(m toHelper, fds []int) (err error) {
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if err := h.launch(); err != nil {
		return h.send(fromHelper{ID: m.ID, Error: err.Error()}, nil)
	}
	launcher := h.offline
	if m.Network {
		launcher = h.online
	}
	for range startTries {
		if err = h.fork(launcher, m, fds); !errors.Is(err, unix.EAGAIN) {
			break
		}
		time.Sleep(limitPoll) // another command uses all numbers of processes, and is about to be ended for it
	}
	if err != nil {
		return h.send(fromHelper{ID: m.ID, Error: err.Error()}, nil)
	}
	return nil
}

// startTries is how often a command is started while no more processes can be made.
const startTries = 20

// fork starts a command and tells the host; an error is that of the start.
func (h *serving) fork(launcher *confine.Launcher, m toHelper, fds []int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	pid := 0
	err := launcher.Do(func() error {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		defer null.Close()
		in, out := null.Fd(), uintptr(firstOf(fds))
		if m.Input && len(fds) > 1 {
			in = uintptr(fds[1])
			fds = fds[1:]
		}
		errs := out
		if len(fds) > 1 {
			errs = uintptr(fds[1])
		}
		pid, err = syscall.ForkExec(m.Args[0], m.Args, &syscall.ProcAttr{Dir: m.Dir, Env: m.Env,
			Files: []uintptr{in, out, errs}, Sys: &syscall.SysProcAttr{Setpgid: true}})
		return err
	})
	if err != nil {
		return err
	}
	h.commands[pid] = m.ID
	if h.way != confine.Full {
		return h.send(fromHelper{ID: m.ID, PID: pid}, nil)
	}
	credentials := unix.Ucred{Pid: int32(pid), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	return h.send(fromHelper{ID: m.ID}, unix.UnixCredentials(&credentials))
}

// reap takes the exit of every process that has ended: of commands, which the host is told, and of orphans.
func (h *serving) reap() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if id, ours := h.commands[pid]; ours {
			// The code is -1 after a signal. If the host is gone, serve ends.
			_ = h.send(fromHelper{ID: id, Exited: true, Code: status.ExitStatus(), Exceeded: h.exceeded[pid]}, nil)
			delete(h.commands, pid)
			delete(h.exceeded, pid)
		}
	}
}

// send sends a message, with control data or nil.
func (h *serving) send(m fromHelper, oob []byte) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, _, err = h.conn.WriteMsgUnix(b, oob, nil)
	return err
}
