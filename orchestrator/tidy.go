package orchestrator

import (
	"context"
	"slices"
	"time"

	"centurion"
)

// TidyOptions says what [Host.Tidy] cleans.
type TidyOptions struct {
	// OlderThan, if it is not nil, takes the place of every configured age: what ended longer ago is dropped, archived and
	// removed, however many tasks are kept.
	OlderThan *time.Duration `json:"older_than,omitempty"`
	DryRun    bool           `json:"dry_run,omitempty"` // only say what would be done
	// Checkouts removes those that nobody uses, too, which are kept so that the next mission begins quickly.
	Checkouts bool `json:"checkouts,omitempty"`
}

// TidyReport is what was cleaned, or would be.
type TidyReport struct {
	Missions int  `json:"missions"` // that have ended
	Sessions int  `json:"sessions"` // dropped: they cannot be resumed any more
	Archived int  `json:"archived"` // records written to the archive
	Removed  int  `json:"removed"`  // tasks removed with their sessions and messages
	DryRun   bool `json:"dry_run"`

	Aside     []string `json:"aside,omitempty"`     // directories with files that git ignores, of tasks and missions that were removed or ended long ago: removed, too
	Worktrees []string `json:"worktrees,omitempty"` // checkouts and branches that nobody needs any more, and that were removed; in a dry run only the checkouts that were asked for
}

// Tidy does at once, for the missions that have ended, what the cleaner does in time. What belongs to any other mission,
// and what somebody still needs, stays. By the stored times, so that a clock that was set wrong counts here.
func (h *Host) Tidy(ctx context.Context, o TidyOptions) (TidyReport, error) {
	h.cleaner.sweeping.Lock()
	defer h.cleaner.sweeping.Unlock()
	p, err := h.plan(ctx, o)
	if err != nil {
		return p.report, err
	}
	if o.DryRun {
		p.report.Worktrees, err = h.pooled(ctx, o)
		return p.report, err
	}
	rep := TidyReport{Missions: p.report.Missions}
	if rep.Sessions, err = h.dropSessions(ctx, p.drop); err != nil {
		return rep, err
	}
	if rep.Archived, err = h.archive(h.updates(ctx), p.archive); err != nil {
		return rep, err
	}
	if rep.Removed, rep.Aside, err = h.remove(ctx, p.remove, len(p.remove)); err != nil {
		return rep, err
	}
	own, err := h.removeOwnAside(ctx, p.own)
	if rep.Aside = append(rep.Aside, own...); err != nil {
		return rep, err
	}
	rep.Worktrees, err = h.tidyWorktrees(ctx, o.Checkouts)
	return rep, err
}

// tidyPlan is what there is to clean.
type tidyPlan struct {
	drop, archive []string
	remove        []centurion.Task
	own           []string // missions whose own agent has left files that git ignores
	report        TidyReport
}

func (h *Host) plan(ctx context.Context, o TidyOptions) (tidyPlan, error) {
	p := tidyPlan{report: TidyReport{DryRun: o.DryRun}}
	missions, err := h.cfg.Store.Missions(ctx)
	if err != nil {
		return p, err
	}
	all := map[string]*taskRows{}
	var old []centurion.Task
	for _, m := range missions {
		if !m.Status.Ended() && m.Status != centurion.MissionFailed || h.running(m.ID) != nil {
			continue
		}
		p.report.Missions++
		r, err := h.rows(ctx, m)
		if err != nil {
			return p, err
		}
		all[m.ID] = r
		for i := range r.tasks {
			h.planTask(&p, r, &r.tasks[i], o)
		}
		old = append(old, r.tasks...)
		if err := h.planSessions(ctx, &p, r, o); err != nil {
			return p, err
		}
	}
	n, err := h.cfg.Store.TaskCount(ctx)
	oldestFirst(old)
	for _, t := range old {
		wanted := n-len(p.remove) > h.cfg.KeepTasks
		if o.OlderThan != nil {
			wanted = older(t, *o.OlderThan)
		}
		if r := all[t.Mission]; wanted && r.removable(t.ID) {
			r.remove(t.ID)
			p.remove = append(p.remove, t)
			p.report.Aside = append(p.report.Aside, r.keptFor(t.Aside)...)
		}
	}
	p.report.Removed = len(p.remove)
	for _, m := range missions {
		if r := all[m.ID]; r != nil && o.OlderThan != nil && m.Status.Ended() && time.Since(m.Updated.Time) >= *o.OlderThan && len(m.Aside) > 0 {
			p.own = append(p.own, m.ID)
			r.mission.Aside = nil
			p.report.Aside = append(p.report.Aside, r.keptFor(m.Aside)...)
		}
	}
	return p, err
}

func (h *Host) rows(ctx context.Context, m centurion.Mission) (*taskRows, error) {
	r := &taskRows{mission: m}
	var err error
	if r.tasks, err = h.cfg.Store.Tasks(ctx, m.ID); err == nil {
		r.deliveries, err = h.cfg.Store.Deliveries(ctx, m.ID)
	}
	return r, err
}

// older reports whether a task ended at least d ago.
func older(t centurion.Task, d time.Duration) bool {
	return t.Status.Ended() && time.Since(t.Ended.Time) >= d
}

// planTask plans what becomes of a task's record, which is taken for archived from then on.
func (h *Host) planTask(p *tidyPlan, r *taskRows, t *centurion.Task, o TidyOptions) {
	after := h.cfg.ArchiveFailedAfter
	if t.Status == centurion.TaskCompleted {
		after = h.cfg.ArchiveAfter
	}
	if o.OlderThan != nil {
		after = *o.OlderThan
	}
	if !t.Archived.IsZero() || !older(*t, after) || t.Status == centurion.TaskBlocked && !r.mission.Status.Ended() {
		return
	}
	p.archive = append(p.archive, t.ID)
	p.report.Archived++
	t.Archived = centurion.Now()
}

// planSessions plans which sessions of a mission's tasks are dropped.
func (h *Host) planSessions(ctx context.Context, p *tidyPlan, r *taskRows, o TidyOptions) error {
	sessions, err := h.cfg.Store.Sessions(ctx, r.mission.ID)
	if err != nil {
		return err
	}
	keep := h.cfg.Retention
	if o.OlderThan != nil {
		keep = *o.OlderThan
	}
	for _, t := range r.tasks {
		living := slices.ContainsFunc(sessions, func(s centurion.Session) bool { return s.ID == t.Session && s.Time.Archived == 0 })
		if living && older(t, keep) && !r.later(t) && (t.Status != centurion.TaskBlocked || r.mission.Status.Ended()) {
			p.drop = append(p.drop, t.ID)
			p.report.Sessions++
		}
	}
	return nil
}
