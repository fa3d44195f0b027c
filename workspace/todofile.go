package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"centurion"
	"centurion/workspace/todo"
)

const (
	lockName = ".todo.lock"
	tempName = ".todo.md.new" // one is enough: the lock is held while it exists
	opTodo   = "edit todo"

	// maxTodo is the largest plan that is read, in bytes. A plan of 50 workers has some tens of kilobytes.
	maxTodo = 4 << 20

	// lockPoll is the interval of attempts to get a lock held by another process.
	lockPoll = 5 * time.Millisecond

	// rest is how long a foreign text must be unchanged before it is edited, and emptyRest the same for an empty or cut-off one: many
	// editors empty a file before writing it.
	rest      = 25 * time.Millisecond
	emptyRest = 200 * time.Millisecond

	// settlePoll is the interval of checks on a changing file.
	settlePoll = 5 * time.Millisecond

	// restless is how long to wait for a file that keeps changing; then it is edited as it is. patienceWithParts is the same for a file
	// that is empty, missing or partial each time, so that an editor must be at work.
	restless          = time.Second
	patienceWithParts = 5 * time.Second

	// maxRestarts limits how often an edit starts over because the file was changed.
	maxRestarts = 100
)

// TodoFile is the plan of a project, .opencode/todo.md. Its methods are safe for concurrent use in several goroutines and processes. A
// person's editor takes no lock: what it has written before an edit replaces the file is never overwritten, except for writes in the
// last microseconds where the system cannot exchange two files (Windows, some network file systems). If an editor overwrites an edit
// that it has not seen, or writes into a file that an edit has just replaced, the next edit or [TodoFile.Heal] merges both.
type TodoFile struct {
	w    *Workspace
	path string        // relative to the project
	turn chan struct{} // has a buffer of one; full while an edit runs in this process
	hist *history      // owned by the holder of turn
	mem  *memory       // likewise

	mu    sync.Mutex
	held  []*heldFile // changed by the holder of turn
	ours  string      // version written by the last edit of this process
	known string      // version last returned; Watch starts there
	given bool        // known is set
	met   []Foreign   // the next result of Foreign
}

// Todo returns the plan of the project's newest mission, .opencode/todo.md. It always returns the same value.
func (w *Workspace) Todo() *TodoFile { return w.TodoAt(TodoPath) }

// TodoAt returns the plan with that path, relative to the project; always the same value for a path. An older living mission has its
// plan under its own name.
func (w *Workspace) TodoAt(path string) *TodoFile {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.todos[path]
	if !ok {
		t = &TodoFile{w: w, path: path, turn: make(chan struct{}, 1), hist: &history{}, mem: newMemory(w.memory, w.dir, path)}
		w.todos[path] = t
	}
	return t
}

// Path returns the file's path relative to the project.
func (t *TodoFile) Path() string { return t.path }

// Load reads and parses the file and returns its version as [VersionOf] does. For a missing file it returns nil, "", nil. Errors are
// KindUsage (it is not a valid plan; see [todo.Parse]) and those of [Workspace.ReadFile].
func (t *TodoFile) Load() (*todo.Doc, string, error) {
	b, err := t.w.readOr(t.path, maxTodo)
	if err != nil {
		return nil, "", err
	}
	version := versionOf(b)
	t.give(version)
	if b == nil {
		return nil, "", nil
	}
	doc, err := t.parse(b)
	if err != nil {
		return nil, "", err
	}
	return doc, version, nil
}

// Edit is the only way to change the file. It calls f with the current plan, or an empty one without a file, adds missing ids, replaces
// the file atomically, surviving a power cut, and returns the new plan. If the file is changed meanwhile, even by a person's editor, it
// starts over with the new text: f may be called several times, each time with a new Doc. An error of f is returned unchanged without
// writing; nothing is written either if f changes nothing. Other errors: KindUsage (the file is not a valid plan), KindConflict (it
// keeps changing), KindPermission, KindDisk, and the end of ctx.
func (t *TodoFile) Edit(ctx context.Context, f func(*todo.Doc) error) (*todo.Doc, error) {
	doc, _, err := t.change(ctx, func(old []byte) (*todo.Doc, error) {
		doc, err := t.parse(old)
		if err == nil {
			err = f(doc)
		}
		if err != nil {
			return nil, err
		}
		doc.AssignIDs()
		return doc, nil
	})
	return doc, err
}

