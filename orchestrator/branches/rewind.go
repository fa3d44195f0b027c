// Package branches rewinds conversations to older messages and forks them into new missions. Nothing is deleted: messages that leave a
// conversation's line stay as a branch of its tree.
package branches

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/revert"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace"
)

// Branches rewinds and forks conversations of one project.
type Branches struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	// Hold prevents work on the mission from starting until release is called. working is true if it runs already.
	Hold func(mission string) (working bool, release func())
	// Command is closed when the command that a person runs in a session has ended; it is nil if there is none.
	Command func(session string) <-chan struct{}
	// Rewound updates the project's notes of a session after its line has changed. It may be called twice.
	Rewound func(ctx context.Context, session string) error
	// Rest waits until a mission whose agent has answered has stopped.
	Rest  func(ctx context.Context, mission, session string)
	Files *revert.Files
}

// Rewound is the result of [Branches.Rewind].
type Rewound struct {
	Mission string                  `json:"mission"`
	Status  centurion.MissionStatus `json:"status"` // the mission's status afterwards
	Session string                  `json:"session"`
	Address string                  `json:"address"`
	From    string                  `json:"from"`           // the newest message of the old line
	Leaf    string                  `json:"leaf"`           // the newest message of the new line
	Undone  int                     `json:"undone"`         // messages that left the line
	Mark    string                  `json:"mark,omitempty"` // the name of From, which undoes the rewind; empty if nothing was left behind
}

// Rewind moves a conversation to an older message, or to one of another branch. A mark names the current message first. to is the id of
// a message or a prefix of it, a mark, or -N for N messages back; empty leaves the conversation where it is. Nothing is deleted:
// messages that leave the line stay as a branch, under the mark in the result. Files, plan and tasks do not change. Rewinding the first
// session of an ended mission pauses the mission, so that it can be resumed.
//
// The error has centurion.KindUsage for a bad mark or an ambiguous id, KindNotFound for a missing message, and KindConflict if the
// session's mission is running or its task has ended.
func (b *Branches) Rewind(ctx context.Context, session, to, mark string) (Rewound, error) {
	if mark != "" || to == "" {
		if err := checkMark(mark); err != nil {
			return Rewound{}, err
		}
	}
	rec, err := b.Store.Session(ctx, session)
	if err != nil {
		return Rewound{}, err
	}
	working, release := b.Hold(rec.Metadata.Mission)
	defer release()
	if to != "" && b.Command(session) != nil {
		return Rewound{}, commandRuns("rewind", session)
	}
	if to != "" && working {
		return Rewound{}, &centurion.Error{Op: "rewind", Kind: centurion.KindConflict,
			Msg:  fmt.Sprintf("mission %s is being worked on", rec.Metadata.Mission),
			Hint: fmt.Sprintf("stop it first: centurion pause %s; or copy the conversation: centurion fork %s", rec.Metadata.Mission, session)}
	}
	m, err := b.Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return Rewound{}, err
	}
	plan, err := plan.OwnPath(ctx, b.Workspace, m)
	if err != nil {
		return Rewound{}, err
	}
	var r Rewound
	err = b.Store.Update(ctx, func(tx *store.Tx) (err error) {
		r, err = rewind(tx, session, to, mark, plan)
		return err
	})
	if err == nil && r.Leaf != r.From {
		err = b.Rewound(ctx, session)
	}
	return r, err
}

// commandRuns refuses to move the line of a session while a command of a person runs, which is recorded at its end.
func commandRuns(op, session string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "a command of yours runs in session " + session, Hint: "wait for its end, or end it with: centurion abort " + session}
}

// rewind moves the leaf, within tx. plan is the path for the plan of a mission that is paused again.
func rewind(tx *store.Tx, session, to, mark, plan string) (Rewound, error) {
	t, err := tx.Tree(session)
	if err != nil {
		return Rewound{}, err
	}
	rec := &t.Session
	m, err := tx.Mission(rec.Metadata.Mission)
	if err != nil {
		return Rewound{}, err
	}
	if t.Leaf == "" {
		return Rewound{}, noMessages("rewind", session)
	}
	r := Rewound{Mission: m.ID, Status: m.Status, Session: session, Address: rec.Metadata.Address, From: t.Leaf, Leaf: t.Leaf, Mark: mark}
	if to != "" {
		if err := rewindable(tx, rec); err != nil {
			return r, err
		}
		if r.Leaf, err = messageOf(t, to); err != nil {
			return r, err
		}
	}
	rec.Metadata.Marks = maps.Clone(rec.Metadata.Marks)
	if rec.Metadata.Marks == nil {
		rec.Metadata.Marks = map[string]string{}
	}
	if mark != "" {
		rec.Metadata.Marks[mark] = t.Leaf
	}
	if r.Leaf == t.Leaf {
		return r, tx.PutSession(rec)
	}
	if err := r.move(tx, t, m, centurion.Rewound{}); err != nil || session != m.Session || !m.Status.Ended() && m.Status != centurion.MissionFailed {
		return r, err
	}
	m, err = state.MoveMission(tx, m.ID, centurion.MissionPaused, state.Rewound, func(m *centurion.Mission) {
		m.Stands(centurion.Mission{Status: m.Status, Reason: m.Reason})
		m.Todo = plan
	})
	r.Status = m.Status
	return r, err
}

