package worktree

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/failpoint"
	"centurion/guard/durable"
	"centurion/worktree/gitobj"
)

// landingPlan is one change of the person's branch, index and files, prepared before anything is touched.
type landingPlan struct {
	repo          *userSide
	place         placer
	before, after string // commits
	tree          string // of the files, including the person's uncommitted work
	dir           string // for temporary files
	index         []byte // the person's, as it was read
	staged        map[string]indexed
	change        map[string]entry // of the index
	steps         []step           // of the files
	seen          seen
	overlap       []string
}

func (p *landingPlan) close() { os.RemoveAll(p.dir) }

func (u *userSide) placer() placer { return placer{git: u.git, top: u.top} }

// plan determines the changes of a landing and the obstacles.
func (u *userSide) plan(ctx context.Context, before, after string, keep mine) (*landingPlan, error) {
	if err := u.undisturbed(false); err != nil {
		return nil, err
	}
	dir, err := u.scratch()
	if err != nil {
		return nil, err
	}
	p := &landingPlan{repo: u, place: u.placer(), before: before, after: after, dir: dir, change: map[string]entry{}}
	all, err := u.raw(ctx, before, after)
	if err != nil {
		return p, err
	}
	if err := p.readIndex(ctx); err != nil {
		return p, err
	}
	var paths []string
	for _, c := range all {
		switch at := p.staged[c.Path]; {
		case at.entry != c.from && at.entry != c.to:
			p.overlap = append(p.overlap, c.Path) // the person has staged something else
			continue
		case at.skip:
		case c.from.Mode == gitobj.ModeSubmodule, c.to.Mode == gitobj.ModeSubmodule: // its files belong to its own repository
		default:
			paths = append(paths, c.Path)
		}
		p.change[c.Path] = c.to
	}
	work := filepath.Join(dir, "work")
	if err := p.copyIndex(work); err != nil {
		return p, err
	}
	if p.seen, err = p.place.look(ctx, work, paths); err != nil {
		return p, err
	}
	return p, p.decide(ctx, all, paths, keep)
}

// raw lists the differences between two commits by file, without renames.
func (o *objects) raw(ctx context.Context, from, to string) ([]change, error) {
	t, err := o.trees(ctx, from, to)
	if err != nil || t[0] == t[1] {
		return nil, err
	}
	out, err := o.db.Compare(ctx, t[0], t[1], "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none")
	if err != nil {
		return nil, err
	}
	return parseChanges(out)
}

