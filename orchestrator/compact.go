package orchestrator

import (
	"context"
	"errors"

	"centurion"
	"centurion/session"
)

// Shorten replaces the history of a session by a summary, and reports whether it has: at once in a mission's own conversation that nobody
// works on, whose summary is written by the model with that name, "" for its own. Any other session is asked to be shortened before its
// next request, if its mission goes on. The errors are those of shells.Desk.Shorten and mail.Desk.Compact.
func (h *Host) Shorten(ctx context.Context, id, model string) (done bool, err error) {
	rec, err := h.cfg().Store.Session(ctx, id)
	if err != nil || rec.Metadata.Task != "" {
		return false, errors.Join(err, h.Mail.Compact(ctx, id))
	}
	mission := rec.Metadata.Mission
	h.rest(ctx, mission, id)
	if m := h.running(mission); m != nil {
		now, err := h.cfg().Store.Mission(ctx, mission)
		if err != nil || now.Status.Alive() {
			return false, errors.Join(err, h.Mail.Compact(ctx, id))
		}
		select { // its end is recorded
		case <-m.stopped:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	if err = h.Shell.Shorten(ctx, id, model); errors.Is(err, session.ErrUnended) {
		return false, h.Mail.Compact(ctx, id)
	}
	return err == nil, err
}

// renew gives the session of a mission's own agent what it is given after a compaction; nothing if that agent is gone.
func (h *Host) renew(ctx context.Context, rec *centurion.Session) {
	m, err := h.cfg().Store.Mission(ctx, rec.Metadata.Mission)
	if err != nil {
		return
	}
	if a, err := h.cfg().cast(m.Options.Profile).Get(rec.Agent); err == nil {
		h.cfg().briefs.Renew(ctx, a, rec)
	}
}
