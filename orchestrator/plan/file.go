package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// File is the plan file of a running mission. The newest mission has todo.md: when it starts, the plan of an older one is renamed, even
// while that one runs.
type File struct {
	mu    sync.RWMutex // held for reading while the file is used, for writing while it is renamed
	file  *workspace.TodoFile
	moved chan struct{} // closed at a rename
	Had   heldIDs

	Frozen todo.Frozen // checks that items have in every plan that is returned
	// Keep stores frozen checks that an agent has changed, by item.
	Keep func(ctx context.Context, ids []string) error
	own  func(context.Context) error // records, before a write, that the file belongs to the mission
}

// heldIDs are the ids of items that tasks of the mission have had or this host has seen in its plan. New items never get them, even
// after a removal: they would inherit the tasks, or messages about them.
type heldIDs struct {
	mu  sync.Mutex // protects ids
	ids map[string]bool
}

// Add adds ids; empty ones are ignored.
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

// see adds the ids of a plan that was read or written, and returns its arguments.
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

// reserve prevents the ids from being assigned in a plan.
func (h *heldIDs) reserve(d *todo.Doc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.Reserve(slices.Collect(maps.Keys(h.ids))...)
}

func newPlanFile(f *workspace.TodoFile, own func(context.Context) error) *File {
	return &File{file: f, moved: make(chan struct{}), own: own}
}

// Where returns the file, and a channel that is closed when it is renamed.
func (p *File) Where() (*workspace.TodoFile, <-chan struct{}) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.file, p.moved
}

// Load reads the plan. Items that were handed out have their frozen checks.
func (p *File) Load() (*todo.Doc, error) {
	doc, err := p.Raw()
	p.Frozen.Apply(doc)
	return doc, err
}

// Raw reads the plan as it stands in the file.
func (p *File) Raw() (*todo.Doc, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	doc, _, err := p.file.Load()
	return p.Had.see(doc, err)
}

// Edit changes the plan; see [workspace.TodoFile.Edit]. f must not use the File.
func (p *File) Edit(ctx context.Context, f func(*todo.Doc) error) (*todo.Doc, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	doc, err := p.Had.see(p.file.Edit(ctx, func(d *todo.Doc) error {
		p.Had.reserve(d)
		if err := f(d); err != nil {
			return err
		}
		return p.own(ctx)
	}))
	p.Frozen.Apply(doc)
	return doc, err
}

// Replace replaces the plan; see [workspace.TodoFile.Replace], and [workspace.TodoFile.Merge] for possibly stale content. check must
// not use the File. An item that is open in the content keeps its mark if it is done, cancelled or running, since the content may be a copy
// from before; kept describes these marks, one a line.
func (p *File) Replace(ctx context.Context, content string, stale bool, check func(old, new *todo.Doc) error) (doc *todo.Doc, kept []string, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	replace := p.file.Replace
	if stale {
		replace = p.file.Merge
	}
	var before map[string]todo.Checks
	var undone []centurion.Exchange
	doc, err = p.Had.see(replace(ctx, content, func(old, new *todo.Doc) (err error) {
		p.Frozen.Set(before) // of an attempt that found another text
		p.Had.reserve(new)
		kept = keepMarks(old, new)
		if before, undone, err = p.Frozen.Accept(old, new, func() error { return check(old, new) }); err != nil {
			return err
		}
		return p.own(ctx)
	}))
	if err != nil {
		p.Frozen.Set(before)
		return doc, kept, err
	}
	p.Frozen.Note(undone)
	if len(before) > 0 {
		err = p.Keep(ctx, slices.Sorted(maps.Keys(before)))
	}
	return doc, kept, err
}

// keepMarks gives open items of a new plan the marks that they have, and describes them. A done or cancelled item with another title or other
// checks is new work.
func keepMarks(old, new *todo.Doc) (kept []string) {
	if old == nil {
		return nil
	}
	for _, it := range new.Items() {
		was, ok := old.Item(it.ID)
		ended := was.Mark == todo.Done || was.Mark == todo.Cancelled
		if !ok || it.Group || it.Mark != todo.Open || was.Mark != todo.Running && (!ended || Differs(was, it)) || new.SetMark(it.ID, was.Mark) != nil {
			continue
		}
		how := ""
		if ended {
			how = "; to reopen it, set its status to open with items"
		}
		kept = append(kept, fmt.Sprintf("%s stays %s, although you sent it as open%s.", it.ID, was.Mark, how))
	}
	return kept
}

// Heal restores lines dropped by a stale save; see [workspace.TodoFile.Heal].
func (p *File) Heal(ctx context.Context) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, err := p.file.Heal(ctx)
	return err
}

// Foreign returns changes not made by the host; see [workspace.TodoFile.Foreign].
func (p *File) Foreign() []workspace.Foreign {
	p.mu.RLock()
	defer p.mu.RUnlock()
	changes := p.file.Foreign()
	for i, c := range changes {
		if to, err := todo.Parse(c.To.Bytes()); err == nil { // a copy: changes of frozen checks are told apart
			p.Frozen.Apply(to)
			changes[i].To = to
		}
	}
	return changes
}

// move renames the file in .opencode/. record stores its new path before it is used.
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

// WatchPlan calls Changed whenever the plan changes, at any path, until ctx ends.
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
