package worktree

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// Without makes a tree of `to` with the hunks that out selects reverted to `from`. removed is the reverted part as a patch from `from`
// to `to`. out is called for each hunk; for a file without hunks (binary, renamed only, mode) with nil. If all hunks of a file are
// selected, it is as in `from`: removed if it was added. Deleted files do not come back where something else is in their way.
func (r *reverts) Without(ctx context.Context, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (tree, removed string, err error) {
	tree, err = r.takeOut(ctx, from, to, out)
	if err != nil {
		return "", "", err
	}
	removed, err = r.Patch(ctx, tree, to, false)
	return tree, removed, err
}

// takeOut is Without without the patch.
func (r *reverts) takeOut(ctx context.Context, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (string, error) {
	tree, err := r.tree(ctx, to)
	if err != nil {
		return "", err
	}
	all, err := r.changes(ctx, from, to, true)
	if err != nil {
		return "", err
	}
	edit := map[string]entry{}
	var parts []change // files of which some hunks are reverted, with these only
	for _, c := range all {
		var chosen []centurion.Hunk
		for i := range c.Hunks {
			if out(c.FileDiff, &c.Hunks[i]) {
				chosen = append(chosen, c.Hunks[i])
			}
		}
		switch {
		case len(c.Hunks) == 0 && out(c.FileDiff, nil), len(c.Hunks) > 0 && len(chosen) == len(c.Hunks):
			if c.before() != c.Path || c.from == (entry{}) {
				edit[c.Path] = entry{}
			}
			if c.from != (entry{}) {
				edit[c.before()] = c.from
			}
		case len(chosen) > 0:
			c.Hunks = chosen
			parts = append(parts, c)
		}
	}
	if err := r.takeParts(ctx, parts, edit); err != nil {
		return "", err
	}
	if err := r.giveWay(ctx, tree, all, edit); err != nil {
		return "", err
	}
	return r.edit(ctx, tree, edit)
}

// takeParts adds to edit the files with some of their hunks reverted.
func (r *reverts) takeParts(ctx context.Context, parts []change, edit map[string]entry) error {
	if len(parts) == 0 {
		return nil
	}
	ids := make([]string, len(parts))
	for i, c := range parts {
		ids[i] = c.to.ID
		if c.to == (entry{}) {
			ids[i] = c.from.ID // some lines of a deleted file come back
		}
	}
	blobs, err := r.blobs(ctx, ids)
	if err != nil {
		return err
	}
	contents := make([][]byte, len(parts))
	for i, c := range parts {
		content := blobs[i]
		if c.to == (entry{}) {
			content = nil
		}
		if contents[i], err = undoHunks(content, c.Hunks); err != nil {
			return err
		}
	}
	made, err := r.newBlobs(ctx, contents)
	if err != nil {
		return err
	}
	for i, c := range parts {
		mode := c.to.Mode
		if mode == "" {
			mode = c.from.Mode
		}
		edit[c.Path] = entry{Mode: mode, ID: made[i]}
	}
	return nil
}

// giveWay drops restored files whose place is needed as a directory by a file that stays, or that would be below such a file.
func (r *reverts) giveWay(ctx context.Context, tree string, all []change, edit map[string]entry) error {
	stays := map[string]bool{} // added or renamed files, and their parent directories
	for _, c := range all {
		if e, edited := edit[c.Path]; c.to == (entry{}) || edited && e == (entry{}) {
			continue
		}
		for p := c.Path; p != "."; p = path.Dir(p) {
			stays[p] = stays[p] || p == c.Path
		}
	}
	for p, e := range edit {
		if e == (entry{}) {
			continue
		}
		_, isDir := stays[p]
		blocked := isDir && !stays[p]
		for d := path.Dir(p); d != "." && !blocked; d = path.Dir(d) {
			blocked = stays[d]
		}
		if blocked {
			delete(edit, p)
		}
	}
	return nil
}

// Revert reverts the changes between `from` and `to` that out selects (all if nil) in a later tree, by a three-way merge that keeps
// later changes. ok is false if they conflict. removed is the reverted part as a patch.
func (r *reverts) Revert(ctx context.Context, tree, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (without, removed string, ok bool, err error) {
	if out == nil {
		out = func(centurion.FileDiff, *centurion.Hunk) bool { return true }
	}
	less, err := r.takeOut(ctx, from, to, out)
	if err != nil {
		return "", "", false, err
	}
	m, err := r.mergeTrees(ctx, to, tree, less)
	if err != nil || len(m.conflicts) > 0 {
		return "", "", false, err
	}
	removed, err = r.Patch(ctx, m.tree, tree, false)
	return m.tree, removed, true, err
}

// Read returns a file of a tree or commit. The error has centurion.KindNotFound if there is none.
func (o *objects) Read(ctx context.Context, tree, name string) ([]byte, error) {
	out, err := o.git(ctx, call{Args: []string{"cat-file", "blob", "--", tree + ":" + path.Clean(filepath.ToSlash(name))}})
	if err == nil || exitCode(err) != 128 {
		return out, err
	}
	at, treeErr := o.tree(ctx, tree)
	if treeErr != nil {
		return nil, treeErr
	}
	list, listErr := o.git(ctx, call{Args: []string{"--literal-pathspecs", "ls-tree", "-z", "--full-tree", at, "--", path.Clean(filepath.ToSlash(name))}})
	if listErr != nil || len(list) > 0 && strings.Contains(string(list), " blob ") {
		return nil, err
	}
	return nil, notFound("read "+name, "there is no such file in "+short(tree), err)
}

// With makes a tree in which these files (path relative to the repository's top) have this content; nil removes a file. Existing files
// keep their mode; new ones are not executable.
func (o *objects) With(ctx context.Context, tree string, files map[string][]byte) (string, error) {
	at, err := o.tree(ctx, tree)
	if err != nil {
		return "", err
	}
	names := slices.Sorted(maps.Keys(files))
	edit := map[string]entry{}
	var contents [][]byte
	var written []string
	for _, n := range names {
		p := path.Clean(filepath.ToSlash(n))
		if p == "." || path.IsAbs(p) || p == ".." || strings.HasPrefix(p, "../") {
			return "", &centurion.Error{Op: "write tree", Kind: centurion.KindUsage, Msg: strconv.Quote(n) + " is no path below the repository's top"}
		}
		edit[p] = entry{}
		if files[n] != nil {
			contents, written = append(contents, files[n]), append(written, p)
		}
	}
	made, err := o.newBlobs(ctx, contents)
	if err != nil {
		return "", err
	}
	had, err := o.entries(ctx, at, written)
	if err != nil {
		return "", err
	}
	for i, p := range written {
		edit[p] = entry{Mode: "100644", ID: made[i]}
		if had[p].IsFile() {
			edit[p] = entry{Mode: had[p].Mode, ID: made[i]}
		}
	}
	return o.edit(ctx, at, edit)
}

// entries are the entries of a tree at these paths, without directories.
func (o *objects) entries(ctx context.Context, tree string, paths []string) (map[string]entry, error) {
	found := map[string]entry{}
	for some := range slices.Chunk(paths, 1000) {
		out, err := o.git(ctx, call{Args: append([]string{"--literal-pathspecs", "ls-tree", "-z", "--full-tree", tree, "--"}, some...)})
		if err != nil {
			return nil, err
		}
		for _, e := range fields(out) {
			head, name, _ := strings.Cut(e, "\t")
			if f := strings.Fields(head); len(f) == 3 && f[1] != "tree" {
				found[name] = entry{Mode: f[0], ID: f[2]}
			}
		}
	}
	return found, nil
}

// indexInfo is the input of `update-index -z --index-info`: removals first, to make room for additions. The id of a removal is required
// but meaningless.
func indexInfo(changes map[string]entry) *bytes.Reader {
	length := 40
	for _, e := range changes {
		length = max(length, len(e.ID))
	}
	var gone, come bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(changes)) {
		if e := changes[p]; e == (entry{}) {
			gone.WriteString("0 " + strings.Repeat("0", length) + "\t" + p + "\x00")
		} else {
			come.WriteString(e.Mode + " " + e.ID + "\t" + p + "\x00")
		}
	}
	return bytes.NewReader(append(gone.Bytes(), come.Bytes()...))
}

// edit makes a tree, of a tree or commit, with other entries at some paths, as [gitobj.Repo.Edit] does.
func (o *objects) edit(ctx context.Context, tree string, changes map[string]entry) (string, error) {
	tree, err := o.tree(ctx, tree)
	if err != nil {
		return "", err
	}
	if tree, err = o.db.Edit(ctx, tree, changes); err == nil {
		o.cache.hasTree(tree, tree)
	}
	return tree, err
}

// scratch makes a directory, to be removed by the caller.
func (o *objects) scratch() (string, error) {
	const op = "make a temporary directory"
	at := filepath.Join(o.opts.Home, "tmp")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", failed(op, "", err)
	}
	dir, err := os.MkdirTemp(at, "m")
	if err != nil {
		return "", failed(op, "", err)
	}
	return dir, nil
}

func diskError(op string, err error) error {
	return &centurion.Error{Op: op, Kind: centurion.KindDisk, Err: err}
}

// blobs reads objects with one process.
func (o *objects) blobs(ctx context.Context, ids []string) ([][]byte, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := o.git(ctx, call{Args: []string{"cat-file", "--batch"}, Stdin: strings.NewReader(strings.Join(ids, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	blobs := make([][]byte, len(ids))
	for i, id := range ids {
		head, rest := nextLine(out)
		f := strings.Fields(string(head))
		if len(f) != 3 || f[1] != "blob" {
			return nil, notFound("read object "+short(id), "git says "+strconv.Quote(cut(head)), nil)
		}
		n, err := strconv.Atoi(f[2])
		if err != nil || n < 0 || n >= len(rest) {
			return nil, badDiff("the object %s is cut off", short(id))
		}
		blobs[i], out = rest[:n:n], rest[n+1:]
	}
	return blobs, nil
}

// newBlobs stores contents, byte for byte, with one process.
func (o *objects) newBlobs(ctx context.Context, contents [][]byte) ([]string, error) {
	if len(contents) == 0 {
		return nil, nil
	}
	if len(contents) == 1 {
		id, err := o.db.Put(ctx, "blob", contents[0])
		return []string{id}, err
	}
	dir, err := o.scratch()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var names strings.Builder
	for i, c := range contents {
		name := strconv.Itoa(i)
		if err := os.WriteFile(filepath.Join(dir, name), c, 0o600); err != nil {
			return nil, diskError("write a temporary file", err)
		}
		names.WriteString(filepath.ToSlash(filepath.Join(dir, name)) + "\n")
	}
	out, err := o.git(ctx, call{Args: []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}, Stdin: strings.NewReader(names.String())})
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(string(out))
	if len(ids) != len(contents) {
		return nil, badDiff("git stored %d of %d contents", len(ids), len(contents))
	}
	return ids, nil
}

// Files lists the project's files, relative to it and without .opencode/: those of a commit, or with "" those in the person's index. It
// does not look at the files.
func (r *Repo) Files(ctx context.Context, commit string) ([]string, error) {
	args := []string{"ls-files", "-z", "--deduplicate", "--", ":(top,glob)**", exclude(r.private())}
	if commit != "" {
		args = []string{"ls-tree", "-r", "-z", "--name-only", "--full-tree", "--end-of-options", commit}
	}
	out, err := r.git(ctx, call{Args: args})
	if err != nil {
		return nil, err
	}
	below := ""
	if r.prefix != "" {
		below = r.prefix + "/"
	}
	var files []string
	for _, f := range fields(out) {
		if rel, ok := strings.CutPrefix(f, below); ok && !strings.HasPrefix(f, r.private()+"/") {
			files = append(files, rel)
		}
	}
	return files, nil
}
