package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"centurion"
	"centurion/agents"
	"centurion/config"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
	"centurion/workspace"
)

// host is a project that this process hosts: it has the lock, the store and the socket, and works on missions, each in
// a goroutine of its own.
type host struct {
	place
	ws     *workspace.Workspace
	store  *store.Store
	hub    *event.Hub
	orch   *orchestrator.Host
	person *takeover.Person
	models *modelSet
	lock   *flock.Flock
	socket string
	server *http.Server
	group  guard.Group
	clean  context.CancelFunc // ends the cleaner; nil before it has begun
	runner *sandbox.Runner
	calm   func() bool // nobody hurries the host any more
	notify bool        // whether the person wants desktop notices

	mu      sync.Mutex // protects what follows
	changed chan struct{}
	ending  bool
	hosted  map[string]*hosted // by mission
	kept    map[string]int     // readers that take a mission over when this process ends
}

// hosted is a mission that this process works on, or has worked on.
type hosted struct {
	end  context.CancelCauseFunc
	done chan struct{} // closed when it has stopped; then err is set
	err  error         // not even how it stopped could be recorded
}

// manner is how a process hosts.
type manner struct {
	detached bool            // in the background
	diskWait time.Duration   // how long a full disk is waited for; 0 for the orchestrator's default, below zero for ever
	say      func(string)    // tells the person what cannot be written down; nil where the live view does
	hurry    context.Context // when it ends commands of agents are killed, so that nothing waits for them; nil for never
}

// own takes the project's lock and opens everything that hosting takes. Only one process hosts a project; an error of
// centurion.KindConflict says which one does. What a host that died has left running is ended.
func own(ctx context.Context, p place, ws *workspace.Workspace, models *modelSet, cfg *config.Config, how manner) (*host, error) {
	lock := flock.New(p.lockFile())
	got, err := lock.TryLock()
	if err != nil {
		return nil, stateError(p.state, err)
	}
	if !got {
		return nil, heldBy(p)
	}
	h := &host{place: p, ws: ws, models: models, lock: lock, hub: &event.Hub{}, notify: cfg.Own.Notify == nil || *cfg.Own.Notify,
		changed: make(chan struct{}), hosted: map[string]*hosted{}, kept: map[string]int{}}
	if err := errors.Join(h.bury(ctx), ws.Remember(filepath.Join(p.state, "plans"))); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	if err := os.RemoveAll(p.scratch()); err != nil { // of a host that has died
		return nil, errors.Join(stateError(p.scratch(), err), lock.Unlock())
	}
	if h.store, err = store.Open(ctx, p.database()); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	if err := h.store.Own(ctx); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	oc, err := h.configuration(ctx, cfg, how)
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.orch = orchestrator.New(oc)
	h.person = takeover.New(h.orch, h.store, h.ws)
	if err := h.listen(how); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	h.startCleaner(how)
	if how.hurry != nil {
		h.calm = guard.After(how.hurry, "kill commands", h.runner.Kill)
	}
	return h, nil
}

// configuration is what the orchestrator works with: what the person has configured, and what belongs to this host.
func (h *host) configuration(ctx context.Context, cfg *config.Config, how manner) (oc orchestrator.Config, err error) {
	cast, err := castOf(cfg) // before the rules: it puts those of old names where they belong
	if err != nil {
		return oc, err
	}
	rules, err := ruleLevels(cfg)
	if err != nil {
		return oc, err
	}
	assistant, err := castIn(cfg, agents.ProfileAssistant)
	if err != nil {
		return oc, err
	}
	caps, err := concurrency(cfg, cast, assistant)
	if err != nil {
		return oc, err
	}
	overlap, err := policies(cfg, cast)
	if err != nil {
		return oc, err
	}
	chains, err := cfg.Chains(ctx)
	if err != nil {
		return oc, err
	}
	way, err := newWeb(cfg, h.ws)
	if err != nil {
		return oc, err
	}
	home, _ := os.UserHomeDir() // without one, rules with ~ match nothing
	oc = limits(cfg, how)
	oc.Store, oc.Workspace, oc.Cast, oc.Model, oc.Rules, oc.Home, oc.Version = h.store, h.ws, cast, h.models.get, rules, home, Version
	h.runner = runner(h.place.mark(), cfg.Own)
	oc.Runner, oc.Mark, oc.Scratch, oc.Web, oc.Publish = h.runner, h.place.mark(), h.place.scratch(), way, h.publisher(how)
	oc.Assistant, oc.Worktrees, oc.Shadow = assistant, worktrees(h.place, h.ws, oc.Runner, cfg.Own.CommitsAlone()), shadow(h.place, h.ws, oc.Runner)
	oc.Fallback, oc.Concurrency, oc.Policies, oc.Instructions = chains.For, caps, overlap, cfg.Finder()
	return oc, nil
}

