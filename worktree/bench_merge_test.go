package worktree

import (
	"fmt"
	"strconv"
	"testing"

	"centurion"
)

// bigRig is a repository of 10,000 files in 100 directories.
func bigRig(b *testing.B) *rig {
	b.Helper()
	x := newRig(b, manyFiles())
	b.ResetTimer()
	return x
}

func manyFiles() map[string]string {
	files := map[string]string{}
	for i := range 10_000 {
		files[fmt.Sprintf("d%02d/f%d", i%100, i)] = strconv.Itoa(i) + "\n" + long
	}
	return files
}

// Merge throughput: a commit is laid on the branch, and the branch is moved.
func BenchmarkRebaseAdvance(b *testing.B) {
	x := bigRig(b)
	ctx := b.Context()
	base := x.person("rev-parse", "HEAD")
	tip := x.commitOf(base, content("a\n"))
	if err := x.Advance(ctx, "mission", "", tip); err != nil {
		b.Fatal(err)
	}
	work := make([]string, 50)
	for i := range work {
		work[i] = x.commitOf(base, map[string][]byte{fmt.Sprintf("d%02d/new%d", i, i): []byte("n\n"), fmt.Sprintf("d%02d/f%d", i, i): []byte(five("five"))})
	}
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if i%len(work) == 0 {
			b.StopTimer()
			if err := x.Advance(ctx, "mission", tip, base); err != nil {
				b.Fatal(err)
			}
			tip = x.commitOf(base, content(strconv.Itoa(i)))
			if err := x.Advance(ctx, "mission", base, tip); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		r, err := x.Rebase(ctx, work[i%len(work)], tip)
		if err != nil || r.Commit == "" {
			b.Fatalf("%+v, %v", r, err)
		}
		if err := x.Advance(ctx, "mission", tip, r.Commit); err != nil {
			b.Fatal(err)
		}
		tip = r.Commit
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "merges/s")
}

func BenchmarkDiff(b *testing.B) {
	x := bigRig(b)
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"d00/f0": []byte("x\n" + long), "new": []byte("n\n")})
	for b.Loop() {
		if d, err := x.Diff(b.Context(), base, to); err != nil || len(d) != 2 {
			b.Fatal(err)
		}
	}
}

func BenchmarkWithout(b *testing.B) {
	x := bigRig(b)
	base := x.person("rev-parse", "HEAD")
	to := x.commitOf(base, map[string][]byte{"d00/f0": []byte("x\n" + nine(long)), "new": []byte("n\n")})
	for b.Loop() {
		if _, _, err := x.Without(b.Context(), base, to, func(_ centurion.FileDiff, h *centurion.Hunk) bool { return h.NewStart == 1 }); err != nil {
			b.Fatal(err)
		}
	}
}

// One file has changed since the last one.
func BenchmarkShadowSave(b *testing.B) {
	x, s := shade(b, manyFiles())
	x.save(s, "first")
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		x.write("d00/f0", strconv.Itoa(i))
		x.save(s, "next")
	}
}
