package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/worktree"
)

// Rejection is why work is returned to its session.
type Rejection struct {
	Text  string // for that session
	Short string // for others, about why it gave up

	Cause   string   // one of event.Returned…
	Files   []string // the affected files of the project
	Command string   // that failed

	// Notice means that nothing has failed: the session is told once about something it may have intended, and that does not count as a
	// return of its work.
	Notice bool

	// Ends means that returning would not help: the session has stated its situation, and others decide.
	Ends bool

	// Held means that the work of a try could be merged, but is not proven: it is accepted again when its race may be decided. Lines are
	// those that it adds and removes.
	Held  bool
	Lines int

	// Tree is what the session's checkout gets: its work on top of others' later work, with markers for conflicts. Onto is the commit
	// below it. Both are empty if the checkout stays as it is.
	Tree, Onto string
}

// hollow returns work whose tests or check tell nothing of it; say is the text for its session.
func hollow(r centurion.Receipt, what, say string) *Rejection {
	return &Rejection{Text: say, Short: what + ": " + r.Why, Cause: event.ReturnedHollow, Command: r.Command}
}

// leftMarkers looks for unmergeable content: files to which a commit added conflict markers.
func (m *Queue) leftMarkers(ctx context.Context, c worktree.Commit) (*Rejection, error) {
	if c.ID == "" {
		return nil, nil
	}
	files, err := m.iso.Ground.Repo.Diff(ctx, c.Parent, c.ID)
	var left []string
	for _, f := range files {
		if marked(f) {
			left = append(left, f.Path)
		}
	}
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return &Rejection{Text: "There are still conflict markers (<<<<<<<, =======, >>>>>>>) in: " + strings.Join(left, ", ") +
		". Replace each of them with what both sides come to together, then end your turn.",
		Short: "it leaves conflict markers in " + strings.Join(left, ", "), Cause: event.ReturnedMarkers, Files: m.iso.InProject(left)}, nil
}

// marked reports whether the added lines of a change contain all three markers, in order.
func marked(f centurion.FileDiff) bool {
	want := []string{"+<<<<<<< ", "+=======", "+>>>>>>> "}
	for _, h := range f.Hunks {
		for line := range strings.Lines(h.Text) {
			if strings.HasPrefix(line, want[0]) {
				if want = want[1:]; len(want) == 0 {
					return true
				}
			}
		}
	}
	return false
}

// conflict describes work that conflicts with others' later work.
func (m *Queue) conflict(ctx context.Context, l *Work, laid worktree.Rebased, onto string) (*Rejection, error) {
	var files, kinds []string
	for _, x := range laid.Conflicts {
		files = append(files, x.Path)
		kinds = append(kinds, fmt.Sprintf("- %s (%s)", m.iso.InProject([]string{x.Path})[0], x.Kind))
	}
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		e := centurion.Event{Type: centurion.EventMergeConflict, Mission: m.st.ID, Data: event.Data(event.MergeData{Branch: m.iso.Branch(), Commit: l.Commit.ID, Files: files})}
		if l.Task != nil {
			t, err := tx.Task(l.Task.ID)
			if err != nil {
				return err
			}
			e.Task, e.Session = t.ID, t.Session
		}
		_, err := tx.Append(e)
		return err
	})
	if err != nil {
		return nil, err
	}
	others, err := m.Intents(ctx, l, files)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	text.WriteString("Your work does not fit to what others have merged since you began. In conflict:\n" + strings.Join(kinds, "\n") +
		"\n\nWhat the others wanted there:\n" + others)
	if l.Task != nil {
		if t, err := m.st.Store.Task(ctx, l.Task.ID); err == nil {
			text.WriteString("\nWhat you were to do: " + strings.TrimSpace(t.Item+" "+t.Title) + "\n")
		}
	}
	text.WriteString("\nBoth are laid together in your checkout now. In text files the places are marked with <<<<<<<, ======= and >>>>>>>: " +
		"the first part is what is merged already, the second is yours. Edit the files so that both Intents are kept and no marker is left; " +
		"no git command is needed. Then end your turn; the host integrates it.")
	for _, x := range laid.Conflicts {
		if x.Text == "" {
			text.WriteString("\n" + m.iso.InProject([]string{x.Path})[0] + " cannot be marked: write it anew as it should be.")
		}
	}
	return &Rejection{Text: text.String(), Short: "it conflicts with what others have merged: " + strings.Join(files, ", "),
		Cause: event.ReturnedConflict, Files: m.iso.InProject(files), Tree: laid.Tree, Onto: onto}, nil
}

// Intents describes what others intended whose merged work touches the files and is not below this work.
func (m *Queue) Intents(ctx context.Context, l *Work, files []string) (string, error) {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range tasks {
		for _, x := range t.Landed {
			touched := slices.DeleteFunc(centurion.Paths(x.Files), func(f string) bool { return !slices.Contains(files, f) })
			if len(touched) == 0 || l.Task != nil && t.ID == l.Task.ID {
				continue
			}
			known, err := m.iso.Ground.Repo.IsAncestor(ctx, x.Commit, l.Commit.Parent)
			if err != nil {
				return "", err
			}
			if known {
				continue
			}
			said, err := m.st.SaidOf(ctx, t)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "- %s %s (%s): %s\n", t.Name(), t.Title, strings.Join(m.iso.InProject(touched), ", "), state.FirstLines(said, 6, 600))
		}
	}
	if b.Len() == 0 {
		return "- work of the mission's own agent\n", nil
	}
	return b.String(), nil
}

// StuckAnyway holds back the work of an agent that says it is stuck: why says what would be needed to refute that.
func StuckAnyway(why string) *Rejection {
	return &Rejection{Cause: event.ReturnedStuck, Ends: true, Short: "its agent says that it is stuck, and " + why,
		Text: "You said that you are stuck. A person wants you to try on: finish the item, then end your turn with what you have done."}
}

// stuckOn holds back a landing whose agent says it is stuck, unless a green check proves the work. If nothing is left to merge, only
// what the same task has merged before can be proven by it.
func stuckOn(l *Work, r centurion.Receipt) *Rejection {
	switch {
	case l.Idle:
		return StuckAnyway(fmt.Sprintf("has changed no file; that `%s` passes does not show otherwise", r.Command))
	case r.Proof == centurion.ProofProven, r.Proof == centurion.ProofRegression && (l.Keeps || l.Commit.ID == ""):
		return nil
	case r.Proof == centurion.ProofRegression:
		return StuckAnyway(fmt.Sprintf("its check does not show otherwise: `%s` was green before its work, too", r.Command))
	}
	return StuckAnyway(fmt.Sprintf("its check does not show otherwise: `%s` passed, but is %s (%s)", r.Command, r.Proof, r.Why))
}

// StuckWord starts the last message of an agent that cannot continue: its work is then not returned to it.
const StuckWord = "STUCK"

// GivesUp reports whether an agent ends its turn with that word.
func GivesUp(said string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(said, "*_# \t\n"), "\n")
	rest, ok := strings.CutPrefix(word, StuckWord)
	return ok && (rest == "" || !unicode.IsLetter(rune(rest[0])))
}
