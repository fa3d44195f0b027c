package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
)

// keeper is the host's side of a helper process.
type keeper struct {
	cmd   *exec.Cmd
	conn  hostConn
	way   confine.Way
	door  *door // of the reading goroutine; nil without namespaces, and before the first command
	group guard.Group

	mu      sync.Mutex // protects the fields below
	gone    bool
	started map[string]*kept // commands that have begun or are about to
}

// hostConn is the host's end of the socket to a helper.
type hostConn interface {
	net.Conn
	ReadMsgUnix(b, oob []byte) (n, oobn, flags int, addr *net.UnixAddr, err error)
	WriteMsgUnix(b, oob []byte, addr *net.UnixAddr) (n, oobn int, err error)
}

// kept is a command of a helper.
type kept struct {
	shell  int // its process id, as the host sees it
	begun  chan error
	exited chan struct{}
	code   int
	limit  string // for which it was killed

	connect centurion.Dial  // nil makes no connections
	life    context.Context // ends with the command
	over    context.CancelFunc
}

func (k *kept) pid() int { return k.shell }

func (k *kept) wait() int {
	<-k.exited
	return k.code
}

func (k *kept) exceeded() string { return k.limit }

func (k *kept) release() {}

// startKeeper starts a helper for a policy. env is the helper's own environment.
func startKeeper(how *Confinement, p confine.Policy, env []string) (*keeper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "helper"), os.NewFile(uintptr(pair[1]), "host")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	_ = ours.Close()
	if err == nil {
		err = passCredentials(conn.(*net.UnixConn))
	}
	if err != nil {
		return nil, err
	}
	k := &keeper{conn: conn.(hostConn), way: how.Way, started: map[string]*kept{}}
	var said strings.Builder
	attrs, start := []*syscall.SysProcAttr{{Setpgid: true}}, (*exec.Cmd).Start
	if how.Way == confine.Full {
		attrs, start = confine.HelperAttrs(), func(cmd *exec.Cmd) error {
			how.starting.Lock()
			defer how.starting.Unlock()
			return startUnshielded(cmd)
		}
	}
	var errs []error
	for _, attr := range attrs {
		k.cmd = &exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], HelperCommand}, Env: append(env, "GOMAXPROCS=2", "GOGC=400"), Dir: "/",
			ExtraFiles: []*os.File{theirs}, Stderr: &said, SysProcAttr: attr}
		if err = start(k.cmd); err == nil {
			break
		}
		errs = append(errs, err)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start helper: %w", errors.Join(errs...)), conn.Close())
	}
	_ = theirs.Close() // so that the end of the helper is seen
	if err := k.greet(p, how.Limits); err != nil {
		err = errors.Join(err, k.conn.Close(), k.cmd.Process.Kill())
		_ = k.cmd.Wait() // its exit says no more
		if said.Len() > 0 {
			err = fmt.Errorf("%s (%w)", strings.TrimSpace(said.String()), err)
		}
		return nil, err
	}
	k.group.Go("read helper", k.read)
	return k, nil
}

func passCredentials(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(err, serr)
}

// greetTime is how long a helper may take to confine itself, which normally takes milliseconds.
const greetTime = 20 * time.Second

// greet sends the policy and waits until the helper has confined itself.
func (k *keeper) greet(p confine.Policy, limits confine.Limits) error {
	_ = k.conn.SetDeadline(time.Now().Add(greetTime))
	defer func() { _ = k.conn.SetDeadline(time.Time{}) }()
	b, err := json.Marshal(toHelper{Policy: &p, Way: k.way, Limits: limits})
	if err == nil {
		_, err = k.conn.Write(b)
	}
	if err != nil {
		return err
	}
	m, _, _, err := k.receive()
	if err == nil && m.Error != "" {
		err = errors.New(m.Error)
	}
	return err
}

// command returns a running command, or nil.
func (k *keeper) command(id string) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.started[id]
}

