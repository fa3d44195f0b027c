package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/store"
	"centurion/text"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// PlanEdits are changes of the plan's items not made by the host, one per item, in order of their first appearance.
type PlanEdits []itemEdit

// itemEdit is the change of an item; nil means that it did not exist, or does no longer.
type itemEdit struct {
	id       string
	was, now *todo.Item
}

// With adds a change to the edits: removed and added items, new titles of items that had not ended, and new verify commands of those that
// had not begun. An item written without an id has its later id from p.
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
		case stays && (it.Mark == todo.Open && Differs(it, now) || it.Mark == todo.Running && it.Title != now.Title || opened(it, now)):
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

// opened reports whether a done, cancelled or blocked item is open again.
func opened(a, b todo.Item) bool {
	return b.Mark == todo.Open && a.Mark != todo.Open && a.Mark != todo.Running
}

func Differs(a, b todo.Item) bool { return a.Title != b.Title || !slices.Equal(a.Verify, b.Verify) }

// idOf returns an item's id; for one written without an id, the assigned one, "" if it is no longer in the plan.
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

// byID returns the items of a version of the plan by id, the first one if several share it.
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

// Words describes the edits; "" if they cancel out.
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
			changed = append(changed, fmt.Sprintf("%s is now \"%s\" (it was \"%s\"%s)", x.id, centurion.Clip(x.now.Title, 60), centurion.Clip(x.was.Title, 60),
				text.When(x.was.Mark == todo.Running, ", as its agent knows it")))
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

// checksWord describes changed verify commands of an item.
func checksWord(x itemEdit) []string {
	switch {
	case slices.Equal(x.was.Verify, x.now.Verify), x.was.Mark == todo.Running: // those of a running item are frozen
		return nil
	case len(x.now.Verify) == 0:
		return []string{inBrackets(x.id, x.now.Title) + " has no verify command any more"}
	}
	return []string{fmt.Sprintf("%s is checked by `%s`", inBrackets(x.id, x.now.Title), centurion.Clip(strings.Join(x.now.Verify, "`, `"), 200))}
}

func inBrackets(id, title string) string {
	return fmt.Sprintf("%s (%s)", id, centurion.Clip(title, 60))
}

// tellEdits adds the changes by others to the pending notice for the mission's own agent. Unread earlier changes are merged into it.
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
		word, err = m.PutWord(tx, d, edits.Words())
		return err
	})
	if err == nil {
		m.toldEdits, m.editsWord = edits, word
	}
	return err
}

// HasEdits reports whether the mission's own agent has unread changes of the plan.
func (m *Plan) HasEdits(ctx context.Context, session string) (bool, error) {
	m.telling.Lock()
	defer m.telling.Unlock()
	if m.editsWord == "" {
		return false, nil
	}
	d, err := m.st.Store.PendingDeliveries(ctx, session)
	return slices.ContainsFunc(d, func(d store.Delivery) bool { return d.ID == m.editsWord }), err
}

// UnreadWord returns a notice to the mission's own agent by id, and whether it is unread. An empty id means none.
func UnreadWord(tx *store.Tx, id string) (d store.Delivery, unread bool, err error) {
	if id == "" {
		return d, false, nil
	}
	if d, err = tx.Delivery(id); err != nil || !d.Taken.IsZero() {
		return store.Delivery{}, false, err
	}
	return d, true, nil
}

// PutWord replaces a pending notice to the mission's own agent (none if d has no id) with text; it wakes no session. An empty text
// withdraws the notice. It returns the id of the pending notice.
func (m *Plan) PutWord(tx *store.Tx, d store.Delivery, text string) (string, error) {
	switch {
	case d.ID == "" && text == "":
		return "", nil
	case text == "":
		d.Taken = centurion.Now() // not by a message
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
