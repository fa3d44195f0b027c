package ownership

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// News tells a task's session what it has to know of others in its files: who changes the same ones in another checkout, once for
// each of them and each file, and, where all write in one directory, which files went to it or were taken from it.
func (m *Files) News(ctx context.Context, c *agent.Conversation) ([]centurion.Message, error) {
	if c.Task == nil || c.Task.ID != c.HoldsFor { // a sub-agent's parent hears it
		return nil, nil
	}
	var lines []string
	shared := map[string][]string{}
	if m.iso.Isolated() {
		shared = m.Shared(c.Holder)
		maps.DeleteFunc(shared, func(other string, _ []string) bool { return slices.Contains(c.Above, other) })
	} else {
		lines = m.Words(c.Holder)
	}
	if len(lines)+len(shared) == 0 {
		return nil, nil
	}
	t, err := m.st.Store.Task(ctx, c.Task.ID)
	if err != nil {
		return nil, err
	}
	told := slices.Clone(t.Overlaps)
	for _, other := range slices.Sorted(maps.Keys(shared)) {
		name := m.atWork(other)
		if name == "" {
			continue
		}
		var files []string
		for _, f := range shared[other] {
			if pair := other + " " + f; !slices.Contains(told, pair) {
				told, files = append(told, pair), append(files, f)
			}
		}
		if len(files) > 0 {
			lines = append(lines, fmt.Sprintf("At work on the same files as you: %s: %s.", name, brief.Some(files)))
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	if m.iso.Isolated() {
		lines = append(lines, tools.Overlaps(true))
	}
	var msg centurion.Message
	err = m.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.Current(); err != nil {
			return err
		}
		t, err := tx.Task(c.Task.ID)
		if err != nil {
			return err
		}
		t.Overlaps = told
		if err := tx.PutTask(&t); err != nil {
			return err
		}
		rec := c.Sess.Record()
		msg, err = session.Say(tx, &rec, centurion.OriginHost, strings.Join(lines, "\n"))
		return err
	})
	return []centurion.Message{msg}, err
}

// atWork names who holds files, with the title of its task, or is empty if it has not begun.
func (m *Files) atWork(holder string) string {
	for _, r := range m.st.Runs() {
		t := r.Now.Load()
		if r.Name != holder || t.Attempt == 0 && !r.Working.Load() {
			continue
		}
		if t.Title == "" {
			return holder
		}
		return holder + " (" + centurion.Clip(t.Title, 60) + ")"
	}
	return ""
}
