package retention

import (
	"context"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// cleanRetry is how long the keeper waits after what it could not do, such as to write on a full disk.
const cleanRetry = time.Minute

// dues are the times at which a task is cleaned, on the monotonic clock: a wall clock that jumps moves none of them.
type dues struct {
	drop    time.Time // its session; zero when that is done
	archive time.Time // its record
}

// left returns how long it is until a task that ended is due: never more than the whole of d, whatever the clocks of the
// host that saw it end and of this one say.
func left(ended centurion.Time, d time.Duration, now time.Time) time.Duration {
	return min(max(ended.Add(d).Sub(now.Round(0)), 0), d)
}

// dueOf says when a task is cleaned. One that is blocked may still be worked on, until its mission has ended.
func (k *Keeper) dueOf(t centurion.Task, mission centurion.MissionStatus) (dues, bool) {
	if !t.Status.Ended() || !t.Archived.IsZero() || t.Status == centurion.TaskBlocked && !mission.Ended() {
		return dues{}, false
	}
	now, after := time.Now(), k.ArchiveFailedAfter
	if t.Status == centurion.TaskCompleted {
		after = k.ArchiveAfter
	}
	drop := now.Add(left(t.Ended, k.Retention, now))
	archive := now.Add(left(t.Ended, after, now))
	if archive.Before(drop) { // who has no session to look for any more has a record
		archive = drop
	}
	return dues{drop: drop, archive: archive}, true
}

// Clean drops sessions, archives and removes records of tasks that ended long enough ago, until ctx ends. It costs nothing
// while nothing is due. What cannot be done is told to trouble, which may be nil, and tried again; it ends early only if
// another process has the state. One Clean runs at a time.
func (k *Keeper) Clean(ctx context.Context, trouble func(error)) {
	k.set(true)
	defer k.set(false)
	known, told := map[string]dues{}, ""
	for {
		next, err := k.round(ctx, known)
		if ctx.Err() != nil || centurion.KindOf(err) == centurion.KindConflict {
			return
		}
		wake, says := k.wake, ""
		if err != nil {
			next, wake, says = cleanRetry, nil, err.Error() // not before the time
			k.Ended("")                                     // what was told may be lost
		}
		if says != told {
			if told = says; err != nil && trouble != nil {
				trouble(err)
			}
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

// round does what is due now and returns how long it is until something else is, 0 for never.
func (k *Keeper) round(ctx context.Context, known map[string]dues) (time.Duration, error) {
	ended, all := k.take()
	if err := k.learn(ctx, known, ended, all); err != nil {
		return 0, err
	}
	k.sweeping.Lock()
	defer k.sweeping.Unlock()
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
	if _, err := k.dropSessions(ctx, drop); err != nil {
		return 0, err
	}
	for _, id := range drop {
		d := known[id]
		d.drop = time.Time{}
		known[id] = d
	}
	if _, err := k.Archive(ctx, archive); err != nil {
		return 0, err
	}
	for _, id := range archive {
		delete(known, id)
	}
	over, err := k.collectGarbage(ctx, len(archive) > 0)
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

// learn adds to known what has ended, all that the store has or only what was told.
func (k *Keeper) learn(ctx context.Context, known map[string]dues, ended []string, all bool) error {
	add := func(t centurion.Task, m centurion.MissionStatus) {
		if _, old := known[t.ID]; old {
			return
		}
		if d, ok := k.dueOf(t, m); ok {
			known[t.ID] = d
		}
	}
	if all {
		missions, err := k.Store.Missions(ctx)
		if err != nil {
			return err
		}
		for _, m := range missions {
			tasks, err := k.Store.Tasks(ctx, m.ID)
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
		t, err := k.Store.Task(ctx, id)
		if centurion.KindOf(err) == centurion.KindNotFound {
			continue
		}
		if err != nil {
			return err
		}
		m, err := k.Store.Mission(ctx, t.Mission)
		if err != nil {
			return err
		}
		add(t, m.Status)
	}
	return nil
}

// dropSessions ends the time in which the sessions of tasks that have ended can be resumed, and frees what is kept of them
// in memory. It returns how many there were to drop.
func (k *Keeper) dropSessions(ctx context.Context, ids []string) (n int, err error) {
	for part := range slices.Chunk(ids, cleanBatch) {
		var done []centurion.Task
		if err := k.Store.Update(ctx, func(tx *store.Tx) error {
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
			k.Forget(t)
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
