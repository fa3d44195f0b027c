package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

const (
	// maxMessage is the size of a server's largest message, in bytes: it is in memory at once. The text of an answer is cut earlier.
	maxMessage = 64 << 20
	// writeLimit is how long a server may leave its input unread. After that it is taken for dead.
	writeLimit = 10 * time.Second
	// maxRate is how many messages that are no answers a server may send in a second.
	maxRate = 2000
	// maxLine limits what is told of a server's own words, in bytes.
	maxLine = 1000
)

// lines is the connection with a server over its standard streams, a JSON message a line. Other than the SDK's, it returns from Write
// although the server reads nothing, skips what is no message, and ends a flood, which the SDK would queue without a limit.
type lines struct {
	rwc   io.ReadWriteCloser
	in    *bufio.Reader
	out   chan []byte
	done  chan struct{}
	once  sync.Once
	end   error // why done is closed
	flood flood
	skip  func(line string) // gets a line that is no message
}

// newLines begins to write to rwc, until it is closed.
func newLines(rwc io.ReadWriteCloser, group *guard.Group, skip func(string)) *lines {
	l := &lines{rwc: rwc, in: bufio.NewReaderSize(rwc, 64<<10), out: make(chan []byte, 64), done: make(chan struct{}), skip: skip}
	group.Go("write to an MCP server", func() error {
		for {
			select {
			case <-l.done:
				return nil
			case line := <-l.out:
				late := time.AfterFunc(writeLimit, func() { l.shut(errDeaf) })
				if _, err := l.rwc.Write(line); err != nil {
					l.shut(io.EOF)
				}
				late.Stop()
			}
		}
	})
	return l
}

// Connect returns l: it serves one session.
func (l *lines) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is that of HTTP sessions only.
func (l *lines) SessionID() string { return "" }

// Read returns the next message.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		var line []byte
		for more := true; more; {
			part, err := l.in.ReadSlice('\n')
			line, more = append(line, part...), errors.Is(err, bufio.ErrBufferFull)
			if err != nil && !more {
				l.shut(err)
				return nil, l.end
			}
			if len(line) > maxMessage {
				return nil, errTooLong
			}
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		msg, wrong := jsonrpc.DecodeMessage(line)
		if _, ok := msg.(*jsonrpc.Response); ok { // there are no more of them than we ask for; the SDK drops the others
			return msg, nil
		}
		if err := l.flood.hit(1); err != nil || wrong == nil {
			return msg, err
		}
		l.skip(text.Clean(centurion.Clip(string(line), maxLine))) // many servers log to their standard output
	}
}

// Write hands msg to the writer. It does not wait until the server has read it.
func (l *lines) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case l.out <- append(line, '\n'):
		return nil
	case <-l.done:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close closes both streams.
func (l *lines) Close() error {
	l.shut(io.EOF)
	return nil
}

// shut closes both streams because of end.
func (l *lines) shut(end error) {
	l.once.Do(func() {
		l.end = end
		close(l.done)
		_ = l.rwc.Close() // the process is waited for
	})
}

var (
	errDeaf    = errors.New("it does not take what it is sent")
	errTooLong = fmt.Errorf("it sent a message of more than %s", centurion.Bytes(maxMessage))
)

// flood counts the messages of a server.
type flood struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

// hit counts n messages. It returns an error when there are too many in a second.
func (f *flood) hit(n int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.since) >= time.Second {
		f.since, f.n = now, 0
	}
	if f.n += n; f.n > maxRate {
		return fmt.Errorf("it sent more than %s in a second", centurion.Count(maxRate, "message"))
	}
	return nil
}
