// Package guard starts, recovers and awaits goroutines. It is the only package with a go statement: every goroutine has a recover at
// its root, so that a panic becomes an error of its owner instead of crashing the process, and an owner that waits for it.
package guard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"centurion"
)

// PanicError is a caught panic.
type PanicError struct {
	Name  string // of the goroutine or call that panicked
	Value any
	Stack []byte
}

// Error returns the panic's value, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("crashed: %v", e.Value) }

// Call runs f and converts a panic to an error of [centurion.KindCrashed] that wraps a [*PanicError].
func Call(name string, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &centurion.Error{Op: name, Kind: centurion.KindCrashed,
				Err: &PanicError{Name: name, Value: v, Stack: debug.Stack()}}
		}
	}()
	return f()
}

// Group owns goroutines. The zero Group is ready to use. Its owner calls Wait before its own call returns; until then Go may be called
// concurrently, even from the group's own goroutines.
type Group struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

// Go runs f in a new goroutine. Wait returns an error of f, its panic, or an end by runtime.Goexit, which would otherwise look like
// success.
func (g *Group) Go(name string, f func() error) {
	g.wg.Go(func() {
		var err error = &centurion.Error{Op: name, Kind: centurion.KindCrashed, Msg: "the goroutine ended without returning"}
		defer func() { g.add(err) }()
		err = Call(name, f)
	})
}

func (g *Group) add(err error) {
	if err == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errs = append(g.errs, err)
}

// Wait blocks until every goroutine has ended and returns their errors, joined.
func (g *Group) Wait() error {
	g.wg.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}

// After runs f in a goroutine when ctx ends, unless the returned stop function is called first; stop reports whether it prevented that.
// A panic in f is swallowed: f is a last signal to something that is ending anyway.
func After(ctx context.Context, name string, f func()) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		_ = Call(name, func() error { f(); return nil })
	})
}

// Sleep waits for d or until ctx ends, and returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Closed reports whether a channel without senders has been closed.
func Closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
