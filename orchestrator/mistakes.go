package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
)

// mistake is something in the plan's text that a person has to put right.
type mistake struct {
	key   string // the same as long as it stands there, on whatever line
	place string // "line 4"
	text  string // with its line
}

// lineNumbers are what changes in a problem's words when lines are added above it.
var lineNumbers = regexp.MustCompile(`lines? [0-9, ]+`)

// mistakes lists what is wrong with the plan, or why it cannot be read: its problems, and items of tasks, by their ids, whose line is there
// and is not read as an item.
func (p planView) mistakes(unread error, had []string) []mistake {
	if unread != nil {
		return []mistake{{key: "unread", place: "what kept it from being read", text: "it cannot be read, and stays as it was for who is at work: " + unread.Error()}}
	}
	if p.doc == nil {
		return nil
	}
	var out []mistake
	add := func(line int, msg string) {
		place := fmt.Sprintf("line %d", line)
		out = append(out, mistake{key: p.doc.Line(line) + "\n" + lineNumbers.ReplaceAllString(msg, ""), place: place,
			text: fmt.Sprintf("%s (%s): %s", place, centurion.Clip(p.doc.Line(line), 60), msg)})
	}
	lost := map[int]bool{}
	for _, id := range had {
		if line := p.doc.Misread(id); line > 0 {
			lost[line] = true
			add(line, misread(id))
		}
	}
	for _, x := range p.doc.Problems() {
		if !lost[x.Line] {
			add(x.Line, x.Msg)
		}
	}
	return out
}

func misread(id string) string {
	return fmt.Sprintf("it is not read as item %s, whose task is kept: write «- [~] %s title», or delete the line to cancel the task", id, id)
}

// toldMistakes is what the mission's own agent was told of the plan's mistakes, or is to be told.
type toldMistakes struct {
	standing map[string]toldMistake // by their keys
	right    []mistake              // those that word says are put right
	word     string                 // the delivery that tells what it has not read
}

type toldMistake struct {
	mistake
	read bool
}

// tellMistakes tells the person and the mission's own agent what is wrong with the plan, each mistake once as long as it stands there. The
// agent hears nothing of one that is put right before it has read of it, and of one that it has read of that it is put right. It reports
// whether one that was told is mended.
func (m *mission) tellMistakes(ctx context.Context, p planView, unread error) (mended bool, err error) {
	var had []string
	for _, r := range m.st.Runs() {
		had = append(had, r.Item)
	}
	slices.Sort(had)
	m.telling.Lock()
	defer m.telling.Unlock()
	found := p.mistakes(unread, had)
	var fresh []string
	for _, x := range found {
		if _, told := m.toldMistakes.standing[x.key]; !told {
			fresh = append(fresh, x.text)
		}
	}
	for key := range m.toldMistakes.standing {
		mended = mended || !slices.ContainsFunc(found, func(x mistake) bool { return x.key == key })
	}
	if fresh = firstOf(fresh, nil); len(fresh) == 0 && !mended {
		return false, nil
	}
	next := m.toldMistakes
	err = m.h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if len(fresh) > 0 {
			file, _ := m.todo.where()
			if err := m.st.PutNote(tx, file.Path()+": "+strings.Join(fresh, "; ")); err != nil {
				return err
			}
		}
		d, unread, err := unreadWord(tx, m.toldMistakes.word)
		if err != nil {
			return err
		}
		var text string
		next, text = m.toldMistakes.meet(found, unread)
		next.word, err = m.putWord(tx, d, text)
		return err
	})
	if err == nil {
		m.toldMistakes = next
	}
	return mended, err
}

// meet returns what is to be told when these mistakes stand in the plan, and in which words: all that is not read. Unread says that the
// word of before is not.
func (t toldMistakes) meet(found []mistake, unread bool) (next toldMistakes, text string) {
	var right []mistake
	if unread {
		right = slices.Clone(t.right)
	}
	standing := map[string]toldMistake{}
	var news []string
	for _, x := range found {
		was, told := t.standing[x.key]
		back := slices.IndexFunc(right, func(r mistake) bool { return r.key == x.key })
		switch {
		case back >= 0: // it has read of it, and not that it was put right meanwhile
			standing[x.key] = toldMistake{right[back], true}
			right = slices.Delete(right, back, back+1)
		case told && (was.read || !unread):
			standing[x.key] = toldMistake{was.mistake, true}
		default:
			standing[x.key] = toldMistake{x, false}
			news = append(news, x.text)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.standing)) {
		was := t.standing[key]
		if _, stands := standing[key]; !stands && (was.read || !unread) {
			right = append(right, was.mistake)
		}
	}
	return toldMistakes{standing: standing, right: right}, mistakesWords(firstOf(news, nil), right)
}

// mistakesWords tells of mistakes that stand in the plan and of those that are put right; it is empty if there are none.
func mistakesWords(standing []string, right []mistake) string {
	var parts []string
	if len(standing) > 0 {
		parts = append(parts, "The plan was changed by hand and has mistakes:\n- "+strings.Join(standing, "\n- ")+
			"\nWhoever works goes on. An item that is named there waits until its line is put right. If it is plain what was meant, put it right with update_todo (content); else leave it to the person.")
	}
	if len(right) > 0 {
		places := make([]string, len(right))
		for i, x := range right {
			places[i] = x.place + " is put right"
		}
		parts = append(parts, "In the plan "+strings.Join(firstOf(places, nil), ", ")+".")
	}
	return strings.Join(parts, "\n")
}

// remarkMended gives the items whose line can be read again the marks that could not be set meanwhile.
func (m *mission) remarkMended(ctx context.Context) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return err
	}
	return m.reconcile(ctx, tasks)
}

// knowItems keeps the ids of all items that the mission's tasks have had from being given to others.
func (m *mission) knowItems(ctx context.Context) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	for _, t := range tasks {
		m.todo.had.add(t.Item)
	}
	return err
}

// isGone reports whether an item was taken out of the plan. One whose line is there and cannot be read was not, nor are those of a plan that
// cannot be read or is not there: somebody may be writing it.
func (p planView) isGone(id string) bool {
	if p.doc == nil || id == "" {
		return false
	}
	_, ok := p.doc.Item(id)
	return !ok && p.doc.Misread(id) == 0
}

// removed is the end of a task whose item was taken out of the plan.
func removed(item string) error {
	return &centurion.Error{Kind: centurion.KindCancelled, Msg: "its item " + item + " was removed from the plan"}
}
