package report

import (
	"slices"
	"strings"

	"centurion"
)

// doubts lists what is not proven, items first, in the order of the plan.
func doubts(r *Report) []Doubt {
	out := []Doubt{}
	due := func(it Item) bool { // until then nothing is claimed
		return it.Status == "done" || it.ID == "" && r.Mission.Status == centurion.MissionCompleted
	}
	add := func(it Item, c Check) {
		item := it.ID
		d := Doubt{Item: item, Command: c.Command, Kind: string(c.Standing)}
		standing := c.Standing
		if c.Former != nil {
			d.Kind, d.Why, standing = "changed", []string{c.Former.words()}, Proven // its former grade no longer counts
			out = append(out, d)
		}
		switch standing {
		case Proven, Regression, Passed, Reviewed, Unchecked:
		case NotRun:
			if due(it) {
				d.Why = []string{"the host has not run it"}
				out = append(out, d)
			}
		default:
			if c.Receipt != nil {
				d.Why = because(*c.Receipt)
			}
			if w := it.words(); w != "" && c.Standing != Failed {
				d.Why = append(d.Why, w)
			}
			out = append(out, d)
		}
		if c.Receipt != nil && len(c.Receipt.Weakened) > 0 {
			out = append(out, Doubt{Item: item, Command: c.Command, Kind: "weakened", Why: c.Receipt.Weakened})
		}
	}
	for _, it := range r.Items {
		if it.Standing == Unchecked && due(it) {
			out = append(out, Doubt{Item: it.ID, Kind: string(Unchecked), Why: []string{"it has no acceptance command, and no review has passed since its work ended: nothing but an agent's word stands for it"}})
		}
		for _, c := range it.Checks {
			add(it, c)
		}
	}
	for _, c := range r.Checks {
		add(Item{}, c)
	}
	return out
}

// because says why a receipt does not prove more.
func because(r centurion.Receipt) []string {
	var why []string
	for _, s := range []string{r.Why, r.Error} {
		if s = strings.TrimSpace(s); s != "" && !slices.Contains(why, s) {
			why = append(why, s)
		}
	}
	for _, run := range decisive(r.Runs) {
		for _, s := range []string{run.Broken, run.Empty} {
			if s != "" && !slices.ContainsFunc(why, func(told string) bool { return strings.Contains(told, s) }) {
				why = append(why, s)
			}
		}
	}
	return why
}

// decisive returns the last run of each kind; earlier ones were retried in another way.
func decisive(runs []centurion.CheckRun) []centurion.CheckRun {
	var out []centurion.CheckRun
	for i, run := range runs {
		if !slices.ContainsFunc(runs[i+1:], func(later centurion.CheckRun) bool { return later.Kind == run.Kind }) {
			out = append(out, run)
		}
	}
	return out
}

// next lists the commands that a person may run now.
func next(r *Report) []Command {
	id := r.Mission.ID
	var out []Command
	add := func(line, what string) { out = append(out, Command{line, what}) }
	m := r.Mission
	switch m.Status {
	case centurion.MissionPaused, centurion.MissionFailed:
		add("centurion resume "+id, "continue it")
	case centurion.MissionBlocked:
		add("centurion asks", "see what it waits for")
		add("centurion resume "+id, "continue it")
	case centurion.MissionPlanning, centurion.MissionRunning:
		add("centurion attach "+id, "watch it")
		add("centurion pause "+id, "pause it; it can be resumed")
	}
	if m.Branch != "" || m.Base != nil {
		add("centurion diff "+id, "see what it changed")
		if !r.merged() {
			add("centurion merge "+id, "put its work on your branch")
		}
	}
	if r.merged() {
		add("centurion undo "+id, "take it off your branch again")
	} else if m.Branch != "" || len(r.Files) > 0 {
		add("centurion undo "+id, "revert what it changed")
	}
	add("centurion show "+id, "see its tasks, receipts and limits")
	return out
}
