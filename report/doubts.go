package report

import (
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// doubts lists what is not proven, items first, in the order of the plan.
func doubts(r *Report) []Doubt {
	out := []Doubt{}
	due := func(it Item) bool { // until then nothing is claimed
		return it.Status == "done" || it.ID == "" && r.Mission.Status == centurion.MissionCompleted
	}
	add := func(it Item, c Check) {
		d := Doubt{Item: it.ID, Command: c.Command, Kind: string(c.Standing)}
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
			out = append(out, Doubt{Item: it.ID, Command: c.Command, Kind: "weakened", Why: c.Receipt.Weakened})
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
	why := text.Union(nil, text.Filled(strings.TrimSpace(r.Why), strings.TrimSpace(r.Error))...)
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
	m := r.Mission
	stopped := m.Status == centurion.MissionPaused || m.Status == centurion.MissionFailed || m.Status == centurion.MissionBlocked
	working := m.Status == centurion.MissionPlanning || m.Status == centurion.MissionRunning
	inGit := m.Branch != "" || m.Base != nil
	var out []Command
	for _, c := range []struct {
		holds      bool
		line, what string
	}{
		{m.Status == centurion.MissionBlocked, "centurion asks", "see what it waits for"},
		{stopped, "centurion resume " + m.ID, "continue it"},
		{working, "centurion attach " + m.ID, "watch it"},
		{working, "centurion pause " + m.ID, "pause it; it can be resumed"},
		{inGit, "centurion diff " + m.ID, "see what it changed"},
		{inGit && !r.merged(), "centurion merge " + m.ID, "put its work on your branch"},
		{r.merged(), "centurion undo " + m.ID, "take it off your branch again"},
		{!r.merged() && (m.Branch != "" || len(r.Files) > 0), "centurion undo " + m.ID, "revert what it changed"},
		{true, "centurion show " + m.ID, "see its tasks, receipts and limits"},
	} {
		if c.holds {
			out = append(out, Command{c.line, c.what})
		}
	}
	return out
}
