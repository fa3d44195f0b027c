// Package host makes a process the owner of a project, or connects it to the process that is: the lock, the socket, the running
// missions, and their handover. Commands also use it to read a project without an owner. The missions' work itself is up to the
// orchestrator.
package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/config"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/orchestrator/slots"
	"centurion/provider"
	"centurion/redact"
	"centurion/sandbox"
	"centurion/server"
	v1 "centurion/server/opencode/v1"
	"centurion/store"
	"centurion/takeover"
	"centurion/workspace"
)

// Host is a project hosted by this process: it holds the lock, the store and the socket, and runs each mission in its own goroutine.
type Host struct {
	Place
	*runs
	workspace   *workspace.Workspace
	models      *Models // of the configuration with which it began
	how         Options
	hub         *event.Hub
	unlock      func() error
	socket      string
	server      *http.Server
	stopCleaner context.CancelFunc // ends the cleaner; nil before it has started
	runner      *sandbox.Runner
	servers     *Servers
	plugins     *Plugins
	stopForce   func() bool  // undoes the killing of commands at Options.Force
	told        atomic.Int64 // when the last note of a refused process was made, in Unix nanoseconds
}

// Options say how a process hosts a project.
type Options struct {
	Detached bool            // in the background
	DiskWait time.Duration   // how long to wait for a full disk; 0 for the orchestrator's default, negative for forever
	Note     func(string)    // prints what is not in the journal; nil if the live view shows it
	Force    context.Context // kills agents' commands when it ends; nil for never
	Version  string          // of this program
	Shared   *Shared         // with the other hosts of this process; nil if there are none
	Renew    *Renewer        // reads the configuration again when it has changed; nil to keep the first
	// Front completes the project as the plugins of a host reach it: what can be chosen from, and how missions begin. Nil gives them neither.
	Front func(p *v1.Project)
	// Watch gets the events of each mission run, unless desktop notices are turned off. It may be nil.
	Watch func(ctx context.Context, events iter.Seq2[centurion.Event, error])
}

// Shared is what several hosts in one process share, so that its limits count once: sessions, commands, and waits for a provider that has
// too many requests.
type Shared struct {
	gates provider.Gates
	slots *slots.Process
	turns sandbox.Turns
}

func NewShared() *Shared { return &Shared{slots: slots.NewProcess()} }

// Own takes the project's lock and opens everything a host needs. Only one process hosts a project: an error of centurion.KindConflict
// names the other one. Commands left running by a dead host are killed. From then on the commands of agents cannot read this process.
func Own(ctx context.Context, p Place, ws *workspace.Workspace, models *Models, cfg *config.Config, how Options) (*Host, error) {
	unlock, err := p.Lock()
	if err != nil {
		return nil, err
	}
	h := &Host{Place: p, workspace: ws, models: models, how: how, hub: &event.Hub{}, unlock: unlock, runs: &runs{changed: make(chan struct{}), all: map[string]*run{}, keepers: map[string]int{}, plugins: map[string]bool{}}}
	if cfg.Own.Notify == nil || *cfg.Own.Notify {
		h.watch = how.Watch
	}
	if err := errors.Join(sandbox.Shield(), h.killOrphans(ctx), ws.Remember(filepath.Join(p.State, "plans"))); err != nil {
		return nil, errors.Join(err, unlock())
	}
	if err := os.RemoveAll(p.scratch()); err != nil { // from a host that died
		return nil, errors.Join(StateError(p.scratch(), err), unlock())
	}
	if h.store, err = store.Open(ctx, p.Database()); err != nil {
		return nil, errors.Join(err, unlock())
	}
	models.keys.Add(redact.Key{Name: "centurion token", Value: p.Token})
	if how.Shared != nil {
		models.gates = &how.Shared.gates
	}
	h.store.Redact(models.keys)
	if err := h.store.Own(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	if h.runner, err = h.newRunner(cfg); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	models.runner, models.version = h.runner, how.Version
	h.servers = newServers(cfg.Servers, p, ws.Dir(), h.runner, how.Version)
	h.plugins = newPlugins(cfg, p, ws.Dir(), h.runner, how.Version)
	h.plugins.project = h.pluginProject()
	oc, err := h.configuration(ctx, models, h.hub, how)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.missions = orchestrator.New(oc)
	h.api = &server.Local{Store: h.store, Host: h.missions, Person: takeover.New(h.missions, h.store, ws), Work: h.runs, Hub: h.hub, Archive: ws, External: h.servers}
	if err := h.missions.Branches.Repair(ctx); err != nil && how.Note != nil { // each mission tries again
		how.Note("files of a revert are not back yet: " + err.Error())
	}
	if err := how.Renew.serve(ctx, h); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	if err := h.listen(how); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.startCleaner(how)
	if how.Force != nil {
		h.stopForce = guard.After(how.Force, "kill commands", h.runner.Kill)
	}
	return h, nil
}

// scratch is where the output of background commands is kept while they and their task live.
func (p Place) scratch() string { return filepath.Join(p.State, "background") }

// Mark is in the environment of all children of this project's hosts, so that they can be found.
func (p Place) Mark() string {
	sum := sha256.Sum256([]byte(p.State))
	return hex.EncodeToString(sum[:8])
}

// killOrphans kills the commands that a dead host left behind. A host that ended normally has removed its file.
func (h *Host) killOrphans(ctx context.Context) error {
	last, err := h.Owner()
	if err != nil || last.Boot != bootID() {
		return nil // nothing of it can be left
	}
	left, err := sandbox.Sweep(ctx, h.Mark())
	if len(left) > 0 && err != nil {
		return &centurion.Error{Op: "host project", Kind: centurion.KindConflict, Err: err,
			Msg:  fmt.Sprintf("a command of the host that died (process %d) is still running", left[0].PID),
			Hint: fmt.Sprintf("end it with: kill -9 %d", left[0].PID)}
	}
	return nil
}

// bootID identifies a boot of the machine; it is empty if unknown.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(b)
}

