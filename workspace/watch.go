package workspace

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// debounce is how long the directory must be quiet before the file is checked, and debounceMax the maximum delay if it is never
	// quiet.
	debounce    = 50 * time.Millisecond
	debounceMax = 500 * time.Millisecond

	// recheck is the interval of checks without a notification, which network file systems do not send, and recheckBlind the interval
	// without any watch.
	recheck      = 5 * time.Second
	recheckBlind = time.Second

	// relook is the interval of checks of files that an edit has replaced, while there are any; see hold.
	relook = 500 * time.Millisecond
)

// Watch calls changed whenever the content of the file changes, including by this process, and when it appears or disappears; quick
// changes are combined. It starts from what Load or an edit last returned, so that nothing in between is missed. It blocks until ctx
// ends and returns nil; changed is called only from inside it. If the system cannot watch, the file is checked every second. It also
// calls changed when an editor has written into a file that an edit replaced, until [TodoFile.Heal] or an edit has taken that in.
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

	look := time.NewTimer(0) // a first check, for changes before the watch
	defer look.Stop()
	tick := time.NewTicker(again)
	defer tick.Stop()
	held := time.NewTicker(relook)
	defer held.Stop()
	var pending time.Time // time of the oldest unchecked change; zero if there is none
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
				now = "unreadable: " + err.Error() // that is a change, too, reported once
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
	version, _ := t.w.Version(t.path) // an unreadable file is reported by the first check
	return version
}

// attach watches the project directory, where .opencode/ may appear and disappear, and .opencode/ itself, and reports whether the
// latter is watched. Watching a directory again is harmless and catches a new one of the same name.
func (t *TodoFile) attach(watcher *fsnotify.Watcher) bool {
	if watcher == nil {
		return false
	}
	_ = watcher.Add(t.w.dir) // without it the recheck finds changes
	return watcher.Add(filepath.Join(t.w.dir, Directory)) == nil
}

// concerns reports whether an event may be about the file: anything in .opencode/, or that directory itself.
func (t *TodoFile) concerns(name string) bool {
	dir := filepath.Join(t.w.dir, Directory)
	return name == dir || filepath.Dir(name) == dir
}