// readIndex reads the person's index. It refuses one with an unfinished merge.
func (p *landingPlan) readIndex(ctx context.Context) (err error) {
	p.index, err = os.ReadFile(filepath.Join(p.repo.gitDir, "index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError("read the index", err)
	}
	at := filepath.Join(p.dir, "staged")
	if err := p.copyIndex(at); err != nil {
		return err
	}
	if p.staged, err = p.place.indexEntries(ctx, at); err != nil {
		return err
	}
	var unmerged []string
	for name, e := range p.staged {
		if e.stage > 0 {
			unmerged = append(unmerged, name)
		}
	}
	if len(unmerged) == 0 {
		return nil
	}
	slices.Sort(unmerged)
	return &centurion.Error{Op: "merge", Kind: centurion.KindConflict, Msg: "the index has unresolved conflicts: " + centurion.Names(unmerged, 5),
		Hint: "resolve them and git add the files, then try again"}
}

func (p *landingPlan) copyIndex(to string) error {
	if p.index == nil {
		return nil // a new repository has none
	}
	if err := os.WriteFile(to, p.index, 0o600); err != nil {
		return diskError("copy the index", err)
	}
	return nil
}

// decide decides about each file: files unchanged by the person get the new content; where their changes are to be kept, these are
// applied to it; all others are in the way.
func (p *landingPlan) decide(ctx context.Context, all []change, paths []string, keep mine) error {
	r := p.repo
	var base map[string]entry
	var err error
	if keep.snapshot != "" {
		if base, err = r.entries(ctx, keep.snapshot, paths); err != nil {
			return err
		}
	}
	wanted := map[string]entry{}
	kept := map[string]entry{}
	for _, c := range all {
		if !slices.Contains(paths, c.Path) {
			continue
		}
		wanted[c.Path] = c.to
		now := p.seen.entries[c.Path]
		blocked := p.seen.blocked[c.Path] != ""
		switch {
		case now == c.from, now == c.to:
		case !blocked && (keep.any || keep.snapshot != "" && now == base[c.Path]):
			kept[c.Path] = now
		default:
			p.overlap = append(p.overlap, c.Path)
		}
	}
	if p.tree, err = r.tree(ctx, p.after); err != nil {
		return err
	}
	if len(kept) > 0 {
		if err := p.keepMine(ctx, kept, wanted); err != nil {
			return err
		}
	}
	for name, e := range wanted {
		if now := p.seen.entries[name]; now != e {
			p.steps = append(p.steps, step{name, now, e})
		}
	}
	slices.SortFunc(p.steps, func(a, b step) int { return strings.Compare(a.Path, b.Path) })
	for _, s := range p.steps {
		if up := p.seen.blocked[s.Path]; up != "" && s.New != (entry{}) && p.place.inTheWay(s.Path, up, p.steps) {
			p.overlap = append(p.overlap, s.Path)
		}
	}
	return nil
}

// keepMine applies the commit to files with uncommitted changes: wanted becomes their new content.
func (p *landingPlan) keepMine(ctx context.Context, mine, wanted map[string]entry) error {
	r := p.repo
	old, err := r.tree(ctx, p.before)
	if err != nil {
		return err
	}
	with, err := r.edit(ctx, old, mine)
	if err != nil {
		return err
	}
	m, err := r.mergeTrees(ctx, old, with, p.after)
	if err != nil {
		return err
	}
	for _, c := range m.conflicts {
		p.overlap = append(p.overlap, c.Path)
	}
	if len(m.conflicts) > 0 {
		return nil
	}
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	got, err := r.entries(ctx, m.tree, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		wanted[name] = got[name]
	}
	p.tree = m.tree
	return nil
}

// stash is the git command that stashes the files in the way. Files unknown to git need another one; for ignored files, and files in
// the place of a directory, there is none.
func (p *landingPlan) stash(ctx context.Context, overlap []string) (string, error) {
	var unknown []string
	for _, name := range overlap {
		if _, ok := p.staged[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return "git stash", nil
	}
	args := append([]string{"--literal-pathspecs", "ls-files", "-z", "--others", "--exclude-standard", "--"}, unknown...)
	out, err := p.repo.git(ctx, call{Dir: p.repo.top, Args: args})
	if err != nil || strings.Count(string(out), "\x00") < len(unknown) {
		return "", err
	}
	return "git stash -u", nil
}

// carryOut carries out the plan. After an error everything is unchanged; after a kill, settle completes it. Meanwhile the index is
// locked, as git locks it.
func (p *landingPlan) carryOut(ctx context.Context) error {
	r := p.repo
	if err := p.place.stage(ctx, p.dir, p.tree, p.steps); err != nil {
		return err
	}
	newIndex := filepath.Join(p.dir, "staged")
	if err := r.changeIndex(ctx, newIndex, p.change, p.staged); err != nil {
		return err
	}
	unlock, err := r.lockIndex()
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.unchanged(); err != nil {
		return err
	}
	if err := r.writeJournal(journal{p.before, p.after, p.tree, p.steps, p.change}); err != nil {
		return err
	}
	failpoint.Hit(failpoint.LandingJournal)
	// From here on a cancelled context does not stop it: a half-done landing is useless.
	ctx = context.WithoutCancel(ctx)
	if err := r.moveHead(ctx, p.before, p.after); err != nil {
		return errors.Join(err, r.dropJournal())
	}
	failpoint.Hit(failpoint.LandingMoved)
	err = p.place.place(p.dir, p.steps, p.seen.infos)
	if err == nil {
		failpoint.Hit(failpoint.LandingPlaced)
		if err = r.installIndex(newIndex); err != nil {
			back := make([]step, len(p.steps))
			for i, s := range p.steps {
				back[i] = step{s.Path, s.New, s.Old}
			}
			err = errors.Join(err, p.undo(ctx, back))
		}
	}
	if err != nil {
		return errors.Join(err, r.moveHead(ctx, p.after, p.before), r.dropJournal())
	}
	failpoint.Hit(failpoint.LandingIndexed)
	if err := r.dropJournal(); err != nil {
		return err
	}
	unlock()
	// git refreshes files it has not seen yet; if that fails, it does so later.
	_, _ = r.git(ctx, call{Args: []string{"update-index", "-q", "--refresh"}})
	return nil
}

// undo restores files whose old contents are stored as objects.
func (p *landingPlan) undo(ctx context.Context, back []step) error {
	dir, err := p.repo.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := p.place.stage(ctx, dir, p.before, back); err != nil {
		return err
	}
	return p.place.place(dir, back, nil)
}

// unchanged checks, with the index locked, that it is still the one of the plan.
func (p *landingPlan) unchanged() error {
	now, err := os.ReadFile(filepath.Join(p.repo.gitDir, "index"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError("read the index", err)
	}
	if !bytes.Equal(now, p.index) {
		return &centurion.Error{Op: "merge", Kind: centurion.KindConflict, Msg: "the index was changed meanwhile", Hint: "try again"}
	}
	return nil
}

// changeIndex updates entries of an index file. Entries that the person has excluded from the working tree keep that flag.
func (u *userSide) changeIndex(ctx context.Context, index string, change map[string]entry, staged map[string]indexed) error {
	if len(change) == 0 {
		return nil
	}
	if _, err := u.git(ctx, call{Index: index, Args: []string{"update-index", "-z", "--replace", "--index-info"}, Stdin: indexInfo(change)}); err != nil {
		return err
	}
	var skip bytes.Buffer
	for name, e := range change {
		if e != (entry{}) && staged[name].skip {
			skip.WriteString(name + "\x00")
		}
	}
	if skip.Len() == 0 {
		return nil
	}
	_, err := u.git(ctx, call{Index: index, Args: []string{"update-index", "-z", "--skip-worktree", "--stdin"}, Stdin: &skip})
	return err
}

// installIndex replaces the person's locked index by a copy of another.
func (u *userSide) installIndex(from string) error {
	b, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = durable.Replace(filepath.Join(u.gitDir, "index"), b, 0o644)
	}
	if err != nil {
		return diskError("write the index", err)
	}
	return nil
}

// moveHead moves the person's branch, or a detached HEAD, from one commit to another; either may be empty.
func (u *userSide) moveHead(ctx context.Context, from, to string) error {
	args := []string{"update-ref", "-m", "centurion: merge", "HEAD", to, orZero(from, to)}
	if to == "" {
		args = []string{"update-ref", "-d", "HEAD", from}
	}
	_, err := u.git(ctx, call{Args: args})
	if err != nil {
		return &centurion.Error{Op: "move the branch", Kind: centurion.KindConflict, Msg: "it no longer stands at " + orNothing(from), Hint: "try again", Err: err}
	}
	return nil
}

// lockIndex locks the person's index. The lock names its holder, so that one of a process that died can be recognised.
func (u *userSide) lockIndex() (unlock func(), err error) {
	at := filepath.Join(u.gitDir, "index.lock")
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, locked(at)
	}
	if err != nil {
		return nil, diskError("lock the index", err)
	}
	_, err = f.WriteString(lockMark + strconv.Itoa(os.Getpid()) + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(at)
		return nil, diskError("lock the index", err)
	}
	held := true
	return func() {
		if held {
			held = false
			os.Remove(at)
		}
	}, nil
}

func locked(at string) error {
	return &centurion.Error{Op: "merge", Kind: centurion.KindConflict, Msg: "another git is at work in this repository: " + at + " exists",
		Hint: "wait for it; if no git runs, remove the file"}
}
