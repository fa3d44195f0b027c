package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"centurion"
	"centurion/server"
)

// The full and the failing disk. A disk that fills up is a small tmpfs and a ballast file; for one that fails strace replaces the
// kernel's result with EIO.
const (
	diskSize    = 32 // megabytes: enough for a mission, little enough to be filled at once
	diskWorkers = 12
	projectFull = time.Second     // how long the project's disk stays full once a tool has hit it: the mission may continue meanwhile
	failingDisk = 5 * time.Second // how long a mission works on a failing disk after the first failure: it may wait, but not die
	diskAtOnce  = 3               // missions: they wait most of the time
)

// fullDisk is the state of the trial.
type fullDisk struct {
	t    *T
	m    mounts
	crew crew

	mu                                                        sync.Mutex // protects the fields below
	checked, lost, filled, paused, wentOn, told, failing, hit int
}

func r4(ctx context.Context, t *T) {
	f := &fullDisk{t: t, crew: crew{workers: diskWorkers, pause: 40 * time.Millisecond, filler: 20_000}}
	t.Cleanup(func() {
		if err := f.m.close(); err != nil {
			t.Failf("undo the mounts: %v", err)
		}
	})
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.NotPossible("there is no strace, which makes a disk fail")
	}
	t.Binary()
	var all []func() error
	for i := range t.Scale(2, 20) {
		for _, what := range []string{"state", "project"} {
			after := time.Duration(t.Rand.IntN(200)) * time.Millisecond
			all = append(all, func() error {
				if err := f.fill(ctx, what, i, after); err != nil {
					return fmt.Errorf("the disk of the %s is full: %w", what, err)
				}
				return nil
			})
		}
	}
	for range t.Scale(6, 60) {
		calls := []string{"fsync,fdatasync", "pwrite64", "fsync,fdatasync,pwrite64"}[t.Rand.IntN(3)]
		inject := fmt.Sprintf("inject=%s:error=EIO:when=%d+%d", calls, 5+t.Rand.IntN(120), 1+t.Rand.IntN(40))
		all = append(all, func() error { return f.fail(ctx, strace, calls, inject) })
	}
	t.InParallel(len(all), diskAtOnce, func(i int) {
		if err := all[i](); err != nil {
			t.Failf("%v", err)
		}
	})
	if ctx.Err() != nil {
		return
	}
	t.Figure("filled", f.filled)
	t.Figure("said so", f.paused)
	t.Figure("continued by itself", f.wentOn)
	t.Figure("told to the model only", f.told)
	t.Figure("failing disks", f.failing)
	t.Figure("of them noticed", f.hit)
	t.Figure("checked", f.checked)
	t.Figure("lost", f.lost)
	switch {
	case f.paused == 0 || f.paused+f.told < f.filled:
		t.Failf("%d of %d missions noticed that the disk was full; what nobody noticed proves nothing", f.paused+f.told, f.filled)
	case f.hit == 0:
		t.Failf("no mission noticed a failing disk, so that this proves nothing")
	}
}

