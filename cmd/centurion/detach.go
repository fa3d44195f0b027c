package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/config"
	"centurion/server"
	"centurion/tui"
)

// The background host of a project is this program, started as `centurion host`. It takes the project when nobody has
// it, works on what is to be worked on, and ends when there has been nothing for a while.
const (
	linger    = 10 * time.Second // without work; a mission that is being handed to it comes sooner
	startTime = 10 * time.Second // for a background host to answer
	logName   = "host.log"       // what it had to say, in the state directory
	maxLog    = 1 << 20          // bytes; a longer one is begun anew
)

func (c *cli) hostCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{Use: "host", Short: "Host this project's missions in the background", Hidden: true,
		Long: "Host this project's missions in the background, until none is left. `centurion run --detach` starts it.",
		Args: exactly(0, 0, "no arguments"), Example: "  centurion host --dir .",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.backgroundHost(cmd.Context(), dir) }}
	cmd.Flags().StringVar(&dir, "dir", "", "the project directory (default: here)")
	return cmd
}

// backgroundHost is `centurion host`.
func (c *cli) backgroundHost(ctx context.Context, dir string) error {
	p, ws, err := c.locate(dir)
	if err != nil {
		return err
	}
	defer ws.Close()
	cfg, err := config.Load(config.Options{Dir: ws.Dir(), Env: c.getenv})
	if err != nil {
		return err
	}
	how := manner{detached: true, diskWait: -1, say: c.note, hurry: c.hurry}
	models := newModels(cfg, config.Resolved{})
	for {
		h, err := own(ctx, p, ws, models, cfg, how)
		if err == nil {
			return c.hostUntilIdle(ctx, h)
		}
		if !isHeld(err) {
			return err
		}
		if over, err := p.awaitOwner(ctx); over || err != nil {
			return err
		}
	}
}

// awaitOwner waits until the process that hosts the project is gone. It is over at once if that is a background host.
func (p place) awaitOwner(ctx context.Context) (over bool, err error) {
	api, info := p.connect(ctx)
	if api == nil {
		t := time.NewTimer(findPause)
		defer t.Stop()
		select {
		case <-t.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	defer api.Close()
	if info.Detached {
		return true, nil
	}
	// What comes is not looked at: the stream ends with its host.
	for _, err := range api.Events(ctx, server.EventQuery{After: 1 << 62, Follow: true}) {
		if err != nil {
			break
		}
	}
	return false, context.Cause(ctx)
}

// hostUntilIdle works on what was left, and on what comes, until there has been nothing for a while or ctx ends. What is
// being worked on then stays as it is for the next host.
func (c *cli) hostUntilIdle(ctx context.Context, h *host) error {
	if _, err := h.goOn(ctx, "", c.note); err != nil {
		return errors.Join(err, h.Close())
	}
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		living, changed := h.work()
		if len(living) > 0 {
			idle.Stop()
		} else {
			idle.Reset(linger)
		}
		select {
		case <-changed:
		case <-idle.C:
			if h.endIdle() {
				return h.Close()
			}
		case <-ctx.Done():
			return h.Close()
		}
	}
}

// endIdle takes no more work, unless some has just come.
func (h *host) endIdle() bool {
	living, _ := h.work()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ending = len(living) == 0
	return h.ending
}

// spawned is a background host that was started.
type spawned struct {
	log  string
	from int64 // where its part of the log begins
}

// spawn starts a background host. It lives on when this process and its terminal are gone.
func (s *seat) spawn() (*spawned, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.state, logName)
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		_ = os.Truncate(path, 0) // a log that is too long is better than no host
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, stateError(s.state, err)
	}
	defer out.Close()
	x := &spawned{log: path}
	if fi, err := out.Stat(); err == nil {
		x.from = fi.Size()
	}
	cmd := exec.Command(self, "host", "--dir", s.dir)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = s.state // it holds no directory of the person's
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "CENTURION_HOST=") })
	apart(cmd)
	if err := cmd.Start(); err != nil {
		return nil, &centurion.Error{Op: "start background host", Kind: centurion.KindInternal, Err: err}
	}
	return x, cmd.Process.Release() // nobody waits for it: it outlives this process
}

// failed returns the error with which a background host has ended, as its log has it, or nil.
func (x *spawned) failed() error {
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

// startDetached is `centurion run --detach`.
func (c *cli) startDetached(ctx context.Context, s *seat, f *runFlags, goal string, opts centurion.MissionOptions) error {
	opts.Detached = true
	if err := s.findBackground(ctx); err != nil {
		return err
	}
	m, err := c.startWith(ctx, s, f, goal, opts)
	if err != nil {
		return err
	}
	return c.printDetached(ctx, s, f, m)
}

// resumeDetached is `centurion resume --detach`.
func (c *cli) resumeDetached(ctx context.Context, s *seat, f *runFlags, id string, opts centurion.MissionOptions) error {
	opts.Detached = true
	if err := s.findBackground(ctx); err != nil {
		return err
	}
	m, err := ask(ctx, s, func(api server.API) (server.Mission, error) { return api.Resume(ctx, id, opts) })
	if err != nil {
		return err
	}
	return c.printDetached(ctx, s, f, m)
}

// findBackground makes the seat a client of the process that hosts the project, with a background host as its heir or
// in its place.
func (s *seat) findBackground(ctx context.Context) error {
	var child *spawned
	for start := time.Now(); ; {
		if api, info := s.connect(ctx); api != nil {
			s.sit(nil, api)
			err := sameVersion(info)
			if err == nil && !info.Detached && child == nil {
				_, err = s.spawn()
			}
			return err
		}
		if child == nil {
			var err error
			if child, err = s.spawn(); err != nil {
				return err
			}
		}
		t := time.NewTimer(findPause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
		if err := child.failed(); err != nil {
			return err
		}
		if time.Since(start) > startTime {
			return &centurion.Error{Op: "start background host", Kind: centurion.KindTimeout, Msg: "it does not answer", Hint: "see " + child.log}
		}
	}
}

// printDetached says which mission runs in the background.
func (c *cli) printDetached(ctx context.Context, s *seat, f *runFlags, m server.Mission) error {
	if f.format == "json" {
		first := func(yield func(centurion.Event, error) bool) {
			for e, err := range s.Events(ctx, server.EventQuery{Mission: m.ID}) {
				yield(e, err)
				return
			}
		}
		return tui.RunJSON(ctx, c.out, first)
	}
	if _, err := fmt.Fprintln(c.out, m.ID); err != nil {
		return err
	}
	c.note("it runs in the background; watch it with: centurion attach " + m.ID)
	return nil
}

// background reports whether a mission is being worked on that runs in the background.
func (h *host) background(ctx context.Context) bool {
	living, _ := h.work()
	for id := range living {
		if m, err := h.store.Mission(context.WithoutCancel(ctx), id); err == nil && m.Options.Detached {
			return true
		}
	}
	return false
}
