package trial

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"centurion/guard"
)

// openTerminal creates a terminal of 100 by 40 characters. Closing control has the effect of a closed window or a broken connection.
func openTerminal() (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0) // non-blocking, so that Close ends a read
	if err != nil {
		return nil, nil, err
	}
	raw, err := control.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	n := 0
	var inner error
	err = raw.Control(func(fd uintptr) { // control.Fd would make it blocking again
		if n, inner = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); inner != nil {
			return
		}
		if inner = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); inner != nil {
			return
		}
		inner = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
	})
	if err == nil {
		err = inner
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	return control, terminal, err
}

// onTerminal makes a terminal the controlling one of a command, and with live all of its streams.
func onTerminal(cmd *exec.Cmd, terminal *os.File, live bool) {
	cmd.Stdin = terminal
	if live {
		cmd.Stdout, cmd.Stderr = terminal, terminal
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
}

// drain reads a terminal's output until it is closed; otherwise a full buffer would block the program.
func drain(control *os.File) <-chan struct{} {
	done := make(chan struct{})
	var g guard.Group
	g.Go("drain terminal", func() error {
		defer close(done)
		_, _ = io.Copy(io.Discard, control) // terminals end with an error
		return nil
	})
	return done
}
