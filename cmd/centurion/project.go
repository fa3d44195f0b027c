package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"centurion"
	"centurion/cmd/centurion/config"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/permission"
	"centurion/provider"
	"centurion/recovery"
	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
	"centurion/workspace"
)

// place is where a project and its state are.
type place struct {
	dir   string // the project
	state string // its state directory
	token string // lets clients in
}

// owner is what the process that hosts a project leaves beside its lock, so that others find it.
type owner struct {
	PID    int            `json:"pid"`
	Socket string         `json:"socket"`
	Since  centurion.Time `json:"since"`
}

func (p place) lockFile() string  { return filepath.Join(p.state, "lock") }
func (p place) ownerFile() string { return filepath.Join(p.state, "owner.json") }
func (p place) database() string  { return filepath.Join(p.state, "centurion.db") }

// locate finds the state of the project in dir.
func (c *cli) locate(dir string) (place, *workspace.Workspace, error) {
	ws, err := workspace.Open(cmp.Or(dir, "."))
	if err != nil {
		return place{}, nil, err
	}
	state, err := config.StateDir(c.getenv)
	if err != nil {
		return place{}, nil, err
	}
	p := place{dir: ws.Dir(), state: config.ProjectDir(state, ws.Dir())}
	if err := os.MkdirAll(p.state, 0o700); err != nil {
		return place{}, nil, stateError(state, err)
	}
	p.token, err = readToken(filepath.Join(state, "token"))
	return p, ws, err
}

func stateError(dir string, err error) error {
	return &centurion.Error{Op: "open state", Kind: centurion.KindConfig, Msg: "the state directory " + dir + " cannot be used", Err: err,
		Hint: "set CENTURION_HOME to a directory that can be written"}
}

// readToken returns the token in a file, which is made at the first use.
func readToken(file string) (string, error) {
	if b, err := os.ReadFile(file); err == nil {
		if t := strings.TrimSpace(string(b)); t != "" {
			return t, nil
		}
	}
	token := rand.Text()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) { // somebody else makes it right now
		b, err := os.ReadFile(file)
		return strings.TrimSpace(string(b)), err
	}
	if err != nil {
		return "", stateError(filepath.Dir(file), err)
	}
	_, err = f.WriteString(token + "\n")
	return token, errors.Join(err, f.Close())
}

// host is a project that this process hosts.
type host struct {
	place
	ws     *workspace.Workspace
	store  *store.Store
	hub    *event.Hub
	orch   *orchestrator.Host
	lock   *flock.Flock
	server *http.Server
	group  guard.Group

	notices *bool // whether the person wants desktop notices; nil: yes
}

