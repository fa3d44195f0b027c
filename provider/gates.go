package provider

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
)

const (
	// firstRate is the number of sessions per second that a gate releases after it has opened: fewer than a tenth of the fifty of one
	// host, even with jitter, so that they do not return as a herd.
	firstRate = 3.5
	// steady is how long it stays at that rate: enough for fifty waiting sessions.
	steady = 15 * time.Second
	// freeRate is about the rate at which a gate has no effect any more. In between, the rate grows by one session per second each
	// second; another "too many requests" starts over.
	freeRate = 50
)

// Gates delay all sessions of a model together while its provider says "too many requests". There is one gate for each address,
// provider and model. The zero Gates is ready to use, and is shared by every [Endpoint] of a process.
type Gates struct {
	mu    sync.Mutex
	gates map[gateKey]*Gate
	http  *http.Client
}

type gateKey struct {
	address string // projects may mean different servers by one name
	model   centurion.ModelRef
}

// Of returns the gate of a model at an address, always the same one.
func (g *Gates) Of(address string, m centurion.ModelRef) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := gateKey{address, m}
	gate := g.gates[key]
	if gate == nil {
		if g.gates == nil {
			g.gates = map[gateKey]*Gate{}
		}
		gate = &Gate{}
		g.gates[key] = gate
	}
	return gate
}

// CloseIdleConnections closes the kept connections of the shared HTTP client, if there is one.
func (g *Gates) CloseIdleConnections() {
	g.mu.Lock()
	c := g.http
	g.mu.Unlock()
	if c != nil {
		c.CloseIdleConnections()
	}
}

func (g *Gates) client() *http.Client {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.http == nil {
		g.http = newHTTPClient()
	}
	return g.http
}

// Gate is open until it is closed, and opens by itself. Waiting sessions, and those that come soon after, are released one by one, at a
// rate that begins low and grows, with jitter, instead of as a herd.
type Gate struct {
	mu    sync.Mutex
	until time.Time // closed until then; zero if it never was
	next  time.Time // when the next one is released, if later than now
	times int       // number of closings
}

// ticket is a caller's turn at a gate. It becomes void if the gate is closed again: its holder takes another at its time, so that
// waiters never queue in two rows. The zero ticket is none.
type ticket struct {
	at    time.Time
	times int // the number of closings at its issue
}

// Closed returns for how long the gate stays closed; 0 if it is open.
func (g *Gate) Closed() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(time.Until(g.until), 0)
}

// Close closes the gate until then, unless it is closed for longer already.
func (g *Gate) Close(until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) && until.After(time.Now()) {
		g.until, g.next = until, until
		g.times++
	}
}

// Wait returns when the gate is open and it is this caller's turn, or with ctx's cause.
func (g *Gate) Wait(ctx context.Context) error {
	var turn ticket
	for {
		d, t := g.turn(turn)
		if d <= 0 {
			return nil
		}
		turn = t
		if err := guard.Sleep(ctx, d); err != nil {
			return err
		}
	}
}

// turn returns how long a caller has to wait, and its ticket for the next call.
func (g *Gate) turn(had ticket) (time.Duration, ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if !had.at.IsZero() && had.times == g.times {
		return had.at.Sub(now), had
	}
	if g.until.IsZero() || now.Sub(g.until) > steady+freeRate*time.Second {
		return 0, ticket{now, g.times}
	}
	t := now
	if g.next.After(now) {
		t = g.next
	}
	gap := time.Duration(float64(time.Second) / (firstRate + max(t.Sub(g.until)-steady, 0).Seconds()))
	g.next = t.Add(gap)
	if t.After(now) {
		t = t.Add(rand.N(gap / 5))
	}
	return t.Sub(now), ticket{t, g.times}
}
