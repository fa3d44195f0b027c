package centurion

// SubAgent is how a sub-agent differs from the agent that started it.
type SubAgent struct {
	Tools  []string `json:"tools"`            // what it holds; empty is none
	Model  string   `json:"model,omitempty"`  // provider/model; "" is that of its parent
	System string   `json:"system,omitempty"` // in place of its parent's system prompt; "" keeps that
}

// Spent is what a session, or several, have used up.
type Spent struct {
	Usage
	ElapsedMS int64 `json:"elapsed_ms"` // at work, in milliseconds; of sessions that worked side by side the sum
}

// Plus returns the sum of both.
func (s Spent) Plus(t Spent) Spent { return Spent{s.Usage.Plus(t.Usage), s.ElapsedMS + t.ElapsedMS} }

// SpentBy returns what the session with that id has used up itself, and in total, with its children at any depth. It
// takes every session and task of the mission, read in one go: what it says is derived from them and kept nowhere. A
// session of a root has no task; it has worked for as long as its mission.
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
	seen := map[string]bool{id: true} // a damaged tree has an end, too
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
