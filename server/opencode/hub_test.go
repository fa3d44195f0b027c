package opencode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Issue "Real OpenCode clients" 2: a reader too slow loses deltas only, and never a fact without being told.
func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Hub{}
		h.Send([]byte("before"), false)
		r, ctx := h.Reader(), t.Context()
		next := func() string {
			t.Helper()
			b, err := r.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		go func() {
			time.Sleep(time.Second)
			h.Send([]byte("a"), false)
			h.Send([]byte("b"), true)
		}()
		if a, b := next(), next(); a != "a" || b != "b" {
			t.Errorf("read %q and %q", a, b)
		}
		for i := range 2 * lag {
			h.Send(fmt.Appendf(nil, "%d", i), i%2 == 1)
		}
		got := map[bool]int{}
		for last := ""; last != fmt.Sprint(2*lag-1); {
			last = next()
			got[(last[len(last)-1]-'0')%2 == 1]++
		}
		if got[false] != lag || got[true] == 0 || got[true] > lag/2+1 {
			t.Errorf("read %d facts and %d deltas of %d each", got[false], got[true], lag)
		}
		limited, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := r.Next(limited); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without events: %v", err)
		}
		h.Send([]byte("fact"), false)
		for range 5 * lag {
			h.Send(bytes.Repeat([]byte("x"), 4*keptBytes/lag/5), true)
		}
		if h.Send([]byte("end"), false); next() != "fact" {
			t.Error("deltas have driven out a fact")
		}
		for next() != "end" {
		}
		for range 3 {
			h.Send(bytes.Repeat([]byte("x"), keptBytes/2), false)
		}
		if _, err := r.Next(ctx); !errors.Is(err, ErrBehind) {
			t.Errorf("a reader that lost facts: %v", err)
		}
		if h.bytes > keptBytes {
			t.Errorf("%d bytes are kept", h.bytes)
		}
	})
}
