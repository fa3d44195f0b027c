package worktree

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"centurion"
)

// Rebase applies a commit to another one, without a checkout. The new commit has onto as its only parent, and the message and author of
// the old one; if onto is already the old one's parent, it is the old one itself. An empty onto means a repository without commits.
func (o *objects) Rebase(ctx context.Context, commit, onto string) (Rebased, error) {
	c, err := o.commitInfo(ctx, commit)
	if err != nil {
		return Rebased{}, err
	}
	if c.parent == onto && onto != "" {
		return Rebased{Commit: c.id, Tree: c.tree}, nil
	}
	m, err := o.mergeTrees(ctx, c.parent, onto, c.tree)
	if err != nil {
		return Rebased{}, err
	}
	if len(m.conflicts) > 0 {
		return Rebased{Tree: m.tree, Conflicts: m.conflicts}, nil
	}
	id, err := o.commitTree(ctx, m.tree, c.message, c.author, onto)
	o.cache.learn(itsOrigin, id, commit)
	return Rebased{Commit: id, Tree: m.tree}, err
}

// commitInfo is the data that a new commit copies from an old one.
type commitInfo struct {
	id, tree string
	parent   string // the first; empty without parents
	message  string
	author   []string // as environment variables
}

func (o *objects) commitInfo(ctx context.Context, commit string) (commitInfo, error) {
	id, err := o.commitOf(ctx, commit)
	if centurion.KindOf(err) == centurion.KindNotFound {
		err = notFound("read commit "+short(commit), "the repository has no such commit", err)
	}
	if err != nil {
		return commitInfo{}, err
	}
	content, err := o.db.Object(ctx, id, "commit")
	if err != nil {
		return commitInfo{}, err
	}
	c := commitInfo{id: id}
	head, message, _ := strings.Cut(string(content), "\n\n")
	for l := range strings.SplitSeq(head, "\n") {
		key, value, _ := strings.Cut(l, " ")
		switch {
		case key == "tree":
			c.tree = value
		case key == "parent" && c.parent == "":
			c.parent = value
		case key == "author":
			who, date, _ := cutLast(value, "> ")
			name, mail, _ := strings.Cut(who, "<")
			c.author = []string{"GIT_AUTHOR_NAME=" + cmp.Or(strings.TrimSpace(name), ownName), "GIT_AUTHOR_EMAIL=" + mail, "GIT_AUTHOR_DATE=" + date}
		case key == "encoding" && !strings.EqualFold(value, "utf-8"):
			return o.recoded(ctx, id)
		}
	}
	c.message = strings.TrimRight(message, "\n") + "\n"
	o.cache.made(c.id, c.tree)
	return c, nil
}

// cutLast is [strings.Cut] at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// recoded is commitInfo for a commit in another encoding, which git knows how to read.
func (o *objects) recoded(ctx context.Context, commit string) (commitInfo, error) {
	// Fields are separated by NULs; %B is last and may contain anything else.
	out, err := o.git(ctx, call{Args: []string{"log", "-1", "--no-show-signature", "--no-decorate", "--no-color", "--no-notes", "--no-mailmap",
		"--encoding=UTF-8", "--format=tformat:%H%x00%T%x00%P%x00%an%x00%ae%x00%ad%x00%B", "--date=raw", "--end-of-options", commit}})
	if err != nil {
		return commitInfo{}, err
	}
	f := strings.SplitN(string(out), "\x00", 7)
	if len(f) != 7 {
		return commitInfo{}, badDiff("the commit %s has %d fields", short(commit), len(f))
	}
	parent, _, _ := strings.Cut(f[2], " ")
	o.cache.made(f[0], f[1])
	return commitInfo{id: f[0], tree: f[1], parent: parent, message: strings.TrimRight(f[6], "\n") + "\n",
		author: []string{"GIT_AUTHOR_NAME=" + cmp.Or(f[3], ownName), "GIT_AUTHOR_EMAIL=" + f[4], "GIT_AUTHOR_DATE=" + f[5]}}, nil
}

// mergedTree is the result of merging two trees.
type mergedTree struct {
	tree      string
	conflicts []Conflict
}

// The names of the sides in conflict markers.
const (
	oursLabel   = "the branch so far"
	theirsLabel = "this work"
)