// receive reads the next message of the helper, and the process id and the descriptor, or -1, that came with it.
func (k *keeper) receive() (m fromHelper, pid, fd int, err error) {
	buf, oob := make([]byte, 4096), make([]byte, 64)
	n, rights, _, _, err := k.conn.ReadMsgUnix(buf, oob)
	if err != nil {
		return m, 0, -1, err
	}
	if n == 0 {
		return m, 0, -1, errors.New("the helper has ended")
	}
	if control, err := unix.ParseSocketControlMessage(oob[:rights]); err == nil {
		for i := range control {
			if c, err := unix.ParseUnixCredentials(&control[i]); err == nil {
				pid = int(c.Pid)
			}
		}
	}
	err = json.Unmarshal(buf[:n], &m)
	return m, pid, firstOf(descriptors(oob[:rights])), err
}

// read takes the helper's messages until it ends; then all its commands have ended, too.
func (k *keeper) read() error {
	for {
		m, pid, fd, err := k.receive()
		if err == nil && m.Door {
			if k.door, err = openDoor(fd, k.command); err == nil {
				k.group.Go("connect by name", k.door.serve)
				continue
			}
			_ = k.conn.Close() // so that the helper ends
		}
		k.mu.Lock()
		if err != nil {
			k.gone = true
			for id, c := range k.started {
				delete(k.started, id)
				c.end(-1, err)
			}
			k.mu.Unlock()
			_ = k.cmd.Wait() // its exit says no more
			if k.door == nil {
				return nil
			}
			return k.door.close()
		}
		if c := k.started[m.ID]; c != nil {
			switch {
			case m.Error != "":
				delete(k.started, m.ID)
				c.end(-1, errors.New(m.Error))
			case m.Exited:
				delete(k.started, m.ID)
				c.limit = m.Exceeded
				c.end(m.Code, nil)
			default:
				c.shell = cmp.Or(m.PID, pid)
				close(c.begun)
			}
		}
		k.mu.Unlock()
	}
}

// end records the exit of a command, or with err that it has not begun.
func (k *kept) end(code int, err error) {
	select {
	case <-k.begun: // closed: it had begun
	default:
		k.begun <- err
	}
	k.code = code
	k.over()
	close(k.exited)
}

// start starts a command in the helper, and connect makes its connections by name.
func (k *keeper) start(m toHelper, s streams, connect centurion.Dial) (*kept, error) {
	if connect != nil && k.way == confine.Full && !m.Network { // with the network, the proxy is not where the command is
		m.Env = append(m.Env, doorEnvironment(m.ID)...)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(b) > maxMessage {
		return nil, fmt.Errorf("a command of %d bytes is too long (at most %d)", len(b), maxMessage)
	}
	c := &kept{begun: make(chan error, 1), exited: make(chan struct{}), connect: connect}
	c.life, c.over = context.WithCancel(context.Background())
	k.mu.Lock()
	if k.gone {
		k.mu.Unlock()
		c.over()
		return nil, errHelperGone
	}
	k.started[m.ID] = c
	k.mu.Unlock()
	var rights []int
	for _, f := range s.list() {
		rights = append(rights, int(f.Fd()))
	}
	if _, _, err = k.conn.WriteMsgUnix(b, unix.UnixRights(rights...), nil); err != nil {
		k.mu.Lock()
		delete(k.started, m.ID)
		k.mu.Unlock()
		c.over()
		return nil, err
	}
	return c, <-c.begun
}

// close ends the helper and everything below it.
func (k *keeper) close() error {
	patience := time.Duration(0) // the kernel ends everything in a process namespace
	if k.way != confine.Full {
		patience = 2 * endTime
	}
	defer time.AfterFunc(patience, func() { _ = k.cmd.Process.Kill() }).Stop()
	_ = k.conn.Close() // what is below a helper without a namespace it ends itself then
	return k.group.Wait()
}
