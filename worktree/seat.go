package worktree

import (
	"context"
	"sync"
)

// pool tells which checkouts of the home somebody of this host has. Everything else about them is on the disk.
type pool struct {
	mu    sync.Mutex
	seats map[string]*seat // by the checkout's name
}

// seat is a hold on a checkout. Whoever looks for a free one holds each for a moment, and who works in one holds it until it is
// given back: the first is worth waiting for.
type seat struct {
	name    string
	settled chan struct{} // closed when it is known whether its holder stays
	taken   bool          // its holder stays
	left    bool
}

// look holds the checkout of that name while its caller looks at it. It returns nil if somebody has it, for however short.
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

// await is look for a caller that needs this checkout and no other: it waits until others have looked. It returns nil if
// somebody works there.
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

// take says that the seat's holder stays, until leave.
func (p *pool) take(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.taken && !s.left {
		s.taken = true
		close(s.settled)
	}
}

// leave gives the seat up. Once it is given up, that does nothing.
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
