package report

import (
	"slices"

	"centurion"
	"centurion/text"
)

// outside lists files that items changed although the plan did not give them these. It omits work that was undone, or that ended
// unmerged.
func outside(tasks []centurion.Task) []Doubt {
	var out []Doubt
	for _, t := range tasks {
		if len(t.Outside) == 0 || !t.Undone.IsZero() || len(t.Landed) == 0 && t.Status != centurion.TaskCompleted {
			continue
		}
		i := slices.IndexFunc(out, func(d Doubt) bool { return d.Item == t.Item })
		if i < 0 {
			i, out = len(out), append(out, Doubt{Item: t.Item, Kind: "outside its files"})
		}
		out[i].Why = text.Union(out[i].Why, t.Outside...)
	}
	return out
}
