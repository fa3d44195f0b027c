package rpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/creachadair/jrpc2"

	"centurion"
)

// MaxLine limits a message of the client, in bytes: enough for several fully escaped prompts of the maximum size (256 KB).
const MaxLine = 4 << 20

// Lines transmits messages as lines of JSON. A line that is too long is answered with an error and skipped; empty lines are skipped. It
// is a [channel.Channel].
type Lines struct {
	in   *bufio.Reader
	wake func() error // ends a read; nil if not available
	max  int

	mu  sync.Mutex // errors for long lines are written concurrently to the server's answers
	out io.WriteCloser
}

// NewLines returns messages of at most max bytes. Its Close closes out, and in if it has a Close, which must wake its reader.
func NewLines(in io.Reader, out io.WriteCloser, max int) *Lines {
	l := &Lines{in: bufio.NewReaderSize(in, 64<<10), max: max, out: out}
	if c, ok := in.(io.Closer); ok {
		l.wake = c.Close
	}
	return l
}

// Send writes a message.
func (l *Lines) Send(msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.IndexByte(msg, '\n') >= 0 {
		var flat bytes.Buffer
		if err := json.Compact(&flat, msg); err != nil {
			return err
		}
		msg = flat.Bytes()
	}
	_, err := l.out.Write(append(bytes.Clone(msg), '\n'))
	return err
}

// Recv reads the next message. The last line of the input counts with or without a line break.
func (l *Lines) Recv() ([]byte, error) {
	for {
		line, long, err := l.line()
		if long {
			if serr := l.Refuse(jrpc2.InvalidRequest, "a message is longer than "+centurion.Bytes(int64(l.max))); serr != nil {
				return nil, serr
			}
		} else if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// line reads one line without its end. long reports that it was too long and was dropped.
func (l *Lines) line() (line []byte, long bool, err error) {
	for {
		chunk, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(bytes.TrimSuffix(chunk, []byte("\n"))) > l.max; long {
			line = nil
		} else {
			line = append(line, chunk...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimSuffix(line, []byte("\n")), long, err
		}
	}
}

// Refuse answers a line whose id is unknown.
func (l *Lines) Refuse(code jrpc2.Code, why string) error {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		return err
	}
	return l.Send(b)
}

// Close closes the output and ends a read.
func (l *Lines) Close() error {
	err := l.out.Close()
	if l.wake != nil {
		err = errors.Join(err, l.wake())
	}
	return err
}
