package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/text"
)

// headline describes in one line how the mission ended, or its current state.
func (r *Report) headline() string {
	m := r.Mission
	word := map[centurion.MissionStatus]string{centurion.MissionCompleted: "Complete", centurion.MissionFailed: "Failed",
		centurion.MissionPaused: "Paused", centurion.MissionBlocked: "Blocked", centurion.MissionCancelled: "Cancelled",
		centurion.MissionPlanning: "Planning", centurion.MissionRunning: "Running"}[m.Status]
	if m.Status.Word(m.Evidence, m.Options.Profile) != string(m.Status) {
		word += ", not verified"
	}
	worked := span(m.ElapsedMS - r.HeldMS)
	return text.Dots(
		cmp.Or(word, text.Clean(string(m.Status)), "Unknown")+text.When(r.Running, ": as of "+clock(r.Written)),
		text.When(r.Counts.Items > 0, fmt.Sprintf("%d of %s done", r.Counts.Done, centurion.Count(r.Counts.Items, "item"))),
		text.When(worked != "", worked+" at work"),
		text.When(r.HeldMS >= 1000, span(r.HeldMS)+" waiting for a person"),
		text.When(m.ElapsedMS < r.WallMS-60_000, span(r.WallMS)+" by the clock"),
		money(m.Usage), text.Tokens(m.Usage.Tokens.Total())+" tokens",
	)
}

// worth describes the grade of a check, and first its former item if it has none any more.
func (r *Report) worth(c Check) string {
	if c.Former != nil {
		words := c.Former.words()
		c.Former = nil
		return strings.ToUpper(words[:1]) + words[1:] + ". " + r.worth(c)
	}
	switch c.Standing {
	case Proven:
		return "Fails without the change, passes with it, and fails again when the change is reverted."
	case Regression:
		return "Passes before and after the change: no more was required."
	case Passed:
		if r.Mission.Base == nil && (c.Receipt == nil || c.Receipt.Tree == "") {
			return "Passes, but without git it was not run without the change. It may be unable to fail."
		}
		return "Passes, but was not run without the change."
	case Unproven:
		return "Passes, but may be unable to fail."
	case Flaky:
		return "A second run on the same tree had another result."
	case NotRun:
		return "Not run yet."
	}
	return "The last run failed."
}

// early describes how often a check of the mission failed before it could pass.
func early(c Check) string {
	line := text.If(c.Receipt != nil && c.Receipt.Passed, "Before it first passed it failed ", "It failed ") + centurion.Count(c.Early, "time") +
		" during merges: expected, because other items were not merged yet."
	return text.When(c.Early > 0, line)
}

// runs are the runs of a receipt; without stored runs, one that passed or failed.
func runs(c *centurion.Receipt) []centurion.CheckRun {
	if c == nil {
		return nil
	}
	if len(c.Runs) > 0 {
		return c.Runs
	}
	return []centurion.CheckRun{{Kind: centurion.RunGreen, Tree: c.Tree, ExitCode: c.ExitCode, Passed: c.Passed, Error: c.Error,
		Output: c.Output, Digest: c.Digest, Millis: c.Millis, Time: c.Time}}
}

// runWord names a run of a receipt. If the check was run several times without the work, each name says what was reverted.
func runWord(all []centurion.CheckRun, i int) string {
	switch k := all[i].Kind; k {
	case centurion.RunRed:
		n, of := 0, 0
		for j, r := range all {
			if r.Kind == k {
				if of++; j <= i {
					n++
				}
			}
		}
		return cmp.Or(suffix("with ", all[i].Out), "before the work") + text.When(of > 1, fmt.Sprintf(" (%d of %d)", n, of))
	case centurion.RunGreen:
		return "with the work"
	case centurion.RunRedAgain:
		return "work taken out"
	}
	return text.Clean(string(all[i].Kind))
}

