package worktree

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Workspaces of both kinds in projects of 1,000 and 20,000 small files: the first one with its base, one more, fifty at once with a first
// command each, a first git status, a commit of ten files, and what all of it takes on the disk.
func BenchmarkWorkspaces(b *testing.B) {
	for _, n := range []int{1000, 20_000} {
		for _, kind := range []string{WorkspacesOverlay, WorkspacesCheckout} {
			b.Run(fmt.Sprintf("%d/%s", n, kind), func(b *testing.B) {
				x := newRig(b, many(n))
				if kind == WorkspacesOverlay {
					x.reopenLayered()
				}
				head := x.head()
				var first, taken *Checkout
				took := func(what string, do func()) {
					began := b.Elapsed()
					do()
					b.ReportMetric(float64((b.Elapsed()-began).Microseconds())/1000, "ms-"+what)
				}
				for range b.N {
					took("first", func() { first = x.take("bench/first", head); x.sh(first, "true") })
					took("next", func() { taken = x.take("bench/next", head); x.sh(taken, "true") })
					took("status", func() { x.sh(taken, "git status --short") })
					x.sh(taken, "for i in 0 1 2 3 4 5 6 7 8 9; do echo work > dir00$i/file0000$i.txt; done")
					took("commit", func() { commit(b, taken) })
					took("fifty", func() {
						var all sync.WaitGroup
						for i := range 50 {
							all.Go(func() {
								c, err := x.Take(b.Context(), Want{Branch: fmt.Sprintf("bench/%d", i), Commit: head})
								if err != nil {
									b.Error(err)
									return
								}
								x.sh(c, "echo work > dir000/mine.txt")
							})
						}
						all.Wait()
					})
					b.ReportMetric(float64(onDisk(b, filepath.Join(filepath.Dir(x.top), "home")))/1e6, "MB")
				}
			})
		}
	}
}

// onDisk is what a directory takes on the disk, in bytes.
func onDisk(b *testing.B, dir string) (total int64) {
	b.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil && strings.HasSuffix(path, filepath.Join("work", "work")) {
			return nil // the kernel's own
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st := info.Sys().(*syscall.Stat_t); !seen[st.Ino] {
			seen[st.Ino] = true
			total += st.Blocks * 512
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return total
}
