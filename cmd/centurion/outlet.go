package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"centurion"
)

// outlet is standard output that goes somewhere else than to a terminal. When its reader has gone away, as that of
// `centurion run GOAL | head` has, nobody sees any more what is done and what it costs: it interrupts the program.
type outlet struct {
	to        io.Writer
	interrupt func()
	gone      atomic.Bool // its reader has gone away
}

// Write writes to the reader. Its first failure because there is none interrupts the program.
func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if errors.Is(err, syscall.EPIPE) && !o.gone.Swap(true) {
		o.interrupt()
	}
	return n, err
}

// standardOutput returns where the program writes. What nobody reads is an error of the write from then on; without that
// the system would end the program in the middle of its work, with its missions as if it had crashed. The signal is taken
// and dropped, not ignored: children would inherit that.
func standardOutput(f *os.File, interrupt func()) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return f // which is hung up with a signal of its own
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return &outlet{to: f, interrupt: interrupt}
}

// unread reports whether the reader of standard output has gone away.
func (c *cli) unread() bool {
	o, ok := c.out.(*outlet)
	return ok && o.gone.Load()
}

// hungUp reports whether an error is only that nobody reads the output any more, which there is nobody to be told of.
func (c *cli) hungUp(err error) bool {
	return c.unread() && (errors.Is(err, syscall.EPIPE) || errors.Is(err, centurion.ErrShutdown))
}

// together reports whether standard output and standard error go to the same place, where nothing should stand twice.
func (c *cli) together() bool {
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
