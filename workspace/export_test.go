package workspace

import "time"

// KindOfOS gives the tests the classification of errors of the system.
var KindOfOS = kindOf

// Protected reports whether a path leads to what file tools do not write. One that [Workspace.Rel] refuses does.
func (w *Workspace) Protected(rel string) bool {
	if _, err := w.Rel(rel); err != nil {
		return true
	}
	s, err := w.Find(rel)
	return err != nil || s.Protected()
}

// HeldFiles returns how many files without a name are open.
func HeldFiles(t *TodoFile) int { return len(t.held) }

// AgeHeld makes them older.
func AgeHeld(t *TodoFile, by time.Duration) {
	for _, h := range t.held {
		h.at = h.at.Add(-by)
	}
}