// Heal restores edits that an editor has dropped unseen: an editor that saves a text read before an edit drops the edit, and its writes
// into a replaced file are lost themselves. It writes the file only if needed, and reports whether it did. Every edit does the same;
// Heal is for times without edits: call it after each change reported by Watch. If there is nothing to do, it costs one read of the
// file. Errors are those of Edit.
//
// It knows the versions seen by this process and those sharing its memory; see [Workspace.Remember]. Without a shared memory, two
// processes that edit while a person saves stale texts can lose an edit. See history for how the base of a text is determined, and when
// that fails.
func (t *TodoFile) Heal(ctx context.Context) (changed bool, err error) {
	if now, err := t.w.Version(t.path); err == nil && now == t.last() && !t.holds() {
		return false, nil
	}
	if !t.existed() {
		return false, nil // nothing to compare with, and no directory to create
	}
	_, changed, err = t.change(ctx, t.parse)
	return changed, err
}

// Replace is Edit with a whole new text. It calls check, if not nil, with the current plan (nil if there is none or it is invalid) and
// the new one; an error of check is returned unchanged without writing. The error is KindUsage if content is not a valid plan.
func (t *TodoFile) Replace(ctx context.Context, content string, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	return t.replaceBy(ctx, func([]byte) []byte { return []byte(content) }, check)
}

// Merge is Replace with a possibly stale text: changes since the version it is based on are kept, unless the text changes the same
// mark, title or attribute. See history for how that version is determined.
func (t *TodoFile) Merge(ctx context.Context, content string, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	return t.replaceBy(ctx, func(old []byte) []byte {
		hist := t.hist.clone()
		hist.list = slices.Clip(hist.list) // this clone is dropped, see there
		hist.meet(old)
		return hist.renewed([]byte(content))
	}, check)
}

func (t *TodoFile) replaceBy(ctx context.Context, content func(old []byte) []byte, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	doc, _, err := t.change(ctx, func(old []byte) (*todo.Doc, error) {
		doc, err := t.parse(content(old))
		if err != nil {
			return nil, err
		}
		if check != nil {
			var before *todo.Doc
			if old != nil {
				if before, err = t.parse(old); err != nil {
					before = nil
				}
			}
			if err := check(before, doc); err != nil {
				return nil, err
			}
		}
		doc.AssignIDs()
		return doc, nil
	})
	return doc, err
}

// Archive moves the file to .opencode/archive/name and returns that path. Errors are KindUsage (name is not a plain file name),
// KindNotFound (there is no plan) and KindConflict (the archive already has that name).
func (t *TodoFile) Archive(name string) (path string, err error) {
	return ArchivePath + "/" + name, t.move("archive todo", ArchivePath, name)
}

// Rename renames the file within .opencode/ and returns its new path. Errors are those of Archive.
func (t *TodoFile) Rename(name string) (path string, err error) {
	return Directory + "/" + name, t.move("rename todo", Directory, name)
}

// move moves the file to an unused name in a directory of the project.
func (t *TodoFile) move(op, dir, name string) error {
	if name == "" || name == "." || !filepath.IsLocal(name) || path.Base(filepath.ToSlash(name)) != name {
		return &centurion.Error{Op: op, Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is not a plain file name", name)}
	}
	unlock, err := t.w.lock(context.Background(), t.turn, opTodo)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.w.root.MkdirAll(dir, dirPerm); err != nil {
		return t.w.fail(op, dir, err)
	}
	to := dir + "/" + name
	if _, err := t.w.root.Lstat(t.path); err != nil {
		return t.w.fail(op, t.path, err)
	}
	if _, err := t.w.root.Lstat(to); err == nil {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: to + " exists already", Hint: "choose another name"}
	}
	if err := t.w.root.Rename(t.path, to); err != nil {
		return t.w.fail(op, t.path, err)
	}
	t.hist = &history{}
	_ = t.Foreign()
	if dir == Directory {
		t.mem.move(newMemory(t.mem.root, t.w.dir, to))
	} else {
		t.mem.remove()
	}
	t.release()
	t.wrote("")
	t.give("")
	return t.sync(dir, Directory)
}

// sync syncs directories of the project.
func (t *TodoFile) sync(dirs ...string) error {
	for _, dir := range dirs {
		d, err := t.w.root.OpenRoot(dir)
		if err != nil {
			return t.w.fail(opTodo, dir, err)
		}
		err = syncDir(d)
		d.Close()
		if err != nil {
			return t.w.fail(opTodo, dir, err)
		}
	}
	return nil
}

