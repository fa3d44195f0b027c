package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/worktree/gitobj"
)

// A workspace of layers has a git directory of its own. An agent commits, branches and stashes there, and reaches neither the refs nor the
// configuration and hooks of the repository, whose objects it only reads.

// borrowed is the directory in such a git directory at which the repository's objects are shown.
const borrowed = "borrowed"

// ownKeys are the settings of the repository that an agent's git needs to see files as the repository does. None of them names a command.
var ownKeys = []string{"core.autocrlf", "core.eol", "core.filemode", "core.ignorecase", "core.symlinks", "core.precomposeunicode", "user.name", "user.email"}

func (c *Checkout) ownGit() string { return filepath.Join(c.repo.slotOf(c.name), "git") }

// makeOwnGit makes the git directory of a workspace of layers, with the repository's refs as they are.
func (c *Checkout) makeOwnGit(ctx context.Context) error {
	config, err := c.repo.ownConfig(ctx)
	if err != nil {
		return err
	}
	own := c.ownGit()
	for _, dir := range []string{borrowed, "objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(own, dir), 0o755); err != nil {
			return failed("make a git directory", "", err)
		}
	}
	text, err := c.repo.allRefs()
	if err != nil {
		return failed("make a git directory", "cannot read the refs", err)
	}
	text["config"], text["objects/info/alternates"] = config, []byte("../"+borrowed+"\n")
	for _, name := range []string{"shallow", "info/exclude", "info/attributes"} {
		if b, err := os.ReadFile(filepath.Join(c.repo.common, name)); err == nil {
			text[name] = b
		}
	}
	for name, b := range text {
		at := filepath.Join(own, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, b, 0o644)); err != nil {
			return failed("make a git directory", name, err)
		}
	}
	return nil
}

// allRefs are the files of a git directory with all refs of the repository but those that keep work aside: packed-refs, and symbolic ones.
func (r *repository) allRefs() (map[string][]byte, error) {
	files := map[string][]byte{}
	refs := map[string]string{} // names and their lines, with what a tag points to
	packed, err := os.ReadFile(filepath.Join(r.common, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	last := ""
	for l := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimRight(l, "\n"), " "); strings.HasPrefix(l, "^") && last != "" {
			refs[last] += l
		} else if last = ""; ok && gitobj.IsID(id) && !aside(name) {
			last = name
			refs[last] = l
		}
	}
	from := os.DirFS(r.common)
	err = fs.WalkDir(from, "refs", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && aside(name):
			return fs.SkipDir
		case !d.Type().IsRegular() || aside(name):
			return nil
		}
		b, err := fs.ReadFile(from, name)
		switch id := line(b); {
		case errors.Is(err, fs.ErrNotExist): // it was deleted meanwhile
			return nil
		case gitobj.IsID(id):
			refs[name] = id + " " + name + "\n"
		case strings.HasPrefix(id, "ref: "):
			files[name] = b
		}
		return err
	})
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		all.WriteString(refs[name])
	}
	files["packed-refs"] = all.Bytes()
	return files, err
}

// aside reports whether a ref keeps work aside.
func aside(ref string) bool { return under(ref, "refs/centurion") || ref == "refs/stash" }

// ownConfig is the configuration of such a git directory.
func (cs *checkouts) ownConfig(ctx context.Context) ([]byte, error) {
	f, err := cs.prog.over.of(ctx, cs.prog, call{Dir: cs.top, GitDir: cs.gitDir})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("[core]\n\trepositoryformatversion = 1\n\tbare = false\n[gc]\n\tauto = 0\n")
	for _, s := range f.entries {
		if s.scope != "local" && s.scope != "worktree" {
			continue // an agent's git reads the person's own configuration itself
		}
		switch section, name, _ := strings.Cut(s.key, "."); {
		case s.key == "extensions.refstorage" && s.value != "files":
			return nil, &centurion.Error{Op: "make a git directory", Kind: centurion.KindNotFound, Msg: "the repository keeps its refs as " + s.value}
		case s.key == "extensions.objectformat", slices.Contains(ownKeys, s.key):
			b.WriteString("[" + section + "]\n\t" + name + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s.value) + "\"\n")
		}
	}
	return b.Bytes(), nil
}

