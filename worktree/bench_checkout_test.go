package worktree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// many are n small files in directories of a hundred.
func many(n int) map[string]string {
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("dir%03d/file%05d.txt", i/100, i)] = fmt.Sprintf("file %d\nwith two lines\n", i)
	}
	return files
}

// A checkout of 10,000 files for a task: fresh, and from the pool after another task whose commit differs in a few files.
// Pooled is to take 150 ms at most.
func BenchmarkTake(b *testing.B) {
	x := newRig(b, many(10_000))
	first := x.head()
	for i := range 5 {
		x.write(fmt.Sprintf("dir%03d/file%05d.txt", i, i*100), "changed\n")
	}
	x.person("commit", "-qam", "second")
	second := x.head()
	b.Run("fresh", func(b *testing.B) {
		for i := range b.N {
			x.take(fmt.Sprintf("fresh/T%d-%d", b.N, i), first)
		}
	})
	b.Run("pooled", func(b *testing.B) {
		for i := range b.N {
			b.StopTimer()
			c := x.take(fmt.Sprintf("before/T%d-%d", b.N, i), second)
			for j := range 5 {
				put(b, filepath.Join(c.Where().Dir, fmt.Sprintf("dir%03d/file%05d.txt", 50+j, 5000+j)), "work\n")
			}
			release(b, c, second)
			b.StartTimer()
			c = x.take(fmt.Sprintf("pooled/T%d-%d", b.N, i), first)
			b.StopTimer()
			release(b, c, second)
			b.StartTimer()
		}
	})
	b.Run("commit", func(b *testing.B) {
		c := x.take("commit/T1", second)
		for i := range b.N {
			put(b, filepath.Join(c.Where().Dir, "dir000/file00000.txt"), fmt.Sprint("work ", i, "\n"))
			commit(b, c)
		}
	})
	b.Run("move", func(b *testing.B) {
		c := x.take("move/T1", second)
		for i := range b.N {
			if err := c.Move(b.Context(), []string{first, second}[i%2]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// 50 tasks that begin to write in the same moment, in a project of 1,000 files. Ideal is 50 times one checkout, divided by the cores.
func BenchmarkTake50(b *testing.B) {
	x := newRig(b, many(1000))
	first := x.head()
	var taken atomic.Int64
	for i := range b.N {
		var all sync.WaitGroup
		for j := range 50 {
			all.Go(func() {
				if _, err := x.Take(b.Context(), Want{Branch: fmt.Sprintf("at-once/%d-%d-%d", b.N, i, j), Commit: first}); err == nil {
					taken.Add(1)
				}
			})
		}
		all.Wait()
	}
	if n := taken.Load(); n != int64(50*b.N) {
		b.Fatalf("%d checkouts of %d", n, 50*b.N)
	}
	b.ReportMetric(float64(50*b.N)/b.Elapsed().Seconds(), "checkouts/s")
}

// age makes the person's files older than their index, as most files are: git reads one that is not again.
func (x *rig) age() {
	old := time.Now().Add(-time.Hour)
	for name := range strings.SplitSeq(x.person("ls-files"), "\n") {
		if err := os.Chtimes(filepath.Join(x.top, name), old, old); err != nil {
			x.t.Fatal(err)
		}
	}
	x.person("update-index", "-q", "--refresh")
}

// A snapshot of 10,000 files of which one was changed: the others are not read.
func BenchmarkSnapshot(b *testing.B) {
	x := newRig(b, many(10_000))
	x.age()
	n := 0
	for b.Loop() {
		n++
		if err := os.WriteFile(filepath.Join(x.top, "dir000/file00000.txt"), fmt.Append(nil, n), 0o644); err != nil {
			b.Fatal(err)
		}
		x.snapshot(true)
	}
}
