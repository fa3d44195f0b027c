//go:build linux

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"centurion"
	"centurion/guard"
)

// hostile are scripts that do what they can to outlive their time limit. Each writes the number of a process that would
// survive to the file pid.
var hostile = map[string]string{
	"hangs":                       `echo $$ > pid; exec sleep 60`,
	"ignores SIGTERM":             `trap "" TERM HUP INT; echo $$ > pid; while :; do sleep 0.1; done`,
	"a grandchild holds the pipe": `sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 0.1; done' & wait; wait`,
	"left its group":              `setsid sh -c 'trap "" TERM; echo $$ > pid; while :; do sleep 0.1; done' & wait; wait`,
	"left its group, quietly":     `setsid nohup sh -c 'sh -c "echo \$\$ > pid; exec sleep 60" & exit' >/dev/null 2>&1 & sleep 60`,
	"closes its output":           `exec >&- 2>&-; echo $$ > pid; sleep 60`,
	"stops itself":                `echo $$ > pid; kill -STOP $$; sleep 60`,
	"forks quickly":               `echo $$ > pid; trap "" TERM; while :; do sleep 0.3 & sleep 0.005; done`,
}

// R10: whatever a command does, it is gone within 2 s of its time limit with all that it started, and no descriptor is left.
func TestHostileCommands(t *testing.T) {
	fds := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if _, err := (&Runner{Slots: 1}).Run(t.Context(), centurion.Command{Script: "true", Dir: t.TempDir()}); err != nil { // the first one opens some for the process
		t.Fatal(err)
	}
	before := fds()
	const limit = 2 * time.Second // all of them have begun by then, on a busy machine, too
	var g guard.Group
	for name, script := range hostile {
		dir := t.TempDir()
		g.Go(name, func() error {
			mark := "hostile-" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
			r := &Runner{Slots: 1, Mark: mark}
			watch := stopwatch()
			res, err := r.Run(t.Context(), centurion.Command{Script: script, Dir: dir, Timeout: limit})
			took := watch()
			if err != nil || !res.TimedOut || res.ExitCode != -1 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			if took > limit+2*time.Second {
				t.Errorf("%s: gone after %s", name, took)
			}
			begunAndGone(t, name, dir, mark)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if now := fds(); now > before {
		t.Errorf("%d descriptors before and %d afterwards", before, now)
	}
}

// begunAndGone fails the test if a hostile script did not begin, or has left a process behind.
func begunAndGone(t *testing.T, name, dir, mark string) {
	if _, err := os.Stat(filepath.Join(dir, "pid")); err != nil {
		t.Errorf("%s: it did not begin: %v", name, err)
	}
	if left, err := scan(t.Context(), hostVariable+"="+mark); err != nil || len(left) > 0 {
		t.Errorf("%s: left behind: %v, %v", name, left, err)
		_, _ = Sweep(t.Context(), mark)
	}
}

// R10: the same when the command is stopped, by a person or the end of its host.
func TestHostileCommandsAreStopped(t *testing.T) {
	var g guard.Group
	for name, script := range hostile {
		dir := t.TempDir()
		g.Go(name, func() error {
			mark := "stopped-" + filepath.Base(filepath.Dir(dir)) + filepath.Base(dir)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				defer stop()
				for start := time.Now(); time.Since(start) < 20*time.Second; time.Sleep(10 * time.Millisecond) { // another process writes it
					if _, err := os.Stat(filepath.Join(dir, "pid")); err == nil {
						return
					}
				}
			}()
			res, err := (&Runner{Slots: 1, Mark: mark}).Run(ctx, centurion.Command{Script: script, Dir: dir})
			if err == nil || res.TimedOut || res.ExitCode != -1 {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
			begunAndGone(t, name, dir, mark)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// R10: a process that has left the group of a command that ended well, and holds its output, goes with the output; one that
// let go of it was meant to stay.
func TestStrays(t *testing.T) {
	for _, test := range []struct {
		name, script string
		stays        bool
	}{
		{"holds the output", `setsid sh -c 'echo $$ > pid; exec sleep 60' & while ! test -s pid; do :; done`, false},
		{"let go of it", `setsid sh -c 'echo $$ > pid; exec sleep 60' >/dev/null 2>&1 & while ! test -s pid; do :; done`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir, mark, watch := t.TempDir(), newMark(t), stopwatch()
			res, err := (&Runner{Mark: mark}).Run(t.Context(), centurion.Command{Script: test.script, Dir: dir})
			if took := watch(); err != nil || res.ExitCode != 0 || took > 2*time.Second {
				t.Errorf("%+v, %v, after %s", res, err, took)
			}
			left, err := scan(t.Context(), hostVariable+"="+mark)
			if err != nil || (len(left) > 0) != test.stays {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