// publisher hands what is not written down to whoever watches, and tells the person where nobody draws it.
func (h *host) publisher(how manner) func(centurion.Event) {
	return func(e centurion.Event) {
		h.hub.Publish(e)
		if e.Type == centurion.EventDelta || how.say == nil {
			return
		}
		if d, err := event.Decode[event.MissionData](e); err == nil {
			how.say("mission " + e.Mission + " stands still, " + d.Reason)
		}
	}
}

// scratch is where what background commands print is kept while they and their task live.
func (p place) scratch() string { return filepath.Join(p.state, "background") }

// mark is what the children of this project's hosts have in their environment, so that they are found again.
func (p place) mark() string {
	sum := sha256.Sum256([]byte(p.state))
	return hex.EncodeToString(sum[:8])
}

// bury ends the children that a host which died has left behind. One that ended as it should has taken its file away.
func (h *host) bury(ctx context.Context) error {
	last, err := readOwner(h.place)
	if err != nil || last.Boot != bootID() {
		return nil // nothing of it can be left
	}
	left, err := sandbox.Sweep(ctx, h.mark())
	if len(left) > 0 && err != nil {
		return &centurion.Error{Op: "host project", Kind: centurion.KindConflict, Err: err,
			Msg:  fmt.Sprintf("a command of the host that died (process %d) is still running", left[0].PID),
			Hint: fmt.Sprintf("end it with: kill -9 %d", left[0].PID)}
	}
	return nil
}

// bootID tells one start of the machine from another, "" where that cannot be known.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(b)
}

// maxSocket is the longest path that a unix socket's address can hold on every system, with its final zero.
const maxSocket = 100

