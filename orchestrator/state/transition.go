package state

import (
	"cmp"
	"fmt"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// proofFacts copies the proof of the items into the event of a mission's end.
func proofFacts(m centurion.Mission, d *event.MissionEnd) {
	d.Tally, d.Evidence = m.Tally, cmp.Or(m.Evidence, centurion.EvidenceNone)
}

// MoveMission is the only way to change a mission's status: it writes the new row and its event together. change, if not nil, is
// applied to the record first.
func MoveMission(tx *store.Tx, id string, to centurion.MissionStatus, reason string, change func(*centurion.Mission)) (centurion.Mission, error) {
	m, err := tx.Mission(id)
	if err != nil {
		return m, err
	}
	if !m.Status.CanBecome(to) {
		return m, &centurion.Error{Op: "change mission " + id, Kind: centurion.KindConflict,
			Msg: fmt.Sprintf("it is %s and cannot become %s", m.Status, to)}
	}
	from := m.Status
	m.Status, m.Reason, m.Updated = to, reason, centurion.Now()
	if change != nil {
		change(&m)
	}
	if err := tx.PutMission(&m); err != nil {
		return m, err
	}
	data, err := MissionData(tx, m)
	if err != nil {
		return m, err
	}
	_, err = tx.Append(centurion.Event{Type: MissionEvent(from, to), Mission: m.ID, Session: m.Session, Data: event.Data(data)})
	return m, err
}

func MissionEvent(from, to centurion.MissionStatus) centurion.EventType {
	switch to {
	case centurion.MissionCompleted:
		return centurion.EventMissionCompleted
	case centurion.MissionFailed:
		return centurion.EventMissionFailed
	case centurion.MissionPaused:
		return centurion.EventMissionPaused
	case centurion.MissionBlocked:
		return centurion.EventMissionBlocked
	case centurion.MissionCancelled:
		return centurion.EventMissionCancelled
	}
	if from.Alive() {
		return centurion.EventMissionUpdated
	}
	return centurion.EventMissionResumed
}

// MissionData is the data of a mission's events: its current state, and at its end the whole summary.
func MissionData(tx *store.Tx, m centurion.Mission) (any, error) {
	if m.Status.Alive() {
		return Living(m), nil
	}
	counts, err := tx.TaskCounts(m.ID)
	if err != nil {
		return nil, err
	}
	end := event.MissionEnd{Tokens: m.Usage.Tokens, Cost: m.Usage.USD, Unpriced: m.Usage.Unpriced, DurationMS: m.ElapsedMS,
		Tasks: counts, Reason: m.Reason, Summary: m.Summary, Profile: m.Options.Profile, Branch: m.Branch, Merged: m.Merged != nil}
	proofFacts(m, &end)
	return end, nil
}

// Living is the event data of a living mission.
func Living(m centurion.Mission) event.MissionData {
	return event.MissionData{Goal: m.Goal, Directory: m.Directory, Status: m.Status, Agent: m.Options.Agent, Model: m.Options.Model,
		Level: m.Level, LevelFrom: m.LevelFrom, Usage: &m.Usage, MaxCost: m.Options.MaxCost, MaxTokens: m.Options.MaxTokens,
		Isolation: m.Isolation, Branch: m.Branch, Base: m.Base, Confinement: m.Confinement}
}

// MoveTask is the only way to change a task's status. change, if not nil, is applied to the record first. Staying in the same status is
// allowed and appends no event: it records other changes. The end time and reason of an ended task never change.
func MoveTask(tx *store.Tx, id string, to centurion.TaskStatus, change func(*centurion.Task)) (centurion.Task, error) {
	t, err := tx.Task(id)
	if err != nil {
		return t, err
	}
	if t.Status != to && !t.Status.CanBecome(to) {
		return t, &centurion.Error{Op: "change task " + id, Kind: centurion.KindConflict,
			Msg: fmt.Sprintf("it is %s and cannot become %s", t.Status, to)}
	}
	from, why := t.Status, t.Reason
	t.Status = to
	if from != to || !to.Ended() {
		t.Reason = ""
	}
	if t.Race != nil && to != centurion.TaskWaiting {
		t.Race.Held = false
	}
	if from != to && to.Ended() {
		t.Ended = centurion.Now()
		if err := closeAsksOf(tx, t); err != nil {
			return t, err
		}
	}
	if change != nil {
		change(&t)
	}
	if err := tx.PutTask(&t); err != nil {
		return t, err
	}
	if from == to && why == t.Reason {
		return t, nil
	}
	_, err = tx.Append(TaskFact(t, taskEvent(from, t)))
	return t, err
}

func taskEvent(from centurion.TaskStatus, t centurion.Task) centurion.EventType {
	switch t.Status {
	case centurion.TaskRunning:
		if from == centurion.TaskQueued && t.Attempt <= 1 {
			return centurion.EventTaskStarted
		}
		if from == centurion.TaskQueued {
			return centurion.EventTaskRetrying
		}
		return centurion.EventTaskUpdated
	case centurion.TaskQueued:
		if from == "" {
			return centurion.EventTaskQueued
		}
		return centurion.EventTaskUpdated
	case centurion.TaskWaiting:
		return centurion.EventTaskWaiting
	case centurion.TaskVerifying:
		return centurion.EventTaskVerifying
	case centurion.TaskCompleted:
		return centurion.EventTaskCompleted
	case centurion.TaskFailed:
		return centurion.EventTaskFailed
	case centurion.TaskCancelled:
		return centurion.EventTaskCancelled
	case centurion.TaskBlocked:
		return centurion.EventTaskBlocked
	}
	return centurion.EventTaskUpdated
}

func TaskFact(t centurion.Task, typ centurion.EventType) centurion.Event {
	d := event.TaskData{Agent: t.Agent, Title: t.Title, Name: t.Name(), Item: t.Item, Status: t.Status, Attempt: t.Attempt, Parent: t.Parent, Call: t.Call,
		Session: t.Session, Reason: t.Reason, Files: t.Files, Claims: t.Claims, Usage: &t.Usage}
	if t.Status.Ended() {
		d.Result, d.Error = centurion.Clip(t.Result, 4000), t.Error
	}
	return centurion.Event{Type: typ, Mission: t.Mission, Session: t.Session, Task: t.ID, Data: event.Data(d)}
}
