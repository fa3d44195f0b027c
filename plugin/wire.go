package plugin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
)

const (
	// maxLine is the size of a plugin's largest message, in bytes. The longest answer is cut later; this much is held in memory.
	maxLine = 64 << 20
	// writeLimit is how long a process may leave its input unread. After that it is taken for dead.
	writeLimit = 10 * time.Second
	// maxRate is how many messages a process may send in a second. What a tool shows of its progress comes 20 times a second at most.
	maxRate = 5000
	// maxNonsense is how many lines that are no message are skipped; a program may greet on its standard output.
	maxNonsense = 100
	queued      = 256
)

// Process is a started process. Reading it reads its standard output, writing goes to its standard input, and Close closes both and
// unblocks a Read and a Write under way.
type Process interface {
	io.ReadWriteCloser
	// Wait returns when the process has ended, soon after Kill at the latest. It is called once. Its error says how it ended and may
	// have the last lines of its standard error.
	Wait() error
	// Kill ends the process with its children. It may be called more than once.
	Kill()
}

// message is what the host sends.
type message struct {
	ID     int    `json:"id,omitempty"`
	Do     string `json:"do"`
	Plugin string `json:"plugin,omitempty"`
	Params any    `json:"params,omitempty"`
}

// answer is what a process sends: the end of a request with Result or Error, a sign of its progress, a question, or, without an id, a
// fault that belongs to no request.
type answer struct {
	ID       int             `json:"id"`
	Result   json.RawMessage `json:"result"`
	Error    *string         `json:"error"`
	Kind     string          `json:"kind"` // "arguments": the call was refused before it began
	Progress *progress       `json:"progress"`
	Ask      json.RawMessage `json:"ask"`
	N        int             `json:"n"` // of a question, unique within its request
	Fault    string          `json:"fault"`
	Plugin   string          `json:"plugin"`
}

type progress struct {
	Title    string          `json:"title"`
	Metadata json.RawMessage `json:"metadata"`
}

// parse reads one line of a process.
func parse(line []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	kinds := 0
	for _, has := range []bool{a.Result != nil, a.Error != nil, a.Progress != nil, a.Ask != nil, a.Fault != ""} {
		if has {
			kinds++
		}
	}
	if kinds != 1 || (a.ID <= 0) != (a.Fault != "") {
		return a, errors.New("it is neither an answer nor a fault")
	}
	return a, nil
}

// lines writes messages to a process and reads its answers. Writing does not wait until the process has read.
type lines struct {
	rwc    io.ReadWriteCloser
	in     *bufio.Reader
	out    chan []byte
	done   chan struct{}
	once   sync.Once
	since  time.Time // of the second that is counted
	n      int       // messages in it
	skips  int
	last   func() // called once, before done is closed
	reason error  // why the host ended it; set before done is closed
}

func newLines(rwc io.ReadWriteCloser, group *guard.Group, last func()) *lines {
	l := &lines{rwc: rwc, last: last, in: bufio.NewReaderSize(rwc, 64<<10), out: make(chan []byte, queued), done: make(chan struct{})}
	group.Go("write to a plugin", func() error {
		for {
			select {
			case <-l.done:
				return nil
			case line := <-l.out:
				late := time.AfterFunc(writeLimit, func() { l.close(errors.New("it does not read its input")) })
				_, err := l.rwc.Write(line)
				late.Stop()
				if err != nil {
					return nil // the reader sees the end
				}
			}
		}
	})
	return l
}

// send queues a message. It returns false after the end, and when the process leaves more unread than fits; nothing was sent then.
func (l *lines) send(m message) (bool, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return false, err
	}
	if guard.Closed(l.done) {
		return false, nil
	}
	select {
	case l.out <- append(line, '\n'):
		return true, nil
	default:
		return false, nil
	}
}

// next returns the next answer. Lines that are none are skipped.
func (l *lines) next() (answer, error) {
	for {
		line, err := l.line()
		if err != nil {
			return answer{}, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if now := time.Now(); now.Sub(l.since) >= time.Second {
			l.since, l.n = now, 0
		}
		if l.n++; l.n > maxRate {
			return answer{}, fmt.Errorf("it sent more than %s in a second", centurion.Count(maxRate, "message"))
		}
		if a, err := parse(line); err == nil {
			return a, nil
		}
		if err := l.skip(line); err != nil {
			return answer{}, err
		}
	}
}

// skip counts a line that means nothing, and returns an error when there were too many.
func (l *lines) skip(line []byte) error {
	if l.skips++; l.skips > maxNonsense {
		return fmt.Errorf("it sent more than %s of nonsense, such as %.100q", centurion.Count(maxNonsense, "line"), line)
	}
	return nil
}

func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		if line = append(line, part...); err == nil {
			return line, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("it sent a message of more than %s", centurion.Bytes(maxLine))
		}
	}
}

// close ends it for a reason; only the first counts.
func (l *lines) close(reason error) {
	l.once.Do(func() {
		l.reason = reason
		l.last()
		close(l.done)
		_ = l.rwc.Close()
	})
}
