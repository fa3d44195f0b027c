package guard

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"centurion"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCall(t *testing.T) {
	if err := Call("fine", func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Call("failing", func() error { return io.EOF }); err != io.EOF {
		t.Errorf("the error came back as %v", err)
	}
	for name, v := range map[string]any{"string": "boom", "error": io.ErrUnexpectedEOF, "nil": nil} {
		err := Call("work", func() error { panic(v) })
		p, ok := errors.AsType[*PanicError](err)
		if !ok || centurion.KindOf(err) != centurion.KindCrashed || p.Name != "work" {
			t.Fatalf("panic with %s: %v", name, err)
		}
		if !strings.Contains(string(p.Stack), "TestCall") {
			t.Errorf("panic with %s: the stack does not show where:\n%s", name, p.Stack)
		}
		if v != nil && p.Value != v {
			t.Errorf("panic with %s: value %v", name, p.Value)
		}
		if text := err.Error(); !strings.HasPrefix(text, "work: crashed: ") || strings.Contains(text, "goroutine ") {
			t.Errorf("panic with %s: text %q", name, text)
		}
	}
	var index []int
	if err := Call("work", func() error { _ = index[1]; return nil }); centurion.KindOf(err) != centurion.KindCrashed {
		t.Errorf("a fault of the run time: %v", err)
	}
}

func TestGroupWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Group
		var done atomic.Int32
		start := time.Now()
		for i := range 3 {
			g.Go("work", func() error {
				time.Sleep(time.Duration(i) * time.Second)
				g.Go("work of its own", func() error {
					time.Sleep(10 * time.Second)
					done.Add(1)
					return nil
				})
				done.Add(1)
				return nil
			})
		}
		if err := g.Wait(); err != nil || done.Load() != 6 {
			t.Errorf("%d of 6 had ended: %v", done.Load(), err)
		}
		if took := time.Since(start); took != 12*time.Second {
			t.Errorf("waited for %s", took)
		}
	})
}

func TestGroupErrors(t *testing.T) {
	var g Group
	g.Go("a", func() error { return io.EOF })
	g.Go("b", func() error { return nil })
	g.Go("c", func() error { panic("boom") })
	g.Go("d", func() error { return context.Canceled })
	err := g.Wait()
	if !errors.Is(err, io.EOF) || !errors.Is(err, context.Canceled) {
		t.Errorf("an error is missing: %v", err)
	}
	if p, ok := errors.AsType[*PanicError](err); !ok || p.Name != "c" || centurion.KindOf(err) != centurion.KindCrashed {
		t.Errorf("the panic is missing: %v", err)
	}
	if again := g.Wait(); again.Error() != err.Error() {
		t.Errorf("asked once more: %v", again)
	}
	var none Group
	if err := none.Wait(); err != nil {
		t.Errorf("an empty group: %v", err)
	}
}

// Goexit runs no line behind it and is no panic: without care, work that ended this way would count as done.
func TestGroupGoexit(t *testing.T) {
	var g Group
	g.Go("left", func() error { runtime.Goexit(); return nil })
	if err := g.Wait(); centurion.KindOf(err) != centurion.KindCrashed || !strings.HasPrefix(err.Error(), "left: ") {
		t.Errorf("got %v", err)
	}
}

func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ran, stopped atomic.Int32
		After(ctx, "signal", func() { ran.Add(1) })
		After(ctx, "crash", func() { ran.Add(1); panic("boom") })
		stop := After(ctx, "stopped", func() { stopped.Add(1) })
		synctest.Wait()
		if ran.Load() != 0 {
			t.Error("it ran before the end")
		}
		if !stop() || stop() {
			t.Error("stop does not tell whether it prevented the run")
		}
		cancel()
		synctest.Wait()
		if ran.Load() != 2 || stopped.Load() != 0 {
			t.Errorf("%d ran, %d of those that were stopped", ran.Load(), stopped.Load())
		}
		late := After(ctx, "late", func() { ran.Add(1) })
		synctest.Wait()
		if ran.Load() != 3 || late() {
			t.Errorf("after the end %d had run", ran.Load())
		}
	})
}

// A sleep lasts as long as it should, or ends with the true cause of its context's end.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		if err := Sleep(ctx, time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("slept %s: %v", time.Since(start), err)
		}
		time.AfterFunc(time.Second, func() { cancel(centurion.ErrShutdown) })
		start = time.Now()
		if err := Sleep(ctx, time.Minute); err != centurion.ErrShutdown || time.Since(start) != time.Second {
			t.Errorf("slept %s: %v", time.Since(start), err)
		}
	})
}

func TestClosed(t *testing.T) {
	c := make(chan struct{})
	if Closed(c) {
		t.Error("an open channel is closed")
	}
	close(c)
	if !Closed(c) {
		t.Error("a closed channel is open")
	}
}
