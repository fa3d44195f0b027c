package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"centurion/worktree/gitobj"
)

// This file asks git about rules for the files of many checkouts in one process: a task whose files no rule concerns costs none of its own.

// rulesOf returns git's answers about the ignore rules and attributes of the stack's tree, for files that need not exist.
func (l *layers) rulesOf(ctx context.Context, s *stack) (*gitobj.Repo, error) {
	index, err := l.ignoreIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	s.indexing.Lock()
	defer s.indexing.Unlock()
	if s.rules == nil {
		none := filepath.Join(filepath.Dir(index), "none") // git asks for the files .gitignore there first
		if err := os.MkdirAll(none, 0o700); err != nil {
			return nil, failed("ask for rules", "", err)
		}
		s.rules = l.repo.answers(call{Dir: none, GitDir: l.repo.gitDir, WorkTree: none, Index: index})
		l.keepOnly(s.rules)
	}
	return s.rules, nil
}

// keepOnly makes these the only answers whose processes stay: a mission goes from tree to tree.
func (l *layers) keepOnly(rules *gitobj.Repo) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if l.asked != nil {
		l.asked.Close()
	}
	l.asked = rules
}

// ignoredFiles adds those of some files, no directories, that git ignores by the rules of the stack's tree.
func (l *layers) ignoredFiles(ctx context.Context, s *stack, files []string, found map[string]bool) error {
	rules, err := l.rulesOf(ctx, s)
	if err != nil {
		return err
	}
	answers, err := rules.Fields(ctx, []string{"check-ignore", "-z", "-v", "-n", "--stdin"}, files, 4)
	for i, a := range answers {
		found[files[i]] = a[2] != "" && a[2][0] != '!' // the rule
	}
	return err
}

// converting are the attributes by which git stores a file otherwise than it is.
var converting = []string{"text", "crlf", "eol", "filter", "ident", "working-tree-encoding"}

// maxPlain is the size of a file, in bytes, up to which it is stored without a process of its own.
const maxPlain = 1 << 20

// storePlain stores the files of an upper layer in the changes, byte for byte, if there is nothing that git would do otherwise.
func (c *Checkout) storePlain(ctx context.Context, s *stack, u upper, changes map[string]entry) (done bool, err error) {
	var names []string
	for _, f := range u.files {
		if !f.info.Mode().IsRegular() || f.info.Size() > maxPlain {
			return false, nil
		}
		names = append(names, f.path)
	}
	if len(names) == 0 || len(strings.Join(names, "\x00")) >= gitobj.MaxAsked || c.ownRules(".gitattributes", names) {
		return false, nil
	}
	for p := range changes {
		if path.Base(p) == ".gitattributes" { // it is gone
			return false, nil
		}
	}
	if plain, err := c.plain(ctx, s, names); !plain || err != nil {
		return false, err
	}
	root, err := os.OpenRoot(c.upperDir()) // an agent may put a link in the place of a file meanwhile
	if err != nil {
		return false, failed("look at the changes", "", err)
	}
	defer root.Close()
	for _, f := range u.files {
		data, err := root.ReadFile(f.path)
		if errors.Is(err, fs.ErrNotExist) { // it has just gone
			continue
		}
		if err != nil {
			return false, failed("look at the changes", "cannot read "+f.path, err)
		}
		e := entry{Mode: gitobj.ModeFile}
		if f.info.Mode()&0o100 != 0 {
			e.Mode = gitobj.ModeExec
		}
		if e.ID, err = c.repo.db.Put(ctx, "blob", data); err != nil {
			return false, err
		}
		changes[f.path] = e
	}
	return true, nil
}

// plain reports whether git stores some files as they are.
func (c *Checkout) plain(ctx context.Context, s *stack, names []string) (bool, error) {
	f, err := c.repo.prog.over.of(ctx, c.repo.prog, call{Dir: c.repo.top, GitDir: c.repo.gitDir})
	if err != nil {
		return false, err
	}
	for _, e := range f.entries {
		if e.key == "core.autocrlf" && e.value != "false" || e.key == "core.filemode" && !isTrue(e.value) {
			return false, nil
		}
	}
	rules, err := c.repo.layers.rulesOf(ctx, s)
	if err != nil {
		return false, err
	}
	answers, err := rules.Fields(ctx, append([]string{"check-attr", "-z", "--cached", "--stdin"}, converting...), names, 3*len(converting))
	for _, a := range answers {
		for i := 2; i < len(a); i += 3 { // path, attribute, value
			if a[i] != "unspecified" && a[i] != "unset" {
				return false, nil
			}
		}
	}
	return err == nil, err
}
