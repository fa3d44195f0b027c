package main

import (
	"context"
	"slices"

	"centurion"
	"centurion/server"
	"centurion/tui"
)

// account is a session with what it has used up itself and with its children. The sessions are read in one go, and after
// the mission: what a child has spent is never left out of what its parent has.
func account(ctx context.Context, api server.API, rec centurion.Session) (tui.Shown, error) {
	m, err := api.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return tui.Shown{}, err
	}
	tasks, err := api.Tasks(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, err
	}
	all, err := api.Sessions(ctx, m.ID)
	if err != nil {
		return tui.Shown{}, err
	}
	if i := slices.IndexFunc(all, func(s centurion.Session) bool { return s.ID == rec.ID }); i >= 0 {
		rec = all[i]
	}
	s := tui.Shown{Session: &rec}
	s.Own, s.Total = centurion.SpentBy(rec.ID, m.Noun(), all, taskNouns(tasks))
	return s, nil
}
