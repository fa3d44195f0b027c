package trial

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"centurion/guard"
)

// options are the flags.
type options struct {
	seed          uint64
	quick, full   bool
	run, json     string
	keep, list, v bool
	page, from    string
	recordings    string
}

// Main runs the trials chosen by the flags and returns the exit code: 1 unless all succeeded.
func Main() int {
	if len(os.Args) > 1 && os.Args[1] == attackTool {
		if err := attack(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if len(os.Args) > 1 && os.Args[1] == outsiderTool {
		if err := runOutsider(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "what is random follows from it (default: a random one, which is printed)")
	flag.BoolVar(&o.quick, "quick", false, "five minutes in all (the default)")
	flag.BoolVar(&o.full, "full", false, "hours")
	flag.StringVar(&o.run, "run", "", "only these trials, such as R1,R3")
	flag.StringVar(&o.json, "json", "", "write the results to this file as well")
	flag.BoolVar(&o.keep, "keep", false, "keep the scratch directories")
	flag.BoolVar(&o.list, "list", false, "list the trials")
	flag.BoolVar(&o.v, "v", false, "print what happens")
	flag.StringVar(&o.recordings, "recordings", "", "play the recorded streams below this directory (chat/, responses/, anthropic/: one event a line) in R7; without -run, nothing else")
	flag.StringVar(&o.page, "page", "", "rewrite the table in this Markdown file, such as docs/reliability.md, and do nothing else")
	flag.StringVar(&o.from, "from", "internal/trial/testdata/trials.json", "the JSON `file` that -page takes the table from")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := o.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trial:", err)
	}
	if err != nil || !ok {
		return 1
	}
	return 0
}

func (o options) main(ctx context.Context) (bool, error) {
	switch {
	case o.page != "":
		return true, rewritePage(o.page, o.from)
	case o.quick && o.full, flag.NArg() > 0:
		return false, errors.New("usage: trial [-quick|-full] [-seed N] [-run R1,R3] [-json FILE] [-recordings DIR] [-keep] [-list] [-v]")
	}
	if o.recordings != "" && o.run == "" {
		o.run = "R7"
	}
	chosen, err := choose(trials(), o.run)
	if err != nil {
		return false, err
	}
	if o.list {
		for _, t := range chosen {
			fmt.Printf("%-4s %s: %s\n", t.id, t.name, t.goal)
		}
		return true, nil
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000_000) // short enough to type
	}
	b, err := newBench(o)
	if err != nil {
		return false, err
	}
	r, err := b.all(ctx, chosen)
	if !o.keep {
		err = errors.Join(err, os.RemoveAll(b.dir))
		if b.ram != "" {
			err = errors.Join(err, os.RemoveAll(b.ram))
		}
	} else {
		fmt.Println("kept:", b.dir, b.ram)
	}
	if o.json != "" {
		err = errors.Join(err, writeReport(o.json, r))
	}
	err = errors.Join(err, r.table(os.Stdout))
	return err == nil && !slices.ContainsFunc(r.Trials, func(r result) bool { return !r.OK }), err
}

// choose picks trials by id.
func choose(all []trial, ids string) ([]trial, error) {
	if ids == "" {
		return all, nil
	}
	var chosen []trial
	for id := range strings.SplitSeq(ids, ",") {
		i := slices.IndexFunc(all, func(t trial) bool { return strings.EqualFold(t.id, strings.TrimSpace(id)) })
		if i < 0 {
			return nil, fmt.Errorf("there is no trial %q; see -list", id)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// bench is the machine and the binaries shared by all trials of a run.
type bench struct {
	options
	dir  string // scratch
	ram  string // likewise, in memory; empty if there is too little of it
	root string // of the module

	building sync.Mutex // protects the fields below
	bins     map[string]string
}

func newBench(o options) (*bench, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("the trials need Linux")
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if _, err := os.Stat(filepath.Join(root, "cmd", "centurion")); err != nil {
		return nil, fmt.Errorf("run it inside the module: %w", err)
	}
	dir, err := os.MkdirTemp("", "trial-")
	if err != nil {
		return nil, err
	}
	return &bench{options: o, dir: dir, ram: memoryDir(), root: root, bins: map[string]string{}}, nil
}

// memoryNeeded is the free memory needed for scratch directories, in bytes: several times their size.
const memoryNeeded = 1 << 30

// memoryDir makes a scratch directory in memory. It returns "" if the system has no place for it, or only a small one.
func memoryDir() string {
	const place = "/dev/shm"
	if freeSpace(place) < memoryNeeded {
		return ""
	}
	dir, err := os.MkdirTemp(place, "trial-")
	if err != nil {
		return ""
	}
	return dir
}

// all runs the trials, see [schedule], and reports each as it ends.
func (b *bench) all(ctx context.Context, chosen []trial) (report, error) {
	r := report{Seed: b.seed, Scale: "quick", Machine: machine{CPUs: runtime.NumCPU(), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH}}
	if b.full {
		r.Scale = "full"
	}
	fsync, err := fsyncTime(b.dir)
	if err != nil {
		return r, err
	}
	r.Machine.FsyncMS = round(float64(fsync.Microseconds())/1000, 3)
	fmt.Printf("seed %d, %s\n", b.seed, r.Scale)
	begun := time.Now()
	r.Trials = schedule(ctx, chosen, b.one, func(res result) { fmt.Printf("%-4s %s, %.1f s\n", res.ID, res.word(), res.Seconds) })
	r.Seconds = round(time.Since(begun).Seconds(), 1)
	return r, context.Cause(ctx)
}

// limit is how long one trial may take: much longer than any needs, even on a slow machine. It ends what hangs.
func (b *bench) limit() time.Duration {
	if b.full || b.recordings != "" {
		return 3 * time.Hour
	}
	return 20 * time.Minute
}

// one runs one trial and cleans up afterwards in any case.
func (b *bench) one(ctx context.Context, one trial, measured func()) result {
	all := ctx
	ctx, cancel := context.WithTimeout(ctx, b.limit())
	defer cancel()
	dir := b.dir
	if one.how&inMemory != 0 && b.ram != "" {
		dir = b.ram
	}
	t := &T{ID: one.id, Seed: b.seed, Full: b.full, Dir: filepath.Join(dir, one.id), Rand: source(b.seed, one.id), bench: b, measured: measured}
	start := time.Now()
	err := guard.Call(one.id, func() error {
		if err := os.MkdirAll(t.Dir, 0o700); err != nil {
			return err
		}
		t.whole(ctx, one.run)
		return nil
	})
	if err != nil {
		t.Failf("the trial itself failed: %v", err)
	}
	switch {
	case all.Err() != nil:
		t.Failf("it was stopped: %v", context.Cause(all))
	case ctx.Err() != nil:
		t.Failf("it did not end within %s", b.limit())
	}
	t.cleanUp()
	if !b.keep {
		if err := os.RemoveAll(t.Dir); err != nil {
			t.Failf("the scratch directory cannot be removed: %v", err)
		}
	}
	return result{ID: one.id, Name: one.name, Goal: one.goal, OK: len(t.failures) == 0, Figures: t.figures, Failures: t.failures,
		Seconds: round(time.Since(start).Seconds(), 1), Seed: b.seed}
}

// source returns the random numbers of one trial, independent of the others.
func source(seed uint64, id string) *rand.Rand {
	var n uint64
	for _, c := range []byte(id) {
		n = n<<8 | uint64(c)
	}
	return rand.New(rand.NewPCG(seed, n))
}

// build builds the program once per set of tags, as released: without cgo.
func (b *bench) build(ctx context.Context, tags string) (string, error) {
	b.building.Lock()
	defer b.building.Unlock()
	if path := b.bins[tags]; path != "" {
		return path, nil
	}
	path := filepath.Join(b.dir, "bin", "centurion-"+tags)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", tags, "-o", path, "./cmd/centurion")
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out.Bytes())
	}
	b.bins[tags] = path
	return path, nil
}

// fsyncTime returns the median time to write 4 KiB to disk.
func fsyncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(dir, "fsync")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var all []time.Duration
	page := make([]byte, 4096)
	for range 51 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(start))
	}
	return quantile(all, 0.5), nil
}
