package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/sandbox/confine"
)

// Best returns the strongest way that works on this machine, and why no stronger one does; nil for [confine.Full]. Each way is tried once
// in a process by a command that does what the way forbids, because switches, security modules, containers and versions of a system decide
// what holds.
func Best() (confine.Way, error) { return best() }

var best = sync.OnceValues(func() (confine.Way, error) {
	var why error
	for _, way := range systemWays {
		err := try(way)
		if err == nil {
			return way, why
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", way, err))
	}
	return confine.None, why
})

// attempts is a script that writes what it may, and reads and writes what it may not, also by other names. It says what it could read.
const attempts = `exec 2>/dev/null
say() { read -r line < "$1"; echo "$line"; }
echo held > may
say "$HIDDEN/key"
ln "$HIDDEN/key" linked && say linked
echo x > "$OUTSIDE/file"
echo x > "$OUTSIDE/new"
ln "$OUTSIDE/file" alias && echo x > alias
ln -s "$OUTSIDE" link && echo x > link/file && echo x > link/new
echo x > .kept/file
mv .kept lost && echo x > lost/file
(exec 3<> "/dev/tcp/127.0.0.1/$PORT") && echo connected
`

// macAttempts are more of them, for a system with names in any case, second paths to everything, copies without reading, and moves out of
// the rules of a path.
const macAttempts = `say "/System/Volumes/Data$HIDDEN/key"
say "$(echo "$HIDDEN" | tr a-z A-Z)/KEY"
cp -c "$HIDDEN/key" cloned && say cloned
mv "$HIDDEN" moved && say moved/key
mkdir .absent .ABSENT
mv "$PWD" "$TMPDIR/place"
`

// try runs one command in a way and looks whether it could do what it must, and nothing that it must not.
func try(way confine.Way) (err error) {
	t, err := newTrial()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.end()) }()
	script := attempts
	if runtime.GOOS == "darwin" {
		script += macAttempts
	}
	// An emptied directory would hide everything in it anyway.
	empty := slices.DeleteFunc(slices.Clone(TempDirs), func(shared string) bool { return strings.HasPrefix(t.dir, shared+"/") })
	home, _ := os.UserHomeDir() // its paths make the trial like the real thing
	r := &Runner{Confine: &Confinement{Way: way, Hide: append(Hidden(home), t.hidden), Protect: []string{".kept", ".absent"}, Empty: empty, Dir: filepath.Join(t.dir, "places")}}
	res, err := r.Run(context.Background(), t.command(script))
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return t.judge(way, res.Output)
}

// trial is a workspace beside something hidden, something else, and a service in the network.
type trial struct {
	dir, work, hidden, outside, secret string
	service                            net.Listener
}

func newTrial() (t trial, err error) {
	made, err := os.MkdirTemp("", "centurion-")
	if err != nil {
		return t, err
	}
	dir, err := filepath.EvalSymlinks(made)
	if err != nil {
		return t, err
	}
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return t, errors.Join(err, os.RemoveAll(dir))
	}
	t = trial{dir, filepath.Join(dir, "work"), filepath.Join(dir, "hidden"), filepath.Join(dir, "outside"), rand.Text(), service}
	for _, path := range []string{filepath.Join(t.work, ".kept", "file"), filepath.Join(t.hidden, "key"), filepath.Join(t.outside, "file")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(t.secret+"\n"), 0o600)); err != nil {
			return t, errors.Join(err, t.end())
		}
	}
	return t, nil
}

func (t trial) end() error { return errors.Join(t.service.Close(), RemovePlaces(t.dir)) }

func (t trial) command(script string) centurion.Command {
	_, port, _ := net.SplitHostPort(t.service.Addr().String())
	return centurion.Command{Script: script, Dir: t.work, Env: []string{"HIDDEN=" + t.hidden, "OUTSIDE=" + t.outside, "PORT=" + port}}
}

// judge says what a command with this output did that the way forbids, or could not do that it allows.
func (t trial) judge(way confine.Way, output string) error {
	same := func(path ...string) bool {
		b, err := os.ReadFile(filepath.Join(path...))
		return err == nil && string(b) == t.secret+"\n"
	}
	if b, err := os.ReadFile(filepath.Join(t.work, "may")); err != nil || string(b) != "held\n" {
		return fmt.Errorf("a command could not write its workspace: %s", output)
	}
	if !way.Holds(confine.Files) {
		return nil // it promises nothing of files
	}
	if strings.Contains(output, t.secret) {
		return errors.New("a command could read a hidden file")
	}
	if entries, err := os.ReadDir(t.outside); err != nil || len(entries) != 1 || !same(t.outside, "file") {
		return errors.New("a command could write outside of its workspace")
	}
	if way != confine.Full && runtime.GOOS != "darwin" {
		return nil
	}
	_, absent := os.Lstat(filepath.Join(t.work, ".absent"))
	if absent == nil || !same(t.work, ".kept", "file") {
		return errors.New("a command could write what it may only read")
	}
	if strings.Contains(output, "connected") {
		return errors.New("a command had the network")
	}
	return nil
}
