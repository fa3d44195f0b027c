package todo

import (
	"maps"
	"slices"
	"sync"

	"centurion"
)

// Frozen are the checks of the items that were handed out, by item, and under "" the plan's own. A worker with a shell can write into the
// plan's file, so its lines do not decide what is run. The zero Frozen has none. Its methods are safe for concurrent use.
type Frozen struct {
	mu     sync.Mutex // protects the fields below
	items  map[string]Checks
	undone []centurion.Exchange // changes in the file that an agent's plan has replaced, not reported yet
}

// Checks are the acceptance commands of an item, and its proof line.
type Checks struct {
	Verify []string
	Proof  string
}

func (c Checks) equal(o Checks) bool { return slices.Equal(c.Verify, o.Verify) && c.Proof == o.Proof }

// ChecksIn returns the checks of an item, or the mission's own, as they stand in a plan. ok is false if the item is not there.
func ChecksIn(d *Doc, id string) (c Checks, ok bool) {
	if id == "" {
		return Checks{Verify: d.Checks()}, true
	}
	it, ok := d.Item(id)
	return Checks{it.Verify, it.Proof}, ok
}

// All returns the frozen checks.
func (f *Frozen) All() map[string]Checks {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.items)
}

// Set replaces some of the frozen checks; those without a command are not frozen.
func (f *Frozen) Set(more map[string]Checks) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.items == nil {
		f.items = map[string]Checks{}
	}
	for id, c := range more {
		if f.items[id] = c; len(c.Verify) == 0 {
			delete(f.items, id)
		}
	}
}

// Apply gives the items of a plan their frozen checks, and returns the changes that it has undone, ordered by item. An item whose id
// stands twice stays: nothing is run for it until the person has repaired the plan.
func (f *Frozen) Apply(d *Doc) (undone []centurion.Exchange) {
	if d == nil {
		return nil
	}
	items := f.All()
	for _, id := range slices.Sorted(maps.Keys(items)) {
		want := items[id]
		if now, ok := ChecksIn(d, id); ok && !now.equal(want) && d.SetChecks(id, want.Verify, want.Proof) == nil {
			undone = append(undone, centurion.Exchange{Item: id, From: want.Verify, To: now.Verify})
		}
	}
	return undone
}

// Accept takes over the checks of a plan that an agent sends, with the changes that it may make. What stands in the file since someone
// else has changed it is not what the agent wants, even if it sends the same. restore undoes it.
func (f *Frozen) Accept(old, sent *Doc, may func() error) (restore map[string]Checks, undone []centurion.Exchange, err error) {
	items := f.All()
	if old != nil {
		for id, want := range items {
			was, _ := ChecksIn(old, id)
			if now, ok := ChecksIn(sent, id); ok && !was.equal(want) && now.equal(was) {
				if err := sent.SetChecks(id, want.Verify, want.Proof); err != nil {
					return nil, nil, err
				}
			}
		}
		undone = f.Apply(old)
	}
	if err := may(); err != nil {
		return nil, nil, err
	}
	next := map[string]Checks{}
	for id, want := range items {
		if now, ok := ChecksIn(sent, id); ok && !now.equal(want) {
			next[id] = now
		}
	}
	f.Set(next)
	restore = map[string]Checks{}
	for id := range next {
		restore[id] = items[id]
	}
	return restore, undone, nil
}

// Note records changes that an agent's plan has replaced in the file.
func (f *Frozen) Note(undone []centurion.Exchange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.undone = append(f.undone, undone...)
}

// TakeNoted returns what was recorded since its last call.
func (f *Frozen) TakeNoted() []centurion.Exchange {
	f.mu.Lock()
	defer f.mu.Unlock()
	undone := f.undone
	f.undone = nil
	return undone
}
