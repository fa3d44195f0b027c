package centurion

// SubAgent is the differences of a sub-agent from the agent that started it.
type SubAgent struct {
	Tools  []string `json:"tools"`            // its tools; empty is none
	Model  string   `json:"model,omitempty"`  // provider/model; "" is its parent's
	System string   `json:"system,omitempty"` // replaces its parent's system prompt; "" keeps that
}

// Spent is the usage of a session, or of several.
type Spent struct {
	Usage
	ElapsedMS int64 `json:"elapsed_ms"` // working time in milliseconds; for parallel sessions the sum
}

// Plus returns the sum of both.
func (s Spent) Plus(t Spent) Spent { return Spent{s.Usage.Plus(t.Usage), s.ElapsedMS + t.ElapsedMS} }

// SpentBy returns the usage of a session itself, and the total including all its descendants. It takes all sessions and tasks of the
// mission, read in one transaction; the result is not stored. A root session has no task; its working time is its mission's.
func SpentBy(id string, m Mission, sessions []Session, tasks []Task) (own, total Spent) {
	worked := map[string]int64{m.Session: m.ElapsedMS}
	for _, t := range tasks {
		worked[t.Session] += t.ElapsedMS
	}
	children := map[string][]Session{}
	for _, s := range sessions {
		children[s.ParentID] = append(children[s.ParentID], s)
	}
	of := func(s Session) Spent {
		return Spent{Usage{Tokens: s.Tokens, USD: s.Cost, Unpriced: s.Metadata.Unpriced}, worked[s.ID]}
	}
	for _, s := range sessions {
		if s.ID == id {
			own = of(s)
		}
	}
	total = own
	seen := map[string]bool{id: true} // ends even for a damaged tree
	for next := []string{id}; len(next) > 0; next = next[1:] {
		for _, s := range children[next[0]] {
			if !seen[s.ID] {
				seen[s.ID] = true
				total, next = total.Plus(of(s)), append(next, s.ID)
			}
		}
	}
	return own, total
}
