package worktree

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"

	"centurion"
)

// record is the stored state of a checkout, in w1.json next to w1. It is written before the directory is put to a new use, so that a
// host that starts after a crash knows its state.
type record struct {
	GitDir string `json:"git_dir"`          // of the checkout, below worktrees/ of the repository
	Made   bool   `json:"made"`             // its files were complete once; before that it was never used
	Free   bool   `json:"free"`             // it is in the pool, without anything to keep
	Branch string `json:"branch,omitempty"` // without refs/heads/; empty for a read-only one
	Start  string `json:"start,omitempty"`  // the base commit of the work
	Tree   string `json:"tree,omitempty"`   // the tree or commit that the files were last set to
	Last   string `json:"last,omitempty"`   // the last commit of the work; Start if there was none
	// Next and Onto are the targets of a move in progress. After a crash it is completed when the checkout is opened; otherwise the
	// changes of others would be taken for its work.
	Next string `json:"next,omitempty"`
	Onto string `json:"onto,omitempty"`
	Subs []sub  `json:"subs,omitempty"`
	// Setup are the setup commands, Done identifies the commands and lock files of the last completed setup, and Outputs are its files
	// that are neither tracked nor ignored.
	Setup   []string `json:"setup,omitempty"`
	Done    string   `json:"done,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	// Ground is the tree whose layers lie below a checkout that is made of them, Layers are those, and Redone identifies a setup that ran
	// in it later. Check means that its commands are checks.
	Ground string   `json:"ground,omitempty"`
	Layers []string `json:"layers,omitempty"`
	Redone string   `json:"redone,omitempty"`
	// Behind is the tree that the files of such a checkout have while they are not yet those of Start: they are brought when it is used next.
	Behind string `json:"behind,omitempty"`
	Check  bool   `json:"check,omitempty"`
	// Ignored are git-ignored files written by tools, relative to the repository's top: see [Checkout.Ignored].
	Ignored []string `json:"ignored,omitempty"`
}

// Paths of a checkout in the home, such as w1.
func (cs *checkouts) slotOf(name string) string   { return filepath.Join(cs.opts.Home, name) }
func (cs *checkouts) recordOf(name string) string { return filepath.Join(cs.opts.Home, name+".json") }

// indexOf is the host's own index of a checkout: it always reflects the files, whatever an agent does with git's own index there.
func (cs *checkouts) indexOf(name string) string { return filepath.Join(cs.opts.Home, name+".index") }

// dirOf is the directory of a checkout's files. It has the name of the repository's directory, which tools such as npm init use as the
// package's name. Earlier versions put the files into the slot itself.
func (cs *checkouts) dirOf(name string) string {
	slot := cs.slotOf(name)
	if _, err := os.Lstat(filepath.Join(slot, ".git")); err == nil {
		return slot
	}
	base := filepath.Base(cs.top)
	if !filepath.IsLocal(base) { // a repository at the root of a file system has no name
		base = "project"
	}
	return filepath.Join(slot, base)
}

// readRecord reads the record of a checkout; ok is false if there is none or it is unreadable.
func (cs *checkouts) readRecord(name string) (rec record, ok bool) {
	b, err := os.ReadFile(cs.recordOf(name))
	if err != nil || json.Unmarshal(b, &rec) != nil {
		return record{}, false
	}
	return rec, true
}

func (c *Checkout) save() error {
	b, err := json.Marshal(c.rec)
	if err != nil {
		return &centurion.Error{Op: "record a checkout", Kind: centurion.KindInternal, Err: err}
	}
	if err := writeFile(c.repo.recordOf(c.name), append(b, '\n'), 0o600); err != nil {
		return failed("record a checkout", "cannot write beside "+c.dir, err)
	}
	return nil
}

// pool tracks which checkouts this host uses. All other state of them is on disk.
type pool struct {
	mu    sync.Mutex
	seats map[string]*seat // by the checkout's name
}

// seat is a hold on a checkout. A search for a free checkout holds each briefly, and is worth waiting for; its user holds one until it
// is released.
type seat struct {
	name    string
	settled chan struct{} // closed when it is known whether the holder stays
	taken   bool          // the holder stays
	left    bool
}

// look holds a checkout while its caller examines it. It returns nil if another caller holds it, even briefly.
func (p *pool) look(name string) *seat {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seats[name] != nil {
		return nil
	}
	if p.seats == nil {
		p.seats = map[string]*seat{}
	}
	s := &seat{name: name, settled: make(chan struct{})}
	p.seats[name] = s
	return s
}

// await is look for a caller that needs this particular checkout: it waits for brief holders. It returns nil if the checkout is in use.
func (p *pool) await(ctx context.Context, name string) (*seat, error) {
	for {
		if s := p.look(name); s != nil {
			return s, nil
		}
		p.mu.Lock()
		other := p.seats[name]
		taken := other != nil && other.taken
		p.mu.Unlock()
		switch {
		case taken:
			return nil, nil
		case other == nil: // left meanwhile
			continue
		}
		select {
		case <-other.settled:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// take makes the holder stay, until leave.
func (p *pool) take(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.taken && !s.left {
		s.taken = true
		close(s.settled)
	}
}

// leave releases the seat. It does nothing if it was released already.
func (p *pool) leave(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.left {
		return
	}
	s.left = true
	delete(p.seats, s.name)
	if !s.taken {
		close(s.settled)
	}
}
