package retention

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"centurion"
)

// TidyOptions are the options of [Keeper.Tidy].
type TidyOptions struct {
	// OlderThan, if set, replaces all configured ages: everything that ended longer ago is dropped, archived and removed, regardless of
	// KeepTasks.
	OlderThan *time.Duration `json:"older_than,omitempty"`
	DryRun    bool           `json:"dry_run,omitempty"` // only report
	// Checkouts also removes unused pooled checkouts, which are kept to start the next mission quickly.
	Checkouts bool `json:"checkouts,omitempty"`
}

// TidyReport is the result of a Tidy, or of its dry run.
type TidyReport struct {
	Missions int  `json:"missions"` // ended missions
	Sessions int  `json:"sessions"` // dropped: they can no longer be resumed
	Archived int  `json:"archived"` // records written to the archive
	Removed  int  `json:"removed"`  // tasks removed with their sessions and messages
	DryRun   bool `json:"dry_run"`

	Aside     []string `json:"aside,omitempty"`     // removed directories of git-ignored files, of tasks and missions that were removed or ended long ago
	Worktrees []string `json:"worktrees,omitempty"` // removed checkouts and branches; a dry run lists only the checkouts, if requested
}

// Tidy does at once, for ended missions, what [Keeper.Clean] does over time. Other missions and data in use are left alone. It goes by
// the stored times, so a wrong clock matters.
func (k *Keeper) Tidy(ctx context.Context, o TidyOptions) (TidyReport, error) {
	k.sweeping.Lock()
	defer k.sweeping.Unlock()
	p, err := k.plan(ctx, o)
	if err != nil {
		return p.report, err
	}
	if o.DryRun {
		p.report.Worktrees, err = k.pooled(ctx, o)
		return p.report, err
	}
	rep := TidyReport{Missions: p.report.Missions}
	if rep.Sessions, err = k.dropSessions(ctx, p.drop); err != nil {
		return rep, err
	}
	if rep.Archived, err = k.Archive(ctx, p.archive); err != nil {
		return rep, err
	}
	if rep.Removed, rep.Aside, err = k.Remove(ctx, p.remove, len(p.remove)); err != nil {
		return rep, err
	}
	own, err := k.removeOwnAside(ctx, p.own)
	if rep.Aside = append(rep.Aside, own...); err != nil {
		return rep, err
	}
	rep.Worktrees, err = k.tidyWorktrees(ctx, o.Checkouts)
	return rep, err
}

// tidyPlan is the work of one Tidy.
type tidyPlan struct {
	drop, archive []string
	remove        []centurion.Task
	own           []string // missions with git-ignored files of their own agent
	report        TidyReport
}

func (k *Keeper) plan(ctx context.Context, o TidyOptions) (tidyPlan, error) {
	p := tidyPlan{report: TidyReport{DryRun: o.DryRun}}
	missions, err := k.Store.Missions(ctx)
	if err != nil {
		return p, err
	}
	all := map[string]*taskRows{}
	var old []centurion.Task
	for _, m := range missions {
		if !m.Status.Ended() && m.Status != centurion.MissionFailed || k.Working(m.ID) {
			continue
		}
		p.report.Missions++
		r, err := k.rows(ctx, m)
		if err != nil {
			return p, err
		}
		all[m.ID] = r
		for i := range r.tasks {
			k.planTask(&p, r, &r.tasks[i], o)
		}
		old = append(old, r.tasks...)
		if err := k.planSessions(ctx, &p, r, o); err != nil {
			return p, err
		}
	}
	n, err := k.Store.TaskCount(ctx)
	oldestFirst(old)
	for _, t := range old {
		wanted := n-len(p.remove) > k.KeepTasks
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

func (k *Keeper) rows(ctx context.Context, m centurion.Mission) (*taskRows, error) {
	r := &taskRows{mission: m}
	var err error
	if r.tasks, err = k.Store.Tasks(ctx, m.ID); err == nil {
		r.deliveries, err = k.Store.Deliveries(ctx, m.ID)
	}
	return r, err
}

// older reports whether a task ended at least d ago.
func older(t centurion.Task, d time.Duration) bool {
	return t.Status.Ended() && time.Since(t.Ended.Time) >= d
}

// planTask plans what happens to a task's record, and treats it as archived from then on.
func (k *Keeper) planTask(p *tidyPlan, r *taskRows, t *centurion.Task, o TidyOptions) {
	after := k.ArchiveFailedAfter
	if t.Status == centurion.TaskCompleted {
		after = k.ArchiveAfter
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
func (k *Keeper) planSessions(ctx context.Context, p *tidyPlan, r *taskRows, o TidyOptions) error {
	sessions, err := k.Store.Sessions(ctx, r.mission.ID)
	if err != nil {
		return err
	}
	keep := k.Retention
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

// tidyWorktrees releases the checkouts left by ended tasks and missions, and removes unneeded parts of the repository: pooled checkouts
// beyond the kept ones (or all of them), and branches whose work is on the user's branch.
func (k *Keeper) tidyWorktrees(ctx context.Context, all bool) ([]string, error) {
	missions, err := k.Store.Missions(ctx)
	if err != nil {
		return nil, err
	}
	needed, isolated := map[string]bool{}, false
	for _, m := range missions {
		isolated = isolated || m.Isolation == centurion.IsolationWorktree
		needed[m.ID] = !m.Status.Ended() || k.Working(m.ID)
	}
	if !isolated {
		return nil, nil
	}
	repo, err := k.Project.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil // the project is no longer in a repository
	}
	if err != nil {
		return nil, err
	}
	for _, m := range missions {
		if m.Isolation == centurion.IsolationWorktree && !k.Working(m.ID) {
			err = errors.Join(err, k.Project.LeftBehind(ctx, m))
		}
	}
	if err != nil {
		return nil, err
	}
	removed, err := repo.GC(ctx, func(ref string) bool {
		for part := range strings.SplitSeq(ref, "/") {
			if needed[part] {
				return true
			}
		}
		return false
	})
	if err != nil || !all {
		return removed, err
	}
	more, err := repo.DropPool(ctx)
	return append(more, removed...), err
}

// pooled lists the unused checkouts, if requested.
func (k *Keeper) pooled(ctx context.Context, o TidyOptions) ([]string, error) {
	if !o.Checkouts {
		return nil, nil
	}
	missions, err := k.Store.Missions(ctx)
	isolated := func(m centurion.Mission) bool { return m.Isolation == centurion.IsolationWorktree }
	if err != nil || !slices.ContainsFunc(missions, isolated) {
		return nil, err
	}
	repo, err := k.Project.Repository(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return repo.Pooled(), nil
}
