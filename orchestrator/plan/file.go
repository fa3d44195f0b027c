package plan

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// File is where a running mission has its plan. The newest mission's is todo.md: one that starts gives the plan of an
// older one another name, also while that one runs.
type File struct {
	mu    sync.RWMutex // held for reading while the file is used, for writing while it is given another name
	file  *workspace.TodoFile
	moved chan struct{} // closed when it is
	Had   heldIDs
	own   func(context.Context) error // records, before a change is written, that the file is the mission's
}

// heldIDs are the items that tasks of a mission have had, and those that this host has seen in its plan. A new item gets none of their
// ids, also if they were removed: it would come to have their tasks, or what somebody was going to say about them.
type heldIDs struct {
	mu  sync.Mutex // protects ids
	ids map[string]bool
}

// Add takes ids in, of which some may be empty.
func (h *heldIDs) Add(ids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids == nil {
		h.ids = map[string]bool{}
	}
	for _, id := range ids {
		h.ids[id] = true
	}
}

// see takes in the ids of a plan that was read or written, and hands both arguments on.
func (h *heldIDs) see(d *todo.Doc, err error) (*todo.Doc, error) {
	if d != nil && err == nil {
		items := d.Items()
		ids := make([]string, len(items))
		for i, it := range items {
			ids[i] = it.ID
		}
		h.Add(ids...)
	}
	return d, err
}

// reserve keeps the ids from being assigned in a plan.
func (h *heldIDs) reserve(d *todo.Doc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.Reserve(slices.Collect(maps.Keys(h.ids))...)
}

func newPlanFile(f *workspace.TodoFile, own func(context.Context) error) *File {
	return &File{file: f, moved: make(chan struct{}), own: own}
}

// Where returns the file, and a channel that is closed when it is given another name.
func (p *File) Where() (*workspace.TodoFile, <-chan struct{}) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.file, p.moved
}

// Load reads the plan.
func (p *File) Load() (*todo.Doc, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	doc, _, err := p.file.Load()
	return p.Had.see(doc, err)
}

// Edit changes the plan; see [workspace.TodoFile.Edit]. f must not use the planFile.
func (p *File) Edit(ctx context.Context, f func(*todo.Doc) error) (*todo.Doc, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.Had.see(p.file.Edit(ctx, func(d *todo.Doc) error {
		p.Had.reserve(d)
		if err := f(d); err != nil {
			return err
		}
		return p.own(ctx)
	}))
}

// Replace replaces the plan; see [workspace.TodoFile.Replace], and [workspace.TodoFile.Merge] for a content that may be stale. check must not
// use the planFile.
func (p *File) Replace(ctx context.Context, content string, stale bool, check func(old, new *todo.Doc) error) (*todo.Doc, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	replace := p.file.Replace
	if stale {
		replace = p.file.Merge
	}
	return p.Had.see(replace(ctx, content, func(old, new *todo.Doc) error {
		p.Had.reserve(new)
		if err := check(old, new); err != nil {
			return err
		}
		return p.own(ctx)
	}))
}

// Heal brings back what a stale save has dropped; see [workspace.TodoFile.Heal].
func (p *File) Heal(ctx context.Context) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, err := p.file.Heal(ctx)
	return err
}

// Foreign returns what others than the host have changed; see [workspace.TodoFile.Foreign].
func (p *File) Foreign() []workspace.Foreign {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.file.Foreign()
}

// move gives the file another name in .opencode/. record writes its new path down before anybody uses it.
func (p *File) move(ws *workspace.Workspace, name string, record func(path string) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	path, err := p.file.Rename(name)
	if centurion.KindOf(err) == centurion.KindNotFound { // it has not been written yet
		err = nil
	}
	if err == nil {
		err = record(path)
	}
	if err != nil {
		return err
	}
	p.file = ws.TodoAt(path)
	close(p.moved)
	p.moved = make(chan struct{})
	return nil
}

// WatchPlan calls todoChanged whenever the plan changes, wherever it is, until ctx ends.
func (m *Plan) WatchPlan(ctx context.Context) error {
	for {
		file, moved := m.File.Where()
		inner, cancel := context.WithCancel(ctx)
		again := false
		var g guard.Group
		g.Go("follow plan", func() error {
			select {
			case <-moved:
				again = true
			case <-inner.Done():
			}
			cancel()
			return nil
		})
		err := m.watch(inner, file, m.Changed)
		cancel()
		if err = errors.Join(err, g.Wait()); err != nil || !again {
			return err
		}
	}
}
