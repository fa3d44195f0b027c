package worktree

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"centurion/guard"
)

// Whoever needs one checkout waits for those that only look whether it is free, and not for somebody who works there.
func TestSeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pool
		looks := p.look("w1")
		if p.look("w1") != nil {
			t.Error("two look at one checkout at the same time")
		}
		type answer struct {
			s   *seat
			err error
		}
		ask := func(ctx context.Context) chan answer {
			c := make(chan answer, 1)
			go func() {
				s, err := p.await(ctx, "w1")
				c <- answer{s, err}
			}()
			synctest.Wait()
			return c
		}
		first := ask(t.Context())
		select {
		case a := <-first:
			t.Fatalf("it did not wait: %+v", a)
		default:
		}
		p.leave(looks)
		a := <-first
		if a.s == nil || a.err != nil {
			t.Fatalf("after the other has left: %+v", a)
		}
		p.leave(looks) // long left: nobody else's seat goes with it
		if p.look("w1") != nil {
			t.Error("a seat was left by somebody else")
		}
		second := ask(t.Context())
		p.take(a.s)
		if got := <-second; got.s != nil || got.err != nil {
			t.Errorf("somebody works there: %+v", got)
		}
		if got := <-ask(t.Context()); got.s != nil || got.err != nil {
			t.Errorf("somebody works there: %+v", got)
		}
		p.leave(a.s)
		again := p.look("w1")
		ctx, cancel := context.WithCancelCause(t.Context())
		third := ask(ctx)
		tired := errors.New("tired")
		cancel(tired)
		if got := <-third; got.s != nil || !errors.Is(got.err, tired) {
			t.Errorf("cancelled: %+v", got)
		}
		p.leave(again)
	})
}

// A host that goes on opens the checkouts of before while its other tasks look for free ones.
func TestReopenAmongLookers(t *testing.T) {
	x := newRig(t, map[string]string{"a.txt": "one\n"})
	at := x.take("m/T1", x.head()).Where()
	next := x.open()
	name := next.names()[0]
	ctx, stop := context.WithCancel(t.Context())
	var g guard.Group
	g.Go("look", func() error {
		for ctx.Err() == nil {
			if s := next.pool.look(name); s != nil {
				_, _ = next.readRecord(name) // as Take does with each
				next.pool.leave(s)
			}
		}
		return nil
	})
	for range 200 {
		c, err := next.Reopen(t.Context(), at)
		if err != nil {
			t.Error(err)
			break
		}
		next.pool.leave(c.seat)
	}
	stop()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
