package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"centurion"
	"centurion/server"
	"centurion/workspace"
)

// The background host of a project is this program, started as `centurion host`. It takes over a project without a host, runs its
// missions, and ends after being idle for a while.
const (
	idleTimeout  = 10 * time.Second // without work; missions are handed to it faster than that
	startTimeout = 10 * time.Second // for a background host to answer
	logName      = "host.log"       // its messages, in the state directory
	maxLog       = 1 << 20          // bytes; a longer one is truncated
)

// awaitOwner waits until the process that hosts the project is gone. It returns over at once if that is a background host.
func (p Place) awaitOwner(ctx context.Context) (over bool, err error) {
	api, info, err := p.Connect(ctx)
	if err != nil {
		return false, err
	}
	if api == nil {
		return false, WaitRetry(ctx)
	}
	defer api.Close()
	if info.Detached {
		return true, nil
	}
	// The events themselves are ignored: the stream ends with its host.
	for _, err := range api.Events(ctx, server.EventQuery{After: 1 << 62, Follow: true}) {
		if err != nil {
			break
		}
	}
	return false, context.Cause(ctx)
}

// hostUntilIdle resumes interrupted missions and serves new work until the host has been idle for a while or ctx ends. Missions still
// running then are left to the next host.
func (h *Host) hostUntilIdle(ctx context.Context, note func(string)) error {
	if _, err := h.resumeInterrupted(ctx, "", note); err != nil {
		return errors.Join(err, h.Close())
	}
	idle := time.NewTimer(idleTimeout)
	defer idle.Stop()
	for {
		living, changed := h.running()
		if len(living) > 0 {
			idle.Stop()
		} else {
			idle.Reset(idleTimeout)
		}
		select {
		case <-changed:
		case <-idle.C:
			if h.endIfIdle() {
				return h.Close()
			}
		case <-ctx.Done():
			return h.Close()
		}
	}
}

// background is a background host that was started.
type background struct {
	log  string
	from int64 // where its part of the log begins
}

// startBackground starts a background host, which outlives this process and its terminal.
func (conn *Connection) startBackground() (*background, error) {
	self, err := Executable()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(conn.State, logName)
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		_ = os.Truncate(path, 0) // better an overlong log than no host
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, StateError(conn.State, err)
	}
	defer out.Close()
	x := &background{log: path}
	if fi, err := out.Stat(); err == nil {
		x.from = fi.Size()
	}
	cmd := conn.hostCommand(context.Background(), self, conn.wanted(), out, os.Environ())
	if err := cmd.Start(); err != nil {
		return nil, &centurion.Error{Op: "start background host", Kind: centurion.KindInternal, Err: err}
	}
	return x, cmd.Process.Release() // it outlives this process
}

// startError returns the error that ended a background host, from its log, or nil.
func (x *background) startError() error {
	b, err := os.ReadFile(x.log)
	if err != nil || int64(len(b)) <= x.from {
		return nil
	}
	told, hint, ended := strings.Cut(strings.TrimSpace(string(b[x.from:])), "\nnext: ")
	if !ended {
		return nil
	}
	told = told[strings.LastIndexByte(told, '\n')+1:]
	hint, _, _ = strings.Cut(hint, "\n")
	return &centurion.Error{Op: "start background host", Kind: centurion.KindConfig, Msg: strings.TrimPrefix(told, "centurion: "), Hint: hint}
}

// ConnectBackground makes the connection a client of the hosting process, with a background host as its successor or replacement.
func (conn *Connection) ConnectBackground(ctx context.Context) error {
	var child *background
	for start := time.Now(); ; {
		api, info, refused := conn.Connect(ctx)
		if refused != nil {
			return refused
		}
		if api != nil {
			conn.set(nil, api)
			err := conn.accepts(info)
			if err == nil && !info.Detached && child == nil {
				_, err = conn.startBackground()
			}
			return err
		}
		if child == nil {
			var err error
			if child, err = conn.startBackground(); err != nil {
				return err
			}
		}
		if err := WaitRetry(ctx); err != nil {
			return err
		}
		if err := child.startError(); err != nil {
			return err
		}
		if time.Since(start) > startTimeout {
			return &centurion.Error{Op: "start background host", Kind: centurion.KindTimeout, Msg: "it does not answer", Hint: "see " + child.log}
		}
	}
}

// RunBackground hosts a project as soon as no other process does, until nothing is left to do. It ends at once if another background
// host is working.
func RunBackground(ctx context.Context, p Place, ws *workspace.Workspace, how Options) error {
	how.Detached, how.DiskWait = true, -1
	for {
		models := how.Renew.Models(ctx)
		h, err := Own(ctx, p, ws, models, models.Config, how)
		if err == nil {
			return h.hostUntilIdle(ctx, how.Note)
		}
		if !IsHeld(err) {
			return err
		}
		if over, err := p.awaitOwner(ctx); over || err != nil {
			return err
		}
	}
}

// Executable returns the path of this program, to start it again.
func Executable() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", &centurion.Error{Op: "start background host", Kind: centurion.KindInternal, Err: err}
	}
	return self, nil
}
