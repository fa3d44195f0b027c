package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// PlanEdits are what others than the host have made of the plan's items, by item in the order in which they were met: several changes of an
// item come to one.
type PlanEdits []itemEdit

// itemEdit is what became of an item. A nil one was not there, or is not any more.
type itemEdit struct {
	id       string
	was, now *todo.Item
}

// With returns the edits and what one change more adds to them: items that went or came, and new titles and verify commands of those
// that had not begun. An item that is written without an id has the one that it has in p by now.
func (e PlanEdits) With(c workspace.Foreign, p View) PlanEdits {
	from, to := p.byID(c.From), p.byID(c.To)
	e = slices.Clone(e)
	put := func(id string, was, now *todo.Item) {
		i := slices.IndexFunc(e, func(x itemEdit) bool { return x.id == id })
		if i < 0 {
			e = append(e, itemEdit{id: id, was: was})
			i = len(e) - 1
		}
		e[i].now = now
	}
	for _, it := range c.From.Items() {
		id := p.idOf(it)
		now, stays := to[id]
		switch {
		case id == "":
		case !stays && c.To.Misread(id) == 0:
			put(id, &it, nil)
		case stays && (it.Mark == todo.Open && Differs(it, now) || opened(it, now)):
			put(id, &it, &now)
		}
	}
	for _, it := range c.To.Items() {
		id := p.idOf(it)
		if _, was := from[id]; id != "" && !was && c.From.Misread(id) == 0 {
			put(id, nil, &it)
		}
	}
	return e
}

// opened reports whether an item that was done, cancelled or blocked is open again.
func opened(a, b todo.Item) bool {
	return b.Mark == todo.Open && a.Mark != todo.Open && a.Mark != todo.Running
}

func Differs(a, b todo.Item) bool { return a.Title != b.Title || !slices.Equal(a.Verify, b.Verify) }

// idOf returns the id of an item, if it was written without one the one that it was given; it is empty if it is not in the plan any more.
func (p View) idOf(it todo.Item) string {
	if it.ID != "" {
		return it.ID
	}
	for _, x := range p.Items() {
		if x.Title == it.Title {
			return x.ID
		}
	}
	return ""
}

// byID returns the items of a version of the plan by their ids, the first one if several have it.
func (p View) byID(d *todo.Doc) map[string]todo.Item {
	out := map[string]todo.Item{}
	for _, it := range d.Items() {
		id := p.idOf(it)
		if _, again := out[id]; !again {
			out[id] = it
		}
	}
	return out
}

// Words tells of the edits, or is empty if they come to nothing.
func (e PlanEdits) Words() string {
	var removed, added, reopened, changed []string
	for _, x := range e {
		switch {
		case x.was == nil && x.now == nil:
		case x.now == nil:
			removed = append(removed, inBrackets(x.id, x.was.Title))
		case x.was == nil:
			added = append(added, inBrackets(x.id, x.now.Title))
		case opened(*x.was, *x.now):
			reopened = append(reopened, inBrackets(x.id, x.now.Title))
		case x.was.Title != x.now.Title:
			changed = append(changed, fmt.Sprintf("%s is now \"%s\" (it was \"%s\")", x.id, centurion.Clip(x.now.Title, 60), centurion.Clip(x.was.Title, 60)))
			fallthrough
		default:
			changed = append(changed, checksWord(x)...)
		}
	}
	var parts []string
	for _, group := range []struct {
		lead  string
		items []string
	}{{"removed ", removed}, {"added ", added}, {"reopened ", reopened}, {"", changed}} {
		if items := FirstOf(group.items, nil); len(items) > 0 {
			parts = append(parts, group.lead+strings.Join(items, ", "))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "The person has changed the plan: " + strings.Join(parts, "; ") + "."
}

// checksWord tells that the commands which prove an item are others.
func checksWord(x itemEdit) []string {
	switch {
	case slices.Equal(x.was.Verify, x.now.Verify):
		return nil
	case len(x.now.Verify) == 0:
		return []string{inBrackets(x.id, x.now.Title) + " has no verify command any more"}
	}
	return []string{fmt.Sprintf("%s is checked by `%s`", inBrackets(x.id, x.now.Title), centurion.Clip(strings.Join(x.now.Verify, "`, `"), 200))}
}

func inBrackets(id, title string) string {
	return fmt.Sprintf("%s (%s)", id, centurion.Clip(title, 60))
}

// tellEdits tells the mission's own agent, when it next reads, what others than the host have changed in the plan. What it has not read of
// earlier changes comes to one with that.
func (m *Plan) tellEdits(ctx context.Context, p View) error {
	m.telling.Lock()
	defer m.telling.Unlock()
	changes := m.File.Foreign()
	if len(changes) == 0 {
		return nil
	}
	var edits PlanEdits
	var word string
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		d, unread, err := UnreadWord(tx, m.editsWord)
		if err != nil {
			return err
		}
		edits = nil
		if unread {
			edits = m.toldEdits
		}
		for _, c := range changes {
			edits = edits.With(c, p)
		}
		word, err = m.putWord(tx, d, edits.Words())
		return err
	})
	if err == nil {
		m.toldEdits, m.editsWord = edits, word
	}
	return err
}

// HasEdits reports whether the mission's own agent has still to read what a person has changed in the plan.
func (m *Plan) HasEdits(ctx context.Context, session string) (bool, error) {
	m.telling.Lock()
	defer m.telling.Unlock()
	if m.editsWord == "" {
		return false, nil
	}
	d, err := m.st.Store.PendingDeliveries(ctx, session)
	return slices.ContainsFunc(d, func(d store.Delivery) bool { return d.ID == m.editsWord }), err
}

// UnreadWord returns a word of the host to the mission's own agent by its id, and whether it is still to be read. An empty id is no word.
func UnreadWord(tx *store.Tx, id string) (d store.Delivery, unread bool, err error) {
	if id == "" {
		return d, false, nil
	}
	if d, err = tx.Delivery(id); err != nil || !d.Taken.IsZero() {
		return store.Delivery{}, false, err
	}
	return d, true, nil
}

// putWord lets the mission's own agent read something when it next reads, which wakes nobody, in the place of a word that it has not read
// (one without an id is none). An empty text takes that one back. It returns the id of what is to be read.
func (m *Plan) putWord(tx *store.Tx, d store.Delivery, text string) (string, error) {
	switch {
	case d.ID == "" && text == "":
		return "", nil
	case text == "":
		d.Taken = centurion.Now() // by no message
		return "", tx.PutDelivery(&d)
	case d.ID == "":
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return "", err
		}
		d = store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.st.ID, Session: rec.Session, Created: centurion.Now(), Origin: centurion.OriginHost}
	}
	d.Text = text
	return d.ID, tx.PutDelivery(&d)
}