// change performs every edit: it locks, reads, merges foreign changes, makes the new plan, and replaces the file if it is unchanged. It
// reports whether it wrote.
func (t *TodoFile) change(ctx context.Context, next func(old []byte) (*todo.Doc, error)) (*todo.Doc, bool, error) {
	unlock, err := t.w.lock(ctx, t.turn, opTodo)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	t.mem.load(t.hist)
	for range maxRestarts {
		old, err := t.settled(ctx)
		if err != nil {
			return nil, false, err
		}
		whole, hist, late := t.reconcile(old)
		doc, err := next(whole)
		if err != nil {
			return nil, false, err
		}
		text := doc.Bytes()
		differs := !bytes.Equal(old, text)
		if differs {
			done, thrown, err := t.w.replaceIf(opTodo, t.path, versionOf(old), text)
			t.keep(thrown)
			switch {
			case err != nil:
				return nil, false, err
			case !done:
				continue // the file was changed meanwhile
			}
			hist.remember(text, true)
		}
		t.mem.save(hist, t.hist.n)
		t.meet(hist.foreign)
		hist.foreign = nil
		t.hist = hist
		for _, f := range late {
			f.taken()
		}
		version := versionOf(old)
		if differs {
			version = VersionOf(text)
			t.wrote(version)
		}
		t.give(version)
		return doc, differs, nil
	}
	return nil, false, &centurion.Error{Op: opTodo, Kind: centurion.KindConflict, Msg: t.path + " is being changed all the time",
		Hint: "find out what writes to it, and stop it"}
}

// reconcile returns the resulting plan for the text on disk: with edits dropped by foreign saves, and with texts written into files
// without a name (late). The new history and late count only once the result is on disk.
func (t *TodoFile) reconcile(old []byte) (whole []byte, hist *history, late []found) {
	hist = t.hist.clone()
	whole = hist.meet(old)
	for _, f := range t.look() {
		late = append(late, f)
		if hist.knows(f.sum) {
			continue
		}
		if _, err := todo.Parse(f.text); err == nil {
			whole = hist.meet(f.text)
		}
	}
	return whole, hist, late
}

// ended is the error if a context ended during an edit, with its cause.
func ended(ctx context.Context) error {
	err := context.Cause(ctx)
	return &centurion.Error{Op: opTodo, Kind: centurion.KindOf(err), Err: err}
}

// settled returns the content, nil for a missing file, once no one is writing to it: half a file must not be edited.
func (t *TodoFile) settled(ctx context.Context) ([]byte, error) {
	started := time.Now()
	var missing time.Time // since when it is missing
	for {
		b, fi, err := t.w.ReadFile(t.path, maxTodo)
		wait, patience := time.Duration(0), restless
		switch {
		case centurion.KindOf(err) == centurion.KindNotFound:
			if missing.IsZero() {
				missing = time.Now()
			}
			if t.existed() { // some editors move the old file away before writing the new one
				wait, patience = emptyRest-time.Since(missing), patienceWithParts
			}
		case err != nil:
			return nil, err
		case len(b) == 0 || t.hist.partial(b):
			wait, patience = min(emptyRest, emptyRest-time.Since(fi.ModTime())), patienceWithParts
		case VersionOf(b) != t.last() && !t.hist.isNewest(b):
			wait = min(rest, rest-time.Since(fi.ModTime())) // a modification time in the future does not extend the wait
		}
		if err == nil {
			missing = time.Time{}
		}
		if wait <= 0 || time.Since(started) > patience {
			return b, nil
		}
		select {
		case <-time.After(min(wait, settlePoll)):
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

// readOr returns the content of a file, nil for a missing one only.
func (w *Workspace) readOr(path string, limit int64) ([]byte, error) {
	b, _, err := w.ReadFile(path, limit)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	return b, err
}

func versionOf(b []byte) string {
	if b == nil {
		return ""
	}
	return VersionOf(b)
}

// parse parses the plan and names the file in errors.
func (t *TodoFile) parse(b []byte) (*todo.Doc, error) {
	doc, err := todo.Parse(b)
	if err != nil {
		return nil, &centurion.Error{Op: t.path, Kind: centurion.KindOf(err), Hint: centurion.HintOf(err), Err: err}
	}
	return doc, nil
}

func (t *TodoFile) give(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known, t.given = version, true
}

func (t *TodoFile) wrote(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours = version
}

// existed reports whether this process has seen the file.
func (t *TodoFile) existed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known != "" || t.ours != ""
}

// holds reports whether there are files without a name that may have been written to.
func (t *TodoFile) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held) > 0
}

func (t *TodoFile) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ours
}

// replaceIf replaces a file if it still has the version that was read ("" for no file), and returns false otherwise. thrown is as in
// [replaceIf].
func (w *Workspace) replaceIf(op, path, version string, text []byte) (done bool, thrown *heldFile, err error) {
	name, err := w.real(op, path)
	if err != nil {
		return false, nil, err
	}
	dir, base := splitRel(name)
	d, err := w.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// The directory was removed during the edit: that is a change, too.
		return false, nil, w.root.MkdirAll(dir, dirPerm)
	}
	if err != nil {
		return false, nil, w.fail(op, name, err)
	}
	defer d.Close()
	done, thrown, err = replaceIf(d, base, version, text)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, thrown, w.fail(op, name, err)
	}
	return done && err == nil, thrown, nil
}
