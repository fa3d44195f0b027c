package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/creachadair/jrpc2/channel"

	"centurion/server/rpc"
)

// maxWaiting is how many bytes may wait for an editor before nothing more is told. Answers and asks, which are few, do not wait for room.
const maxWaiting = 4 << 20

// queue is a channel whose Send never waits for the other side: the server holds its lock meanwhile, and could not even see that an editor
// has left that reads nothing.
type queue struct {
	channel.Channel
	out io.Closer

	mu      sync.Mutex // protects the fields below
	waiting [][]byte
	size    int
	closed  bool
	changed chan struct{}            // closed when one of the above has changed
	answers map[string]chan struct{} // by the id of a request: closed when its answer waits to be written
}

func newQueue(in io.Reader, out io.WriteCloser) *queue {
	return &queue{Channel: rpc.NewLines(in, keepOpen{out}, maxLine), out: out, changed: make(chan struct{}), answers: map[string]chan struct{}{}}
}

// keepOpen is closed by the queue when all is written.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// change changes the queue, and wakes who waits for that.
func (q *queue) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	close(q.changed)
	q.changed = make(chan struct{})
}

// Send puts a message at the end.
func (q *queue) Send(msg []byte) error {
	err := io.ErrClosedPipe
	q.change(func() {
		if q.closed {
			return
		}
		err, q.waiting, q.size = nil, append(q.waiting, msg), q.size+len(msg)
		var head struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if len(q.answers) == 0 || json.Unmarshal(msg, &head) != nil || head.Method != "" {
			return
		}
		if sent := q.answers[string(head.ID)]; sent != nil {
			close(sent)
			delete(q.answers, string(head.ID))
		}
	})
	return err
}

// after is closed when the answer to a request is before what is sent next.
func (q *queue) after(id string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answers[id] = make(chan struct{})
	return q.answers[id]
}

// room waits until not too much waits to be read.
func (q *queue) room(ctx context.Context) error {
	for {
		q.mu.Lock()
		full, changed := q.size > maxWaiting && !q.closed, q.changed
		q.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// write writes what is sent, until the queue is closed and empty or the editor has gone.
func (q *queue) write() error {
	for {
		q.mu.Lock()
		next, closed, changed := q.waiting, q.closed, q.changed
		q.waiting = nil
		q.mu.Unlock()
		for _, msg := range next {
			err := q.Channel.Send(msg)
			q.change(func() { q.size -= len(msg) })
			if err != nil {
				return errors.Join(err, q.Close(), q.out.Close())
			}
		}
		switch {
		case len(next) > 0:
		case closed:
			return q.out.Close()
		default:
			<-changed
		}
	}
}

// Close ends reading. What was sent is still written.
func (q *queue) Close() error {
	q.change(func() { q.closed = true })
	return q.Channel.Close()
}
