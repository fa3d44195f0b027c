package isolation

import (
	"context"
	"path"
	"slices"
	"strings"

	"centurion"
)

// InProject turns paths of the repository into paths of the project. Paths outside the project are unchanged.
func (m *Checkouts) InProject(files []string) []string {
	prefix := m.Ground.Repo.Prefix()
	if prefix == "" {
		return files
	}
	out := make([]string, len(files))
	for i, f := range files {
		out[i] = strings.TrimPrefix(f, path.Clean(prefix)+"/")
	}
	return out
}

func (m *Checkouts) SameTree(ctx context.Context, a, b string) (bool, error) {
	one, err := m.Ground.Repo.TreeOf(ctx, a)
	if err != nil {
		return false, err
	}
	other, err := m.Ground.Repo.TreeOf(ctx, b)
	return one == other, err
}

// Changed reports whether the mission has changed any file of the project.
func (m *Checkouts) Changed(ctx context.Context) (bool, error) {
	if m.Isolated() {
		base, err := m.Base(ctx)
		if err != nil {
			return false, err
		}
		tip, err := m.Tip(ctx)
		if err != nil {
			return false, err
		}
		same, err := m.SameTree(ctx, base.Commit, tip)
		return !same, err
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil || m.Wrote.Load() || len(rec.Wrote) > 0 {
		return err == nil, err
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool { return len(t.Files)+len(t.Landed) > 0 }), err
}
