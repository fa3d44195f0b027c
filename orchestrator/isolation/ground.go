package isolation

import (
	"context"
	"path"
	"strings"
)

// InProject makes paths of the repository paths of the project; what lies outside of the project stays as it is.
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