// fill runs a mission with its state or project on a small disk, fills that at a random moment, and checks what the mission reports and
// whether it continues when there is space again.
func (f *fullDisk) fill(ctx context.Context, what string, round int, after time.Duration) error {
	disk := filepath.Join(f.t.Dir, fmt.Sprintf("%s%d", what, round))
	if err := f.m.tmpfs(ctx, disk, diskSize); err != nil {
		f.t.NotPossible("%v; it takes root, or a user namespace: unshare -Urm go run ./cmd/trial", err)
	}
	p := f.t.Project(nil)
	switch what {
	case "state":
		p.State = filepath.Join(disk, "state")
	case "project":
		p.Dir = filepath.Join(disk, "p")
		if err := os.Mkdir(p.Dir, 0o700); err != nil {
			return err
		}
	}
	p.Serve(f.crew.config())
	host := p.Start(append([]string{"run"}, append(f.crew.args(), "write all files")...)...)
	if !host.Until(f.t, `"type":"task.started"`, waitLimit) {
		return fmt.Errorf("the mission did not begin: %s", lastLines(host.Stderr(), 5))
	}
	time.Sleep(after) // then something else fills it
	ballast := filepath.Join(disk, "ballast")
	if err := fillUp(ballast); err != nil {
		return err
	}
	f.count(&f.filled)
	said := f.saysFull(ctx, p, host, what == "project")
	if !said && !host.Ended() && what == "state" {
		f.t.Failf("the disk of the state is full and in %v nobody was told: %+v", waitLimit, missionsOf(p))
	}
	if said {
		f.count(&f.paused)
		if host.Ended() {
			return fmt.Errorf("the host ended with %d: %s", host.Code(), lastLines(host.Stderr(), 5))
		}
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	code := host.Wait(f.t, waitLimit)
	if code != 0 {
		return fmt.Errorf("exit code %d: %s", code, lastLines(host.Stderr(), 5))
	}
	if said {
		f.count(&f.wentOn)
	} else if noSpace.MatchString(host.Stdout()) {
		f.count(&f.told)
	}
	if err := f.compare(ctx, p, host); err != nil {
		return err
	}
	p.close()
	return f.m.unmount(disk)
}

// fillUp writes a file until its disk is full to the last byte.
func fillUp(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for size := 1 << 20; size > 0; {
		_, err := file.Write(bytes.Repeat([]byte("b"), size))
		switch {
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case err != nil:
			return err
		}
	}
	return nil
}

// saysFull asks from a second process until the mission is shown as paused because of the full disk, or has ended; or, if toolsMay, for
// a while after a tool has reported it to its agent, because the mission may then continue.
func (f *fullDisk) saysFull(ctx context.Context, p *project, host *process, toolsMay bool) (paused bool) {
	var told time.Time
	soon(ctx, waitLimit, func() bool {
		for _, m := range missionsOf(p) {
			paused = paused || m.Status == centurion.MissionPaused && strings.Contains(m.Reason, "disk is full")
		}
		if told.IsZero() && toolsMay && noSpace.MatchString(host.Stdout()) {
			told = time.Now()
		}
		return paused || host.Ended() || !told.IsZero() && time.Since(told) > projectFull
	})
	return paused
}

// count adds one to one of the trial's numbers.
func (f *fullDisk) count(n *int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*n++
}

// missionsOf returns the output of `ps`.
func missionsOf(p *project) []server.Mission {
	var all []server.Mission
	code, out := p.Run("ps", "--format", "json")
	if code != 0 || json.Unmarshal([]byte(out), &all) != nil {
		return nil
	}
	return all
}

// fail runs a mission on a disk that sometimes returns EIO, and resumes it on a healthy one.
func (f *fullDisk) fail(ctx context.Context, strace, calls, inject string) error {
	p := f.t.Project(nil)
	p.Serve(f.crew.config())
	log := filepath.Join(p.Root, "strace")
	host := p.StartWith(func(cmd *exec.Cmd) {
		cmd.Path = strace
		cmd.Args = slices.Concat([]string{strace, "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "trace=" + calls, "-e", inject, p.Bin}, cmd.Args[1:])
	}, append([]string{"run"}, append(f.crew.args(), "write all files")...)...)
	f.count(&f.failing)
	failed := func() bool { return strings.Contains(readAll(log), "(INJECTED)") }
	soon(ctx, waitLimit, func() bool { return host.Ended() || failed() })
	select {
	case <-host.done:
	case <-time.After(failingDisk):
		endGroup(host.cmd.Process.Pid)
		<-host.done
	}
	if failed() {
		f.count(&f.hit)
	}
	if code := host.Code(); code != 0 && code != 3 && code != -int(syscall.SIGKILL) && (code != 1 || len(missionsOf(p)) > 0) {
		return fmt.Errorf("with %s the host ended with %d: %s", inject, code, lastLines(host.Stderr(), 5))
	}
	if s := host.Stderr(); strings.Contains(s, "goroutine ") || strings.Contains(s, "crashed") {
		return fmt.Errorf("with %s the host crashed: %s", inject, lastLines(s, 20))
	}
	hosts := []*process{host}
	if host.Code() != 0 {
		if facts, err := told(host); err != nil || len(facts) == 0 {
			return err // it failed before there was a mission
		}
		again := p.Start(append([]string{"resume"}, f.crew.args()...)...)
		if code := again.Wait(f.t, waitLimit); code != 0 {
			return fmt.Errorf("after %s the resumed mission ended with %d: %s", inject, code, lastLines(again.Stderr(), 5))
		}
		hosts = append(hosts, again)
	}
	if err := f.compare(ctx, p, hosts...); err != nil {
		return fmt.Errorf("after %s: %w", inject, err)
	}
	p.close()
	return nil
}

// compare checks that everything acknowledged is there, and how the mission ended.
func (f *fullDisk) compare(ctx context.Context, p *project, hosts ...*process) error {
	var all []centurion.Event
	for _, h := range hosts {
		facts, err := told(h)
		if err != nil {
			return err
		}
		all = append(all, facts...)
	}
	journal, err := readJournal(ctx, p.Database())
	if err != nil {
		return err
	}
	lost := missing(all, journal)
	f.mu.Lock()
	f.checked, f.lost = f.checked+len(all), f.lost+len(lost)
	f.mu.Unlock()
	if len(lost) > 0 {
		return fmt.Errorf("%d of %d acknowledged lines are lost, the first is seq %d %s", len(lost), len(all), lost[0].Seq, lost[0].Type)
	}
	if wrong := f.crew.finished(p, journal); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}
