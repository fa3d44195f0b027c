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

	// maxTodo is the size in bytes up to which a plan is read. A plan of 50 workers has some tens of kilobytes.
	maxTodo = 4 << 20

	// lockPoll is how often a lock that another process holds is asked for again.
	lockPoll = 5 * time.Millisecond

	// rest is how long a text that somebody else wrote must have been left alone before it is edited, and emptyRest how
	// long an empty or a cut off one: many editors empty a file first and then fill it.
	rest      = 25 * time.Millisecond
	emptyRest = 200 * time.Millisecond

	// settlePoll is how often a file that is not at rest is looked at.
	settlePoll = 5 * time.Millisecond

	// restless is how long a file that does not come to rest is waited for. Then it is edited as it is.
	// One that is empty, missing or half of what it was each time has an editor at work on it, and is waited for longer.
	restless          = time.Second
	patienceWithParts = 5 * time.Second

	// maxRestarts is how often an edit starts over because the file was changed under it.
	maxRestarts = 100
)

// TodoFile is the plan of a project, .opencode/todo.md. Its methods may be called from several goroutines and processes
// at once. A person's editor takes no lock: what it has written before an edit replaces the file is never overwritten,
// except that where the system cannot exchange two files (Windows, some network file systems) a write in the last
// microseconds before the rename can be. What an editor writes over an edit that it has not seen, and what it writes
// into a file that an edit has just replaced, is put together with the edit by the next one, or by [TodoFile.Heal].
type TodoFile struct {
	w    *Workspace
	path string        // relative to the project
	turn chan struct{} // holds one value while an edit runs in this process
	hist *history      // belongs to who has the turn
	mem  *memory       // so does this

	mu    sync.Mutex
	held  []*heldFile // changed by who has the turn
	ours  string      // version that the last edit of this process wrote
	known string      // version that was last given out; where Watch starts
	given bool        // one was
	met   []Foreign   // what Foreign returns next
}

// Todo returns the plan of the project's newest mission, .opencode/todo.md. It is always the same one.
func (w *Workspace) Todo() *TodoFile { return w.TodoAt(TodoPath) }

// TodoAt returns the plan with that path, relative to the project, and always the same one for the same path. An older
// mission that still lives has its plan under its own name.
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

// Load reads and parses the file and returns its version as [VersionOf] does. A missing file is no error: nil, "", nil.
// Errors are KindUsage (it cannot be read as a plan; see [todo.Parse]) and those of [Workspace.ReadFile].
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

// Edit is the one way to change the file. It calls f with the plan as it stands on disk, or an empty one if there is no
// file, writes missing ids, and replaces the file in one step that survives a power cut; then it returns the new plan.
// If somebody else changed the file meanwhile, a person in an editor too, it starts over with what they wrote: f may be
// called several times, each time with a plan of its own. An error of f is returned as it is and nothing is written;
// nothing is written either if f changes nothing. Other errors: KindUsage (the file cannot be read as a plan),
// KindConflict (it never stood still), KindPermission, KindDisk, and the end of ctx.
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

// Heal brings back what an editor has taken out of the file without having seen it: an editor that saves a text which it
// read before an edit drops the edit, and what it writes into a file that was replaced meanwhile is dropped itself. It
// writes the file only if it has to, and reports whether it did. Every edit does the same on its way; Heal is for the
// time when none comes: call it whenever Watch tells of a change. It costs one read of the file if there is nothing to do.
// Errors are those of Edit.
//
// What it knows is what this process and those that share its memory have seen; see [Workspace.Remember]. Two processes
// that edit at once and share none, with a person saving stale texts between them, can lose an edit. How it knows what a
// text was made from, and where it can be wrong, is said at history.
func (t *TodoFile) Heal(ctx context.Context) (changed bool, err error) {
	if now, err := t.w.Version(t.path); err == nil && now == t.last() && !t.holds() {
		return false, nil
	}
	if !t.existed() {
		return false, nil // there is nothing to compare with, and no directory to be made
	}
	_, changed, err = t.change(ctx, t.parse)
	return changed, err
}

// Replace is Edit with a whole new text. It calls check, if that is not nil, with the plan that is there (nil if there is
// none or it cannot be read as one) and the new one; an error of check is returned as it is and nothing is written. A
// text that cannot be read as a plan is KindUsage.
func (t *TodoFile) Replace(ctx context.Context, content string, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	return t.replaceBy(ctx, func([]byte) []byte { return []byte(content) }, check)
}