// runBadge is the colour of a run: a check is expected to fail without the work.
func runBadge(r centurion.CheckRun) string {
	switch {
	case r.Passed && r.Kind == centurion.RunGreen:
		return "good"
	case !r.Passed && r.Kind == centurion.RunGreen:
		return "bad"
	}
	return "none"
}

// reversed is the reverse of a patch: added lines become removed ones and vice versa.
func reversed(patch string) string {
	var b strings.Builder
	var gone, came []string // of the current change
	flush := func() {
		for _, l := range append(gone, came...) {
			b.WriteString(l)
		}
		gone, came = nil, nil
	}
	old, new := 0, 0 // remaining lines of the hunk
	was := ""        // the line that begins with ---
	for l := range strings.Lines(patch) {
		in := old > 0 || new > 0
		switch {
		case in && strings.HasPrefix(l, "+"):
			gone, new = append(gone, "-"+l[1:]), new-1
			continue
		case in && strings.HasPrefix(l, "-"):
			came, old = append(came, "+"+l[1:]), old-1
			continue
		case strings.HasPrefix(l, "\\") && len(gone) > 0: // it belongs to the previous line
			gone = append(gone, l)
			continue
		case strings.HasPrefix(l, "\\") && len(came) > 0:
			came = append(came, l)
			continue
		}
		flush()
		switch {
		case in:
			old, new = old-1, new-1
			b.WriteString(l)
		case strings.HasPrefix(l, "@@"):
			old, new = hunkSize(l)
			b.WriteString(swapHunk(l))
		case strings.HasPrefix(l, "--- "):
			was = l
		case strings.HasPrefix(l, "+++ ") && was != "":
			b.WriteString("--- " + otherSide(l[4:], "b/", "a/") + "+++ " + otherSide(was[4:], "a/", "b/"))
			was = ""
		case strings.HasPrefix(l, "new file mode"):
			b.WriteString("deleted" + l[len("new"):])
		case strings.HasPrefix(l, "deleted file mode"):
			b.WriteString("new" + l[len("deleted"):])
		default:
			b.WriteString(l)
		}
	}
	flush()
	return b.String()
}

func otherSide(path, from, to string) string {
	if rest, ok := strings.CutPrefix(path, from); ok {
		return to + rest
	}
	return path
}

// swapHunk swaps the two ranges of a hunk's header.
func swapHunk(l string) string {
	f := strings.SplitN(l, " ", 4)
	if len(f) < 4 || !strings.HasPrefix(f[1], "-") || !strings.HasPrefix(f[2], "+") {
		return l
	}
	return strings.Join([]string{f[0], "-" + f[2][1:], "+" + f[1][1:], f[3]}, " ")
}

// ended describes how a run ended.
func ended(c centurion.CheckRun) string {
	return fmt.Sprintf("%s, exit %d", text.If(c.Passed, "green", "red"), c.ExitCode)
}

// ranInto describes problems of a run: an error, a broken build, a check that checks nothing.
func ranInto(c centurion.CheckRun) string {
	return strings.Join(text.Union(nil, text.Filled(c.Error, c.Broken, c.Empty)...), "; ")
}

// doubted are the reasons against a better grade of a check; empty if it needs none.
func doubted(c Check) []string {
	if c.Receipt == nil || c.Standing == Proven || c.Standing == Regression {
		return nil
	}
	return because(*c.Receipt)
}

// plainPatch is a patch without the lines that name git objects.
func plainPatch(patch string) string {
	var b strings.Builder
	header := false
	for l := range strings.Lines(patch) {
		if header && strings.HasPrefix(l, "index ") {
			continue
		}
		header = strings.HasPrefix(l, "diff --git ") || header && !strings.HasPrefix(l, "@@")
		b.WriteString(l)
	}
	return b.String()
}

