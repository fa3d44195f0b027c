// Package lookup finds what a person names on the command line: missions, tasks, sessions and open asks. It changes nothing.
package lookup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/server"
)

// ID resolves what a person has typed: an id as it is, and otherwise, in the latest mission, the newest task of an item (T2), the task
// with that number (w7) or the session at an address (0/3).
func ID(ctx context.Context, api server.API, typed string) (string, error) {
	if strings.Contains(typed, "_") {
		return typed, nil
	}
	missions, err := api.Missions(ctx)
	if err != nil {
		return "", err
	}
	unknown := unknownID("find", typed)
	if len(missions) == 0 {
		return "", unknown
	}
	tasks, err := api.Tasks(ctx, missions[0].ID)
	if err != nil {
		return "", err
	}
	var names []string
	if t, ok := centurion.TaskNamed(Tasks(tasks), typed); ok {
		return t.ID, nil
	}
	for _, t := range slices.Backward(tasks) {
		names = append(names, t.Name)
	}
	sessions, err := api.Sessions(ctx, missions[0].ID)
	if err != nil {
		return "", err
	}
	for _, s := range sessions {
		if strings.Contains(typed, "/") && strings.Trim(s.Metadata.Address, "/") == strings.Trim(typed, "/") {
			return s.ID, nil
		}
		names = append(names, s.Metadata.Address)
	}
	unknown.Msg += fmt.Sprintf(", nor an item or an address of mission %s", missions[0].ID)
	if near := centurion.Nearest(typed, names); near != "" {
		unknown.Hint = fmt.Sprintf("did you mean %q? See also: centurion tasks", near)
	}
	return "", unknown
}

// IDOrLatest is [ID], but returns the latest mission for "".
func IDOrLatest(ctx context.Context, api server.API, typed string) (string, error) {
	if typed != "" {
		return ID(ctx, api, typed)
	}
	m, err := api.Mission(ctx, "")
	return m.ID, err
}

// Living returns the full id of a mission or task that has not ended. The error has centurion.KindConflict if it has.
func Living(ctx context.Context, api server.API, id string) (string, error) {
	var full, status string
	var over bool
	if strings.HasPrefix(id, string(centurion.PrefixTask)+"_") {
		t, err := api.Task(ctx, id)
		if err != nil {
			return "", err
		}
		full, status, over = t.ID, string(t.Status), !t.Status.CanBecome(centurion.TaskCancelled)
	} else {
		m, err := api.Mission(ctx, id)
		if err != nil {
			return "", err
		}
		full, status, over = m.ID, string(m.Status), !m.Status.CanBecome(centurion.MissionCancelled)
	}
	if over {
		return "", &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s is %s already", full, status), Hint: "see: centurion show " + full}
	}
	return full, nil
}

// Work returns the id of the mission or task that a person means, the latest mission's for "". For an item it is the newest task that
// has changed something.
func Work(ctx context.Context, api server.API, typed string) (string, error) {
	if typed == "" {
		m, err := api.Mission(ctx, "")
		return m.ID, err
	}
	id, err := ID(ctx, api, typed)
	if err != nil || strings.Contains(typed, "_") {
		return id, err
	}
	if strings.HasPrefix(id, string(centurion.PrefixSession)+"_") {
		s, err := api.Session(ctx, id)
		if err != nil {
			return "", err
		}
		return cmp.Or(s.Metadata.Task, s.Metadata.Mission), nil
	}
	m, err := api.Mission(ctx, "")
	if err != nil {
		return id, nil
	}
	tasks, err := api.Tasks(ctx, m.ID)
	for _, t := range slices.Backward(tasks) {
		if strings.EqualFold(t.Item, typed) && (len(t.Landed) > 0 || t.Checkout != nil) {
			return t.ID, err
		}
	}
	return id, err
}

// Conversation returns the id of the session that a person means: a session, a task's, or the first of a mission.
func Conversation(ctx context.Context, api server.API, typed string) (string, error) {
	id, err := ID(ctx, api, typed)
	if err != nil {
		return "", err
	}
	switch kind, _, _ := strings.Cut(id, "_"); centurion.Prefix(kind) {
	case centurion.PrefixMission:
		m, err := api.Mission(ctx, id)
		return m.Session, err
	case centurion.PrefixTask:
		t, err := api.Task(ctx, id)
		if err == nil && t.Session == "" {
			err = &centurion.Error{Kind: centurion.KindConflict, Msg: t.ID + " has no conversation yet: it is " + string(t.Status), Hint: "see: centurion show " + t.ID}
		}
		return t.Session, err
	case centurion.PrefixSession:
		s, err := api.Session(ctx, id)
		return s.ID, err
	case centurion.PrefixMessage:
		return "", &centurion.Error{Kind: centurion.KindUsage, Msg: id + " is a message, not a session",
			Hint: "name its session, and the message with --at or --to; see: centurion show --tree 0/"}
	}
	return "", unknownID("", typed)
}