// own takes the project's lock and opens everything that hosting takes. Only one process hosts a project; an error of
// centurion.KindConflict says which one does.
func own(ctx context.Context, p place, ws *workspace.Workspace, models *modelSet, cfg *config.Config) (*host, error) {
	lock := flock.New(p.lockFile())
	got, err := lock.TryLock()
	if err != nil {
		return nil, stateError(p.state, err)
	}
	if !got {
		return nil, heldBy(p)
	}
	h := &host{place: p, ws: ws, lock: lock, hub: &event.Hub{}, notices: cfg.Own.Notify}
	if h.store, err = store.Open(ctx, p.database()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	rules, err := ruleLevels(cfg)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	home, _ := os.UserHomeDir() // without one, rules with ~ match nothing
	h.orch = orchestrator.New(orchestrator.Config{Store: h.store, Workspace: ws, Model: models.get,
		Runner: &sandbox.Runner{}, Rules: rules, Home: home, Publish: h.hub.Publish, Version: Version,
		Workers: cfg.Own.MaxWorkers, PerAgent: cfg.Own.MaxPerAgent, Countdown: cfg.Own.Countdown, Returns: cfg.Own.MaxReopened,
		Await: cfg.Own.WaitTimeout, GateWait: cfg.Own.GateRelease, NewApproach: cfg.Own.StuckRounds, GiveUp: cfg.Own.PauseRounds,
		Recovery: recovery.Policy{MaxAttempts: cfg.Own.MaxAttempts, Cooldown: cfg.Own.RetryDelay}})
	if err := h.listen(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// heldBy says who hosts a project.
func heldBy(p place) error {
	e := &centurion.Error{Op: "host project", Kind: centurion.KindConflict, Msg: "another centurion works in " + p.dir,
		Hint: "follow it with `centurion logs -f`, stop it with `centurion cancel MISSION`, or wait until it ends"}
	if o, err := readOwner(p); err == nil {
		e.Msg += fmt.Sprintf(" (process %d, since %s)", o.PID, o.Since.Local().Format(time.TimeOnly))
	}
	return e
}

func readOwner(p place) (owner, error) {
	var o owner
	b, err := os.ReadFile(p.ownerFile())
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	return o, err
}

// maxSocket is the longest path that a unix socket's address can hold on every system, with its final zero.
const maxSocket = 100

// listen opens the socket through which other processes read and drive what runs here.
func (h *host) listen() error {
	path := filepath.Join(h.state, "host.sock")
	if len(path) > maxSocket {
		dir, err := os.MkdirTemp("", "centurion-")
		if err != nil {
			return stateError(os.TempDir(), err)
		}
		path = filepath.Join(dir, "host.sock")
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a host that was killed; we hold the lock
		return stateError(h.state, err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return stateError(h.state, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(stateError(h.state, err), l.Close())
	}
	api := &server.Local{Store: h.store, Host: h.orch, Hub: h.hub}
	h.server = &http.Server{Handler: server.Handler(api, h.token, server.Info{PID: os.Getpid(), Version: Version, Directory: h.dir}),
		ReadHeaderTimeout: 10 * time.Second}
	h.group.Go("serve socket", func() error {
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	b, err := json.Marshal(owner{PID: os.Getpid(), Socket: path, Since: centurion.Now()})
	if err != nil {
		return err
	}
	if err := os.WriteFile(h.ownerFile(), b, 0o600); err != nil {
		return stateError(h.state, err)
	}
	return nil
}

// goodbye is how long clients may take to read the last events when the host ends.
const goodbye = time.Second

// Close ends the socket, then the store, then gives the lock back.
func (h *host) Close() error {
	var errs []error
	if h.server != nil {
		o, _ := readOwner(h.place)
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		if h.server.Shutdown(ctx) != nil { // somebody follows the events
			errs = append(errs, h.server.Close())
		}
		cancel()
		errs = append(errs, h.group.Wait())
		_ = os.Remove(h.ownerFile()) // what is left says who it was and misleads nobody: the lock decides
		if dir := filepath.Dir(o.Socket); o.Socket != "" && dir != h.state {
			_ = os.RemoveAll(dir)
		}
	}
	errs = append(errs, h.store.Close(), h.lock.Unlock())
	return errors.Join(errs...)
}

// api returns what reads and drives a project from outside: the hosting process if there is one, else the store itself.
func (p place) api(ctx context.Context) (server.API, func() error, error) {
	if o, err := readOwner(p); err == nil {
		c := server.NewClient(o.Socket, p.token)
		if _, err := c.Info(ctx); err == nil {
			return c, func() error { c.Close(); return nil }, nil
		}
		c.Close()
	}
	if _, err := os.Stat(p.database()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &centurion.Error{Kind: centurion.KindNotFound, Err: errNoMission{p.dir}, Hint: `start one: centurion run "GOAL"`}
	}
	s, err := store.Open(ctx, p.database())
	if err != nil {
		return nil, nil, err
	}
	return &server.Local{Store: s}, s.Close, nil
}

// errNoMission is the error of a project that has no state yet.
type errNoMission struct{ dir string }

func (e errNoMission) Error() string { return "no mission has run in " + e.dir + " yet" }

// ruleLevels turns the configured permissions into the levels for each agent, weakest first.
func ruleLevels(cfg *config.Config) (func(agent string) []permission.Level, error) {
	levels := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	for _, l := range cfg.Permission {
		rules, err := permission.ParseRules(l.Raw)
		if err != nil {
			return nil, &centurion.Error{Op: "read permission in " + l.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
		}
		if l.Project {
			cfg.Notices = append(cfg.Notices, "centurion: the permission rules of "+l.File+", which came with the project, are in force")
		}
		levels = append(levels, permission.Level{Name: l.File, Rules: rules})
	}
	byAgent := map[string][]permission.Level{}
	for name, a := range cfg.Agents {
		if len(a.Permission) == 0 {
			continue
		}
		rules, err := permission.ParseRules(a.Permission)
		if err != nil {
			return nil, &centurion.Error{Op: "read permission of agent " + name + " in " + a.File, Kind: centurion.KindConfig, Err: err, Hint: centurion.HintOf(err)}
		}
		byAgent[name] = append(append([]permission.Level{}, levels...), permission.Level{Name: "agent " + name, Rules: rules})
	}
	return func(agent string) []permission.Level {
		if l, ok := byAgent[strings.ToLower(agent)]; ok {
			return l
		}
		return levels
	}, nil
}

// modelSet resolves model names to clients, each once.
type modelSet struct {
	cfg   *config.Config
	first config.Resolved
	gates provider.Gates

	mu    sync.Mutex // protects known
	known map[string]orchestrator.Model
}

func newModels(cfg *config.Config, first config.Resolved) *modelSet {
	return &modelSet{cfg: cfg, first: first, known: map[string]orchestrator.Model{}}
}

// get returns the model of that name, and the mission's own for "".
func (s *modelSet) get(ref string) (orchestrator.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.first
	if ref == "" {
		ref = r.Model.String()
	}
	if m, ok := s.known[ref]; ok {
		return m, nil
	}
	if ref != r.Model.String() {
		var err error
		if r, err = s.cfg.ResolveModel(context.Background(), ref); err != nil {
			return orchestrator.Model{}, err
		}
	}
	own := s.cfg.Own
	m := orchestrator.Model{Ref: r.Model, Price: r.Price, Context: r.Limit.Context, Client: provider.New(provider.Endpoint{
		Model: r.Model, BaseURL: r.BaseURL, APIKey: r.APIKey.Reveal(), KeySource: r.KeySource, Headers: r.Headers, EchoReasoning: r.Echo,
		NoSessionHeaders: own.SessionHeaders != nil && !*own.SessionHeaders, IdleTimeout: own.IdleTimeout, MaxRetries: own.MaxRetries,
		Gates: &s.gates})}
	s.known[ref] = m
	return m, nil
}