// standIn makes HEAD, the branch and the index of a workspace's own git match the record, and ends an unfinished merge or rebase. An agent
// may have put links into the directory: nothing is written through one that leads out.
func (c *Checkout) standIn() error {
	const op = "bring a checkout"
	index, err := os.ReadFile(c.repo.indexOf(c.name))
	if err != nil {
		return failed(op, "", err)
	}
	info, err := os.Stat(c.repo.indexOf(c.name))
	if err != nil {
		return failed(op, "", err)
	}
	root, err := os.OpenRoot(c.ownGit())
	if err != nil {
		return failed(op, "", err)
	}
	defer root.Close()
	head := c.rec.Start + "\n"
	if c.rec.Branch != "" {
		head = c.onBranch() + "\n"
		err = replaceIn(root, "refs/heads/"+c.rec.Branch, []byte(c.rec.Last+"\n"), info.ModTime())
	}
	err = errors.Join(err, replaceIn(root, "HEAD", []byte(head), info.ModTime()), replaceIn(root, "index", index, info.ModTime()))
	for _, name := range operations {
		err = errors.Join(err, root.RemoveAll(name))
	}
	if err != nil {
		return failed(op, "cannot write in its git directory", err)
	}
	return nil
}

// replaceIn replaces a file below a root.
func replaceIn(root *os.Root, name string, content []byte, modified time.Time) error {
	half := name + ".half"
	if err := errors.Join(root.MkdirAll(path.Dir(name), 0o755), root.RemoveAll(half)); err != nil {
		return err
	}
	f, err := root.OpenFile(half, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return errors.Join(root.Chtimes(half, modified, modified), root.Rename(half, name))
}

// keepOwn keeps the commits that an agent made in a workspace's own git: it moves them to the repository, under refs/centurion/kept/.
func (c *Checkout) keepOwn(ctx context.Context) error {
	own := c.ownGit()
	if made, err := c.hasOwnObjects(); !made || err != nil {
		return err
	}
	lent := []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + filepath.Join(c.repo.common, "objects")}
	at := func(args ...string) call { return call{GitDir: own, Dir: own, WorkTree: own, Env: lent, Args: args} }
	out, err := c.repo.git(ctx, at("for-each-ref", "--format=%(objectname)", "refs/heads/", "refs/stash"))
	if err != nil {
		return err
	}
	tips := strings.Fields(string(out))
	if out, err := c.repo.git(ctx, at("rev-parse", "-q", "--verify", "HEAD^{commit}")); err == nil {
		tips = append(tips, line(out))
	}
	slices.Sort(tips)
	for _, tip := range slices.Compact(tips) {
		if _, err := c.repo.git(ctx, call{Args: []string{"cat-file", "-e", tip}}); err == nil {
			continue // the repository has it
		} else if exitCode(err) == 0 {
			return err
		}
		pack := at("pack-objects", "--revs", "--stdout", "-q")
		pack.Stdin = strings.NewReader(tip + "\n^" + c.rec.Start + "\n")
		out, err := c.repo.git(ctx, pack)
		if err == nil {
			_, err = c.repo.git(ctx, call{Stdin: bytes.NewReader(out), Args: []string{"unpack-objects", "-q"}})
		}
		if err == nil {
			err = c.repo.keep(ctx, c.rec.Branch, tip, c.rec.Start, c.rec.Last)
		}
		if err != nil && ctx.Err() != nil {
			return err
		} // an agent can damage its own repository: what it committed is lost then, its files are not
	}
	return nil
}

// hasOwnObjects reports whether the agent's git has stored anything.
func (c *Checkout) hasOwnObjects() (bool, error) {
	objects := filepath.Join(c.ownGit(), "objects")
	dirs, err := os.ReadDir(objects)
	if err != nil {
		return false, nil // removed by the agent
	}
	for _, d := range dirs {
		inside, err := os.ReadDir(filepath.Join(objects, d.Name()))
		if err == nil && d.Name() != "info" && len(inside) > 0 {
			return true, nil
		}
	}
	return false, nil
}
