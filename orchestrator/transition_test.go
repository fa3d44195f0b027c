package orchestrator

import (
	"encoding/json"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Every move that the nouns allow is written with its event; every other is refused and leaves the record as it was.
func TestMoveTask(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		ends := map[centurion.TaskStatus]centurion.EventType{
			centurion.TaskQueued: centurion.EventTaskUpdated, centurion.TaskRunning: centurion.EventTaskUpdated,
			centurion.TaskWaiting: centurion.EventTaskWaiting, centurion.TaskVerifying: centurion.EventTaskVerifying,
			centurion.TaskMerging: centurion.EventTaskUpdated, centurion.TaskCompleted: centurion.EventTaskCompleted,
			centurion.TaskFailed: centurion.EventTaskFailed, centurion.TaskCancelled: centurion.EventTaskCancelled,
			centurion.TaskBlocked: centurion.EventTaskBlocked,
		}
		for _, from := range append([]centurion.TaskStatus{""}, centurion.TaskStatuses...) {
			for _, to := range centurion.TaskStatuses {
				task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Parent: m.Session, Status: from, Attempt: 1}
				err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&task) })
				if err != nil {
					t.Fatal(err)
				}
				before := r.store.LastSeq()
				err = r.store.Update(r.ctx, func(tx *store.Tx) error {
					_, err := state.MoveTask(tx, task.ID, to, nil)
					return err
				})
				now, _ := r.store.Task(r.ctx, task.ID)
				told, _ := r.store.Events(r.ctx, store.EventQuery{After: before})
				name := string(from) + " to " + string(to)
				switch {
				case from == to:
					if err != nil || len(told) != 0 {
						t.Errorf("%s: %v, told %v", name, err, told)
					}
				case !from.CanBecome(to):
					if centurion.KindOf(err) != centurion.KindConflict || now.Status != from || len(told) != 0 {
						t.Errorf("%s: %v, is %s, told %v", name, err, now.Status, told)
					}
				default:
					want := ends[to]
					switch {
					case from == "":
						want = centurion.EventTaskQueued
					case from == centurion.TaskQueued && to == centurion.TaskRunning:
						want = centurion.EventTaskStarted
					}
					if err != nil || now.Status != to || len(told) != 1 || told[0].Type != want || told[0].Task != task.ID {
						t.Errorf("%s: %v, is %s, told %v; want %s", name, err, now.Status, told, want)
					}
					if now.Ended.IsZero() == to.Ended() {
						t.Errorf("%s: ended at %v", name, now.Ended)
					}
				}
			}
		}
	})
}

// What is recorded of a task that has ended, such as that its work was taken back, neither ends it again nor tells so.
func TestEndsOnce(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		ended := centurion.MillisTime(time.Now().Add(-time.Hour).UnixMilli())
		task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Parent: m.Session, Status: centurion.TaskBlocked,
			Reason: "which database?", Ended: ended, Attempt: 1}
		if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutTask(&task) }); err != nil {
			t.Fatal(err)
		}
		before := r.store.LastSeq()
		undone := centurion.MillisTime(time.Now().UnixMilli())
		if err := state.ChangeTasks(r.ctx, r.store, []centurion.Task{task}, func(t *centurion.Task) { t.Undone = undone }, nil); err != nil {
			t.Fatal(err)
		}
		now, err := r.store.Task(r.ctx, task.ID)
		if err != nil || !now.Ended.Equal(ended.Time) || now.Reason != task.Reason || !now.Undone.Equal(undone.Time) {
			t.Errorf("it is %+v, %v", now, err)
		}
		if told, _ := r.store.Events(r.ctx, store.EventQuery{After: before}); len(told) != 0 {
			t.Errorf("told: %v", told)
		}
	})
}

func TestMoveMission(t *testing.T) {
	states := []centurion.MissionStatus{centurion.MissionPlanning, centurion.MissionRunning, centurion.MissionPaused, centurion.MissionBlocked,
		centurion.MissionCompleted, centurion.MissionFailed, centurion.MissionCancelled}
	bubble(t, nil, func(r *rig) {
		for _, from := range states {
			for _, to := range states {
				m := centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Status: from, Reason: "before"}
				if err := r.store.Update(r.ctx, func(tx *store.Tx) error { return tx.PutMission(&m) }); err != nil {
					t.Fatal(err)
				}
				err := r.store.Update(r.ctx, func(tx *store.Tx) error {
					_, err := state.MoveMission(tx, m.ID, to, "why", nil)
					return err
				})
				now, _ := r.store.Mission(r.ctx, m.ID)
				told := r.events(m.ID)
				name := string(from) + " to " + string(to)
				if !from.CanBecome(to) {
					if centurion.KindOf(err) != centurion.KindConflict || now.Status != from || now.Reason != "before" || len(told) != 0 {
						t.Errorf("%s: %v, is %s, told %v", name, err, now.Status, told)
					}
					continue
				}
				want := centurion.EventType("mission." + string(to))
				if to.Alive() {
					want = centurion.EventMissionResumed
					if from.Alive() {
						want = centurion.EventMissionUpdated
					}
				}
				if err != nil || now.Status != to || now.Reason != "why" || len(told) != 1 || told[0].Type != want {
					t.Errorf("%s: %v, is %s, told %v; want %s", name, err, now.Status, told, want)
					continue
				}
				var data map[string]any
				if err := json.Unmarshal(told[0].Data, &data); err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{"tokens", "cost", "duration_ms", "tasks", "verified", "unverified", "reason"} {
					if _, ok := data[key]; !ok && told[0].Type.EndsMission() {
						t.Errorf("%s: the last event does not tell %s: %s", name, key, told[0].Data)
					}
				}
			}
		}
	})
}