// Merge is Replace by a text that may be stale: what was written since the version that it was made from stays, unless the text changes the same
// mark, title or attribute. How that version is found is said at history.
func (t *TodoFile) Merge(ctx context.Context, content string, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	return t.replaceBy(ctx, func(old []byte) []byte {
		hist := t.hist.clone()
		hist.list = slices.Clip(hist.list) // this clone is not kept, see there
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

// Archive moves the file to .opencode/archive/name and returns that path. Errors are KindUsage (name is not a plain file name), KindNotFound
// (there is no plan) and KindConflict (the archive has that name already).
func (t *TodoFile) Archive(name string) (path string, err error) {
	return ArchivePath + "/" + name, t.move("archive todo", ArchivePath, name)
}

// Rename gives the file another name in .opencode/ and returns its new path. Errors are those of Archive.
func (t *TodoFile) Rename(name string) (path string, err error) {
	return Directory + "/" + name, t.move("rename todo", Directory, name)
}

// move moves the file to a directory of the project under a name that nothing has there.
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

// change is the way of every edit: lock, read, put together with what others wrote, make the new plan, replace the file
// if it is still what was read. It reports whether it wrote.
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
				continue // somebody else was faster
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

// reconcile returns what the plan should be, given what is on disk: that, and what a save of somebody else has dropped,
// and what was written into files that have lost their name. The history that it returns, and that it has dealt with the
// late ones, counts when the result is on disk.
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

// ended is the error for a context that ended while an edit waited. Its cause says why.
func ended(ctx context.Context) error {
	err := context.Cause(ctx)
	return &centurion.Error{Op: opTodo, Kind: centurion.KindOf(err), Err: err}
}

// settled returns the content, nil for a missing file, once nobody else is writing to it: an edit of half a file would
// be an edit of something that its writer never meant.
func (t *TodoFile) settled(ctx context.Context) ([]byte, error) {
	started := time.Now()
	var missing time.Time // since when it is
	for {
		b, fi, err := t.w.ReadFile(t.path, maxTodo)
		wait, patience := time.Duration(0), restless
		switch {
		case centurion.KindOf(err) == centurion.KindNotFound:
			if missing.IsZero() {
				missing = time.Now()
			}
			if t.existed() { // some editors move the old file away and then write the new one
				wait, patience = emptyRest-time.Since(missing), patienceWithParts
			}
		case err != nil:
			return nil, err
		case len(b) == 0 || t.hist.partial(b):
			wait, patience = min(emptyRest, emptyRest-time.Since(fi.ModTime())), patienceWithParts
		case VersionOf(b) != t.last() && !t.hist.isNewest(b):
			wait = min(rest, rest-time.Since(fi.ModTime())) // a file from the future is not waited for longer
		}
		if err == nil {
			missing = time.Time{}
		}
		if wait <= 0 || time.Since(started) > patience {
			if err == nil && b == nil {
				b = []byte{}
			}
			return b, nil
		}
		select {
		case <-time.After(min(wait, settlePoll)):
		case <-ctx.Done():
			return nil, ended(ctx)
		}
	}
}

// readOr returns the content of a file, nil for a missing one.
func (w *Workspace) readOr(path string, limit int64) ([]byte, error) {
	b, _, err := w.ReadFile(path, limit)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

func versionOf(b []byte) string {
	if b == nil {
		return ""
	}
	return VersionOf(b)
}

// parse reads the plan and names the file in the error.
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

// existed reports whether this process knows of a file.
func (t *TodoFile) existed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.known != "" || t.ours != ""
}

// holds reports whether there are files without a name that somebody may have written to.
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

// replaceIf puts text in the place of the version of a file that was read ("" for no file) and reports false if another one is there by now.
// The file that lost its name comes back as from [replaceIf].
func (w *Workspace) replaceIf(op, path, version string, text []byte) (done bool, thrown *heldFile, err error) {
	name, err := w.real(op, path)
	if err != nil {
		return false, nil, err
	}
	dir, base := splitRel(name)
	d, err := w.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// The directory was removed under the edit: that is a change as well.
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
