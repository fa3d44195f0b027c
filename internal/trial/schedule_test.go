package trial

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Trials that measure run by themselves, those that compute one after the other, and those that wait beside them; the results
// are in the order of the trials all the same.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type span struct{ from, measured, to time.Duration }
		spans := map[string]*span{}
		start := time.Now()
		chosen := []trial{{id: "M", how: byItself | measuresFirst}, {id: "C1", how: computes}, {id: "W1", how: waits}, {id: "A", how: byItself},
			{id: "C2", how: computes | inMemory}, {id: "W2", how: waits}}
		for _, one := range chosen {
			spans[one.id] = &span{}
		}
		var told []string
		got := schedule(t.Context(), chosen, func(_ context.Context, one trial, measured func()) result {
			s := spans[one.id]
			s.from = time.Since(start)
			time.Sleep(time.Second)
			measured()
			s.measured = time.Since(start)
			time.Sleep(time.Second)
			s.to = time.Since(start)
			return result{ID: one.id}
		}, func(r result) { told = append(told, r.ID) })
		var ids []string
		for _, r := range got {
			ids = append(ids, r.ID)
		}
		if s := strings.Join(ids, " "); s != "M C1 W1 A C2 W2" || len(told) != len(ids) {
			t.Errorf("the results are of %s; told were %q", s, told)
		}
		const second = time.Second
		for id, want := range map[string]span{"A": {0, second, 2 * second}, "M": {2 * second, 3 * second, 4 * second},
			"C1": {3 * second, 4 * second, 5 * second}, "W1": {3 * second, 4 * second, 5 * second},
			"C2": {5 * second, 6 * second, 7 * second}, "W2": {5 * second, 6 * second, 7 * second}} {
			if *spans[id] != want {
				t.Errorf("%s ran %v, want %v", id, *spans[id], want)
			}
		}
	})
}

// A run that is stopped begins no further trial.
func TestScheduleStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	got := schedule(ctx, []trial{{id: "A", how: byItself}, {id: "B", how: byItself}, {id: "C", how: computes}}, func(_ context.Context, one trial, _ func()) result {
		stop()
		return result{ID: one.id}
	}, func(result) {})
	if len(got) != 1 || got[0].ID != "A" {
		t.Errorf("run were %v", got)
	}
}

// Every trial says in exactly one way beside which others it may run, and one at most lets others in before its end.
func TestManners(t *testing.T) {
	early := 0
	for _, one := range trials() {
		if which := one.how & (byItself | computes | waits); !slices.Contains([]manner{byItself, computes, waits}, which) {
			t.Errorf("%s is of the manner %b", one.id, one.how)
		}
		if one.how&measuresFirst != 0 {
			if early++; one.how&byItself == 0 {
				t.Errorf("%s does not run by itself and ends that", one.id)
			}
		}
	}
	if early > 1 {
		t.Errorf("%d trials let others begin before they have ended", early)
	}
}

// What is fatal in one part ends the trial, begins no further part and is told once; a panic is a failure of the trial.
func TestInParallel(t *testing.T) {
	b := &bench{dir: t.TempDir(), bins: map[string]string{}}
	var begun atomic.Int64
	got := b.one(t.Context(), trial{id: "X1", run: func(_ context.Context, t *T) {
		t.InParallel(100, 1, func(i int) {
			if begun.Add(1); i == 2 {
				t.Fatalf("part %d", i)
			}
		})
		t.Failf("it went on")
	}}, func() {})
	if got.OK || len(got.Failures) != 1 || got.Failures[0] != "part 2" || begun.Load() != 3 {
		t.Errorf("%d parts were begun, the failures are %q", begun.Load(), got.Failures)
	}
	got = b.one(t.Context(), trial{id: "X2", run: func(_ context.Context, t *T) { t.InParallel(3, 2, func(i int) { panic("wrong") }) }}, func() {})
	if got.OK || len(got.Failures) != 1 || !strings.Contains(got.Failures[0], "crashed: wrong") {
		t.Errorf("of a panic became %q", got.Failures)
	}
}

// A part's failures are the trial's, also those of a part that gives up, and its directory goes with it.
func TestPart(t *testing.T) {
	b := &bench{dir: t.TempDir(), bins: map[string]string{}}
	cleaned, dir := false, ""
	got := b.one(t.Context(), trial{id: "X1", run: func(_ context.Context, t *T) {
		t.Part("one", func(p *T) {
			dir = p.Dir
			p.Cleanup(func() { cleaned = true })
			p.Failf("wrong")
			p.Fatalf("very wrong")
		})
	}}, func() {})
	if s := strings.Join(got.Failures, "; "); s != "wrong (in one); very wrong (in one)" || !cleaned {
		t.Errorf("the failures are %q; cleaned up %t", s, cleaned)
	}
	if _, err := os.Stat(dir); filepath.Base(dir) != "one" || !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
