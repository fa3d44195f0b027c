package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// tty runs a command whose standard streams are a terminal of 100 by 40 characters, and acts as the person in front of
// it. The steps are lines of a file:
//
//	see REGEXP          wait until the screen has shown this since the last step
//	press KEYS REGEXP   press keys, again and again, until the screen has shown this; not for Ctrl-C, of which a second one means more
//	type KEYS           press keys once
//
// KEYS are characters, enter, esc, backspace, ctrl-c or ctrl-d. What the terminal was sent goes to tty.out.
func tty(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: tty STEPS N COMMAND ARG...")
	}
	steps, want := ts.ReadFile(args[0]), number(ts, args[1])
	control, terminal, err := openTerminal()
	ts.Check(err)
	defer control.Close()
	path := args[2]
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), ":") {
		if p := filepath.Join(dir, path); isFile(p) {
			path = p
			break
		}
	}
	cmd := exec.Command(path, args[3:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environ(ts)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(terminal.Close())
	var s screen
	read := make(chan struct{})
	go func() { // ends when the command has closed its terminal
		defer close(read)
		_, _ = io.Copy(&s, control) // a terminal without a program ends with EIO
	}()
	fail := func(format string, a ...any) {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // the failure is told below
		ts.Fatalf("%s; the terminal was sent:\n%q", fmt.Sprintf(format, a...), s.text())
	}
	for line := range strings.Lines(steps) {
		if err := s.step(strings.TrimSpace(line), control); err != nil {
			fail("%v", err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the command
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("it has not ended after %s; the terminal was sent:\n%q", patience, s.text())
	}
	<-read
	ts.Check(os.WriteFile(filepath.Join(ts.Getenv("WORK"), "tty.out"), []byte(s.text()), 0o600))
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("it exited with %d, not %d; the terminal was sent:\n%q", got, want, s.text())
	}
}

// screen is what a terminal was sent.
type screen struct {
	mu   sync.Mutex
	sent strings.Builder
	from int // where the last step found something
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.Write(b)
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent.String()
}

var keyNames = map[string]string{"enter": "\r", "ctrl-c": "\x03", "ctrl-d": "\x04", "backspace": "\x7f", "esc": "\x1b"}

func (s *screen) step(line string, keys io.Writer) error {
	if line == "" {
		return nil
	}
	verb, rest, _ := strings.Cut(line, " ")
	press := ""
	switch verb {
	case "see":
	case "type":
		if k := keyNames[rest]; k != "" {
			rest = k
		}
		_, err := io.WriteString(keys, rest)
		return err
	case "press":
		press, rest, _ = strings.Cut(rest, " ")
		if k := keyNames[press]; k != "" {
			press = k
		}
	default:
		return fmt.Errorf("no step %q", line)
	}
	re, err := regexp.Compile(rest)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(patience)
	for n := 0; time.Now().Before(deadline); n++ {
		if at := re.FindStringIndex(s.text()[s.from:]); at != nil {
			s.from += at[1]
			return nil
		}
		// The dialog ignores keys for a moment after it came up; a person would press again, too.
		if press != "" && n%20 == 0 {
			if _, err := io.WriteString(keys, press); err != nil {
				return err
			}
		}
		time.Sleep(20 * time.Millisecond) // a person looks
	}
	return fmt.Errorf("waited %s: %s", patience, line)
}

func openTerminal() (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(control.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
	}
	if err == nil {
		terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = control.Close() // the first failure is told
	}
	return control, terminal, err
}
