package workspace

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// debounce is how long the directory must be quiet before the file is looked at, and debounceMax the longest that a
	// directory which is never quiet puts it off.
	debounce    = 50 * time.Millisecond
	debounceMax = 500 * time.Millisecond

	// recheck is how often the file is looked at without a sign from the system, which network file systems do not
	// give, and recheckBlind how often when no watch can be had at all.
	recheck      = 5 * time.Second
	recheckBlind = time.Second

	// relook is how often files are looked at that an edit has replaced, while there are any; see hold.
	relook = 500 * time.Millisecond
)

// Watch calls changed whenever the content of the file is another one than before, whoever changed it, this process
// included, and also when it vanishes or comes into being; quick changes are told once. What counts as before is what
// Load or an edit last returned, so that nothing between that and the start of Watch is missed. It blocks until ctx ends
// and returns nil; changed is called from inside it and not again after it has returned. Where the system cannot watch,
// the file is looked at every second. It is called as well when an editor has written into a file that an edit replaced,
// until [TodoFile.Heal] or an edit has taken that in.
func (t *TodoFile) Watch(ctx context.Context, changed func()) error {
	seen := t.baseline()
	var events <-chan fsnotify.Event
	var failures <-chan error
	again := recheckBlind
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		events, failures, again = watcher.Events, watcher.Errors, recheck
	}
	attached := t.attach(watcher)

	look := time.NewTimer(0) // a first look, for what changed before the watch stood
	defer look.Stop()
	tick := time.NewTicker(again)
	defer tick.Stop()
	held := time.NewTicker(relook)
	defer held.Stop()
	var pending time.Time // when the oldest change that was not looked at came; zero if there is none
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if !t.concerns(e.Name) {
				continue
			}
			if !attached || filepath.Dir(e.Name) == t.w.dir {
				attached = t.attach(watcher)
			}
			if pending.IsZero() {
				pending = time.Now()
			}
			look.Reset(max(0, min(debounce, debounceMax-time.Since(pending))))
		case <-failures:
			look.Reset(debounce) // events were lost
		case <-tick.C:
			attached = t.attach(watcher)
			if pending.IsZero() {
				look.Reset(0)
			}
		case <-held.C:
			if t.holds() && t.late() && ctx.Err() == nil {
				changed()
			}
		case <-look.C:
			pending = time.Time{}
			now, err := t.w.Version(t.path)
			if err != nil {
				now = "unreadable: " + err.Error() // that is a change too, told once
			}
			if now != seen && ctx.Err() == nil {
				seen = now
				changed()
			}
		}
	}
}

// baseline returns the version that a watch starts from.
func (t *TodoFile) baseline() string {
	t.mu.Lock()
	known, given := t.known, t.given
	t.mu.Unlock()
	if given {
		return known
	}
	version, _ := t.w.Version(t.path) // an unreadable file is told by the first look
	return version
}

// attach watches the project directory, in which .opencode/ comes and goes, and .opencode/ itself, and reports whether
// the latter is watched now. Watching a directory once more is harmless and catches a new one of the same name.
func (t *TodoFile) attach(watcher *fsnotify.Watcher) bool {
	if watcher == nil {
		return false
	}
	_ = watcher.Add(t.w.dir) // without it the recheck finds what changes
	return watcher.Add(filepath.Join(t.w.dir, Directory)) == nil
}

// concerns reports whether an event may be about the file: something in .opencode/, or that directory itself.
func (t *TodoFile) concerns(name string) bool {
	dir := filepath.Join(t.w.dir, Directory)
	return name == dir || filepath.Dir(name) == dir
}
