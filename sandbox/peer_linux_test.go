package sandbox

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"centurion"
	"centurion/sandbox/confine"
)

// roles are what the test's program does in a process of its own, by the variable roleVariable.
var roles = map[string]func() error{
	"dial": func() error { // one connection, held until the other side ends it
		c, err := net.Dial("unix", os.Getenv("SOCKET"))
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	},
	"dial TCP": func() error {
		c, err := net.Dial("tcp", os.Getenv("ADDRESS"))
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return err
	},
	"plain":    func() error { return announce() },
	"shielded": func() error { return announce(Shield) },
}

const roleVariable = "CENTURION_TEST_ROLE"

func init() { role = func() func() error { return roles[os.Getenv(roleVariable)] } }

// announce says what this process has, then waits for the end of its input.
func announce(before ...func() error) error {
	for _, do := range before {
		if err := do(); err != nil {
			return err
		}
	}
	way, _ := Best()
	fmt.Println(way)
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return nil
}

// S5: a process that a command of this host has started is known as such, whatever it does with its session or its own environment, and
// so is one in other namespaces.
func TestPeer(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{Mark: "mark-of-peers"}
	dial := "SOCKET='%s' " + roleVariable + "=dial " + self
	bare := "env -i SOCKET='%s' " + roleVariable + "=dial " + self
	started := func(attr *syscall.SysProcAttr) func(t *testing.T, socket string) {
		return func(t *testing.T, socket string) {
			cmd := exec.Command(self)
			cmd.Env, cmd.SysProcAttr = append(os.Environ(), "SOCKET="+socket, roleVariable+"=dial"), attr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Wait() })
		}
	}
	script := func(script string) func(t *testing.T, socket string) {
		return func(t *testing.T, socket string) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = r.Run(t.Context(), centurion.Command{Script: fmt.Sprintf(script, socket), Dir: t.TempDir()})
			}()
			t.Cleanup(func() { <-ended })
		}
	}
	elsewhere := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}}
	for name, test := range map[string]struct {
		dial    func(t *testing.T, socket string)
		refused string
	}{
		"this process": {func(t *testing.T, socket string) {
			go func() { c, _ := net.Dial("unix", socket); _, _ = c.Read(make([]byte, 1)) }()
		}, ""},
		"a program":            {started(nil), ""},
		"other namespaces":     {started(elsewhere), peerElsewhere},
		"a command":            {script(dial), peerMarked},
		"without its mark":     {script(bare), peerMarked},
		"a session of its own": {script("setsid --wait " + bare), peerMarked},
		"a detached one":       {script("export SOCKET='%s' " + roleVariable + "=dial; (setsid " + self + " &); sleep 1"), peerMarked},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "other namespaces" {
				if way, err := Best(); way != confine.Full {
					t.Skipf("no namespaces are to be had: %v", err)
				}
			}
			socket := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			_ = l.(*net.UnixListener).SetDeadline(time.Now().Add(10 * time.Second))
			test.dial(t, socket)
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p := r.Peer(c)
			if p.Refused != test.refused || p.PID == 0 || p.Command == "" && p.PID != os.Getpid() || !p.Own {
				t.Errorf("%+v, want it refused as %q", p, test.refused)
			}
		})
	}
}

// The number of a process that has ended is no sign of who is at the other end, and a connection of another kind has none.
func TestPeerThatHasEnded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, ends := range []bool{false, true} {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "SOCKET="+l.Addr().String(), roleVariable+"=dial")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		pid, held := peerPID(c)
		if ends {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if pid != cmd.Process.Pid || held() == ends && tellsEnds(t, c) {
			t.Errorf("process %d, not %d, ended %v", pid, cmd.Process.Pid, ends)
		}
		if p := (&Runner{}).Peer(c); (p.Refused == peerUnknown) != ends || p.PID != pid {
			t.Errorf("ended %v: %+v", ends, p)
		} else if ends && tellsEnds(t, c) && p != (Peer{PID: pid, Refused: peerUnknown}) {
			t.Errorf("%+v is told of whoever has the number now", p)
		}
		_ = c.Close()
		if !ends {
			_ = cmd.Wait()
		}
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if pid, held := peerPID(one); pid != 0 || held() {
		t.Errorf("a pipe has process %d", pid)
	}
}