// mergeTrees applies the changes from base to theirs to ours. All are commits or trees; the empty string is the empty tree.
func (o *objects) mergeTrees(ctx context.Context, base, ours, theirs string) (mergedTree, error) {
	t, err := o.trees(ctx, base, ours, theirs)
	if err != nil {
		return mergedTree{}, err
	}
	switch {
	case t[0] == t[1], t[1] == t[2]:
		return mergedTree{tree: t[2]}, nil
	case t[0] == t[2]:
		return mergedTree{tree: t[1]}, nil
	}
	if tree, err := o.mergeApart(ctx, t[0], t[1], t[2]); tree != "" || err != nil {
		return mergedTree{tree: tree}, err
	}
	// git determines the merge base by ancestry: two temporary commits produce the intended one. Their date is fixed, so that equal
	// merges make equal objects.
	date := []string{"GIT_AUTHOR_DATE=1000000000 +0000", "GIT_COMMITTER_DATE=1000000000 +0000"}
	root, err := o.commitTree(ctx, t[0], "base\n", date)
	if err != nil {
		return mergedTree{}, err
	}
	a, err := o.commitTree(ctx, t[1], "ours\n", date, root)
	if err != nil {
		return mergedTree{}, err
	}
	b, err := o.commitTree(ctx, t[2], "theirs\n", date, root)
	if err != nil {
		return mergedTree{}, err
	}
	out, err := o.git(ctx, call{Args: []string{"merge-tree", "--write-tree", "-z", "--messages", a, b},
		Config: []string{"merge.conflictStyle=merge", "merge.renormalize=false", "merge.renameLimit=2000", "merge.verbosity=2"}})
	if err != nil && exitCode(err) != 1 {
		return mergedTree{}, err
	}
	m, perr := parseMerge(out)
	if perr != nil {
		return mergedTree{}, cmp.Or(err, perr)
	}
	if err == nil {
		return mergedTree{tree: m.tree}, nil
	}
	return o.tell(ctx, m, a, b)
}

// mergeApart merges two sides that have changed different paths, as most do: the result is that of git, which would take five processes.
// It returns "" if a path of one side is that of the other, or lies below it.
func (o *objects) mergeApart(ctx context.Context, base, ours, theirs string) (tree string, err error) {
	one, err := o.raw(ctx, base, ours)
	if err != nil {
		return "", err
	}
	two, err := o.raw(ctx, base, theirs)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{} // true for a path of this side, false for a directory above one
	for _, c := range one {
		for p := c.Path; p != "."; p = path.Dir(p) {
			taken[p] = taken[p] || p == c.Path
		}
	}
	changes := map[string]entry{}
	for _, c := range two {
		if _, met := taken[c.Path]; met {
			return "", nil
		}
		for d := path.Dir(c.Path); d != "."; d = path.Dir(d) {
			if taken[d] {
				return "", nil
			}
		}
		changes[c.Path] = c.to
	}
	return o.edit(ctx, ours, changes)
}

// mergeOutput is the parsed output of `git merge-tree --write-tree -z --messages`.
type mergeOutput struct {
	tree     string
	stages   []stage
	messages []mergeMessage
}

// stage is one side of a conflict: 1 is the base, 2 ours, 3 theirs.
type stage struct {
	path string
	n    int
	entry
}

type mergeMessage struct {
	paths      []string
	kind, text string
}

// parseMerge parses the tree's id; then "<mode> <id> <stage>\t<path>" for each side of each conflict; an empty record; and for each
// message the number of paths, the paths, its kind and its text. Every record is terminated by a NUL.
func parseMerge(out []byte) (mergeOutput, error) {
	var m mergeOutput
	f := fields(out)
	if len(f) == 0 || f[0] == "" {
		return m, badDiff("a merge gave no tree: %q", cut(out))
	}
	m.tree, f = f[0], f[1:]
	for len(f) > 0 && f[0] != "" {
		head, name, ok := strings.Cut(f[0], "\t")
		w := strings.Fields(head)
		if !ok || len(w) != 3 || len(w[2]) != 1 || w[2][0] < '1' || w[2][0] > '3' {
			return m, badDiff("%q is no side of a conflict", cut([]byte(f[0])))
		}
		m.stages = append(m.stages, stage{name, int(w[2][0] - '0'), entry{Mode: w[0], ID: w[1]}})
		f = f[1:]
	}
	for f = f[min(1, len(f)):]; len(f) > 0 && f[0] != ""; {
		n, err := strconv.Atoi(f[0])
		if err != nil || n < 0 || n > len(f)-3 {
			return m, badDiff("%q is no number of paths", cut([]byte(f[0])))
		}
		m.messages = append(m.messages, mergeMessage{f[1 : n+1], f[n+1], f[n+2]})
		f = f[n+3:]
	}
	return m, nil
}

