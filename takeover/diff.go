package takeover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"centurion"
	"centurion/text"
	"centurion/worktree"
)

// DiffOptions selects the output of a diff.
type DiffOptions struct {
	Patch bool     `json:"patch,omitempty"` // include the text
	Color bool     `json:"color,omitempty"` // with ANSI colours
	Paths []string `json:"paths,omitempty"` // limits the text to these files and directories, relative to the repository's top; Files stays complete
}

// Change is the change made by a mission or a task.
type Change struct {
	Mission   string                 `json:"mission"`
	Task      string                 `json:"task,omitempty"`
	Item      string                 `json:"item,omitempty"`
	Title     string                 `json:"title"` // the goal, or the task's title
	Isolation string                 `json:"isolation"`
	Commits   []string               `json:"commits,omitempty"` // of the mission's branch, oldest first
	Working   string                 `json:"working,omitempty"` // the directory whose uncommitted work is included
	Undone    centurion.Time         `json:"undone,omitzero"`   // when a person undid it
	Files     []centurion.FileChange `json:"files"`
	Patch     string                 `json:"patch,omitempty"`
	Raw       []byte                 `json:"raw,omitempty"` // the text as bytes, if it is not valid UTF-8
}

// Bytes returns the unchanged text of the change.
func (c Change) Bytes() []byte {
	if c.Raw != nil {
		return c.Raw
	}
	return []byte(c.Patch)
}

// step is a change between two commits or trees.
type step struct{ from, to, title string }

// Diff returns the changes of a mission since its base, or those of a task: its commits and its uncommitted work. It is read-only. The
// error has centurion.KindConflict if nothing was recorded.
func (p *Person) Diff(ctx context.Context, id string, o DiffOptions) (Change, error) {
	w, err := p.workOf(ctx, id)
	if err != nil {
		return Change{}, err
	}
	c := Change{Mission: w.mission.ID, Title: w.mission.Goal, Isolation: w.mission.Isolation, Files: []centurion.FileChange{}}
	if t := w.task; t != nil {
		c.Task, c.Item, c.Title, c.Undone = t.ID, t.Item, t.Title, t.Undone
	}
	if w.shared() {
		return p.sharedDiff(ctx, w, c, o)
	}
	if err := w.open(ctx, p); err != nil {
		return c, err
	}
	var steps []step
	if w.task == nil {
		steps, err = w.missionSteps(ctx, &c)
	} else {
		steps, err = w.taskSteps(ctx, &c)
	}
	if err != nil {
		return c, err
	}
	err = tellSteps(ctx, w.repo, steps, &c, o)
	return c, err
}

// missionSteps are the changes on the mission's branch.
func (w *workDone) missionSteps(ctx context.Context, c *Change) ([]step, error) {
	tip, err := w.tip(ctx)
	if err != nil {
		return nil, err
	}
	log, err := w.repo.Log(ctx, w.mission.Base.Commit, tip)
	for _, l := range log {
		c.Commits = append(c.Commits, l.ID)
	}
	return []step{{from: w.mission.Base.Commit, to: tip}}, err
}

// taskSteps are the commits of a task and its uncommitted work.
func (w *workDone) taskSteps(ctx context.Context, c *Change) ([]step, error) {
	var steps []step
	for _, l := range landedOf(*w.task) {
		c.Commits = append(c.Commits, l.Commit)
		if n := len(steps); n > 0 && steps[n-1].to == l.Before { // no other work lies between
			steps[n-1].to, steps[n-1].title = l.Commit, ""
			continue
		}
		steps = append(steps, step{l.Before, l.Commit, "commit " + l.Commit})
	}
	kept, err := w.keptSteps(ctx)
	if err != nil {
		return nil, err
	}
	steps = append(steps, kept...)
	if at := w.task.Checkout; at != nil {
		tree, err := w.repo.Look(ctx, *at)
		if err != nil {
			return nil, err
		}
		c.Working = at.Dir
		steps = append(steps, step{at.Start, tree, "not merged yet, in " + at.Dir})
	}
	return steps, nil
}

// keptSteps is the unmerged work of an ended task. Each time the task released a checkout, its work was kept on a branch of its own,
// including all earlier work; so the newest branch is complete.
func (w *workDone) keptSteps(ctx context.Context) ([]step, error) {
	family, ok := strings.CutSuffix(w.mission.Branch, "mission")
	if !ok || !w.task.Status.Ended() || w.task.Checkout != nil {
		return nil, nil
	}
	merged, err := w.tip(ctx)
	if centurion.KindOf(err) == centurion.KindNotFound {
		merged, err = w.mission.Base.Commit, nil // a person has deleted it
	}
	if err != nil {
		return nil, err
	}
	var kept []step
	for n := 1; ; n++ {
		branch := family + w.task.ID + text.When(n > 1, fmt.Sprintf("-%d", n))
		tip, err := w.repo.Tip(ctx, branch)
		if centurion.KindOf(err) == centurion.KindNotFound {
			return kept, nil
		}
		if err != nil {
			return nil, err
		}
		log, err := w.repo.Log(ctx, merged, tip)
		if err != nil {
			return nil, err
		}
		if len(log) > 0 && log[0].Parent != "" {
			kept = []step{{log[0].Parent, tip, "not merged, on the branch " + branch}}
		}
	}
}

// tellSteps fills in the files and the text of a change made in steps.
func tellSteps(ctx context.Context, repo *worktree.Repo, steps []step, c *Change, o DiffOptions) error {
	var told strings.Builder
	for _, s := range steps {
		files, err := repo.Stat(ctx, s.from, s.to)
		if err != nil {
			return err
		}
		c.Files = addFiles(c.Files, files)
		if !o.Patch {
			continue
		}
		patch, err := repo.Patch(ctx, s.from, s.to, o.Color, o.Paths...)
		if err != nil {
			return err
		}
		if len(steps) > 1 && s.title != "" && patch != "" {
			fmt.Fprintf(&told, "# %s\n", s.title)
		}
		told.WriteString(patch)
	}
	c.setPatch(told.String())
	return nil
}

func (c *Change) setPatch(text string) {
	if c.Patch = text; !utf8.ValidString(text) { // which JSON cannot carry
		c.Raw = []byte(text)
	}
}

// addFiles adds the changes of a later step.
func addFiles(all, more []centurion.FileChange) []centurion.FileChange {
	for _, f := range more {
		at := slices.IndexFunc(all, func(g centurion.FileChange) bool { return g.Path == cmp.Or(f.Old, f.Path) })
		if at < 0 {
			all = append(all, f)
			continue
		}
		g := &all[at]
		switch {
		case g.Status == "added" && f.Status == "deleted":
			all = slices.Delete(all, at, at+1)
			continue
		case g.Status == "deleted" && f.Status == "added":
			g.Status = "modified"
		case g.Status == "modified" || f.Status == "deleted":
			g.Status = f.Status
		}
		if f.Old != "" && g.Old == "" && g.Status != "added" {
			g.Old = f.Old
		}
		g.Path, g.Binary = f.Path, g.Binary || f.Binary
		g.Added, g.Deleted = g.Added+f.Added, g.Deleted+f.Deleted
	}
	slices.SortFunc(all, func(a, b centurion.FileChange) int { return strings.Compare(a.Path, b.Path) })
	return all
}
