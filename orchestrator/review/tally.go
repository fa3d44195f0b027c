package review

import (
	"context"

	"centurion"
	"centurion/store"
)

// Tally counts the done items with and without proof or review, and lists those in doubt and the reviews that passed them.
type Tally struct {
	verified, unverified int
	unproven, flaky      []string
	reviewed             map[string]centurion.PassedBy
}

// Count counts the done items. A review is named by its session's address, if the session is still stored.
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

// Put stores the counts in a mission.
func (c Tally) Put(m *centurion.Mission) {
	m.Verified, m.Unverified, m.Unproven, m.Flaky, m.Reviewed = c.verified, c.unverified, c.unproven, c.flaky, c.reviewed
}
