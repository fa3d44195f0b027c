package merge

import (
	"context"
	"slices"

	"centurion"
	"centurion/orchestrator/race"
)

// contest puts the tries of a batch that belong to the race of its first on a commit. ok is true for the one to be merged. If there is none,
// those that could be are held. Of several, the others stay in the line, in case that one is not merged after all.
func (m *Queue) contest(ctx context.Context, batch []*Work, at string, first bool) (best *Work, ok bool, err error) {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	tries := race.Tries(tasks, batch[0].Race)
	var fit []*Work
	for _, l := range batch {
		if err != nil || l.Race != batch[0].Race {
			continue
		}
		if lost := race.LostBy(tasks, l.Race, l.Task.ID); lost != nil {
			l.end(nil, lost)
			continue
		}
		onTop := false
		if onTop, err = m.tryPut(ctx, l, at, first); onTop {
			var files []centurion.FileChange
			files, err = m.iso.Ground.Repo.Stat(ctx, l.Onto, l.Next)
			l.lines = race.Lines(files)
		}
		if onTop || l.Done && l.Back == nil && l.err == nil {
			fit = append(fit, l)
			race.Enter(tries, l.Task.ID, l.lines, l.proven)
		}
	}
	if err != nil {
		return nil, false, err
	}
	winner := race.Winner(tries)
	i := slices.IndexFunc(fit, func(l *Work) bool { return l.Task.ID == winner })
	for _, l := range fit {
		if i < 0 {
			l.end(&Rejection{Held: true, Lines: l.lines}, nil)
		} else if l != fit[i] {
			l.Done = false
		}
	}
	if i < 0 || fit[i].Done { // done: it has changed nothing
		return nil, false, nil
	}
	return fit[i], true, nil
}
