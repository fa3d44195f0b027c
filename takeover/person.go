// Package takeover lets a person take over a mission's work or undo it: show it ([Person.Diff]), merge it into their branch
// ([Person.Merge]), revert and restore it ([Person.Undo]). It decides which changes belong to a mission or a task and records the
// results in the store. Package worktree runs git, and the orchestrator owns a mission's work up to its own branch.
package takeover

import (
	"sync"

	"centurion/orchestrator"
	"centurion/orchestrator/revert"
	"centurion/store"
	"centurion/workspace"
)

// Person carries out a person's requests for the work of a project's missions. Its methods are safe for concurrent use; one at a time
// makes changes.
type Person struct {
	host      *orchestrator.Host
	store     *store.Store
	reverts   *revert.Desk
	workspace *workspace.Workspace
	changing  sync.Mutex // held while a person's branch or files are changed, or work is undone
}

// New returns the Person of a project. All arguments must belong to that project, and only one Person may be used for it at a time: two
// would not lock each other out.
func New(host *orchestrator.Host, s *store.Store, ws *workspace.Workspace) *Person {
	return &Person{host: host, store: s, reverts: revert.New(s, ws), workspace: ws}
}
