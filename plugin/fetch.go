package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

const (
	maxFetches  = 16               // requests of one process at once
	maxUnread   = 4                // parts of an answer that the plugin has not read yet
	maxPart     = 256 << 10        // bytes
	unreadLimit = 30 * time.Second // for a part to be read. After that its request ends
)

// fetch is a request that a plugin makes of [Options.Serve], or what it says of one.
type fetch struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"` // with the query
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Read    int               `json:"read"`   // so many more parts of the answer were read
	Cancel  bool              `json:"cancel"` // nobody wants the answer any more
}

// fetched is a part of the answer: the first has the status.
type fetched struct {
	N       int               `json:"n"`
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
	More    bool              `json:"more,omitempty"`
	Error   string            `json:"error,omitempty"` // there is no answer, or no more of it
}

// fetches are the requests of a process that have no whole answer yet.
type fetches struct {
	ctx  context.Context // until the process ends
	end  context.CancelFunc
	mu   sync.Mutex
	open map[int]*fetching
}

// fetch takes what a process says of its requests.
func (c *car) fetch(a *answer) error {
	q, f := &c.fetches, a.Fetch
	q.mu.Lock()
	defer q.mu.Unlock()
	one := q.open[a.N]
	switch {
	case f.Cancel || f.Read > 0:
		if one != nil && f.Cancel {
			one.end()
		}
		for range min(f.Read, maxUnread) {
			if one != nil {
				select {
				case <-one.unread:
				default:
				}
			}
		}
		return nil // one that has ended meanwhile is no mistake
	case a.N <= 0 || one != nil:
		return c.skip(fmt.Appendf(nil, "a request with the number %d", a.N))
	case len(q.open) >= maxFetches:
		_, _ = c.send(message{Do: "fetched", Params: fetched{N: a.N, Status: http.StatusTooManyRequests, Body: "there are " + centurion.Count(maxFetches, "request") + " without an answer"}})
		return nil
	}
	one = &fetching{c: c, n: a.N, unread: make(chan struct{}, maxUnread), header: http.Header{}}
	one.ctx, one.end = context.WithCancel(q.ctx)
	q.open[a.N] = one
	c.group.Go("request of a plugin", func() error {
		one.serve(f)
		return nil
	})
	return nil
}

// fetching is a request that is being answered. The plugin gets the answer in parts, and no more of them than it reads.
type fetching struct {
	c      *car
	n      int
	ctx    context.Context
	end    context.CancelFunc
	unread chan struct{} // has one for each part that was not read

	header http.Header
	status int // 0 before the answer has begun
	told   bool
	body   bytes.Buffer
	err    error // why no more of it is sent
}

var _ http.ResponseWriter = (*fetching)(nil)

func (f *fetching) serve(of *fetch) {
	r, err := http.NewRequestWithContext(f.ctx, of.Method, "http://"+ServerHost+"/"+strings.TrimPrefix(of.Path, "/"), strings.NewReader(of.Body))
	if err == nil {
		for name, value := range of.Headers {
			r.Header.Set(name, value)
		}
		err = guard.Call("request of a plugin", func() error {
			f.c.h.o.Serve.ServeHTTP(f, r)
			return nil
		})
	}
	if err = errors.Join(err, f.err); err == nil {
		f.part(f.body.Len(), false)
		err = f.err
	}
	if err != nil {
		_, _ = f.c.send(message{Do: "fetched", Params: fetched{N: f.n, Error: text.Clean(centurion.Clip(err.Error(), 500))}})
	}
	f.end()
	q := &f.c.fetches
	q.mu.Lock()
	delete(q.open, f.n)
	q.mu.Unlock()
}

func (f *fetching) Header() http.Header { return f.header }

func (f *fetching) WriteHeader(status int) {
	if f.status == 0 {
		f.status = status
	}
}

// Write waits while the plugin leaves too much unread.
func (f *fetching) Write(b []byte) (int, error) {
	f.WriteHeader(http.StatusOK)
	f.body.Write(b)
	for f.body.Len() > maxPart && f.err == nil {
		f.part(maxPart, true)
	}
	return len(b), f.err
}

func (f *fetching) Flush() {
	f.WriteHeader(http.StatusOK)
	f.part(f.body.Len(), true)
}

// part sends the first n bytes of what was written; a letter that is not whole yet waits for its rest.
func (f *fetching) part(n int, more bool) {
	if f.err != nil {
		return
	}
	if more {
		if n = len(text.Whole(string(f.body.Bytes()[:n]))); n == 0 && f.told {
			return
		}
	}
	late := time.NewTimer(unreadLimit)
	defer late.Stop()
	select {
	case f.unread <- struct{}{}:
	case <-f.ctx.Done():
		f.err = context.Cause(f.ctx)
		return
	case <-late.C:
		f.err = fmt.Errorf("the answer was not read for %s", text.Took(unreadLimit))
		return
	}
	p := fetched{N: f.n, Body: string(f.body.Next(n)), More: more}
	if !f.told {
		f.told, p.Headers = true, map[string]string{}
		f.WriteHeader(http.StatusOK)
		for name := range f.header {
			p.Headers[name] = f.header.Get(name)
		}
		p.Status = f.status
	}
	if sent, err := f.c.send(message{Do: "fetched", Params: p}); !sent {
		f.err = errors.Join(errEnded, err)
	}
}
