// Package takeover is how a person takes over what a mission has done, or takes it back: what was changed ([Person.Diff]),
// putting it on the person's branch ([Person.Merge]), and taking it back and bringing it back ([Person.Undo]). It decides
// what belongs to a mission or a task and records in the store what became of it; git is run by worktree, and a mission's
// work itself, up to its own branch, is the orchestrator's.
package takeover

import (
	"sync"

	"centurion/orchestrator"
	"centurion/orchestrator/revert"
	"centurion/store"
	"centurion/workspace"
)

// Person does what a person asks for of the work of a project's missions. Its methods may be called from several goroutines:
// one of them at a time changes something.
type Person struct {
	host      *orchestrator.Host
	store     *store.Store
	reverts   *revert.Desk
	workspace *workspace.Workspace
	changing  sync.Mutex // held while a person's branch or files are changed, or work is taken back
}

// New returns the person's side of a project. The three have to be of the same project, and two Persons must not be at work in
// it at the same time: they would not wait for each other.
func New(host *orchestrator.Host, s *store.Store, ws *workspace.Workspace) *Person {
	return &Person{host: host, store: s, reverts: revert.New(s, ws), workspace: ws}
}
