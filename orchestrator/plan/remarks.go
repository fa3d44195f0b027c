package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/claims"
	"centurion/text"
	"centurion/tools"
	"centurion/verify"
	"centurion/workspace/todo"
)

// maxRemarks limits the remarks of one kind in a result.
const maxRemarks = 6

// Remarks describes new problems of a changed plan, one line each; those that existed before are skipped.
func (m *Plan) Remarks(before, after View) []string {
	var out []string
	for _, of := range []func(View) []string{View.shared, View.fileless} {
		out = append(out, FirstOf(of(after), of(before))...)
	}
	if len(out) > 0 {
		out = append(out, tools.Overlaps(m.iso.Isolated()))
	}
	for _, of := range []func(View) []string{View.unreviewable, View.alwaysGreen, View.cancelled} {
		out = append(out, FirstOf(of(after), of(before))...)
	}
	if muffled := FirstOf(after.muffled(), before.muffled()); len(muffled) > 0 {
		out = append(append(out, muffled...), LetDecide)
	}
	return out
}

// FirstOf returns the first few lines that are not known yet.
func FirstOf(lines, known []string) []string {
	lines = slices.DeleteFunc(lines, func(s string) bool { return slices.Contains(known, s) })
	if n := len(lines); n > maxRemarks {
		lines = append(lines[:maxRemarks], fmt.Sprintf("… and %d more like this.", n-maxRemarks))
	}
	return lines
}

// Unfinished lists the items that are neither done nor cancelled.
func (p View) Unfinished() []todo.Item {
	return slices.DeleteFunc(slices.Clone(p.Items()), func(it todo.Item) bool {
		s := p.Doc.Status(it.ID)
		return it.Group || s == todo.Done || s == todo.Cancelled
	})
}

// shared describes items with common files that may run at the same time.
func (p View) shared() (out []string) {
	left := p.Unfinished()
	for i, a := range left {
		for _, b := range left[i+1:] {
			if file := claims.Common(a.Files, b.Files); file != "" && !p.before(a.ID)[b.ID] && !p.before(b.ID)[a.ID] {
				out = append(out, fmt.Sprintf("%s and %s share %s: they run one after the other.", a.ID, b.ID, file))
			}
		}
	}
	return out
}