// listen opens the socket through which other processes read and drive what runs here.
func (h *host) listen(how manner) error {
	h.socket = filepath.Join(h.state, "host.sock")
	if len(h.socket) > maxSocket {
		dir, err := os.MkdirTemp("", "centurion-")
		if err != nil {
			return stateError(os.TempDir(), err)
		}
		h.socket = filepath.Join(dir, "host.sock")
	}
	if err := os.Remove(h.socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a host that was killed; we hold the lock
		return stateError(h.state, err)
	}
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		return stateError(h.state, err)
	}
	if err := os.Chmod(h.socket, 0o600); err != nil {
		return errors.Join(stateError(h.state, err), l.Close())
	}
	h.server = &http.Server{Handler: server.Handler(h.api(), h.token, server.Info{PID: os.Getpid(), Version: Version, Directory: h.dir,
		Detached: how.detached}), ReadHeaderTimeout: 10 * time.Second}
	h.group.Go("serve socket", func() error {
		if err := h.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	b, err := json.Marshal(owner{PID: os.Getpid(), Boot: bootID(), Socket: h.socket, Since: centurion.Now(), Detached: how.detached})
	if err != nil {
		return err
	}
	// Whoever looks finds the whole of it or nothing.
	if err := errors.Join(os.WriteFile(h.ownerFile()+".new", b, 0o600), os.Rename(h.ownerFile()+".new", h.ownerFile())); err != nil {
		return stateError(h.state, err)
	}
	return nil
}

// api is what this process serves, and uses itself.
func (h *host) api() *server.Local {
	return &server.Local{Store: h.store, Host: h.orch, Person: h.person, Work: h, Hub: h.hub, Archive: h.ws}
}

var _ server.Work = (*host)(nil)

// errEnding refuses work that comes too late. Who is refused finds the next host.
var errEnding = &centurion.Error{Kind: centurion.KindNetwork, Msg: "this host is about to end"}

// Launch begins to work on a recorded mission.
func (h *host) Launch(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ending {
		return errEnding
	}
	before := h.hosted[id]
	if before != nil && (before.over() || h.orch.Attended(id)) {
		if !before.over() {
			return nil
		}
		before = nil
	}
	h.orch.Expect(id)
	// Whoever asked for it may go; the mission goes on until this host ends it.
	ctx, end := context.WithCancelCause(context.Background())
	x := &hosted{end: end, done: make(chan struct{})}
	h.hosted[id] = x
	after := h.store.LastSeq()
	h.group.Go("mission "+id, func() error {
		defer h.notice()
		defer close(x.done)
		defer end(nil)
		if before != nil { // it is about to end
			<-before.done
		}
		var m centurion.Mission
		if m, x.err = h.orch.Run(ctx, id); x.err == nil && m.Status == centurion.MissionCompleted && m.Options.Merge && m.Options.Detached {
			h.person.MergeUnasked(ctx, id) // nobody sits there who would
		}
		return nil
	})
	if h.notify {
		h.group.Go("notices of "+id, func() error {
			h.tellDesktop(ctx, id, after)
			return nil
		})
	}
	return nil
}

func (x *hosted) over() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// Keep counts who takes a mission over.
func (h *host) Keep(id string) (done func()) {
	h.mu.Lock()
	h.kept[id]++
	h.mu.Unlock()
	h.notice()
	return func() {
		h.mu.Lock()
		h.kept[id]--
		h.mu.Unlock()
		h.notice()
	}
}

// notice wakes who waits for a change of what is hosted.
func (h *host) notice() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

// work returns what is hosted at the moment, and a channel that is closed when that changes.
func (h *host) work() (map[string]*hosted, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	living := map[string]*hosted{}
	for id, x := range h.hosted {
		if !x.over() {
			living[id] = x
		}
	}
	return living, h.changed
}

// goOn takes up the missions that were being worked on when their host died or ended, except one, and returns their ids.
// One whose model cannot be had here is left as it is; why is told with say.
func (h *host) goOn(ctx context.Context, except string, say func(string)) ([]string, error) {
	all, err := h.store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, m := range all {
		if !m.Status.Alive() || m.ID == except {
			continue
		}
		if _, err := h.models.get(m.Options.Model); err != nil {
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

// goodbye is how long clients may take to read the last events when the host ends.
const goodbye = time.Second

// HandOver ends what is still being worked on and leaves it to the next host, as it is.
func (h *host) HandOver() {
	h.mu.Lock()
	h.ending = true
	h.mu.Unlock()
	living, _ := h.work()
	for _, x := range living {
		x.end(centurion.ErrHandover)
	}
	for _, x := range living {
		<-x.done
	}
}

// Close ends the missions, the socket and the store, and gives the lock back.
func (h *host) Close() error {
	var errs []error
	h.HandOver()
	if h.clean != nil {
		h.clean()
	}
	if h.calm != nil {
		h.calm()
	}
	if h.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), goodbye)
		if h.server.Shutdown(ctx) != nil { // somebody follows the events
			errs = append(errs, h.server.Close())
		}
		cancel()
		errs = append(errs, h.group.Wait())
		_ = os.Remove(h.ownerFile()) // what is left says who it was and misleads nobody: the lock decides
		if dir := filepath.Dir(h.socket); dir != h.state {
			_ = os.RemoveAll(dir)
		}
	}
	if h.orch != nil {
		errs = append(errs, h.orch.Close())
	}
	errs = append(errs, h.store.Close(), h.lock.Unlock())
	return errors.Join(errs...)
}

// leave ends this process's hosting when its own mission has stopped. What a client or a background host takes over is
// handed to it at once; what nobody else waits for is worked on to its end first, unless ctx ends or only a person can go on.
func (h *host) leave(ctx context.Context, say func(string)) error {
	h.outlast(ctx, say)
	return h.Close()
}

// personTime is how long a host that leaves waits for a person while nothing else happens.
const personTime = time.Minute

// outlast waits for the missions that nobody takes over. When ctx ends it pauses them; one that waits for a person it pauses
// when nothing has happened for [personTime].
func (h *host) outlast(ctx context.Context, say func(string)) {
	told := map[string]bool{}
	for {
		living, changed := h.work()
		var alone []string
		for id := range living {
			if !h.taken(ctx, id) {
				alone = append(alone, id)
			}
		}
		if len(alone) == 0 {
			return
		}
		if ctx.Err() != nil {
			for _, id := range alone {
				living[id].pause()
			}
			return
		}
		for _, id := range alone {
			if !told[id] && h.works(ctx, id) {
				say(fmt.Sprintf("mission %s still runs here; waiting for it (Ctrl-C pauses it)", id))
				told[id] = true
			}
		}
		seq, quiet := h.store.LastSeq(), time.NewTimer(personTime)
		select {
		case <-changed:
		case <-ctx.Done():
		case <-quiet.C:
			for _, id := range alone {
				if asks, err := h.store.Asks(ctx, id, true); err == nil && len(asks) > 0 && h.store.LastSeq() == seq {
					living[id].pause()
					say(fmt.Sprintf("mission %s waits for you and is paused; see centurion asks, then run: centurion resume %s", id, id))
				}
			}
		}
		quiet.Stop()
	}
}

// pause ends the work on a mission, which can be resumed, and waits for its end.
func (x *hosted) pause() {
	x.end(centurion.ErrShutdown)
	<-x.done
}

// works reports whether a mission is being worked on. One that has just stopped may still give back what it had.
func (h *host) works(ctx context.Context, id string) bool {
	m, err := h.store.Mission(context.WithoutCancel(ctx), id)
	return err != nil || m.Status.Alive()
}

// taken reports whether somebody takes a mission over when this process ends.
func (h *host) taken(ctx context.Context, id string) bool {
	h.mu.Lock()
	kept := h.kept[id] > 0
	h.mu.Unlock()
	if kept {
		return true
	}
	m, err := h.store.Mission(context.WithoutCancel(ctx), id)
	return err == nil && cmp.Or(m.Options.Detached, m.Status.Ended())
}
