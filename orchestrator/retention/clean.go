package retention

import (
	"context"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// cleanRetry is the delay after a failure, such as a full disk.
const cleanRetry = time.Minute

// dues are the times at which a task is cleaned, on the monotonic clock, so that changes of the wall clock do not move them.
type dues struct {
	drop    time.Time // of its session; zero when dropped
	archive time.Time // of its record
}

// left returns the time until an ended task is due, between 0 and d even if the clocks of this host and of the one that saw the end
// disagree.
func left(ended centurion.Time, d time.Duration, now time.Time) time.Duration {
	return min(max(ended.Add(d).Sub(now.Round(0)), 0), d)
}

// dueOf returns when a task is cleaned. A blocked task may be resumed until its mission has ended.
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
	if archive.Before(drop) { // the record outlives the session
		archive = drop
	}
	return dues{drop: drop, archive: archive}, true
}

// Clean drops sessions, and archives and removes records, of tasks that ended long enough ago, until ctx ends. It is idle while nothing
// is due. Failures go to trouble, which may be nil, and are retried; it returns early only if another process owns the state. Only one
// Clean may run at a time.
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
			next, wake, says = cleanRetry, nil, err.Error() // not before the delay has passed
			k.Ended("")                                     // notifications may have been lost
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

// sleepUntil waits until it is woken or d has passed (0: forever). It returns false if ctx ended.
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

// round cleans what is due and returns the time until the next due, 0 for never.
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
		next = cleanRetry // the obstacle may be gone by then
	}
	return next, nil
}

// cleanBatch limits the tasks cleaned in one transaction, so that others are not blocked for long.
const cleanBatch = 50

// learn adds ended tasks to known: those in ended, or with all everything in the store.
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

// dropSessions drops the sessions of ended tasks, so that they cannot be resumed, and frees their memory. It returns the number
// dropped.
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

// dropSession marks the session of an ended task as dropped and publishes that. It returns false if there was nothing to drop.
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
