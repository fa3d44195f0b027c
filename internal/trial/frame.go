package trial

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// T is the environment of a trial. Its methods are safe for concurrent use, Rand is not.
type T struct {
	ID   string
	Seed uint64
	Full bool
	Dir  string     // a fresh scratch directory
	Rand *rand.Rand // follows from Seed and ID

	bench    *bench
	measured func()

	mu       sync.Mutex
	ctx      context.Context // of the trial that runs
	figures  figures
	failures []string
	projects []*project
	cleanups []func()
}

// stopped is what Fatalf panics with.
type stopped struct{}

// whole runs the trial's function; Fatalf ends it.
func (t *T) whole(ctx context.Context, run func(context.Context, *T)) {
	t.ctx = ctx
	defer func() {
		if p := recover(); p != nil && p != (any)(stopped{}) {
			panic(p)
		}
	}()
	run(ctx, t)
}

// Figure adds a figure to the table and the JSON file, in order. Durations become milliseconds in words, so that both read the same.
func (t *T) Figure(name string, value any) {
	if d, ok := value.(time.Duration); ok {
		value = fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.figures = append(t.figures, figure{name, value})
}

// maxFailures is how many failures of a trial are kept: the first ones show what is wrong.
const maxFailures = 20

// Failf reports a broken invariant or a missed goal. The table adds the command to repeat it.
func (t *T) Failf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.failures) < maxFailures {
		t.failures = append(t.failures, fmt.Sprintf(format, args...))
	}
}

// Fatalf is Failf for failures that make it pointless to continue. Only the trial's own goroutine may call it.
func (t *T) Fatalf(format string, args ...any) {
	t.Failf(format, args...)
	panic(stopped{})
}

// Must ends the trial if something fails that is not under test.
func (t *T) Must(err error) {
	if err != nil {
		t.Fatalf("the trial cannot go on: %v", err)
	}
}

// Measured says that the trial measures no more times from now on, so that others may run next to it.
func (t *T) Measured() { t.measured() }

// NotPossible ends the trial because this machine does not support it. That is a failure, since nothing was proven.
func (t *T) NotPossible(format string, args ...any) {
	t.mu.Lock()
	t.failures = append([]string{notPossible + ": " + fmt.Sprintf(format, args...)}, t.failures...)
	t.mu.Unlock()
	panic(stopped{})
}

// Failed reports whether something has failed already.
func (t *T) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.failures) > 0
}

// Logf prints what happens, with -v.
func (t *T) Logf(format string, args ...any) {
	if t.bench.v {
		fmt.Printf("     %s %s\n", t.ID, fmt.Sprintf(format, args...))
	}
}

// Cleanup runs f when the trial has ended, the last one first and before the scratch directory goes, so that mounts can be undone.
func (t *T) Cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// Scale returns one of two sizes: quick or full.
func (t *T) Scale(quick, full int) int {
	if t.Full {
		return full
	}
	return quick
}

// Binary is the path of the program, built once, without cgo.
func (t *T) Binary() string { return t.BinaryWith("") }

// BinaryWith is the program built with tags, such as failpoint.
func (t *T) BinaryWith(tags string) string {
	path, err := t.bench.build(t.ctx, tags)
	t.Must(err)
	return path
}

// Root is the directory of the module's source.
func (t *T) Root() string { return t.bench.root }

// Project makes a project directory with files (path to content), a home and a state directory of its own.
func (t *T) Project(files map[string]string) *project {
	p := &project{t: t, Bin: t.Binary()}
	t.mu.Lock()
	t.projects = append(t.projects, p)
	p.Root = filepath.Join(t.Dir, fmt.Sprintf("p%d", len(t.projects)))
	t.mu.Unlock()
	p.Dir, p.Home, p.State, p.out = filepath.Join(p.Root, "work"), filepath.Join(p.Root, "home"), filepath.Join(p.Root, "state"), filepath.Join(p.Root, "out")
	for _, dir := range []string{p.Dir, p.Home, p.out} {
		t.Must(os.MkdirAll(dir, 0o700))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(p.Dir, filepath.FromSlash(name))
		t.Must(os.MkdirAll(filepath.Dir(path), 0o700))
		t.Must(os.WriteFile(path, []byte(files[name]), 0o600))
	}
	return p
}

// Part runs a part of the trial with its own projects, and with its name in its failures, and cleans up afterwards. It does not use
// Rand, because it may run concurrently with others.
func (t *T) Part(name string, run func(*T)) {
	p := &T{ID: t.ID, Seed: t.Seed, Full: t.Full, Dir: filepath.Join(t.Dir, name), bench: t.bench, ctx: t.ctx}
	t.Must(os.MkdirAll(p.Dir, 0o700))
	defer func() {
		p.cleanUp()
		for _, failure := range p.failures {
			t.Failf("%s (in %s)", failure, name)
		}
		if !t.bench.keep {
			_ = os.RemoveAll(p.Dir) // any remains are the trial's own
		}
	}()
	run(p)
}

// cleanUp ends what a trial has left running.
func (t *T) cleanUp() {
	for _, p := range t.projects {
		p.close()
	}
	for _, f := range slices.Backward(t.cleanups) {
		f()
	}
}

// quantile returns the value below which the part q of all lies; 0 without any.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// round rounds a figure to a meaningful number of decimals.
func round(x float64, decimals int) float64 {
	scale := math.Pow10(decimals)
	return math.Round(x*scale) / scale
}
