package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"centurion"
	"centurion/guard/durable"
)

// The files of a landing in progress, in the git directory of the person's working tree.
const (
	journalName = "centurion-merge.json"
	lockMark    = "centurion "
)

// journal is the data for completing a killed landing.
type journal struct {
	Before string           `json:"before"`
	After  string           `json:"after"`
	Tree   string           `json:"tree"`
	Steps  []step           `json:"steps"`
	Index  map[string]entry `json:"index"` // new entries of the index
}

func (u *userSide) writeJournal(j journal) error {
	b, err := json.Marshal(j)
	if err == nil {
		err = durable.Replace(filepath.Join(u.gitDir, journalName), b, 0o644)
	}
	if err != nil {
		return diskError("record the merge", err)
	}
	return nil
}

func (u *userSide) dropJournal() error {
	if err := os.Remove(filepath.Join(u.gitDir, journalName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError("record the merge", err)
	}
	return nil
}

// undisturbed refuses during an operation of the person; with look, also during an unfinished landing of ours.
func (u *userSide) undisturbed(look bool) error {
	under := map[string]string{"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "rebase-merge": "a rebase",
		"rebase-apply": "a rebase", "BISECT_LOG": "a bisection"}
	for name, what := range under {
		if _, err := os.Lstat(filepath.Join(u.gitDir, name)); err == nil {
			return &centurion.Error{Op: "merge", Kind: centurion.KindConflict, Msg: what + " is in progress in " + u.top, Hint: "finish or abort it (git status says how), then try again"}
		}
	}
	if !look {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(u.gitDir, journalName)); err == nil {
		return &centurion.Error{Op: "merge", Kind: centurion.KindConflict, Msg: "a merge was interrupted in the middle", Hint: "merge again: it is completed first"}
	}
	return nil
}

// Settle completes a Merge or an Undo that was killed, or forgets it if it had not changed anything. Without one it does nothing. The
// error has centurion.KindConflict if the person's branch has moved since.
func (u *userSide) Settle(ctx context.Context) error {
	u.landing.Lock()
	defer u.landing.Unlock()
	return u.settle(ctx)
}

// settle completes a killed landing. The branch is moved first, so its position tells whether the files were touched.
func (u *userSide) settle(ctx context.Context) error {
	if err := u.breakLock(); err != nil {
		return err
	}
	at := filepath.Join(u.gitDir, journalName)
	b, err := os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var j journal
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err != nil {
		return diskError("read the record of a merge", err)
	}
	h, err := u.Head(ctx)
	if err != nil {
		return err
	}
	switch h.Commit {
	case j.Before:
		return u.dropJournal()
	case j.After:
		return u.complete(ctx, j)
	}
	return &centurion.Error{Op: "merge", Kind: centurion.KindConflict,
		Msg:  "a merge to " + orNothing(j.After) + " was interrupted in the middle, and the branch has moved since",
		Hint: "look at git status; when the files are as they should be, remove " + at}
}

// complete carries out the remaining steps of a landing: unchanged files get the new content, files changed since stay.
func (u *userSide) complete(ctx context.Context, j journal) error {
	dir, err := u.scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	p := &landingPlan{repo: u, place: u.placer(), dir: dir}
	if err := p.readIndex(ctx); err != nil {
		return err
	}
	work := filepath.Join(dir, "work")
	if err := p.copyIndex(work); err != nil {
		return err
	}
	var paths []string
	for _, s := range j.Steps {
		paths = append(paths, s.Path)
	}
	now, err := p.place.look(ctx, work, paths)
	if err != nil {
		return err
	}
	var left []step
	for _, s := range j.Steps {
		if e := now.entries[s.Path]; e == s.Old || e == (entry{}) {
			left = append(left, step{s.Path, e, s.New})
		}
	}
	if err := p.place.stage(ctx, dir, j.Tree, left); err != nil {
		return err
	}
	index := filepath.Join(dir, "staged")
	if err := u.changeIndex(ctx, index, j.Index, p.staged); err != nil {
		return err
	}
	unlock, err := u.lockIndex()
	if err != nil {
		return err
	}
	defer unlock()
	if err := p.unchanged(); err != nil {
		return err
	}
	if err := p.place.place(dir, left, now.infos); err != nil {
		return err
	}
	if err := u.installIndex(index); err != nil {
		return err
	}
	return u.dropJournal()
}

// breakLock removes an index lock left by one of our processes that was killed.
func (u *userSide) breakLock() error {
	at := filepath.Join(u.gitDir, "index.lock")
	b, err := os.ReadFile(at)
	pid, ours := strings.CutPrefix(strings.TrimSpace(string(b)), lockMark)
	n, convErr := strconv.Atoi(pid)
	if err != nil || !ours || convErr != nil {
		return nil // none, or not ours: its users will report it
	}
	if alive(n) && n != os.Getpid() {
		return locked(at)
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return diskError("remove a stale lock", err)
	}
	return nil
}

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || runtime.GOOS == "windows" {
		return err == nil
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}