// move makes r.Leaf the newest message of the line; as says how the files stand. What was reverted of the conversation is decided by that.
func (r *Rewound) move(tx *store.Tx, t store.Tree, m centurion.Mission, as centurion.Rewound) error {
	rec := &t.Session
	r.Undone = undone(t, r.Leaf)
	if rec.Metadata.Marks == nil {
		rec.Metadata.Marks = map[string]string{}
	}
	if r.Undone > 0 && r.Mark == "" {
		r.Mark = nameOf(rec.Metadata.Marks, t.Leaf)
	}
	as.Leaf, as.Last = r.Leaf, t.Messages[len(t.Messages)-1].ID
	rec.Metadata.Rewound = &as
	rec.Metadata.Retry, rec.Metadata.Compact = nil, false // they belong to the old line
	if err := tx.PutSession(rec); err != nil {
		return err
	}
	if m.Revert != nil && rec.ID == m.Session {
		m.Revert = nil
		if err := tx.PutMission(&m); err != nil {
			return err
		}
	}
	_, err := tx.Append(centurion.Event{Type: centurion.EventRewound, Mission: m.ID, Session: rec.ID, Task: rec.Metadata.Task,
		Data: event.Data(event.RewoundData{From: r.From, To: r.Leaf, Mark: r.Mark, Undone: r.Undone})})
	return err
}

// rewindable refuses to rewind the conversation of a task whose result was delivered already.
func rewindable(tx *store.Tx, rec *centurion.Session) error {
	if rec.Metadata.Task == "" {
		return nil
	}
	t, err := tx.Task(rec.Metadata.Task)
	if err != nil || !t.Status.Ended() {
		return err
	}
	return &centurion.Error{Op: "rewind", Kind: centurion.KindConflict,
		Msg:  fmt.Sprintf("%s is the conversation of a task that is %s: its result was delivered, and no one would read another one", rec.Metadata.Address, t.Status),
		Hint: fmt.Sprintf("copy it into a mission of its own: centurion fork %s --at MESSAGE", rec.ID)}
}

func noMessages(op, session string) error {
	return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "session " + session + " has no messages yet",
		Hint: "see: centurion show " + session}
}

// undone counts the messages of the current line that are not on the line to leaf.
func undone(t store.Tree, leaf string) int {
	stays := map[string]bool{}
	for _, m := range t.Line(leaf) {
		stays[m.ID] = true
	}
	n := 0
	for _, m := range t.Line(t.Leaf) {
		if !stays[m.ID] {
			n++
		}
	}
	return n
}

// nameOf returns a mark of a message, creating one if needed.
func nameOf(marks map[string]string, message string) string {
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		if marks[name] == message {
			return name
		}
	}
	for n := 1; ; n++ {
		name := "before-rewind-" + strconv.Itoa(n)
		if _, taken := marks[name]; !taken {
			marks[name] = message
			return name
		}
	}
}

// afterRewind is told to a conversation that continues from an older message.
const afterRewind = "The person continues from this point of the conversation; later messages no longer count. Files, the todo list " +
	"and tasks were not reverted: look at their current state before you continue."

// afterRevert is told if files that it has changed could not go back, with their names.
const afterRevert = "The person continues from this point of the conversation; later messages no longer count. What you changed in files since " +
	"then was reverted, but not in %s: someone else has changed that, too."

// wordAfter is what a conversation is told after a rewind; "" if everything is as it was.
func wordAfter(r centurion.Rewound) string {
	switch {
	case !r.Whole:
		return afterRewind
	case len(r.Kept) > 0:
		return fmt.Sprintf(afterRevert, centurion.Clip(strings.Join(r.Kept, ", "), 1000))
	}
	return ""
}

// afterFork is told to a conversation that continues as a copy, with the id of the original mission.
const afterFork = "This conversation is a copy and continues in a mission of its own. Tasks and background commands that were started " +
	"above belong to mission %s; the project may have changed since."

// Word returns the notice for the Commander, whose session is rec, after its line was rewound or forked; "" if there is none.
func (b *Branches) Word(ctx context.Context, rec centurion.Session) (string, error) {
	if rec.Metadata.Rewound == nil && rec.Metadata.ForkedFrom == nil {
		return "", nil
	}
	t, err := b.Store.Tree(ctx, rec.ID)
	if err != nil {
		return "", err
	}
	mission, err := b.Store.Mission(ctx, rec.Metadata.Mission)
	switch {
	case err != nil:
		return "", err
	case t.Session.Metadata.Rewound != nil && t.Leaf == t.Session.Metadata.Rewound.Leaf:
		return wordAfter(*t.Session.Metadata.Rewound), b.Rewound(ctx, rec.ID) // the host may have crashed before this
	case rec.Metadata.ForkedFrom != nil && mission.Runs == 1:
		return fmt.Sprintf(afterFork, rec.Metadata.ForkedFrom.Mission), nil
	}
	return "", nil
}
