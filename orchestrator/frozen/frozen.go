// Package frozen keeps the checks with which items were handed out: it stores them, reports changes of them in the plan's file, and lets a
// person decide. The plan applies them to all that it reads; whether an agent may change them is decided in package merge.
package frozen

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/workspace/todo"
)

// Desk keeps the frozen checks of one mission.
type Desk struct {
	st   *state.Mission
	plan *plan.Plan

	mu   sync.Mutex // held while changes are reported; protects told
	told string     // the changes that stand in the file and were reported, in words
}

// New returns the desk of a mission. The plan tells it when its file changes.
func New(st *state.Mission, p *plan.Plan) *Desk {
	d := &Desk{st: st, plan: p}
	p.File.Keep, p.Checked = d.keep, d.Tell
	return d
}

func (d *Desk) frozen() *todo.Frozen { return &d.plan.File.Frozen }

// Freeze returns the checks that count for a task from its hand-out on.
func (d *Desk) Freeze(p plan.View, item string) *centurion.Frozen {
	if p.Doc == nil {
		return nil
	}
	c, _ := todo.ChecksIn(p.Doc, item)
	f := &centurion.Frozen{Own: p.Doc.Checks()}
	if item != "" {
		f.Verify, f.Proof = c.Verify, c.Proof
	}
	return f
}

// Load freezes the checks of the tasks that an earlier host has handed out.
func (d *Desk) Load(ctx context.Context) error {
	tasks, err := d.st.Store.Tasks(ctx, d.st.ID)
	d.Know(tasks...)
	return err
}

// Know freezes the checks of tasks, the newest last.
func (d *Desk) Know(tasks ...centurion.Task) {
	for _, t := range tasks {
		if t.Frozen == nil {
			continue
		}
		more := map[string]todo.Checks{"": {Verify: t.Frozen.Own}}
		if t.Item != "" {
			more[t.Item] = todo.Checks{Verify: t.Frozen.Verify, Proof: t.Frozen.Proof}
		}
		d.frozen().Set(more)
	}
}

// keep stores changed frozen checks with the newest task of each item, for the next host.
func (d *Desk) keep(ctx context.Context, ids []string) error {
	now := d.frozen().All()
	return d.st.Store.Update(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		tasks, err := tx.Tasks(d.st.ID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			i := len(tasks) - 1
			for i >= 0 && (tasks[i].Frozen == nil || id != "" && tasks[i].Item != id) {
				i--
			}
			if i < 0 {
				continue
			}
			f := *tasks[i].Frozen
			if id == "" {
				f.Own = now[id].Verify
			} else {
				f.Verify, f.Proof = now[id].Verify, now[id].Proof
			}
			tasks[i].Frozen = &f
			if err := tx.PutTask(&tasks[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Foreign returns the frozen checks that someone has changed in the plan's file, and that do not count.
func (d *Desk) Foreign() []centurion.Exchange {
	doc, err := d.plan.File.Raw()
	if err != nil {
		return nil // an unreadable plan is reported when the mission is idle
	}
	return d.frozen().Apply(doc)
}

// Take makes a change of the plan's file count, because a person has agreed.
func (d *Desk) Take(ctx context.Context, x centurion.Exchange) error {
	doc, err := d.plan.File.Raw()
	if err != nil || doc == nil {
		return err
	}
	c, ok := todo.ChecksIn(doc, x.Item)
	if !ok || !slices.Equal(c.Verify, x.To) {
		return nil // it has changed again meanwhile
	}
	d.frozen().Set(map[string]todo.Checks{x.Item: c})
	return d.keep(ctx, []string{x.Item})
}

// Restore writes the frozen checks back into the plan's file.
func (d *Desk) Restore(ctx context.Context) error {
	_, err := d.plan.File.Edit(ctx, func(doc *todo.Doc) error {
		d.frozen().Apply(doc)
		return nil
	})
	return err
}

// Tell reports frozen checks that were changed in the file, once, and puts them back unless a person can be asked.
func (d *Desk) Tell(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	standing := d.Foreign()
	word := Word(standing)
	known := word == d.told
	d.told = word
	if known {
		standing = nil
	}
	if word = Word(append(d.frozen().TakeNoted(), standing...)); word == "" {
		return nil
	}
	rec, err := d.st.Store.Mission(ctx, d.st.ID)
	if err != nil {
		return err
	}
	if err := d.st.Tell(ctx, func(x *event.MissionData) { x.Note = word }); err != nil {
		return err
	}
	err = d.st.Store.Update(ctx, func(tx *store.Tx) error {
		_, err := d.plan.PutWord(tx, store.Delivery{}, word+" If the old check is wrong, delegate to the reviewer, which may change it with update_todo.")
		return err
	})
	if err != nil || rec.Options.Ask == "ask" || len(standing) == 0 {
		return err
	}
	d.told = ""
	return d.Restore(ctx)
}

// Word describes changes of frozen checks, "" if there are none.
func Word(undone []centurion.Exchange) string {
	var out []string
	for _, x := range undone {
		whose := "the mission's own check"
		if x.Item != "" {
			whose = "the check of " + x.Item
		}
		to := "was removed"
		if len(x.To) > 0 {
			to = "became `" + strings.Join(x.To, "`, `") + "`"
			if slices.Equal(x.From, x.To) {
				to = "got another proof line"
			}
		}
		out = append(out, fmt.Sprintf("%s, `%s`, %s", whose, strings.Join(x.From, "`, `"), to))
	}
	if len(out) == 0 {
		return ""
	}
	return "todo.md was changed by neither an agent's tool nor the host: " + strings.Join(out, "; ") + ". It was handed out, so the old one still counts."
}
