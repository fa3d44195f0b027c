package mcp

import (
	"context"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/guard"
	"centurion/guard/peer"
	"centurion/text"
)

const (
	// maxRate is how many messages that are no answers a server may send in a second.
	maxRate = 2000
	// maxLine limits what is told of a server's own words, in bytes.
	maxLine = 1000
)

// lines is the connection with a server over its standard streams, a JSON message a line. Other than the SDK's, it returns from Write
// although the server reads nothing, skips what is no message, and ends a flood, which the SDK would queue without a limit.
type lines struct {
	*peer.Lines
	rate peer.Rate
	skip func(line string) // gets a line that is no message
}

// newLines begins to write to rwc, until it is closed.
func newLines(rwc io.ReadWriteCloser, group *guard.Group, skip func(string)) *lines {
	return &lines{Lines: peer.New(rwc, group, 64, nil), rate: peer.Rate{Max: maxRate}, skip: skip}
}

// Connect returns l: it serves one session.
func (l *lines) Connect(context.Context) (sdk.Connection, error) { return l, nil }

// SessionID is that of HTTP sessions only.
func (l *lines) SessionID() string { return "" }

// Read returns the next message.
func (l *lines) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := l.Next()
		if err != nil {
			return nil, err
		}
		msg, wrong := jsonrpc.DecodeMessage(line)
		if _, ok := msg.(*jsonrpc.Response); ok { // there are no more of them than we ask for; the SDK drops the others
			return msg, nil
		}
		if err := l.rate.Hit(1); err != nil || wrong == nil {
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
	case l.Out <- append(line, '\n'):
		return nil
	case <-l.Done:
		return io.ErrClosedPipe
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close closes both streams.
func (l *lines) Close() error {
	l.Lines.Close(io.EOF)
	return nil
}
