package host

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
)

// runs are the missions of this process, each in its own goroutine.
type runs struct {
	store    *store.Store
	missions *orchestrator.Host
	api      *server.Local
	group    guard.Group
	watch    func(context.Context, iter.Seq2[centurion.Event, error]) // shows desktop notices; nil if they are turned off

	mu      sync.Mutex // protects the fields below
	changed chan struct{}
	ending  bool
	all     map[string]*run // by mission
	keepers map[string]int  // readers that take a mission over when this process ends
	plugins map[string]bool // missions that plugins have begun
}

var _ server.Work = (*runs)(nil)

// run is this process's work on one mission.
type run struct {
	end  context.CancelCauseFunc
	done chan struct{} // closed when it has stopped; then err is set
	err  error         // set if not even its end could be recorded
}

// errEnding refuses work while the host is ending. The caller finds the next host.
var errEnding = &centurion.Error{Kind: centurion.KindNetwork, Msg: "this host is about to end"}

// Launch starts work on a recorded mission.
func (r *runs) Launch(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return errEnding
	}
	before := r.all[id]
	if before != nil && (before.isOver() || r.missions.Mail.Attended(id)) {
		if !before.isOver() {
			return nil
		}
		before = nil
	}
	r.missions.Mail.Expect(id)
	// The caller may go away; the mission runs until this host ends it.
	ctx, end := context.WithCancelCause(context.Background())
	x := &run{end: end, done: make(chan struct{})}
	r.all[id] = x
	after := r.store.LastSeq()
	r.group.Go("mission "+id, func() error {
		defer r.wake()
		defer close(x.done)
		defer end(nil)
		if before != nil { // it is about to end
			<-before.done
		}
		var m centurion.Mission
		if m, x.err = r.missions.Run(ctx, id); x.err == nil && m.Status == centurion.MissionCompleted && m.Options.Merge && m.Options.Detached {
			r.api.Person.MergeUnasked(ctx, id) // in case no person is watching who could
		}
		return nil
	})
	if r.watch != nil {
		r.group.Go("notices of "+id, func() error {
			r.watch(context.WithoutCancel(ctx), r.runEvents(ctx, id, after))
			return nil
		})
	}
	return nil
}

func (x *run) isOver() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// Keep counts the readers that take a mission over when this process ends.
func (r *runs) Keep(id string) (done func()) {
	r.mu.Lock()
	r.keepers[id]++
	r.mu.Unlock()
	r.wake()
	return func() {
		r.mu.Lock()
		r.keepers[id]--
		r.mu.Unlock()
		r.wake()
	}
}

// wake tells the waiters on running's channel that the runs have changed.
func (r *runs) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
}

// running returns the current runs, and a channel that is closed when they change.
func (r *runs) running() (map[string]*run, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	living := map[string]*run{}
	for id, x := range r.all {
		if !x.isOver() {
			living[id] = x
		}
	}
	return living, r.changed
}

// HandOver stops the missions that still run and leaves them to the next host.
func (r *runs) HandOver() {
	r.mu.Lock()
	r.ending = true
	r.mu.Unlock()
	living, _ := r.running()
	for _, x := range living {
		x.end(centurion.ErrHandover)
	}
	for _, x := range living {
		<-x.done
	}
}

// personTimeout is how long a leaving host waits for a person while nothing else happens.
const personTimeout = time.Minute

// waitForOthers waits for the missions without a successor. It pauses them when ctx ends, and a mission that waits for a person after
// [personTimeout] without any activity.
func (r *runs) waitForOthers(ctx context.Context, say func(string)) {
	told := map[string]bool{}
	for {
		living, changed := r.running()
		alone := slices.DeleteFunc(slices.Collect(maps.Keys(living)), func(id string) bool { return r.hasSuccessor(ctx, id) })
		if len(alone) == 0 {
			return
		}
		if ctx.Err() != nil {
			for _, id := range alone {
				living[id].pause()
			}
			return
		}
		if begun := slices.DeleteFunc(slices.Clone(alone), func(id string) bool { return !r.byPlugin(id) }); len(begun) > 0 { // nobody has asked for them
			for _, id := range begun {
				living[id].pause()
				say(fmt.Sprintf("mission %s, which a plugin began, is paused; continue it with: centurion resume %s", id, id))
			}
			continue
		}
		for _, id := range alone {
			if !told[id] && r.isRunning(ctx, id) {
				say(fmt.Sprintf("mission %s still runs here; waiting for it (Ctrl-C pauses it)", id))
				told[id] = true
			}
		}
		seq, quiet := r.store.LastSeq(), time.NewTimer(personTimeout)
		select {
		case <-changed:
		case <-ctx.Done():
		case <-quiet.C:
			for _, id := range alone {
				if asks, err := r.store.Asks(ctx, id, true); err == nil && len(asks) > 0 && r.store.LastSeq() == seq {
					living[id].pause()
					say(fmt.Sprintf("mission %s waits for you and is paused; see centurion asks, then run: centurion resume %s", id, id))
				}
			}
		}
		quiet.Stop()
	}
}

func (r *runs) byPlugin(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.plugins[id]
}

// pause ends the work on a mission, which can be resumed, and waits for it.
func (x *run) pause() {
	x.end(centurion.ErrShutdown)
	<-x.done
}

// isRunning reports whether a mission is still running. One that has just stopped may still be releasing its checkouts.
func (r *runs) isRunning(ctx context.Context, id string) bool {
	m, err := r.store.Mission(context.WithoutCancel(ctx), id)
	return err != nil || m.Status.Alive()
}

// hasSuccessor reports whether another process takes over a mission when this one ends.
func (r *runs) hasSuccessor(ctx context.Context, id string) bool {
	r.mu.Lock()
	kept := r.keepers[id] > 0
	r.mu.Unlock()
	if kept {
		return true
	}
	m, err := r.store.Mission(context.WithoutCancel(ctx), id)
	return err == nil && cmp.Or(m.Options.Detached, m.Status.Ended())
}

// endIfIdle stops accepting work, unless some has just arrived.
func (r *runs) endIfIdle() bool {
	living, _ := r.running()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = len(living) == 0
	return r.ending
}

// hasDetached reports whether a detached mission is running.
func (r *runs) hasDetached(ctx context.Context) bool {
	living, _ := r.running()
	for id := range living {
		if m, err := r.store.Mission(context.WithoutCancel(ctx), id); err == nil && m.Options.Detached {
			return true
		}
	}
	return false
}

// runEvents yields the start of a mission, for its goal, and then its events after a number, including the last ones, written after the
// run has ended.
func (r *runs) runEvents(working context.Context, id string, after int64) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		ctx := context.WithoutCancel(working)
		begun, err := r.store.Events(ctx, store.EventQuery{Mission: id, Types: []centurion.EventType{centurion.EventMissionStarted}, Limit: 1})
		if err != nil {
			yield(centurion.Event{}, err)
			return
		}
		for _, e := range begun {
			if e.Seq <= after && !yield(e, nil) {
				return
			}
		}
		for e, err := range r.api.Events(working, server.EventQuery{After: after, Mission: id, Follow: true}) {
			if !yield(e, err) || err != nil {
				return
			}
			after = e.Seq
		}
		for e, err := range r.api.Events(ctx, server.EventQuery{After: after, Mission: id}) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
