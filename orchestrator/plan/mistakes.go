package plan

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
	"centurion/workspace/todo"
)

// Mistake is an error in the plan's text that a person has to correct.
type Mistake struct {
	Key   string // stays the same on any line
	Place string // "line 4"
	Text  string // with its line
}

// lineNumbers matches the line numbers in a problem's text, which change when lines are added above.
var lineNumbers = regexp.MustCompile(`lines? [0-9, ]+`)

// mistakes lists the errors of the plan, or why it cannot be read: its problems, more of them, and items in had whose line exists but is
// not read as an item.
func (p View) mistakes(unread error, had []string, more ...todo.Problem) []Mistake {
	if unread != nil {
		return []Mistake{{Key: "unread", Place: "what kept it from being read", Text: "it cannot be read, and stays as it was for who is at work: " + unread.Error()}}
	}
	if p.Doc == nil {
		return nil
	}
	var out []Mistake
	add := func(line int, msg string) {
		place := fmt.Sprintf("line %d", line)
		out = append(out, Mistake{Key: p.Doc.Line(line) + "\n" + lineNumbers.ReplaceAllString(msg, ""), Place: place,
			Text: fmt.Sprintf("%s (%s): %s", place, centurion.Clip(p.Doc.Line(line), 60), msg)})
	}
	lost := map[int]bool{}
	for _, id := range had {
		if line := p.Doc.Misread(id); line > 0 {
			lost[line] = true
			add(line, misread(id))
		}
	}
	for _, x := range append(p.Doc.Problems(), more...) {
		if !lost[x.Line] {
			add(x.Line, x.Msg)
		}
	}
	return out
}

func misread(id string) string {
	return fmt.Sprintf("it is not read as item %s, whose task is kept: write `- [~] %s title`, or delete the line to cancel the task", id, id)
}

// ToldMistakes are the mistakes announced to the mission's own agent.
type ToldMistakes struct {
	standing map[string]toldMistake // by their keys
	right    []Mistake              // those that the notice reports as corrected
	word     string                 // the unread notice
}

type toldMistake struct {
	Mistake
	read bool
}

// TellMistakes notifies the person and the mission's own agent of mistakes in the plan, each once while it lasts. The agent hears
// nothing of a mistake that is corrected before it has read of it; otherwise it is told of the correction. It reports whether an
// announced mistake was corrected.
func (m *Plan) TellMistakes(ctx context.Context, p View, unread error) (mended bool, err error) {
	var had []string
	for _, r := range m.st.Runs() {
		had = append(had, r.Item)
	}
	slices.Sort(had)
	m.telling.Lock()
	defer m.telling.Unlock()
	found := p.mistakes(unread, had, m.unrunnable(p)...)
	var fresh []string
	for _, x := range found {
		if _, told := m.toldMistakes.standing[x.Key]; !told {
			fresh = append(fresh, x.Text)
		}
	}
	for key := range m.toldMistakes.standing {
		mended = mended || !slices.ContainsFunc(found, func(x Mistake) bool { return x.Key == key })
	}
	if fresh = FirstOf(fresh, nil); len(fresh) == 0 && !mended {
		return false, nil
	}
	next := m.toldMistakes
	err = m.st.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if len(fresh) > 0 {
			file, _ := m.File.Where()
			if err := m.st.PutNote(tx, file.Path()+": "+strings.Join(fresh, "; ")); err != nil {
				return err
			}
		}
		d, unread, err := UnreadWord(tx, m.toldMistakes.word)
		if err != nil {
			return err
		}
		var text string
		next, text = m.toldMistakes.Meet(found, unread)
		next.word, err = m.PutWord(tx, d, text)
		return err
	})
	if err == nil {
		m.toldMistakes = next
	}
	return mended, err
}

// Meet returns the announced mistakes after found, and the text of the notice, with everything unread. unread means that the previous
// notice is unread.
func (t ToldMistakes) Meet(found []Mistake, unread bool) (next ToldMistakes, text string) {
	var right []Mistake
	if unread {
		right = slices.Clone(t.right)
	}
	standing := map[string]toldMistake{}
	var news []string
	for _, x := range found {
		was, told := t.standing[x.Key]
		back := slices.IndexFunc(right, func(r Mistake) bool { return r.Key == x.Key })
		switch {
		case back >= 0: // it has read of it, but not of the correction meanwhile
			standing[x.Key] = toldMistake{right[back], true}
			right = slices.Delete(right, back, back+1)
		case told && (was.read || !unread):
			standing[x.Key] = toldMistake{was.Mistake, true}
		default:
			standing[x.Key] = toldMistake{x, false}
			news = append(news, x.Text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.standing)) {
		was := t.standing[key]
		if _, stands := standing[key]; !stands && (was.read || !unread) {
			right = append(right, was.Mistake)
		}
	}
	return ToldMistakes{standing: standing, right: right}, mistakesWords(FirstOf(news, nil), right)
}

// mistakesWords describes current and corrected mistakes; "" if there are none.
func mistakesWords(standing []string, right []Mistake) string {
	var parts []string
	if len(standing) > 0 {
		parts = append(parts, "The plan was changed by hand and has mistakes:\n- "+strings.Join(standing, "\n- ")+
			"\nRunning tasks continue. An item that is named there waits until its line is correct. If the meaning is clear, correct it with update_todo (content); else leave it to the person.")
	}
	if len(right) > 0 {
		places := make([]string, len(right))
		for i, x := range right {
			places[i] = x.Place + " is correct now"
		}
		parts = append(parts, "In the plan "+strings.Join(FirstOf(places, nil), ", ")+".")
	}
	return strings.Join(parts, "\n")
}

// remarkMended sets the marks that could not be set while the items were unreadable.
func (m *Plan) remarkMended(ctx context.Context) error {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return err
	}
	_, err = m.Reconcile(ctx, tasks)
	return err
}

// KnowItems reserves the ids of all items that the mission's tasks have had.
func (m *Plan) KnowItems(ctx context.Context) error {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	for _, t := range tasks {
		m.File.Had.Add(t.Item)
	}
	return err
}

// IsGone reports whether an item was removed from the plan. An unreadable line does not count as removed, nor does a missing or
// unreadable plan: it may be being written.
func (p View) IsGone(id string) bool {
	if p.Doc == nil || id == "" {
		return false
	}
	_, ok := p.Doc.Item(id)
	return !ok && p.Doc.Misread(id) == 0
}

// Removed is the error that ends a task whose item was removed from the plan.
func Removed(item string) error {
	return &centurion.Error{Kind: centurion.KindCancelled, Msg: "its item " + item + " was removed from the plan"}
}
