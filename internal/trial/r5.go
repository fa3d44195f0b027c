package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/store"
	"centurion/store/storetest"
)

const (
	mutations  = 1000
	throughBin = 20 // of them are also checked with the program itself, and repaired by it
)

// damageTrial is the state of the trial.
type damageTrial struct {
	t       *T
	project *project // that created the state
	files   map[string][]byte
	dump    string // the store's view of it
	journal map[int64]centurion.Event
	shown   string // the program's view of it
	mission string

	mu                                           sync.Mutex // protects what follows
	found, survived, wrong, repaired, kept, lost int
	kinds                                        map[string]int
}

func r5(ctx context.Context, t *T) {
	d := &damageTrial{t: t, kinds: map[string]int{}}
	t.Must(d.prepare(ctx))
	seed := t.Rand.Uint64()
	damaged := func(n int) (files map[string][]byte, name, what string) { // always the same for n
		files = maps.Clone(d.files)
		name, what = mutate(rand.New(rand.NewPCG(seed, uint64(n))), files)
		return files, name, what
	}
	found := make([]bool, mutations)
	t.InParallel(mutations, runtime.NumCPU(), func(n int) {
		files, _, what := damaged(n)
		var err error
		found[n], err = d.look(ctx, files)
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case err != nil:
			d.wrong++
			t.Failf("mutation %d (%s): %v", n, what, err)
		case found[n]:
			d.found++
			d.kinds[strings.Fields(what)[0]]++
		default:
			d.survived++
		}
	})
	if ctx.Err() != nil {
		return
	}
	some := d.some(found)
	t.InParallel(len(some), runtime.NumCPU(), func(i int) {
		files, name, what := damaged(some[i])
		if err := d.program(files, name, found[some[i]]); err != nil {
			t.Failf("mutation %d (%s), through the program: %v", some[i], what, err)
		}
	})
	t.Figure("mutations", len(found))
	t.Figure("found", d.found)
	t.Figure("survived", d.survived)
	t.Figure("served wrong", d.wrong)
	t.Figure("repaired through the program", d.repaired)
	t.Figure("events kept by that", fmt.Sprintf("%d of %d", d.kept, d.kept+d.lost))
	if d.found == 0 || d.survived == 0 {
		t.Failf("of all mutations %d were found and %d survived: they are not what they should be", d.found, d.survived)
	}
	for _, kind := range mutationKinds {
		if d.kinds[kind.name] == 0 {
			t.Failf("no mutation %q was found", kind.name)
		}
	}
}

// some selects mutations for a check with the program. Most of them are detected damage.
func (d *damageTrial) some(found []bool) (some []int) {
	through := 0
	for n, was := range found {
		if n%(mutations/throughBin) == 0 {
			through++
		}
		if through > 0 && (was || d.t.Rand.IntN(10) == 0) {
			through--
			some = append(some, n)
		}
	}
	return some
}

// prepare creates a state left by one mission and a killed second one, with a write-ahead log, and reads all of it.
func (d *damageTrial) prepare(ctx context.Context) error {
	crew := crew{workers: 6, pause: 5 * time.Millisecond, filler: 500}
	d.project = d.t.Project(nil)
	d.project.Serve(crew.config())
	first := d.project.Start(append([]string{"run"}, append(crew.args(), "write all files")...)...)
	if code := first.Wait(d.t, waitLimit); code != 0 {
		return fmt.Errorf("the mission ended with %d: %s", code, lastLines(first.Stderr(), 5))
	}
	crew.slow = "sleep 60"
	d.project.Serve(crew.config())
	second := d.project.Start(append([]string{"run"}, append(crew.args(), "write all files again")...)...)
	if !second.Until(d.t, `"tool":"bash"`, waitLimit) {
		return fmt.Errorf("the second mission did not begin: %s", lastLines(second.Stderr(), 5))
	}
	// It is killed when nothing is being written: a last, unpublished commit may get lost.
	for before := ""; before != second.Stdout(); time.Sleep(time.Second) {
		before = second.Stdout()
	}
	second.Kill()
	path := d.project.Database()
	d.files = map[string][]byte{}
	found, err := filepath.Glob(path + "*")
	if err != nil {
		return err
	}
	for _, file := range found {
		if strings.HasSuffix(file, "-shm") { // an index of the log, rebuilt whenever the file is opened after a crash
			continue
		}
		if d.files[strings.TrimPrefix(file, path)], err = os.ReadFile(file); err != nil {
			return err
		}
	}
	if len(d.files["-wal"]) == 0 {
		return errors.New("the killed host left no log")
	}
	if d.dump, err = d.read(ctx, d.files); err != nil {
		return fmt.Errorf("the undamaged state: %w", err)
	}
	p, path, err := d.place(d.files)
	if err != nil {
		return err
	}
	if d.journal, err = readJournal(ctx, path); err != nil {
		return err
	}
	var damaged bool
	if d.shown, damaged, err = d.show(p); err == nil && damaged {
		err = errors.New("the undamaged state is shown as damaged")
	}
	return err
}

