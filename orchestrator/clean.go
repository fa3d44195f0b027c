package orchestrator

import (
	"context"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// Defaults of the cleaner in [Config].
const (
	DefaultRetention          = 10 * time.Minute
	DefaultArchiveAfter       = 30 * time.Minute
	DefaultArchiveFailedAfter = 10 * time.Minute
	DefaultKeepTasks          = 1000
)

// cleanRetry is how long the cleaner waits after what it could not do, such as to write on a full disk.
const cleanRetry = time.Minute

// cleaner is told what there is to clean. While nobody cleans it keeps nothing: who begins to clean reads the store.
type cleaner struct {
	wake chan struct{} // holds one

	mu    sync.Mutex // protects what follows
	on    bool
	ended []string // tasks that have ended and were not seen yet
	all   bool     // so many may have ended that the store has to be read

	sweeping sync.Mutex // held while something is cleaned; protects what follows
	stuck    time.Time  // when it last could not remove as many tasks as it should
}

// updater runs a transaction.
type updater func(func(*store.Tx) error) error

// taskEnded tells the cleaner that a task has ended; without an id, that several may have.
func (h *Host) taskEnded(id string) {
	c := &h.cleaner
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.on {
		return
	}
	if id == "" {
		c.all = true
	} else {
		c.ended = append(c.ended, id)
	}
	c.poke()
}

// poke wakes the cleaner.
func (c *cleaner) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *cleaner) set(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on, c.ended, c.all = on, nil, on
}

// take returns what was told since the last time.
func (c *cleaner) take() (ended []string, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended, all = c.ended, c.all
	c.ended, c.all = nil, false
	return ended, all
}

// dues are the times at which a task is cleaned, on the monotonic clock: a wall clock that jumps moves none of them.
type dues struct {
	mission string
	drop    time.Time // its session; zero when that is done
	archive time.Time // its record
}

// left returns how long it is until a task that ended is due: never more than the whole of d, whatever the clocks of the
// host that saw it end and of this one say.
func left(ended centurion.Time, d time.Duration, now time.Time) time.Duration {
	return min(max(ended.Add(d).Sub(now.Round(0)), 0), d)
}

// dueOf says when a task is cleaned. One that is blocked may still be worked on, until its mission has ended.
func (h *Host) dueOf(t centurion.Task, mission centurion.MissionStatus) (dues, bool) {
	if !t.Status.Ended() || !t.Archived.IsZero() || t.Status == centurion.TaskBlocked && !mission.Ended() {
		return dues{}, false
	}
	now, after := time.Now(), h.cfg.ArchiveFailedAfter
	if t.Status == centurion.TaskCompleted {
		after = h.cfg.ArchiveAfter
	}
	drop := now.Add(left(t.Ended, h.cfg.Retention, now))
	archive := now.Add(left(t.Ended, after, now))
	if archive.Before(drop) { // who has no session to look for any more has a record
		archive = drop
	}
	return dues{mission: t.Mission, drop: drop, archive: archive}, true
}

// Clean drops sessions, archives and removes records of tasks that ended long enough ago, until ctx ends. It costs nothing
// while nothing is due. What cannot be done is told to trouble, which may be nil, and tried again; it ends early only if
// another process has the state. One Clean runs at a time.
func (h *Host) Clean(ctx context.Context, trouble func(error)) {
	h.cleaner.set(true)
	defer h.cleaner.set(false)
	known, told := map[string]dues{}, ""
	for {
		next, err := h.round(ctx, known)
		if ctx.Err() != nil || centurion.KindOf(err) == centurion.KindConflict {
			return
		}
		if err != nil {
			next = cleanRetry
			h.taskEnded("") // what was told may be lost
		}
		if text := errText(err); text != told {
			if told = text; err != nil && trouble != nil {
				trouble(err)
			}
		}
		wake := h.cleaner.wake
		if err != nil {
			wake = nil // not before the time
		}
		if !sleepUntil(ctx, wake, next) {
			return
		}
	}
}

