package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion/guard"
)

// poolTest is a pool that tells what it opens and closes.
type poolTest struct {
	pool[string]
	t       *testing.T
	opening time.Duration // of closing, too

	guard sync.Mutex // protects the fields below
	log   []string
	fails map[string]bool
	works map[string]bool
}

func newPoolTest(t *testing.T) *poolTest {
	p := &poolTest{t: t, fails: map[string]bool{}, works: map[string]bool{}}
	p.pool.open = func(name string) (string, error) {
		time.Sleep(p.opening)
		p.guard.Lock()
		defer p.guard.Unlock()
		p.log = append(p.log, "open "+name)
		if p.fails[name] {
			return "", errors.New("no " + name)
		}
		return name, nil
	}
	p.pool.close = func(name string) bool {
		time.Sleep(p.opening)
		p.guard.Lock()
		defer p.guard.Unlock()
		if !p.works[name] {
			p.log = append(p.log, "close "+name)
		}
		return !p.works[name]
	}
	return p
}

// set says whether something has work of its own.
func (p *poolTest) set(name string, works bool) {
	p.guard.Lock()
	defer p.guard.Unlock()
	p.works[name] = works
}

func (p *poolTest) use(name string) (done func()) {
	p.t.Helper()
	got, done, err := p.pool.use(p.t.Context(), name)
	if err != nil || got != name {
		p.t.Fatalf("using %s gives %q, %v", name, got, err)
	}
	return done
}

// during calls do while the pool closes what is idle.
func (p *poolTest) during(do func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var g guard.Group
	g.Go("tidy", func() error { p.tidy(ctx); return nil })
	do()
	cancel()
	if err := g.Wait(); err != nil {
		p.t.Error(err)
	}
}

func (p *poolTest) want(what string, log ...string) {
	p.t.Helper()
	p.guard.Lock()
	defer p.guard.Unlock()
	slices.Sort(p.log)
	if !slices.Equal(p.log, log) {
		p.t.Errorf("%s: %q, want %q", what, p.log, log)
	}
	p.log = nil
}

// A project is opened once for all who want it at the same time, and while it is opened nobody waits for it who wants another one.
func TestPoolOpensEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		p.opening = time.Minute
		start := time.Now()
		var g guard.Group
		for i := range 6 {
			g.Go(fmt.Sprint(i), func() error {
				p.use([]string{"a", "b"}[i%2])()
				return nil
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		synctest.Wait()
		if open := p.pool.opened(); len(open) != 0 {
			t.Errorf("while they are opened, these are open: %q", open)
		}
		if _, _, err := p.pool.use(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("who does not want to wait waits for %v: %v", time.Since(start), err)
		}
		if err := g.Wait(); err != nil || time.Since(start) != time.Minute {
			t.Errorf("opening two at once took %v: %v", time.Since(start), err)
		}
		open := p.pool.opened()
		if slices.Sort(open); !slices.Equal(open, []string{"a", "b"}) {
			t.Errorf("open are %q", open)
		}
		p.want("two", "open a", "open b")
	})
}

// A project that could not be opened is opened anew by the next request.
func TestPoolForgetsFailures(t *testing.T) {
	p := newPoolTest(t)
	p.fails["a"] = true
	if _, _, err := p.pool.use(t.Context(), "a"); err == nil {
		t.Error("what cannot be opened is used")
	}
	p.fails["a"] = false
	p.use("a")()
	p.want("tried again", "open a", "open a")
}

// A project is closed when nobody has used it for ten minutes, and not while a reader's stream or its own work keeps it.
func TestPoolClosesIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		p.during(func() {
			p.use("idle")()
			p.use("working")()
			stream := p.use("read")
			p.set("working", true)
			p.want("opened", "open idle", "open read", "open working")
			time.Sleep(idleTime - time.Second)
			p.want("not yet")
			time.Sleep(idleCheck + time.Second)
			p.want("after ten minutes", "close idle")
			time.Sleep(3 * idleTime)
			p.want("read and working")
			stream()
			p.set("working", false)
			time.Sleep(idleTime + idleCheck)
			p.want("left and done", "close read", "close working")
			p.use("idle")()
			p.want("used again", "open idle")
			time.Sleep(idleTime - idleCheck)
			p.use("idle")()
			time.Sleep(2 * idleCheck)
			p.want("used ten minutes after it was opened")
		})
		if left := p.end(); !slices.Equal(left, []string{"idle"}) {
			t.Errorf("at the end %q are open", left)
		}
		if _, _, err := p.pool.use(t.Context(), "b"); err == nil {
			t.Error("something is opened after the end")
		}
	})
}

// A request that comes while a project is closed waits until that is over, and gets the project opened anew, or as it was if work came
// first.
func TestPoolUseWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoolTest(t)
		p.opening = idleCheck / 2
		p.during(func() {
			p.use("a")()
			p.want("used", "open a")
			time.Sleep(idleTime + idleCheck*3/4) // it is being closed
			p.use("a")()
			p.want("used while it closed", "close a", "open a")
			p.set("a", true)
			time.Sleep(idleTime + idleCheck/4)
			p.use("a")()
			p.want("used while it was asked")
		})
		if left := p.end(); !slices.Equal(left, []string{"a"}) {
			t.Errorf("at the end %q are open", left)
		}
	})
}
