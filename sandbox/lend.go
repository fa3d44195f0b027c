package sandbox

import (
	"path/filepath"

	"centurion"
	"centurion/sandbox/confine"
)

// Lends reports whether commands can be let write for a time: see [Runner.Lend]. Those that nothing confines write anywhere.
func (r *Runner) Lends() bool {
	return r.Confine == nil || r.Confine.Way == confine.None || r.Confine.Way == confine.Full
}

// Lend lets what runs in a workspace write below a directory until back is called, but not what is protected there. The directory is one
// of [centurion.Command.Lend], or lies in one. Without namespaces nothing can be lent, and nothing is.
func (r *Runner) Lend(workspace, dir string) (back func(), err error) {
	r.mu.Lock()
	p := r.places[placeKey{workspace, false}]
	r.mu.Unlock()
	if p == nil || !r.Lends() {
		return func() {}, nil
	}
	dir = filepath.Clean(dir)
	if err := p.give(dir, r.Confine.Protect); err != nil {
		return nil, &centurion.Error{Op: "lend " + dir, Kind: centurion.KindInternal, Err: err, Hint: "see: centurion doctor"}
	}
	return func() { p.take(dir) }, nil
}

func (p *place) give(dir string, names []string) error {
	p.lending.Lock()
	defer p.lending.Unlock()
	if p.lent[dir] == 0 {
		if err := p.lend(dir, names, false); err != nil {
			return err
		}
	}
	if p.lent == nil {
		p.lent = map[string]int{}
	}
	p.lent[dir]++
	return nil
}

func (p *place) take(dir string) {
	p.lending.Lock()
	defer p.lending.Unlock()
	if p.lent[dir]--; p.lent[dir] == 0 {
		_ = p.lend(dir, nil, true) // its helper has ended, or a file is open there: then the next one that ends takes it
	}
}
