package sandbox

import (
	"path/filepath"

	"centurion"
	"centurion/sandbox/confine"
)

// Lend lets what runs in the workspace of a command, or is started there, write below a directory until back is called, but not what is
// protected there. The directory is one of [centurion.Command.Lend], or lies in one. Without namespaces nothing can be lent, and nothing is.
func (r *Runner) Lend(c centurion.Command, dir string) (back func(), err error) {
	if r.Confine == nil || r.Confine.Way != confine.Full {
		return func() {}, nil
	}
	dir = filepath.Clean(dir)
	p, err := r.placeOf(c, "")
	if err == nil {
		err = p.give(dir, r.Confine.Protect)
	}
	if err != nil {
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