// tell converts git's answer for a person or a model: conflicts with their kinds, and the files with markers that name the sides in
// words.
func (o *objects) tell(ctx context.Context, m mergeOutput, ours, theirs string) (mergedTree, error) {
	kinds := map[string]string{}
	texts := map[string]string{}
	named := strings.NewReplacer(ours, oursLabel, theirs, theirsLabel)
	for _, msg := range m.messages {
		kind, ok := conflictKind(msg)
		if !ok {
			continue
		}
		for i, p := range msg.paths {
			if i == 0 || slices.ContainsFunc(m.stages, func(s stage) bool { return s.path == p }) {
				kinds[p] = cmp.Or(kinds[p], kind)
				texts[p] += strings.TrimSpace(named.Replace(msg.text)) + "\n"
			}
		}
	}
	for _, s := range m.stages {
		if kinds[s.path] == "" {
			kinds[s.path] = "content"
		}
	}
	paths := slices.Sorted(maps.Keys(kinds))
	at, err := o.entries(ctx, m.tree, paths)
	if err != nil {
		return mergedTree{}, err
	}
	var marked []string
	for _, p := range paths {
		if at[p].IsFile() && kinds[p] != "binary" {
			marked = append(marked, p)
		}
	}
	contents, err := o.name(ctx, &m, marked, at, ours, theirs)
	if err != nil {
		return mergedTree{}, err
	}
	all := make([]Conflict, 0, len(paths))
	for _, p := range paths {
		c := Conflict{Path: p, Kind: kinds[p], Text: contents[p]}
		if c.Text == "" && c.Kind != "binary" {
			c.Text = texts[p]
		}
		all = append(all, c)
	}
	return mergedTree{tree: m.tree, conflicts: all}, nil
}

// name reads the files with markers, names the sides in them, and returns their texts, shortened if they are long.
func (o *objects) name(ctx context.Context, m *mergeOutput, marked []string, at map[string]entry, ours, theirs string) (map[string]string, error) {
	ids := make([]string, len(marked))
	for i, p := range marked {
		ids[i] = at[p].ID
	}
	blobs, err := o.blobs(ctx, ids)
	if err != nil {
		return nil, err
	}
	texts, better := map[string]string{}, map[string][]byte{}
	for i, p := range marked {
		b := bytes.ReplaceAll(blobs[i], []byte("<<<<<<< "+ours), []byte("<<<<<<< "+oursLabel))
		b = bytes.ReplaceAll(b, []byte(">>>>>>> "+theirs), []byte(">>>>>>> "+theirsLabel))
		if !bytes.Equal(b, blobs[i]) {
			better[p] = b
		}
		if bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 {
			texts[p] = excerpt(b)
		}
	}
	if m.tree, err = o.With(ctx, m.tree, better); err != nil {
		return nil, err
	}
	return texts, nil
}

// maxConflict limits the text of one conflict, in bytes: several go into a model's context.
const maxConflict = 16 << 10

// excerpt is a file with conflict markers: whole if it is short, otherwise starting shortly before the first marker.
func excerpt(b []byte) string {
	if len(b) <= maxConflict {
		return string(b)
	}
	start := max(0, bytes.Index(b, []byte("<<<<<<< "))-2000)
	if i := bytes.IndexByte(b[start:], '\n'); start > 0 && i >= 0 {
		start += i + 1
	}
	end := min(len(b), start+maxConflict)
	text := strings.ToValidUTF8(string(b[start:end]), "\uFFFD")
	if start > 0 {
		text = "[…]\n" + text
	}
	if end < len(b) {
		text += "\n[…]\n"
	}
	return text
}

// conflictKind is the kind of a conflict: the part in brackets of "CONFLICT (modify/delete): …". Other messages report successes. The
// text comes first, since it distinguishes add/add from other content.
func conflictKind(msg mergeMessage) (string, bool) {
	for _, s := range []string{msg.text, msg.kind} {
		if in, ok := strings.CutPrefix(s, "CONFLICT ("); ok {
			in, _, _ = strings.Cut(in, ")")
			if in == "contents" {
				in = "content"
			}
			return in, true
		}
	}
	return "", false
}

// hasChange reports whether of is an ancestor of commit, or commit has the same changes as the commits from base to of.
func (o *objects) hasChange(ctx context.Context, commit, of, base string) (bool, error) {
	if commit == of || o.cache.known(itsOrigin, commit) == of {
		return true, nil
	}
	out, err := o.git(ctx, call{Args: []string{"cherry", commit, of, base}})
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(strings.Split(line(out), "\n"), func(l string) bool { return strings.HasPrefix(l, "+") }), nil
}
