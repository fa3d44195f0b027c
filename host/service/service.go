// Package service installs the program as a systemd or launchd service that resumes interrupted missions when the machine starts. What
// the service then runs is not part of it.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"centurion"
	"centurion/guard"
)

// managerTime is how long systemd or launchd may take for one command.
const (
	managerTime = time.Minute
	startPause  = 200 * time.Millisecond // between two attempts to start the service
)

// begin starts the service. An old instance may still be ending; begin tries again until it is gone.
func (u *Supervisor) begin(ctx context.Context) error {
	forgotten := false
	if u.forget != nil {
		_, err := manage(ctx, u.forget)
		forgotten = err == nil
	}
	for start := time.Now(); ; {
		_, err := manage(ctx, u.start)
		if err == nil || !forgotten || time.Since(start) > managerTime {
			return err
		}
		if err := guard.Sleep(ctx, startPause); err != nil {
			return err
		}
	}
}

func (u *Supervisor) Running(ctx context.Context) bool {
	state, err := manage(ctx, u.state)
	return err == nil && slices.ContainsFunc(strings.Split(state, "\n"), func(line string) bool { return strings.TrimSpace(line) == u.active })
}

// Executable returns this program's path for use in a service: its name on the PATH if that leads to the same file, so that updates are
// found. It refuses a temporary program.
func Executable(path string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindInternal, Err: err}
	}
	if isTemporary(self, os.TempDir()) {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindUsage, Msg: self + " is in a temporary directory and will be gone after a reboot",
			Hint: "put the program where it stays, as in ~/.local/bin, and run it from there"}
	}
	mine, err := os.Stat(self)
	if err != nil {
		return "", &centurion.Error{Op: "install service", Kind: centurion.KindInternal, Err: err}
	}
	for _, dir := range filepath.SplitList(path) {
		named := filepath.Join(dir, filepath.Base(self))
		if fi, err := os.Stat(named); err == nil && filepath.IsAbs(dir) && os.SameFile(fi, mine) && !isTemporary(named, os.TempDir()) {
			return named, nil
		}
	}
	return self, nil
}

// isTemporary reports whether the go command built a program to run it once, or it is in the temporary directory.
func isTemporary(path, temp string) bool {
	real := func(p string) string {
		r, _ := filepath.EvalSymlinks(p)
		return cmp.Or(r, p)
	}
	if slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(name string) bool { return strings.HasPrefix(name, "go-build") }) {
		return true
	}
	rel, err := filepath.Rel(real(temp), real(path))
	return err == nil && filepath.IsLocal(rel)
}

// writeWhole writes a file atomically: readers find the old text or the new one.
func writeWhole(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// manage runs a command of the supervisor and returns its output. The error says why it failed.
func manage(ctx context.Context, command []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, managerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		first, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("`%s` says: %s", Typed(command), cmp.Or(first, exit.Error()))
	} else if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("there is no " + command[0] + " here")
	}
	return string(out), err
}

// Typed is a command as a person types it into a shell.
func Typed(command []string) string {
	words := slices.Clone(command)
	for i, w := range words {
		if !isPlain(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// isPlain reports whether a word means itself, in a shell and in a unit.
func isPlain(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./=:,+@", r)
	})
}

// Install writes the service's file and starts it. If the supervisor cannot be reached, as in a container or before the first login,
// the file is written anyway, and unreachable says why.
func (u *Supervisor) Install(ctx context.Context) (unreachable, err error) {
	if err := writeWhole(u.File, u.text); err != nil {
		return nil, &centurion.Error{Op: "install service", Kind: centurion.KindConfig, Err: err, Hint: "make " + filepath.Dir(u.File) + " a directory that you can write"}
	}
	if _, err := manage(ctx, u.reach); err != nil {
		return err, nil
	}
	if err := u.begin(ctx); err != nil {
		return nil, &centurion.Error{Op: "start service", Kind: centurion.KindInternal, Msg: u.File + " is written, but " + strings.TrimRight(err.Error(), "."),
			Hint: "try it again with: " + Typed(u.start)}
	}
	return nil, nil
}

// Remove stops the service and removes its file. It reports whether there was one, and in running why it could not be stopped.
func (u *Supervisor) Remove(ctx context.Context) (had bool, running, err error) {
	if _, err := os.Lstat(u.File); errors.Is(err, fs.ErrNotExist) {
		return false, nil, nil
	}
	_, running = manage(ctx, u.stop)
	for _, file := range append(u.links, u.File) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true, running, &centurion.Error{Op: "remove service", Kind: centurion.KindConfig, Err: err, Hint: "remove the file " + file}
		}
	}
	if u.after != nil {
		_, _ = manage(ctx, u.after) // it forgets the file at its next start anyway
	}
	return true, running, nil
}

// Lingers reports whether systemd starts the person's services before they log in.
func Lingers(ctx context.Context) bool {
	on, err := manage(ctx, []string{"loginctl", "show-user", fmt.Sprint(os.Getuid()), "--property=Linger", "--value"})
	return err == nil && strings.TrimSpace(on) == "yes"
}