// without describes how the check ended without the work, after "… and ". The last such run counts.
func without(c *centurion.Receipt) string {
	if c == nil {
		return ""
	}
	for _, run := range slices.Backward(c.Runs) {
		switch {
		case run.Kind == centurion.RunGreen:
		case run.Passed && run.Kind == centurion.RunRedAgain:
			return "the check was red, and green when it was run again"
		case run.Passed:
			return "the check stayed green"
		case run.Error != "":
			return "the check did not run to its end"
		case run.Broken != "":
			return "the check did not get as far as to fail"
		case run.Empty != "":
			return "the check had nothing to check"
		case run.Kind == centurion.RunRedAgain:
			return checkDied
		default:
			return "the check was red"
		}
	}
	if c.FailureLine != "" {
		return checkDied
	}
	return "the check was not run without it"
}

// checkDied is the text for a check that fails without the work, as it should.
const checkDied = "the check failed without the change"

// died is the check's output without the work: its most informative line, or else the end of that run's output. It is empty if the
// check passed.
func died(c *centurion.Receipt) string {
	if without(c) != checkDied {
		return ""
	}
	if c.FailureLine != "" {
		return c.FailureLine
	}
	for _, run := range c.Runs {
		if run.Kind == centurion.RunRedAgain && !run.Passed {
			return tail(run.Output, 800)
		}
	}
	return ""
}

// tail is the last lines of a text, at most n bytes.
func tail(s string, n int) string {
	s = strings.TrimRight(s, "\n ")
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		s = rest
	}
	return "…\n" + strings.ToValidUTF8(s, "")
}

// merged reports whether the work is on the person's branch; an interrupted merge has no commit yet.
func (r *Report) merged() bool { return r.Mission.Merged != nil && r.Mission.Merged.Commit != "" }

// where describes where the work is and how to get it.
func (r *Report) where() string {
	m := r.Mission
	switch {
	case r.merged():
		return fmt.Sprintf("Merged into %s at %s as commit %s", cmp.Or(m.Merged.Branch, "a detached HEAD"), clock(m.Merged.Time), hash(m.Merged.Commit)) +
			text.When(m.Merged.Squash, ", as one commit") + suffix("; only ", strings.Join(m.Merged.Only, ", ")) + "."
	case m.Branch != "":
		return "The work stands on the branch " + m.Branch + ". It is not on yours."
	case m.Isolation == centurion.IsolationShared || m.Base == nil:
		return "The work was done in the project itself."
	}
	return ""
}

// base describes the start of the work by the person's own commit: they do not know the host's snapshot of it and of uncommitted
// changes.
func (r *Report) base() string {
	b := r.Mission.Base
	if b == nil {
		return ""
	}
	from := "from " + hash(b.Head) + suffix(" of ", b.Branch)
	return "It started " + text.If(b.Head == "", "in a repository without a commit", from) + b.Uncommitted() + "."
}

// confinement says how commands were confined in the newest run.
func (r *Report) confinement() string {
	if r.Mission.Confinement == nil {
		return ""
	}
	return "Confinement of commands: " + r.Mission.Confinement.String() + "."
}

// reverted lists the tasks whose work a person has reverted.
func reverted(tasks []centurion.Task) []Trouble {
	gone := centurion.Continued(tasks)
	var out []Trouble
	for _, t := range tasks {
		if !t.Reverted() {
			continue
		}
		tr := Trouble{Time: t.Undone, Where: strings.TrimSpace(t.Item + " " + t.Title), What: cmp.Or(t.Item, "its work") + " was reverted", Then: "it has not been done again"}
		if t.Agent == "reviewer" {
			tr.What = "the work that it judged was reverted, and its verdict no longer counts"
		}
		if gone[t.ID] != "" {
			tr.Then = "it was done again"
		}
		out = append(out, tr)
	}
	return out
}

// undone lists the tasks whose work a person undid.
func undone(tasks []centurion.Task) []string {
	var out []string
	for _, t := range tasks {
		if !t.Undone.IsZero() {
			out = append(out, strings.TrimSpace(t.Item+" "+t.Title)+", at "+clock(t.Undone))
		}
	}
	return out
}

// gapWord says why there was no work in a gap.
func gapWord(kind string) string {
	return text.If(kind == Restart, "its host restarted", kind)
}