// One namespace of its own is enough to hide from this host: its processes there, or its files.
func TestPeerInANamespaceOfItsOwn(t *testing.T) {
	for name, flags := range map[string]uintptr{"user": syscall.CLONE_NEWUSER, "pid": syscall.CLONE_NEWPID, "mnt": syscall.CLONE_NEWNS, "none": 0} {
		if os.Geteuid() != 0 && flags != 0 {
			flags |= syscall.CLONE_NEWUSER // without it only root makes the others
		}
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := cmd.Start(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := look(cmd.Process.Pid); (p.Refused == peerElsewhere) != (flags != 0) || flags == 0 && p.Refused != "" {
			t.Errorf("%s: %+v", name, p)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// tellsEnds reports whether this kernel can tell that the process at the other end has ended.
func tellsEnds(t *testing.T, c net.Conn) (tells bool) {
	t.Helper()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			if pidfd, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, peerPidFD); err == nil {
				tells = unix.Close(pidfd) == nil
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return tells
}

// A terminal is one that controls the process, and its own program is the very file of this one.
func TestPeerAtATerminal(t *testing.T) {
	ptmx, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer ptmx.Close()
	n, err := unix.IoctlGetInt(int(ptmx.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ptmx.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	for _, terminal := range []bool{true, false} {
		cmd := exec.Command("sh", "-c", "echo; read x")
		cmd.Stdin, cmd.SysProcAttr = tty, &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // what was started is whole once it has said something
			t.Fatal(err)
		}
		if p := look(cmd.Process.Pid); p.Terminal != terminal || p.Own || p.Refused != "" || p.Command != "sh -c echo; read x" {
			t.Errorf("terminal %v: %+v", terminal, p)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// S5: an answer counts as a person's from a terminal, from this program, and where the system cannot tell.
func TestPerson(t *testing.T) {
	for p, want := range map[Peer]bool{{}: true, {PID: 7, Terminal: true}: true, {PID: 7, Own: true}: true, {PID: 7, Command: "node x.js"}: false} {
		if p.Person() != want {
			t.Errorf("%+v: %v", p, !want)
		}
	}
}

// S5: other processes of the same ordinary user read neither the environment nor the memory or open files of a shielded process, which can
// still start helpers.
func TestShield(t *testing.T) {
	ways := map[string]string{}
	for role, open := range map[string]bool{"plain": true, "shielded": false} {
		pid, way := asPerson(t, role)
		ways[role] = way
		for _, file := range []string{"environ", "mem", "auxv", "maps"} {
			cmd := exec.Command("head", "-c0", "/proc/"+strconv.Itoa(pid)+"/"+file)
			cmd.SysProcAttr = person()
			out, err := cmd.CombinedOutput()
			if (err == nil) != open {
				t.Errorf("%s, %s: %v, %s", role, file, err, out)
			}
		}
	}
	if ways["plain"] != ways["shielded"] {
		t.Errorf("ways of confinement: %v", ways)
	}
}

// person makes a child run as an ordinary user when this process is root's, who may read everything.
func person() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 61000, Gid: 61000}}
}

// asPerson starts the test's program in a role as an ordinary user, and returns what it says.
func asPerson(t *testing.T, role string) (pid int, said string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "centurion-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "program"), self, 0o755)
	}
	if err == nil && os.Getuid() == 0 {
		err = os.Chown(dir, 61000, 61000)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "program"))
	cmd.Env, cmd.SysProcAttr, cmd.Stderr = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, roleVariable + "=" + role}, person(), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	said, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, strings.TrimSpace(said)
}
