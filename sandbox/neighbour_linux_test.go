package sandbox

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"centurion"
)

// S5: a command of this host that connects to a TCP port is known as such, also when it has cleared its environment; a program beside it is
// not refused.
func TestNeighbour(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		start   func(t *testing.T, r *Runner, address string)
		refused string
	}{
		"itself": {start: func(t *testing.T, _ *Runner, address string) {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
		}},
		"another program": {start: func(t *testing.T, _ *Runner, address string) {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "ADDRESS="+address, roleVariable+"=dial TCP")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Wait() })
		}},
		"a command":          {start: commandDials("ADDRESS='%s' " + roleVariable + "='dial TCP' " + self), refused: peerMarked},
		"with a bare record": {start: commandDials("env -i ADDRESS='%s' '" + roleVariable + "=dial TCP' " + self), refused: peerMarked},
	} {
		for _, host := range []string{"127.0.0.1", "[::1]"} {
			t.Run(name+" "+host, func(t *testing.T) {
				l, err := net.Listen("tcp", host+":0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				r := &Runner{Mark: "mark-of-neighbours"}
				test.start(t, r, l.Addr().String())
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				p := Neighbour(c, &Runner{Mark: "of another host"}, r)
				c.Close()
				if p.Refused != test.refused || test.refused != "" && p.PID == 0 {
					t.Errorf("it is told as %+v, want %q", p, test.refused)
				}
			})
		}
	}
}

// commandDials runs a script of an agent with the address in the place of %s, until the connection ends.
func commandDials(script string) func(t *testing.T, r *Runner, address string) {
	return func(t *testing.T, r *Runner, address string) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = r.Run(t.Context(), centurion.Command{Script: strings.ReplaceAll(script, "%s", address), Dir: t.TempDir()})
		}()
		t.Cleanup(func() { <-ended })
	}
}

// A connection that no process has at the moment, since it is on its way from one to another, may be anybody's of this user.
func TestNeighbourOnTheWay(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	file, err := theirs.(*net.TCPConn).File()
	if err == nil {
		err = errors.Join(unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(int(file.Fd())), nil, 0), file.Close(), theirs.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if p := Neighbour(ours); p != (Peer{Refused: peerUnknown}) {
		t.Errorf("%+v", p)
	}
}
