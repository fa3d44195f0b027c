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
	// firstRate is how many sessions a second a gate lets go after it has opened: fewer than a tenth of the fifty of one host,
	// also with the jitter, so that what had to wait does not come back as a herd.
	firstRate = 3.5
	// steady is how long it stays at that: every one of fifty sessions that waited has gone by then.
	steady = 15 * time.Second
	// freeRate is about the rate at which a gate does not count any more. In between, it lets one session a second more go
	// with every second; another "too many requests" begins anew.
	freeRate = 50
)

// Gates hold back every session of a model together while its provider says "too many requests". There is one gate for
// each provider and model. The zero Gates is ready for use, and is shared by every [Endpoint] of a host.
type Gates struct {
	mu    sync.Mutex
	gates map[centurion.ModelRef]*Gate
	http  *http.Client
}

// Of returns the gate of a model; it is the same at every call.
func (g *Gates) Of(m centurion.ModelRef) *Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	gate := g.gates[m]
	if gate == nil {
		if g.gates == nil {
			g.gates = map[centurion.ModelRef]*Gate{}
		}
		gate = &Gate{}
		g.gates[m] = gate
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

// Gate is open until it is closed, and opens by itself. Those that waited, and those that come soon after, are let go one
// by one, at a rate that begins low and grows, with jitter, and not as a herd.
type Gate struct {
	mu    sync.Mutex
	until time.Time // closed until then; zero if it never was
	next  time.Time // when the next one may go, if that is later than now
	times int       // that it was closed
}

// ticket is a caller's turn at a gate. It is void when the gate was closed again meanwhile: who holds it takes another at
// its time, so that those who wait never come in two rows at once. The zero ticket is none.
type ticket struct {
	at    time.Time
	times int // that the gate had been closed by then
}

// Closed returns for how long from now the gate lets nobody go; 0 if it is open.
func (g *Gate) Closed() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(time.Until(g.until), 0)
}

// Close closes the gate until then; an earlier time than it is closed for already changes nothing.
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

// turn returns how long a caller has to wait, and its ticket, which it hands in when it asks again.
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