// sleepUntil waits until it is woken or d has passed (0: for ever), and reports false if ctx ended.
func sleepUntil(ctx context.Context, wake <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer:
	}
	return true
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// round does what is due now and returns how long it is until something else is, 0 for never.
func (h *Host) round(ctx context.Context, known map[string]dues) (time.Duration, error) {
	ended, all := h.cleaner.take()
	if err := h.learn(ctx, known, ended, all); err != nil {
		return 0, err
	}
	h.cleaner.sweeping.Lock()
	defer h.cleaner.sweeping.Unlock()
	now := time.Now()
	var drop, archive []string
	for id, d := range known {
		if !d.drop.IsZero() && !now.Before(d.drop) {
			drop = append(drop, id)
		}
		if !now.Before(d.archive) {
			archive = append(archive, id)
		}
	}
	slices.Sort(drop)
	slices.Sort(archive)
	if _, err := h.dropSessions(ctx, drop); err != nil {
		return 0, err
	}
	for _, id := range drop {
		d := known[id]
		d.drop = time.Time{}
		known[id] = d
	}
	if _, err := h.archive(h.updates(ctx), archive); err != nil {
		return 0, err
	}
	for _, id := range archive {
		delete(known, id)
	}
	over, err := h.collectGarbage(ctx, len(archive) > 0)
	if err != nil {
		return 0, err
	}
	next := time.Duration(0)
	for _, d := range known {
		at := d.archive
		if !d.drop.IsZero() && d.drop.Before(at) {
			at = d.drop
		}
		if wait := max(time.Until(at), time.Millisecond); next == 0 || wait < next {
			next = wait
		}
	}
	if over && (next == 0 || next > cleanRetry) {
		next = cleanRetry // what was in the way may have gone
	}
	return next, nil
}

// cleanBatch is how many tasks are cleaned in one transaction at most, so that it keeps nobody else waiting for long.
const cleanBatch = 50

func (h *Host) updates(ctx context.Context) updater {
	return func(f func(*store.Tx) error) error { return h.cfg.Store.Update(ctx, f) }
}

// learn adds to known what has ended, all that the store has or only what was told.
func (h *Host) learn(ctx context.Context, known map[string]dues, ended []string, all bool) error {
	add := func(t centurion.Task, m centurion.MissionStatus) {
		if _, old := known[t.ID]; old {
			return
		}
		if d, ok := h.dueOf(t, m); ok {
			known[t.ID] = d
		}
	}
	if all {
		missions, err := h.cfg.Store.Missions(ctx)
		if err != nil {
			return err
		}
		for _, m := range missions {
			tasks, err := h.cfg.Store.Tasks(ctx, m.ID)
			if err != nil {
				return err
			}
			for _, t := range tasks {
				add(t, m.Status)
			}
		}
		return nil
	}
	for _, id := range ended {
		t, err := h.cfg.Store.Task(ctx, id)
		if centurion.KindOf(err) == centurion.KindNotFound {
			continue
		}
		if err != nil {
			return err
		}
		m, err := h.cfg.Store.Mission(ctx, t.Mission)
		if err != nil {
			return err
		}
		add(t, m.Status)
	}
	return nil
}

// dropSessions ends the time in which the sessions of tasks that have ended can be resumed, and frees what is kept of them
// in memory. It returns how many there were to drop.
func (h *Host) dropSessions(ctx context.Context, ids []string) (n int, err error) {
	for part := range slices.Chunk(ids, cleanBatch) {
		var done []centurion.Task
		if err := h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
			done = nil
			rows := txRows{tx: tx}
			for _, id := range part {
				t, err := tx.Task(id)
				if centurion.KindOf(err) == centurion.KindNotFound {
					continue
				}
				if err != nil {
					return err
				}
				r, err := rows.of(t.Mission)
				if err != nil {
					return err
				}
				did, err := dropSession(tx, t, r)
				if err != nil {
					return err
				}
				if did {
					done = append(done, t)
				}
			}
			return nil
		}); err != nil {
			return n, err
		}
		n += len(done)
		for _, t := range done {
			if m := h.running(t.Mission); m != nil {
				m.free(t)
			}
		}
	}
	return n, nil
}

// dropSession marks the session of a task that has ended, and tells of it. It reports whether there was anything to drop.
func dropSession(tx *store.Tx, t centurion.Task, r *taskRows) (bool, error) {
	if !t.Status.Ended() || t.Session == "" || r.later(t) {
		return false, nil
	}
	rec, err := tx.Session(t.Session)
	if err != nil || rec.Time.Archived > 0 {
		return false, err
	}
	rec.Time.Archived = centurion.Now().Millis()
	if err := tx.PutSession(&rec); err != nil {
		return false, err
	}
	_, err = tx.Append(centurion.Event{Type: centurion.EventSessionDeleted, Mission: t.Mission, Session: rec.ID, Task: t.ID,
		Data: event.Data(event.SessionData{Agent: rec.Agent, Address: rec.Metadata.Address, Title: rec.Title})})
	return true, err
}

// free forgets what is kept in memory for a task whose session was dropped.
func (m *mission) free(t centurion.Task) {
	m.st.Fences.Forget(t.ID)
	m.background.forget(t.Session)
}
