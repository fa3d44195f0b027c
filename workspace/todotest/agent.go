package todotest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"centurion"
	"centurion/workspace/todo"
)

// agent is what one agent's edits were acknowledged for.
type agent struct {
	mark  todo.Mark // of its item; 0 if it never set one
	notes []string
	items []string // ids of those it added
}

// agent edits its item until there are enough edits.
func (r *round) agent(ctx context.Context, i int, rnd *rand.Rand) error {
	plan, id, me := r.plans[i%len(r.plans)], itemID(i), &r.agents[i]
	marks := []todo.Mark{todo.Open, todo.Running, todo.Done, todo.Blocked}
	for n := 0; !r.over(); n++ {
		var change func(*todo.Doc) error
		var note func()
		switch k := rnd.IntN(10); {
		case k < 6:
			mark := marks[rnd.IntN(len(marks))]
			change = func(d *todo.Doc) error { return d.SetMark(id, mark) }
			note = func() { me.mark = mark }
		case k < 9:
			text := fmt.Sprintf("agent %d edit %d.", i, n)
			change = func(d *todo.Doc) error {
				if it, _ := d.Item(id); slices.Contains(it.Notes, text) {
					return nil
				}
				return d.AddNote(id, text)
			}
			note = func() { me.notes = append(me.notes, text) }
		default:
			added := fmt.Sprintf("A%d-%d", i, n)
			change = func(d *todo.Doc) error {
				if _, ok := d.Item(added); ok {
					return nil
				}
				_, err := d.Add("M1", todo.Item{ID: added, Title: "found on the way", After: []string{id}})
				return err
			}
			note = func() { me.items = append(me.items, added) }
		}
		if err := r.change(ctx, plan.Edit, change, note); err != nil {
			return err
		}
	}
	return nil
}

type editFunc func(context.Context, func(*todo.Doc) error) (*todo.Doc, error)

// change makes one edit, retrying while the person's save has the file away or in pieces.
func (r *round) change(ctx context.Context, edit editFunc, change func(*todo.Doc) error, acknowledged func()) error {
	e := r.begin()
	for {
		partial := 0
		_, err := edit(ctx, func(d *todo.Doc) error {
			if !r.whole(d) && !r.stalls() {
				partial++
			}
			return change(d)
		})
		r.mu.Lock()
		r.report.Partial += partial
		r.mu.Unlock()
		switch kind := centurion.KindOf(err); {
		case err == nil:
			r.end(e, func() { r.report.AgentEdits++; acknowledged() })
			return nil
		case kind == centurion.KindNotFound, kind == centurion.KindUsage:
			r.mu.Lock()
			r.report.Retried++
			r.mu.Unlock()
		default:
			r.end(e, nil)
			return err
		}
	}
}

// lost returns acknowledged changes that are missing from the plan.
func (r *round) lost(doc *todo.Doc) []string {
	var out []string
	for i, a := range r.agents {
		it, ok := doc.Item(itemID(i))
		if !ok {
			out = append(out, "item "+itemID(i))
			continue
		}
		if a.mark != 0 && it.Mark != a.mark {
			out = append(out, fmt.Sprintf("mark of %s: %v, want %v", it.ID, it.Mark, a.mark))
		}
		for _, note := range a.notes {
			if !slices.Contains(it.Notes, note) {
				out = append(out, "note of an agent: "+note)
			}
		}
		for _, id := range a.items {
			if _, ok := doc.Item(id); !ok {
				out = append(out, "item of an agent: "+id)
			}
		}
	}
	return append(out, r.person.lost(doc)...)
}
