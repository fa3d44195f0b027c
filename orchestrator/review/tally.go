package review

import (
	"context"

	"centurion"
	"centurion/store"
	"centurion/workspace/todo"
)

// Count counts the done items. A review is named by its session's address, if the session is still stored.
func (v View) Count(ctx context.Context, st *store.Store) centurion.Tally {
	c := centurion.Tally{Reviewed: map[string]centurion.PassedBy{}}
	for _, w := range v.Proofs() {
		if w.Reviewed {
			rec, _ := st.Session(ctx, w.By.Session)
			c.Reviewed[w.Item.ID] = centurion.PassedBy{Task: w.By.ID, Item: w.By.Item, Address: rec.Metadata.Address}
		}
		if w.Verified() {
			c.Verified++
		} else {
			c.Unverified++
		}
		switch w.Proof {
		case centurion.ProofUnproven:
			c.Unproven = append(c.Unproven, w.Item.ID)
		case centurion.ProofFlaky:
			c.Flaky = append(c.Flaky, w.Item.ID)
		}
	}
	for _, it := range v.Plan.Items() {
		if !it.Group && v.Plan.Doc.Status(it.ID) == todo.Cancelled {
			c.CancelledItems = append(c.CancelledItems, it.ID)
		}
	}
	return c
}