// fileless names items without files that may run beside others.
func (p View) fileless() []string {
	left := slices.DeleteFunc(p.Unfinished(), func(it todo.Item) bool { return p.IsReview(it.ID) })
	var names []string
	for _, a := range left {
		if len(a.Files) == 0 && slices.ContainsFunc(left, func(b todo.Item) bool { return a.ID != b.ID && !p.before(a.ID)[b.ID] && !p.before(b.ID)[a.ID] }) {
			names = append(names, a.ID)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("No files are named for %s: others may change the same ones at the same time. Name them, or let such an item run alone (`after:`).",
		strings.Join(names, ", "))}
}

// unreviewable lists items with neither a check nor a planned review.
func (p View) unreviewable() (out []string) {
	for _, it := range p.Unfinished() {
		if len(it.Verify) == 0 && !p.IsReview(it.ID) && p.ReviewItem(it.ID) == it.ID {
			out = append(out, fmt.Sprintf("%s has no verify command: a review has to pass before the end. "+
				"Give it one, or plan a review: an item @reviewer with after: %s.", it.ID, it.ID))
		}
	}
	return out
}

// cancelled warns about items that will not be done.
func (p View) cancelled() (out []string) {
	for _, it := range p.Items() {
		if !it.Group && !p.IsReview(it.ID) && p.Doc.Status(it.ID) == todo.Cancelled {
			out = append(out, fmt.Sprintf("%s is cancelled, and the end of the mission will say so. If the goal asks for it, open it again instead and find another way.", it.ID))
		}
	}
	return out
}

// alwaysGreen lists checks that pass regardless of the work.
func (p View) alwaysGreen() (out []string) {
	const advice = "%s check `%s` can only pass and proves nothing. Give it one that fails without the work (of a document: `grep -q 'its words' FILE`) " +
		"before work on it begins."
	for _, it := range p.Unfinished() {
		for _, command := range verify.Distinct(it.Verify) {
			if verify.CanOnlyPass(command) && !p.IsReview(it.ID) {
				out = append(out, fmt.Sprintf(advice, it.ID+"'s", command))
			}
		}
	}
	if p.Doc == nil {
		return out
	}
	for _, command := range verify.Distinct(p.Doc.Checks()) {
		if verify.CanOnlyPass(command) {
			out = append(out, fmt.Sprintf("The mission's check `%s` can only pass and proves nothing.", command))
		}
	}
	return out
}

// muffled lists checks that may pass although their commands fail.
func (p View) muffled() (out []string) {
	say := func(whose, command string) {
		if why := verify.Muffled(command); why != "" {
			out = append(out, fmt.Sprintf("%s check `%s` may hide a failure: %s.", whose, command, why))
		}
	}
	for _, it := range p.Unfinished() {
		for _, command := range verify.Distinct(it.Verify) {
			if !p.IsReview(it.ID) {
				say(it.ID+"'s", command)
			}
		}
	}
	if p.Doc != nil {
		for _, command := range verify.Distinct(p.Doc.Checks()) {
			say("The mission's", command)
		}
	}
	return out
}

// LetDecide is the advice for a check that may hide a failure.
const LetDecide = "Let the exit code of the test command itself decide, for example `go test -run TestName ./pkg`, and join several commands with &&. " +
	"Keep a filter only where the output of a program is what has to be right: every command of a pipe has to succeed."

// reviewOf describes what a review item covers.
func reviewOf(it todo.Item) string {
	if len(it.After) == 0 {
		return "all that was merged before it begins"
	}
	return strings.Join(it.After, ", ") + " and what came before"
}

// Racers returns the agents that try an item, by their own names. The error says why its race cannot be run: it names an agent that does
// not exist or changes no files, or all sessions share one directory.
func (m *Plan) Racers(it todo.Item) (names []string, err error) {
	refused := func(kind centurion.Kind, hint, format string, args ...any) error {
		return &centurion.Error{Kind: kind, Msg: "race: of " + cmp.Or(it.ID, it.Title) + ": " + fmt.Sprintf(format, args...), Hint: hint}
	}
	var all []string // that could be named
	for _, a := range m.st.Cast.All() {
		if a.Mode != "primary" && (a.Holds("write") || a.Holds("edit")) {
			all = append(all, a.Name)
		}
	}
	for _, name := range it.Race {
		agent, err := m.st.Cast.Find(name)
		if err != nil || !slices.Contains(all, agent.Name) {
			why := text.If(err != nil, "there is no agent %q", "%q changes no files")
			return nil, refused(centurion.KindUsage, "name some of them, the same one twice if you like", why+"; agents that can take part: %s", name, strings.Join(all, ", "))
		}
		names = append(names, agent.Name)
	}
	if len(names) > 0 && !m.iso.Isolated() {
		return nil, refused(centurion.KindConflict, "remove the line race:, or let the person run the mission in a git repository, with --isolation worktree",
			"each try needs a worktree of its own, and all sessions of this mission share one directory")
	}
	return names, nil
}

// unrunnable lists the unfinished items whose race cannot be run, with their lines.
func (m *Plan) unrunnable(p View) (out []todo.Problem) {
	for _, it := range p.Unfinished() {
		if _, err := m.Racers(it); err != nil {
			out = append(out, todo.Problem{Line: it.Line, Msg: strings.TrimSuffix(err.Error()+"; "+centurion.HintOf(err), "; ")})
		}
	}
	return out
}

// RefuseRaces returns why the race of an item in a new plan cannot be run, unless the item had it before. prev is nil for the first plan.
func (m *Plan) RefuseRaces(prev, next *todo.Doc) error {
	for _, it := range (View{Doc: next}).Unfinished() {
		var was todo.Item
		if prev != nil {
			was, _ = prev.Item(it.ID)
		}
		if slices.Equal(was.Race, it.Race) {
			continue
		}
		if _, err := m.Racers(it); err != nil {
			return err
		}
	}
	return nil
}
