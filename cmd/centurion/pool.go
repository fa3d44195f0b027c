package main

import (
	"context"
	"maps"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
)

// How long a thing of a pool stays open that nobody uses, and how often that is looked at.
const (
	idleTime  = 10 * time.Minute
	idleCheck = time.Minute
)

// pool keeps what is open, by name. A thing is opened at its first use, once for all who want it, and closed when nobody has used it for
// [idleTime].
type pool[T any] struct {
	open  func(name string) (T, error)
	close func(T) bool // closes it, unless it has work of its own; reports whether it did

	mu    sync.Mutex // protects the fields below
	ended bool
	all   map[string]*pooled[T]
}

// pooled is one thing of a pool.
type pooled[T any] struct {
	ready chan struct{} // closed when it is open, or could not be opened; value and err are set before
	value T
	err   error

	users int       // protected by the pool, like the next one
	since time.Time // when it had work last
}

var errClosed = &centurion.Error{Kind: centurion.KindNetwork, Msg: "the server is about to end"}

// use returns the thing with a name, until done is called. One that could not be opened is opened anew by the next use.
func (p *pool[T]) use(ctx context.Context, name string) (v T, done func(), err error) {
	p.mu.Lock()
	one := p.all[name]
	first := one == nil
	if p.ended {
		p.mu.Unlock()
		return v, nil, errClosed
	}
	if first {
		one = p.add(name)
	}
	one.users++
	p.mu.Unlock()
	if first {
		p.fill(name, one)
	}
	done = sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		one.users--
		one.since = time.Now()
	})
	select {
	case <-one.ready:
		err = one.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		done()
		return v, nil, err
	}
	return one.value, done, nil
}

// add adds a thing that is not open yet. The caller holds the lock.
func (p *pool[T]) add(name string) *pooled[T] {
	if p.all == nil {
		p.all = map[string]*pooled[T]{}
	}
	p.all[name] = &pooled[T]{ready: make(chan struct{}), since: time.Now()}
	return p.all[name]
}

// fill opens a thing of the pool.
func (p *pool[T]) fill(name string, one *pooled[T]) {
	one.err = guard.Call("open "+name, func() (err error) {
		one.value, err = p.open(name)
		return err
	})
	if one.err != nil {
		p.mu.Lock()
		delete(p.all, name)
		p.mu.Unlock()
	}
	close(one.ready)
}

// opened returns what is open now.
func (p *pool[T]) opened() (all []T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		if guard.Closed(one.ready) {
			all = append(all, one.value)
		}
	}
	return all
}

// end refuses further uses, and returns all that is open or was about to be.
func (p *pool[T]) end() (all []T) {
	p.mu.Lock()
	p.ended = true
	left := maps.Clone(p.all)
	p.mu.Unlock()
	for _, one := range left {
		if <-one.ready; one.err == nil {
			all = append(all, one.value)
		}
	}
	return all
}

// tidy closes what is idle until ctx ends.
func (p *pool[T]) tidy(ctx context.Context) {
	for guard.Sleep(ctx, idleCheck) == nil {
		p.mu.Lock()
		all := maps.Clone(p.all)
		p.mu.Unlock()
		for name, one := range all {
			p.closeIdle(name, one)
		}
	}
}

// closeIdle closes a thing that nobody has used for long. Who wants it meanwhile gets it when it was closed and opened again.
func (p *pool[T]) closeIdle(name string, one *pooled[T]) {
	p.mu.Lock()
	if one.users > 0 || p.ended || time.Since(one.since) < idleTime || !guard.Closed(one.ready) || one.err != nil {
		p.mu.Unlock()
		return
	}
	next := p.add(name)
	p.mu.Unlock()
	closed := p.close(one.value)
	p.mu.Lock()
	switch {
	case !closed:
		next.value = one.value
	case next.users > 0:
		p.mu.Unlock()
		p.fill(name, next)
		return
	default:
		next.err = errClosed
		delete(p.all, name)
	}
	close(next.ready)
	p.mu.Unlock()
}
