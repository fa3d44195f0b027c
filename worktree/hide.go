package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hide excludes .opencode/ from every `git status` of the repository and its checkouts (info/exclude), once.
func (r *repository) hide(ctx context.Context) error {
	r.admin.Lock()
	defer r.admin.Unlock()
	path := filepath.Join(r.common, "info", "exclude")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("hide .opencode", "cannot read "+path, err)
	}
	// Without a trailing slash the pattern also hides a link.
	want := "/" + escapePattern(r.private())
	if slices.ContainsFunc(strings.Split(string(old), "\n"), func(l string) bool { return strings.TrimRight(l, "\r") == want }) {
		return nil
	}
	text := string(old)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if err := writeFile(path, []byte(text+want+"\n"), 0o644); err != nil {
		return failed("hide .opencode", "cannot write "+path, err)
	}
	return nil
}

// escapePattern escapes a path for .gitignore, so that the pattern matches nothing else.
func escapePattern(path string) string {
	var b strings.Builder
	for i := range len(path) {
		if strings.IndexByte(`\*?[ `, path[i]) >= 0 || i == 0 && (path[i] == '!' || path[i] == '#') {
			b.WriteByte('\\')
		}
		b.WriteByte(path[i])
	}
	return b.String()
}
