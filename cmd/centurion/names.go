package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/server"
)

// idOf returns the id of what a person has typed: an id as it is, and otherwise, of the latest mission, the newest task of
// an item (T2), the task of that number (w7) or the session at an address (0/3).
func idOf(ctx context.Context, api server.API, typed string) (string, error) {
	if strings.Contains(typed, "_") {
		return typed, nil
	}
	missions, err := api.Missions(ctx)
	if err != nil {
		return "", err
	}
	unknown := &centurion.Error{Op: "find", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not the id of a mission, task or session", typed),
		Hint: "ids begin with msn_, tsk_ or ses_; see: centurion ps, centurion tasks"}
	if len(missions) == 0 {
		return "", unknown
	}
	tasks, err := api.Tasks(ctx, missions[0].ID)
	if err != nil {
		return "", err
	}
	var names []string
	for _, t := range slices.Backward(tasks) {
		if strings.EqualFold(t.Name, typed) {
			return t.ID, nil
		}
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

// shownID is [idOf], and the latest mission for "".
func shownID(ctx context.Context, api server.API, typed string) (string, error) {
	if typed != "" {
		return idOf(ctx, api, typed)
	}
	m, err := api.Mission(ctx, "")
	return m.ID, err
}

// living returns the whole id of a mission or task that has not ended. The error has centurion.KindConflict if it has.
func living(ctx context.Context, api server.API, id string) (string, error) {
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
