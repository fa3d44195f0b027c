package workspace

import "centurion/workspace/todo"

// maxForeign limits the stored foreign changes; the oldest are dropped. A person saves a few times per minute, and each is fetched
// within a second.
const maxForeign = 64

// Foreign is a change of a plan made by a person's editor or a command instead of an edit of Centurion: from the version that its
// writer had read, as far as known, to the result. Edits made meanwhile are in neither.
type Foreign struct{ From, To *todo.Doc }

// Foreign returns, oldest first and each once, the foreign changes that edits and [TodoFile.Heal] of this process have found since its
// last call. The first known text does not count as a change, nor does a missing or empty file: the next text is compared with the one
// before that. Changes found first by another process are not included.
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