// Session finds the mission and the session of an id.
func Session(ctx context.Context, api server.API, id string) (mission, session string, err error) {
	q, err := Events(ctx, api, id)
	if err != nil || q.Session != "" {
		return q.Mission, q.Session, err
	}
	if q.Task != "" {
		t, err := api.Task(ctx, q.Task)
		return q.Mission, t.Session, err
	}
	m, err := api.Mission(ctx, q.Mission)
	return q.Mission, m.Session, err
}

// Events selects the events of one id, or of the latest mission for "".
func Events(ctx context.Context, api server.API, id string) (server.EventQuery, error) {
	if id != "" {
		var err error
		if id, err = ID(ctx, api, id); err != nil {
			return server.EventQuery{}, err
		}
	}
	switch {
	case strings.HasPrefix(id, string(centurion.PrefixTask)+"_"):
		t, err := api.Task(ctx, id)
		return server.EventQuery{Mission: t.Mission, Task: t.ID}, err
	case strings.HasPrefix(id, string(centurion.PrefixSession)+"_"):
		s, err := api.Session(ctx, id)
		return server.EventQuery{Mission: s.Metadata.Mission, Session: s.ID}, err
	}
	m, err := api.Mission(ctx, id)
	return server.EventQuery{Mission: m.ID}, err
}

// ToPause finds the mission to pause: the named one, else the newest running one. The error has centurion.KindConflict for a mission
// that is not running.
func ToPause(ctx context.Context, api server.API, id string) (m server.Mission, err error) {
	if id == "" {
		all, err := api.Missions(ctx)
		if err != nil {
			return m, err
		}
		for _, can := range []func(server.Mission) bool{
			func(m server.Mission) bool { return m.Status.Alive() },
			func(m server.Mission) bool { return m.Reason == server.Interrupted }, // the next host would resume it
		} {
			if i := slices.IndexFunc(all, can); i >= 0 {
				return all[i], nil
			}
		}
	}
	m, err = api.Mission(ctx, id)
	if err != nil || m.Status.Alive() || m.Reason == server.Interrupted {
		return m, err
	}
	e := &centurion.Error{Op: "pause", Kind: centurion.KindConflict, Msg: fmt.Sprintf("mission %s is %s already", m.ID, m.Status), Hint: "see: centurion show " + m.ID}
	if m.Status == centurion.MissionPaused {
		e.Hint = "continue it with: centurion resume " + m.ID
	}
	return m, e
}

// Location is where something works, as JSON.
type Location struct {
	ID     string `json:"id"`
	Dir    string `json:"dir"`
	Branch string `json:"branch,omitempty"` // empty if it works in the project's own directory
	Start  string `json:"start,omitempty"`  // the commit that its work is based on

	Overlay bool `json:"-"` // nothing is at Dir yet
}

// Checkout finds where a task, or a mission's Commander, works.
func Checkout(ctx context.Context, api server.API, id string) (Location, error) {
	at := Location{ID: id}
	var own *centurion.Checkout
	mission, ended := id, ""
	if strings.HasPrefix(id, string(centurion.PrefixTask)+"_") {
		t, err := api.Task(ctx, id)
		if err != nil {
			return at, err
		}
		own, mission = t.Checkout, t.Mission
		if t.Status.Ended() {
			ended = string(t.Status)
		}
	}
	m, err := api.Mission(ctx, mission)
	if err != nil {
		return at, err
	}
	if mission == id {
		own = m.Checkout
		if m.Status.Ended() {
			ended = string(m.Status)
		}
	}
	switch {
	case m.Isolation != "worktree":
		at.Dir = m.Directory
	case own != nil:
		at.Dir, at.Branch, at.Start, at.Overlay = own.Dir, own.Branch, own.Start, own.Overlay
	case ended != "":
		return at, &centurion.Error{Op: "path", Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s is %s: its checkout is given back, and what was merged is on the branch %s", id, ended, m.Branch),
			Hint: fmt.Sprintf("look at it with: git log %s; what was not merged: git branch --list 'centurion/%s/*'", m.Branch, m.ID)}
	default:
		return at, &centurion.Error{Op: "path", Kind: centurion.KindConflict, Msg: id + " has written nothing yet and has no checkout",
			Hint: "it gets one when it first writes; until then it reads the branch " + m.Branch}
	}
	return at, nil
}

func unknownID(op, typed string) *centurion.Error {
	return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not the id of a mission, task or session", typed),
		Hint: "ids begin with msn_, tsk_ or ses_; see: centurion ps, centurion tasks"}
}
