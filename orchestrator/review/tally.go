package review

import (
	"context"

	"centurion"
	"centurion/store"
)

// Tally is how many items are done with a proof or a review and how many without, which are in doubt, and which review has
// passed them.
type Tally struct {
	verified, unverified int
	unproven, flaky      []string
	reviewed             map[string]centurion.PassedBy
}

// Count counts the items that are done. A review is named by the address of its session, where that is still kept.
func (v View) Count(ctx context.Context, st *store.Store) Tally {
	c := Tally{reviewed: map[string]centurion.PassedBy{}}
	for _, w := range v.Proofs() {
		if w.Reviewed {
			rec, _ := st.Session(ctx, w.By.Session)
			c.reviewed[w.Item.ID] = centurion.PassedBy{Task: w.By.ID, Item: w.By.Item, Address: rec.Metadata.Address}
		}
		if w.Verified() {
			c.verified++
		} else {
			c.unverified++
		}
		switch w.Proof {
		case centurion.ProofUnproven:
			c.unproven = append(c.unproven, w.Item.ID)
		case centurion.ProofFlaky:
			c.flaky = append(c.flaky, w.Item.ID)
		}
	}
	return c
}

// Put records the counts in a mission.
func (c Tally) Put(m *centurion.Mission) {
	m.Verified, m.Unverified, m.Unproven, m.Flaky, m.Reviewed = c.verified, c.unverified, c.unproven, c.flaky, c.reviewed
}
