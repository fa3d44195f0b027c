package trial

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/store"
)

const (
	f1Writers = 50
	f1Quick   = 2  // seconds of each measurement
	f1Full    = 20 // likewise
)

// f1 measures how many task transitions are acknowledged per second: the row, its event, and the disk. Each writer waits for its own
// acknowledgement, like a worker. Only the store can fail it.
func f1(ctx context.Context, t *T) {
	seconds := t.Scale(f1Quick, f1Full)
	together := transitions(ctx, t, "together.db", f1Writers, time.Duration(seconds)*time.Second)
	alone := transitions(ctx, t, "alone.db", 1, time.Duration(seconds)*time.Second)
	fsync, err := fsyncTime(t.Dir)
	t.Must(err)
	t.Figure(fmt.Sprintf("%d writers, a second", f1Writers), together)
	t.Figure("one by one, a second", alone)
	t.Figure("fsync", fmt.Sprintf("%.2f ms", float64(fsync.Microseconds())/1000))
}

// transitions moves tasks from one state to the next for a time, and returns how many moves a second were acknowledged.
func transitions(ctx context.Context, t *T, name string, writers int, d time.Duration) int {
	s, err := store.Open(ctx, filepath.Join(t.Dir, name))
	t.Must(err)
	defer s.Close()
	tasks := make([]centurion.Task, writers)
	t.Must(s.Update(ctx, func(tx *store.Tx) error {
		for i := range tasks {
			tasks[i] = centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: "msn_f1", Parent: "ses_f1", Call: fmt.Sprint(i),
				Agent: "worker", Title: "Move", Prompt: "Move.", Status: centurion.TaskRunning, Created: centurion.Now()}
			if err := tx.PutTask(&tasks[i]); err != nil {
				return err
			}
		}
		return nil
	}))
	acknowledged := make([]int, writers)
	var g guard.Group
	start := time.Now()
	for i := range tasks {
		g.Go("writer", func() error {
			for time.Since(start) < d && ctx.Err() == nil {
				if err := s.Update(ctx, func(tx *store.Tx) error { return move(tx, tasks[i].ID) }); err != nil {
					return err
				}
				acknowledged[i]++
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Failf("the store refused a write: %v", err)
	}
	took := time.Since(start)
	sum := 0
	for _, n := range acknowledged {
		sum += n
	}
	if seq := s.LastSeq(); seq != int64(sum) {
		t.Failf("%d moves were acknowledged and the journal has %d rows", sum, seq)
	}
	return int(float64(sum) / took.Seconds())
}

// move takes a task from running to verifying and back, with its event, in one transaction.
func move(tx *store.Tx, id string) error {
	task, err := tx.Task(id)
	if err != nil {
		return err
	}
	to, typ := centurion.TaskVerifying, centurion.EventTaskVerifying
	if task.Status == to {
		to, typ = centurion.TaskRunning, centurion.EventTaskUpdated
	}
	task.Status = to
	if err := tx.PutTask(&task); err != nil {
		return err
	}
	_, err = tx.Append(centurion.Event{Type: typ, Mission: task.Mission, Task: task.ID, Data: event.Data(event.TaskData{Agent: task.Agent,
		Title: task.Title, Status: task.Status, Attempt: task.Attempt, Parent: task.Parent})})
	return err
}
