package workspace

import "centurion/workspace/todo"

// maxForeign is how many foreign changes are kept for who asks for them; the oldest are dropped. A person saves some in a minute, and they
// are asked for within a second of each.
const maxForeign = 64

// Foreign is a change of a plan that was not made by an edit of Centurion, but by a person's editor or a command: from the version that its
// writer had read, as far as that can be told, to what was written. Edits that were made meanwhile are in neither.
type Foreign struct{ From, To *todo.Doc }

// Foreign returns the changes by others that edits and [TodoFile.Heal] of this process have met since it was last called, oldest first.
// Each is returned once. The first text that this process or its memory knows is no change, and a file that is missing or empty is none
// either: what comes next is compared with what was there before. Changes that another process has met first are not among them.
func (t *TodoFile) Foreign() []Foreign {
	t.mu.Lock()
	defer t.mu.Unlock()
	met := t.met
	t.met = nil
	return met
}

func (t *TodoFile) meet(changes []Foreign) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met = append(t.met, changes...)
	t.met = t.met[max(0, len(t.met)-maxForeign):]
}