// write puts the files of a state into a directory.
func writeState(path string, files map[string][]byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	for suffix, b := range files {
		if err := os.WriteFile(path+suffix, b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// read opens a state in a fresh directory and returns everything the store reads from it.
func (d *damageTrial) read(ctx context.Context, files map[string][]byte) (all string, err error) {
	dir, err := os.MkdirTemp(d.t.Dir, "state-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "centurion.db")
	if err := writeState(path, files); err != nil {
		return "", err
	}
	err = guard.Call("read a damaged state", func() error {
		s, err := store.Open(ctx, path)
		if err != nil {
			return err
		}
		all, err = storetest.Dump(ctx, s)
		cerr := s.Close()
		if err == nil && cerr != nil && centurion.KindOf(cerr) != centurion.KindState {
			err = cerr
		}
		return err
	})
	return all, err
}

// look reports whether damage was detected; an error means that wrong data was served, or that the report is useless.
func (d *damageTrial) look(ctx context.Context, files map[string][]byte) (bool, error) {
	all, err := d.read(ctx, files)
	switch {
	case err != nil && centurion.KindOf(err) != centurion.KindState:
		return true, fmt.Errorf("the error has the kind %q: %w", centurion.KindOf(err), err)
	case err != nil:
		return true, nil
	case all != d.dump:
		return false, fmt.Errorf("it is served wrong: %s", firstDifference(d.dump, all))
	}
	return false, nil
}

// place creates a project with these files as its state.
func (d *damageTrial) place(files map[string][]byte) (*project, string, error) {
	p := d.t.Project(nil)
	p.Serve(crew{workers: 1}.config())
	path := filepath.Join(config.ProjectDir(p.State, p.Dir), "centurion.db")
	return p, path, writeState(path, files)
}

// show runs the commands that read a state. A command that fails must name the damage and the way out.
func (d *damageTrial) show(p *project) (shown string, damaged bool, err error) {
	for _, args := range [][]string{{"ps", "--format", "json"}, {"show", d.mission, "--format", "json"}, {"logs", d.mission, "--format", "json"}} {
		args = slices.DeleteFunc(args, func(s string) bool { return s == "" })
		if args[0] == "show" && d.mission == "" {
			d.mission, _, _ = strings.Cut(strings.SplitAfterN(shown, `"id":"`, 2)[1], `"`)
			args = slices.Insert(args, 1, d.mission)
		}
		c := p.Start(args...)
		code := c.Wait(d.t, waitLimit)
		shown += c.Stdout()
		switch {
		case code == 0:
		case code < 0 || strings.Contains(c.Stderr(), "goroutine "):
			return shown, true, fmt.Errorf("%s crashed with %d: %s", args[0], code, lastLines(c.Stderr(), 5))
		case !strings.Contains(c.Stderr(), "centurion doctor"):
			return shown, true, fmt.Errorf("%s does not name the way out: %s", args[0], lastLines(c.Stderr(), 5))
		default:
			damaged = true
		}
	}
	return shown, damaged, nil
}

// program reads a damaged state with the program, repairs it, and checks that the original was kept.
func (d *damageTrial) program(files map[string][]byte, name string, found bool) error {
	p, _, err := d.place(files)
	if err != nil {
		return err
	}
	shown, damaged, err := d.show(p)
	switch {
	case err != nil:
		return err
	case !damaged && shown != d.shown: // these commands may miss damage in what they do not read
		return fmt.Errorf("it is shown wrong: %s", firstDifference(d.shown, shown))
	case !found && !damaged:
		return nil
	}
	// Again, untouched: reading a state may have closed its log.
	p, path, err := d.place(files)
	if err != nil {
		return err
	}
	doctor := p.Start("doctor", "--repair")
	if code := doctor.Wait(d.t, waitLimit); code != 0 {
		return fmt.Errorf("doctor --repair ended with %d: %s", code, lastLines(doctor.Stdout()+doctor.Stderr(), 8))
	}
	if _, damaged, err := d.show(p); (err != nil || damaged) && !d.gone(p) {
		return fmt.Errorf("it is not repaired (%v); doctor said: %s", err, lastLines(doctor.Stdout(), 8))
	}
	d.mu.Lock()
	d.repaired++
	d.mu.Unlock()
	if err := keptAside(path, name, files); err != nil {
		return err
	}
	events, err := readJournal(d.t.ctx, path)
	if err != nil {
		return fmt.Errorf("the repaired state: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept, d.lost = d.kept+len(events), d.lost+len(d.journal)-len(events)
	if never := missing(slices.Collect(maps.Values(events)), d.journal); len(never) > 0 {
		return fmt.Errorf("after the repair there is an event that never was: seq %d %s", never[0].Seq, never[0].Type)
	}
	return nil
}

// gone reports whether the mission was lost according to the repair.
func (d *damageTrial) gone(p *project) bool {
	code, out := p.Run("ps", "--format", "json")
	return code == 0 && !strings.Contains(out, d.mission)
}

// keptAside checks that the damaged file still exists unchanged, under any name next to the new one.
func keptAside(path, name string, files map[string][]byte) error {
	was := files[name]
	if len(was) == 0 {
		return nil // missing or empty
	}
	beside, err := filepath.Glob(path + "*")
	if err != nil {
		return err
	}
	for _, file := range beside {
		if b, err := os.ReadFile(file); err == nil && string(b) == string(was) {
			return nil
		}
	}
	for i, file := range beside {
		beside[i] = filepath.Base(file)
	}
	return fmt.Errorf("the damaged centurion.db%s was not kept; there are %q", name, beside)
}