// maxSocket is the longest path of a unix socket on every system, including its final zero.
const maxSocket = 100

// listen opens the socket through which other processes read and control this host.
func (h *Host) listen(how Options) error {
	h.socket = filepath.Join(h.State, "host.sock")
	if len(h.socket) > maxSocket {
		dir, err := os.MkdirTemp("", "centurion-")
		if err != nil {
			return StateError(os.TempDir(), err)
		}
		h.socket = filepath.Join(dir, "host.sock")
	}
	if err := os.Remove(h.socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // from a killed host; we hold the lock
		return StateError(h.State, err)
	}
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		return StateError(h.State, err)
	}
	if err := os.Chmod(h.socket, 0o600); err != nil {
		return errors.Join(StateError(h.State, err), l.Close())
	}
	info := server.Info{PID: os.Getpid(), Version: how.Version, Directory: h.Dir, Detached: how.Detached, Way: h.runner.Confinement().Way}
	h.server = &http.Server{Handler: server.Handler(h.api, h.Token, info, h.tellRefused), ReadHeaderTimeout: 10 * time.Second,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return server.WithPeer(ctx, h.runner.Peer(c)) }}
	h.group.Go("serve socket", func() error {
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	b, err := json.Marshal(Owner{PID: os.Getpid(), Boot: bootID(), Socket: h.socket, Since: centurion.Now(), Detached: how.Detached})
	if err != nil {
		return err
	}
	// A rename, so that readers never find half a file.
	if err := errors.Join(os.WriteFile(h.OwnerFile()+".new", b, 0o600), os.Rename(h.OwnerFile()+".new", h.OwnerFile())); err != nil {
		return StateError(h.State, err)
	}
	return nil
}

// tellEvery is the least time between two notes of refused processes: an agent's command may try in a loop.
const tellEvery = time.Minute

// tellRefused notes in the journal of every running mission that a process was kept off the socket.
func (h *Host) tellRefused(p sandbox.Peer) {
	now, last := time.Now().UnixNano(), h.told.Load()
	if last != 0 && now-last < int64(tellEvery) || !h.told.CompareAndSwap(last, now) {
		return
	}
	h.tell(fmt.Sprintf("refused: process %d (%s) tried to control Centurion: %s", p.PID, p.Command, p.Refused))
}

// resumeInterrupted resumes the missions that were running when their host died or ended, except one, and returns their ids. A mission
// whose model is unavailable here is left alone; say gets the reason.
func (h *Host) resumeInterrupted(ctx context.Context, except string, say func(string)) ([]string, error) {
	all, err := h.store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range all {
		if !m.Status.Alive() || m.ID == except {
			continue
		}
		if _, err := h.models.Get(m.Options.Model); err != nil {
			say(fmt.Sprintf("mission %s stays interrupted: %v", m.ID, err))
			continue
		}
		if err := h.Launch(m.ID); err != nil {
			return found, err
		}
		found = append(found, m.ID)
	}
	return found, nil
}

// shutdownGrace is how long clients may take to read the last events when the host ends.
const shutdownGrace = time.Second

// Close ends the missions, the socket and the store, and releases the lock.
func (h *Host) Close() error {
	errs := []error{h.how.Renew.serve(context.Background(), nil)}
	h.HandOver()
	if h.stopCleaner != nil {
		h.stopCleaner()
	}
	if h.stopForce != nil {
		h.stopForce()
	}
	if h.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		if h.server.Shutdown(ctx) != nil { // someone follows the events
			errs = append(errs, h.server.Close())
		}
		cancel()
		errs = append(errs, h.group.Wait())
		_ = os.Remove(h.OwnerFile()) // harmless if it stays: the lock decides
		if dir := filepath.Dir(h.socket); dir != h.State {
			_ = os.RemoveAll(dir)
		}
	}
	if h.missions != nil {
		errs = append(errs, h.missions.Project.Close())
	}
	if h.servers != nil {
		errs = append(errs, h.servers.Close(), h.plugins.Close())
	}
	if h.runner != nil {
		errs = append(errs, h.runner.Close())
	}
	errs = append(errs, h.store.Close(), h.unlock())
	return errors.Join(errs...)
}

// leave ends the host when its own mission has stopped. Missions with a successor are handed over at once; the others are finished first,
// unless ctx ends or only a person can continue them.
func (h *Host) leave(ctx context.Context, say func(string)) error {
	h.waitForOthers(ctx, say)
	return h.Close()
}
