package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/muesli/cancelreader"
	"golang.org/x/term"

	"centurion"
	"centurion/guard"
)

// secret reads a line without echo from a terminal, or from a pipe. On a terminal Ctrl-C, Ctrl-D and the end of ctx end it.
func (c *cli) secret(ctx context.Context, prompt string) (string, error) {
	const hint = "type or paste the key, or pipe it: printenv MY_KEY | centurion auth login PROVIDER"
	f, ok := c.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "no key came on standard input", Err: err, Hint: hint}
		}
		return line, nil
	}
	in, err := cancelreader.NewReader(f)
	if err != nil {
		return "", &centurion.Error{Op: "read key", Kind: centurion.KindInternal, Err: err}
	}
	defer in.Close()
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", &centurion.Error{Op: "read key", Kind: centurion.KindInternal, Err: err}
	}
	stop := guard.After(ctx, "end of input", func() { in.Cancel() })
	keys := &passwordReader{Reader: in}
	line, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, c.err}, "").ReadPassword(prompt)
	stop()
	if rerr := term.Restore(int(f.Fd()), before); rerr != nil {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		fmt.Fprintln(c.err) // the prompt's line
	}
	line = strings.TrimSpace(line)
	switch {
	case keys.end == ctrlC || ctx.Err() != nil:
		return "", &centurion.Error{Kind: centurion.KindInterrupted, Msg: "interrupted: no key was stored", Hint: hint}
	case err == nil && line != "":
		return line, nil
	case errors.Is(err, io.EOF):
		err = nil
	}
	return "", &centurion.Error{Kind: centurion.KindUsage, Msg: "no key was given", Err: err, Hint: hint}
}

const ctrlC, ctrlD = 0x03, 0x04

// passwordReader reads the keys of a person at a terminal in raw mode, up to the one that ends the input.
type passwordReader struct {
	io.Reader
	end byte
}

func (t *passwordReader) Read(b []byte) (int, error) {
	n, err := t.Reader.Read(b)
	if i := bytes.IndexAny(b[:n], string([]byte{ctrlC, ctrlD})); i >= 0 {
		t.end = b[i]
		return 0, io.EOF
	}
	return n, err
}

// outlet is a standard output that is no terminal. When its reader is gone, as in `centurion run GOAL | head`, it interrupts the
// program: no one sees the work and its cost any more.
type outlet struct {
	to        io.Writer
	interrupt func()
	gone      atomic.Bool // its reader is gone
}

// Write writes to the reader. Its first failure without a reader interrupts the program.
func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if errors.Is(err, syscall.EPIPE) && !o.gone.Swap(true) {
		o.interrupt()
	}
	return n, err
}

// standardOutput returns the program's output. Without a reader, writes fail with an error; otherwise the system would kill the program
// in the middle of its work. The signal is caught, not ignored: children would inherit that.
func standardOutput(f *os.File, interrupt func()) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f // a hangup has its own signal
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return &outlet{to: f, interrupt: interrupt}
}

// outputClosed reports whether the reader of standard output is gone.
func (c *cli) outputClosed() bool {
	o, ok := c.out.(*outlet)
	return ok && o.gone.Load()
}

// isOutputClosed reports whether an error only says that the output is closed.
func (c *cli) isOutputClosed(err error) bool {
	return c.outputClosed() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, centurion.ErrShutdown))
}

// sameOutput reports whether standard output and standard error go to the same place, where nothing should appear twice.
func (c *cli) sameOutput() bool {
	to := c.out
	if o, ok := to.(*outlet); ok {
		to = o.to
	}
	out, isFile := to.(*os.File)
	errs, areFiles := c.err.(*os.File)
	if !isFile || !areFiles {
		return false
	}
	a, aerr := out.Stat()
	b, berr := errs.Stat()
	return aerr == nil && berr == nil && os.SameFile(a, b)
}
