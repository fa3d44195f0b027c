package worktree

import (
	"encoding/json"
	"os"
	"path/filepath"

	"centurion"
)

// record is what is known of a checkout besides its files, kept beside it: w1.json beside w1. It is written before the
// directory is used for something new, so that a host that starts after a crash knows what it finds.
type record struct {
	GitDir string `json:"git_dir"`          // of the checkout: below worktrees/ of the repository
	Made   bool   `json:"made"`             // its files were once all there; until then nobody has worked in it
	Free   bool   `json:"free"`             // it is in the pool: nothing in it is of worth
	Branch string `json:"branch,omitempty"` // without refs/heads/; empty for one that nobody writes to
	Start  string `json:"start,omitempty"`  // the commit that the work stands on
	Tree   string `json:"tree,omitempty"`   // what the files were last brought to
	Last   string `json:"last,omitempty"`   // the last commit that was made of the work; Start if none was
	// Next and Onto are where the files and the start are being moved to: whoever opens the checkout after a crash ends that, as
	// else what others have done would pass for the work in it.
	Next string `json:"next,omitempty"`
	Onto string `json:"onto,omitempty"`
	Subs []sub  `json:"subs,omitempty"`
	// Setup are the commands that make it usable, Done tells with which of them and which lock files that was done, and
	// Outputs what they left that is neither tracked nor ignored.
	Setup   []string `json:"setup,omitempty"`
	Done    string   `json:"done,omitempty"`
	Outputs []string `json:"outputs,omitempty"`
	// Ignored are files that tools have written and git ignores, relative to the repository's top: see [Checkout.Ignored].
	Ignored []string `json:"ignored,omitempty"`
}

// paths of a checkout named w1 in the home.
func (cs *checkouts) slotOf(name string) string   { return filepath.Join(cs.opts.Home, name) }
func (cs *checkouts) recordOf(name string) string { return filepath.Join(cs.opts.Home, name+".json") }

// indexOf is our own index of a checkout: it always tells what the files are, whatever an agent does with the index that
// git itself uses there.
func (cs *checkouts) indexOf(name string) string { return filepath.Join(cs.opts.Home, name+".index") }

// dirOf is where the files of a checkout are. It carries the name of the repository's directory, which some tools write into files: npm init
// takes it for the package's name. Earlier versions put the files into the slot itself.
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

// readRecord returns what is known of a checkout; ok is false if nothing is, or nothing that can be read.
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
