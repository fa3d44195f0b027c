package worktree

import (
	"context"
	"sync"
)

// pool tracks which checkouts this host uses. All other state of them is on disk.
type pool struct {
	mu    sync.Mutex
	seats map[string]*seat // by the checkout's name
}

// seat is a hold on a checkout. A search for a free checkout holds each briefly, and is worth waiting for; its user holds one until it
// is released.
type seat struct {
	name    string
	settled chan struct{} // closed when it is known whether the holder stays
	taken   bool          // the holder stays
	left    bool
}

// look holds a checkout while its caller examines it. It returns nil if another caller holds it, even briefly.
func (p *pool) look(name string) *seat {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seats[name] != nil {
		return nil
	}
	if p.seats == nil {
		p.seats = map[string]*seat{}
	}
	s := &seat{name: name, settled: make(chan struct{})}
	p.seats[name] = s
	return s
}

// await is look for a caller that needs this particular checkout: it waits for brief holders. It returns nil if the checkout is in use.
func (p *pool) await(ctx context.Context, name string) (*seat, error) {
	for {
		if s := p.look(name); s != nil {
			return s, nil
		}
		p.mu.Lock()
		other := p.seats[name]
		taken := other != nil && other.taken
		p.mu.Unlock()
		switch {
		case taken:
			return nil, nil
		case other == nil: // left meanwhile
			continue
		}
		select {
		case <-other.settled:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take makes the holder stay, until leave.
func (p *pool) take(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.taken && !s.left {
		s.taken = true
		close(s.settled)
	}
}

// leave releases the seat. It does nothing if it was released already.
func (p *pool) leave(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.left {
		return
	}
	s.left = true
	delete(p.seats, s.name)
	if !s.taken {
		close(s.settled)
	}
}
