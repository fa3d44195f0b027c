package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// tally is the number of items with one standing.
type tally struct {
	Class string // good, fair, none or bad
	Words string
}

// tallies are the numbers of items by standing, best first, without zeros.
func (r *Report) tallies() []tally {
	c := r.Counts
	var out []tally
	for _, p := range []struct {
		n    int
		s    Standing
		what string
	}{{c.Proven, Proven, "proven"}, {c.Regression, Regression, "regression (green before and after)"}, {c.Passed, Passed, "passed (green only)"},
		{c.Reviewed, Reviewed, "reviewed (no check of its own)"}, {c.Unproven, Unproven, "UNPROVEN"}, {c.Flaky, Flaky, "FLAKY"}, {c.Failed, Failed, "FAILED"},
		{c.Reverted, Reverted, "reverted"}, {c.NotRun, NotRun, "with a check that was not run"}, {c.Unchecked, Unchecked, "without a check or a review"}} {
		if p.n > 0 {
			out = append(out, tally{badge(p.s), fmt.Sprintf("%d %s", p.n, p.what)})
		}
	}
	return out
}

// proofs describes in words how well the items are proven.
func (r *Report) proofs() string {
	if r.Counts.Items == 0 {
		words := text.When(r.Mission.Status == centurion.MissionCompleted, r.Mission.Evidence.Words())
		return "The plan had no items: " + cmp.Or(words, "there was nothing to verify") + "."
	}
	parts := text.Each(r.tallies(), func(t tally) string { return t.Words })
	m := r.Mission // it has the figures that the host counted at the end, and that `show` tells
	verified := text.When(m.Verified+m.Unverified > 0, fmt.Sprintf(", %d verified", m.Verified))
	return fmt.Sprintf("Of %s%s: %s.", centurion.Count(r.Counts.Items, "item"), verified, strings.Join(parts, ", "))
}

// tone is the colour of the verdict: the mission's status, or "doubted" if it is complete but needs a second look.
func (r *Report) tone() string {
	m := r.Mission
	if m.Status == centurion.MissionCompleted && (len(r.Doubts) > 0 || m.Status.Word(m.Evidence, m.Options.Profile) != string(m.Status)) {
		return "doubted"
	}
	return string(r.Mission.Status)
}

// way describes in one line what failed, was returned or was interrupted, and how often.
func (r *Report) way() string {
	n := r.Timeline.marked()
	restarts, early, faults := 0, 0, 0
	for _, g := range r.Timeline.Gaps {
		if g.Kind == Restart {
			restarts++
		}
	}
	for _, l := range r.Timeline.Lanes {
		if l.End == foundFaults {
			faults++
		}
	}
	for _, c := range r.Checks {
		early += c.Early
	}
	var parts []string
	for _, p := range []struct {
		n          int
		noun, what string
	}{{n[MarkRed], "red check", ""}, {early, "red run", " of the mission's own checks that could not be green yet"}, {n[MarkConflict], "conflict", ""}, {faults, "review", " with faults found"}, {n[MarkReturn], "time", " sent back"}, {n[MarkRetry], "time", " tried again"},
		{n[MarkKill], "time", " cut off"}, {n[MarkFail], "time", " failed or blocked"}, {r.Counts.Reverted, "item", " reverted"}, {restarts, "restart", " of its host"}} {
		if p.n > 0 {
			parts = append(parts, centurion.Count(p.n, p.noun)+p.what)
		}
	}
	switch {
	case len(parts) > 0:
		return "On the way: " + strings.Join(parts, ", ") + "."
	case len(r.Troubles) > 0:
		return "On the way: " + centurion.Count(len(r.Troubles), "trouble") + "."
	}
	return "Nothing failed on the way, and nothing was sent back."
}

// marked counts the marks of all lanes and of the whole mission by kind.
func (t Timeline) marked() map[MarkKind]int {
	n := map[MarkKind]int{}
	for _, l := range slices.Concat(t.Lanes, []Lane{{Marks: t.Marks}}) {
		for _, m := range l.Marks {
			n[m.Kind]++
		}
	}
	return n
}

// maxNamed limits the agents named at the top of a report.
const maxNamed = 12

// who names the agents that worked on the mission, in order of appearance, with their numbers of tasks.
func (r *Report) who() string {
	var names []string
	tasks := map[string]int{}
	for _, l := range r.Timeline.Lanes {
		name := text.Clean(l.Agent)
		names = text.Union(names, name)
		if l.Task != "" {
			tasks[name]++
		}
	}
	if len(names) == 0 {
		return ""
	}
	left := len(names) - maxNamed
	names = names[:min(len(names), maxNamed)]
	for i, name := range names {
		if n := tasks[name]; n > 0 {
			names[i] += " (" + centurion.Count(n, "task") + ")"
		}
	}
	return "Who worked: " + strings.Join(names, ", ") + text.When(left > 0, fmt.Sprintf(" and %d more", left)) + "."
}

// goalTold reports whether the heading shows the whole goal.
func (r *Report) goalTold() bool {
	return short(r.Mission.Goal, maxHeading) == strings.TrimSpace(text.CleanText(r.Mission.Goal))
}

// maxHeading limits the goal in the heading, in bytes.
const maxHeading = 200

// maxCommand limits a command in the list of doubts, in bytes; the receipts have it complete.
const maxCommand = 160

// happened is a row for a mark of a lane, or for several consecutive ones with the same kind and text.
type happened struct {
	Kind     MarkKind
	Name     string // what happened, in a word or two
	From, To centurion.Time
	Text     string // details, without the kind's name at its beginning
	Sep      string // between the name and the text
	Count    int
}

// happenings are the marks of a lane in order of time.
func happenings(l Lane) []happened {
	all := slices.Clone(l.Marks)
	slices.SortStableFunc(all, func(a, b Mark) int { return a.Time.Compare(b.Time.Time) })
	var out []happened
	for _, m := range all {
		if n := len(out); n > 0 && out[n-1].Kind == m.Kind && out[n-1].Text == m.Text {
			out[n-1].To = m.Time
			out[n-1].Count++
			continue
		}
		out = append(out, happened{m.Kind, m.name(), m.Time, m.Time, m.Text, ": ", 1})
	}
	for i := range out {
		h := &out[i]
		if rest, ok := strings.CutPrefix(h.Text, h.Name); ok {
			h.Text, h.Sep = strings.TrimLeft(rest, ": "), " "
			if strings.HasPrefix(rest, ":") {
				h.Sep = ": "
			}
		}
	}
	return out
}

// when describes when something happened, on the axis, with its name and number.
func (r *Report) when(h happened) string {
	from, to := axis(r.Timeline.at(h.From)), axis(r.Timeline.at(h.To))
	return from + text.When(to != from, "–"+to) + " " + h.Name + text.When(h.Count > 1, fmt.Sprintf(" ×%d", h.Count))
}
