// Package peer speaks with a process, a message a line. It returns from sending although the process reads nothing, and limits what it
// takes from it. It starts no process, and knows no protocol.
package peer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
)

const (
	// MaxMessage is the size of the largest message, in bytes: it is in memory at once.
	MaxMessage = 64 << 20
	// writeLimit is how long a process may leave its input unread. After that it is taken for dead.
	writeLimit = 10 * time.Second
	// lull is how long a process whose input is closed may take to end. Its end says more.
	lull = time.Second
)

// The reasons for which [Lines] close by themselves, beside [io.EOF], which is an end without one.
var (
	ErrDeaf    = errors.New("it does not take what it is sent")
	ErrTooLong = fmt.Errorf("it sent a message of more than %s", centurion.Bytes(MaxMessage))
)

// Process is a started process. Read is its output and Write its input. Close closes both, and unblocks a Read or Write under way.
type Process interface {
	io.ReadWriteCloser
	// Wait returns when the process has ended, soon after Kill at the latest. It is called once. Its error says how it ended, and may
	// have the last lines of its standard error.
	Wait() error
	// Kill ends the process and its children. It may be called more than once.
	Kill()
}

// Lines are the two streams of a process.
type Lines struct {
	Out    chan<- []byte   // takes messages, each with its line break
	Done   <-chan struct{} // closed at the end
	rwc    io.ReadWriteCloser
	in     *bufio.Reader
	done   chan struct{}
	once   sync.Once
	last   func()
	reason error // set before done is closed
}

// New begins to write to rwc what it gets by Out, which has room for some messages, until it is closed. last is called once, before Done is
// closed; it may be nil.
func New(rwc io.ReadWriteCloser, group *guard.Group, room int, last func()) *Lines {
	out, done := make(chan []byte, room), make(chan struct{})
	l := &Lines{Out: out, Done: done, rwc: rwc, in: bufio.NewReaderSize(rwc, 64<<10), done: done, last: last}
	group.Go("write to a process", func() error {
		for {
			select {
			case <-done:
				return nil
			case line := <-out:
				late := time.AfterFunc(writeLimit, func() { l.Close(ErrDeaf) })
				_, err := rwc.Write(line)
				late.Stop()
				if err != nil {
					defer time.AfterFunc(lull, func() { l.Close(io.EOF) }).Stop()
					<-done
					return nil
				}
			}
		}
	})
	return l
}

// Next returns the next line that is not empty. Its error is that of [Lines.Reason].
func (l *Lines) Next() ([]byte, error) {
	line, err := ReadLine(l.in, MaxMessage)
	if err != nil {
		l.Close(err)
		return nil, l.reason
	}
	return line, nil
}

// ReadLine returns the next line that is not empty, without white space around it. One of more than most bytes is [ErrTooLong], and a line
// that does not end is none.
func ReadLine(in *bufio.Reader, most int) ([]byte, error) {
	for {
		var line []byte
		for more := true; more; {
			part, err := in.ReadSlice('\n')
			line, more = append(line, part...), errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !more {
				return nil, err
			}
			if len(line) > most {
				return nil, ErrTooLong
			}
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

// Reason returns why it was closed, or nil before.
func (l *Lines) Reason() error {
	if !guard.Closed(l.done) {
		return nil
	}
	return l.reason
}

// Close closes both streams for a reason, which is not nil; only the first counts.
func (l *Lines) Close(reason error) {
	l.once.Do(func() {
		l.reason = reason
		if l.last != nil {
			l.last()
		}
		close(l.done)
		_ = l.rwc.Close() // the process is waited for
	})
}

// Rate counts messages. The zero Rate of some Max is ready to use.
type Rate struct {
	Max   int // in a second
	mu    sync.Mutex
	since time.Time
	n     int
}

// Hit counts n messages. It returns an error when there are too many.
func (r *Rate) Hit(n int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) >= time.Second {
		r.since, r.n = now, 0
	}
	if r.n += n; r.n > r.Max {
		return fmt.Errorf("it sent more than %s in a second", centurion.Count(r.Max, "message"))
	}
	return nil
}
