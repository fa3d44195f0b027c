// Command centurion hosts coding-agent missions: give it a goal in a project directory, and a Commander plans it, delegates tasks to
// workers, and continues until the work is proven done.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"centurion"
	"centurion/guard"
	"centurion/sandbox"
	"centurion/text"
)

// Version is printed by `centurion version` and recorded in sessions.
const Version = "0.1.0"

// The exit codes. Scripts rely on them.
const (
	exitComplete    = 0
	exitFailed      = 1
	exitUsage       = 2 // wrong usage or configuration
	exitPaused      = 3 // a budget, a full disk or a pause; resumable
	exitBlocked     = 4 // a person has to answer; resumable
	exitCancelled   = 5
	exitInterrupted = 130 // Ctrl-C, or the output is closed; resumable
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == sandbox.HelperCommand {
		os.Exit(sandbox.Helper())
	}
	os.Exit(Main())
}

// Main runs the program with the process's own arguments and streams and returns its exit code.
func Main() int {
	forced, force := context.WithCancel(context.Background())
	defer force()
	ctx, interrupt, stop := interruptible(context.Background(), force, exitFrom(os.Stdin, os.Stdout))
	defer stop()
	_ = sandbox.SealDescriptors() // an older kernel cannot; then children keep what this process inherited
	c := &cli{force: forced, in: os.Stdin, out: standardOutput(os.Stdout, interrupt), err: os.Stderr, env: os.Environ(), interrupt: interrupt}
	return c.run(ctx, os.Args[1:])
}

// exitFrom returns a function that ends the process at once and restores the terminal, which the live view has in raw mode with a
// hidden cursor.
func exitFrom(in, out *os.File) func(code int) {
	before, err := term.GetState(int(in.Fd()))
	return func(code int) {
		if err == nil {
			_ = term.Restore(int(in.Fd()), before) // the process ends either way
			if term.IsTerminal(int(out.Fd())) {
				_, _ = out.WriteString("\x1b[?25h\x1b[?2004l\r\n")
			}
		}
		os.Exit(code)
	}
}

// forceTimeout is how long the program may take to stop after the second signal: agents' commands are killed, and the state of each
// mission is recorded.
const forceTimeout = 3 * time.Second

// interruptible returns a context that ends with [centurion.ErrShutdown] at the first signal. The second signal calls force. The
// program exits at once at the third, or [forceTimeout] after the second. interrupt acts like a signal, for a terminal in raw mode,
// which reports Ctrl-C as a key.
func interruptible(parent context.Context, force func(), exit func(int)) (ctx context.Context, interrupt, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	var g guard.Group
	g.Go("signals", func() error {
		handleSignals(signals, done, func() { cancel(centurion.ErrShutdown) }, force, exit)
		return nil
	})
	interrupt = func() {
		select {
		case signals <- os.Interrupt:
		default: // three are waiting already: the process is about to exit
		}
	}
	return ctx, interrupt, func() {
		signal.Stop(signals)
		close(done)
		_ = g.Wait() // it returns nil
		cancel(nil)
	}
}

// handleSignals calls end at the first signal and force at the second. At the third, or forceTimeout after the second, it calls exit, which
// does not return. It returns when done is closed.
func handleSignals(signals <-chan os.Signal, done <-chan struct{}, end, force func(), exit func(code int)) {
	var late <-chan time.Time
	for n := 1; ; n++ {
		select {
		case <-signals:
		case <-late:
			exit(exitInterrupted)
		case <-done:
			return
		}
		switch n {
		case 1:
			end()
		case 2:
			force()
			late = time.After(forceTimeout)
		default:
			exit(exitInterrupted)
		}
	}
}

// cli is the program with its environment, so that tests can run it.
type cli struct {
	in        io.Reader
	out       io.Writer
	err       io.Writer
	env       []string
	interrupt func()          // the effect of Ctrl-C in raw mode
	force     context.Context // ends at the second signal; nil for never
	code      int             // the exit code of a command that succeeded
}

// run executes one command line and returns the exit code. Errors are shown only here.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		if c.isOutputClosed(err) {
			return exitInterrupted
		}
		c.fail(err)
		return exitCode(err)
	}
	return c.code
}

// fail prints what went wrong and why on one line, and what to do next on another.
func (c *cli) fail(err error) {
	fmt.Fprintf(c.err, "centurion: %s\n", oneLine(err.Error()))
	fmt.Fprintf(c.err, "next: %s\n", oneLine(cmp.Or(centurion.HintOf(err), generalHint(err))))
}

// generalHint is the next step for an error that names none.
func generalHint(err error) string {
	switch exitCode(err) {
	case exitUsage:
		return "see: centurion --help"
	case exitInterrupted:
		return "continue with: centurion resume"
	}
	return "see what was found on this machine with: centurion doctor"
}

// oneLine joins the lines of a message, such as joined errors, and makes them safe to show. After a line that ends like a sentence
// there is no separator.
func oneLine(s string) string {
	out := ""
	for _, l := range text.CleanLines(s) {
		switch l = strings.TrimSpace(l); {
		case l == "":
		case out == "":
			out = l
		case strings.ContainsRune(".!?:;,…", []rune(out)[utf8.RuneCountInString(out)-1]):
			out += " " + l
		default:
			out += "; " + l
		}
	}
	return out
}

// exitCode returns an error's exit code.
func exitCode(err error) int {
	switch centurion.KindOf(err) {
	case centurion.KindUsage, centurion.KindConfig, centurion.KindNotFound, centurion.KindConflict, centurion.KindPermission,
		centurion.KindModelNotFound, centurion.KindAuth:
		return exitUsage
	case centurion.KindInterrupted:
		return exitInterrupted
	case centurion.KindCancelled:
		if errors.Is(err, context.Canceled) {
			return exitInterrupted
		}
		return exitCancelled
	case centurion.KindBudget, centurion.KindDisk:
		return exitPaused
	}
	return exitFailed
}

// note prints a message to standard error.
func (c *cli) note(text string) { fmt.Fprintln(c.err, "centurion: "+oneLine(text)) }
