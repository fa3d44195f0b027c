package orchestrator

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// mistake is something in the plan's text that a person has to put right.
type mistake struct {
	key  string // the same as long as it stands there, on whatever line
	text string // with its line
}

// lineNumbers are what changes in a problem's words when lines are added above it.
var lineNumbers = regexp.MustCompile(`lines? [0-9, ]+`)

// mistakes lists what is wrong with the plan, or why it cannot be read: its problems, and items of tasks, by their ids, whose line is there
// and is not read as an item.
func (p planView) mistakes(unread error, had []string) []mistake {
	if unread != nil {
		return []mistake{{key: "unread", text: "it cannot be read, and stays as it was for who is at work: " + unread.Error()}}
	}
	if p.doc == nil {
		return nil
	}
	var out []mistake
	add := func(line int, msg string) {
		out = append(out, mistake{p.doc.Line(line) + "\n" + lineNumbers.ReplaceAllString(msg, ""), fmt.Sprintf("line %d (%s): %s", line, centurion.Clip(p.doc.Line(line), 60), msg)})
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

// tellMistakes tells the person and the mission's own agent what is wrong with the plan, each mistake once as long as it stands there. It
// reports whether one that was told is mended.
func (m *mission) tellMistakes(ctx context.Context, p planView, unread error) (mended bool, err error) {
	var had []string
	for _, r := range m.runsNow() {
		had = append(had, r.item)
	}
	slices.Sort(had)
	m.telling.Lock()
	defer m.telling.Unlock()
	now := map[string]bool{}
	var fresh []string
	for _, x := range p.mistakes(unread, had) {
		if now[x.key] = true; !m.toldMistakes[x.key] {
			fresh = append(fresh, x.text)
		}
	}
	for key := range m.toldMistakes {
		mended = mended || !now[key]
	}
	if fresh = firstOf(fresh, nil); len(fresh) > 0 {
		file, _ := m.todo.where()
		err = m.tellBoth(ctx, file.Path()+": "+strings.Join(fresh, "; "),
			"The plan was changed by hand and has mistakes:\n- "+strings.Join(fresh, "\n- ")+
				"\nWhoever works goes on. An item that is named there waits until its line is put right. If it is plain what was meant, put it right with update_todo (content); else leave it to the person.")
	}
	if err == nil {
		m.toldMistakes = now
	}
	return mended, err
}

// tellBoth tells the person something in the stream, and the mission's own agent when it next reads; that wakes nobody.
func (m *mission) tellBoth(ctx context.Context, note, word string) error {
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.id)
		if err != nil {
			return err
		}
		d := living(rec)
		d.Note = note
		if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: m.id, Session: rec.Session, Data: event.Data(d)}); err != nil {
			return err
		}
		return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.id, Session: rec.Session,
			Created: centurion.Now(), Origin: centurion.OriginHost, Text: word})
	})
}

// remarkMended gives the items whose line can be read again the marks that could not be set meanwhile.
func (m *mission) remarkMended(ctx context.Context) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
	if err != nil {
		return err
	}
	return m.reconcile(ctx, tasks)
}

// knowItems keeps the ids of all items that the mission's tasks have had from being given to others.
func (m *mission) knowItems(ctx context.Context) error {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
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
