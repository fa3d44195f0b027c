// Package report tells of a mission as Markdown, as one self-contained HTML page and as data: what was asked, what is proven
// and by what, who worked when, what it cost and how it is taken back. It owns what is said and how it looks; it reads no
// store and no git, asks nobody and writes no file.
//
// Almost every text in a report was written by a model or a command. Nothing of it is ever markup: HTML is escaped by its
// place in the page, Markdown is neutralised, and characters that a reader would not see are taken out of both.
package report

import (
	"slices"

	"centurion"
	"centurion/event/view"
)

// Data is what a report is made of, as the caller has read it. Only Mission is needed.
type Data struct {
	Mission  centurion.Mission
	Tasks    []centurion.Task // oldest first
	Receipts []centurion.Receipt
	Sessions []centurion.Session // as far as they are kept
	// Items is the plan as it stands. Nil means that it cannot be read any more: then it is taken from the events.
	Items  []PlanItem
	Checks []string             // the mission's own acceptance commands
	Events []centurion.Event    // all facts of the mission, in their order
	Files  []centurion.FileDiff // what it changed, with or without hunks
	// Reviews are the passed reviews that cover what has become of an item, by the item's id.
	Reviews map[string]Review
	// Branches are those on which work of a task stands that was not merged, by the task's id.
	Branches map[string]string
	// NoFiles says why Files is empty although something may have changed, in one line.
	NoFiles string
	Now     centurion.Time // when the report is written

	again map[int]int // see begunAgain; nil before [New]
}

// Report is a mission told. It is plain data, and what `--format json` prints.
type Report struct {
	Mission   centurion.Mission `json:"mission"`
	Written   centurion.Time    `json:"written"`
	Running   bool              `json:"running"`            // it is being worked on: the report tells of now
	WallMS    int64             `json:"wall_ms"`            // from its start to its end, or to now
	HeldMS    int64             `json:"held_ms,omitempty"`  // of its time at work, in which everybody waited for a person
	Counts    Counts            `json:"counts"`             // of the items, by what proves them
	Items     []Item            `json:"items"`              // in the order of the plan
	Checks    []Check           `json:"checks"`             // the mission's own, and commands that belong to no item
	Timeline  Timeline          `json:"timeline"`           // who worked when
	Agents    []Spent           `json:"agents"`             // by agent, the dearest first
	Models    []Spent           `json:"models"`             // by model, the dearest first
	Files     []File            `json:"files"`              // that were changed, by path
	NoFiles   string            `json:"no_files,omitempty"` // why there are none to show
	Decisions []Decision        `json:"decisions"`          // what was asked and who answered
	Messages  []Said            `json:"messages"`           // what the person wrote to agents
	Troubles  []Trouble         `json:"troubles"`           // what went wrong, and what became of it
	Undone    []string          `json:"undone,omitempty"`   // tasks whose work a person took back
	Next      []Command         `json:"next"`               // how to merge it, undo it, look closer
	Doubts    []Doubt           `json:"doubts"`             // what needs a second look
}

// Counts says how many items of the plan stand how.
type Counts struct {
	Items      int `json:"items"`
	Done       int `json:"done"`
	Proven     int `json:"proven"`
	Regression int `json:"regression"`
	Passed     int `json:"passed"` // green, and no more was looked for
	Unproven   int `json:"unproven"`
	Flaky      int `json:"flaky"`
	Failed     int `json:"failed"`
	Reviewed   int `json:"reviewed"`           // it has no acceptance command, and a review has passed
	Unchecked  int `json:"unchecked"`          // it has no acceptance command, and no review has passed
	NotRun     int `json:"not_run"`            // it has one that was not run
	Reverted   int `json:"reverted,omitempty"` // a person has reverted its work, and it was not done again
}

// Standing is what a check or an item has been shown to be.
type Standing string

// The standings, from the best to the worst; an item stands as the worst of its checks.
const (
	Proven     Standing = "proven"
	Regression Standing = "regression"
	Passed     Standing = "passed"
	Reviewed   Standing = "reviewed"
	Unchecked  Standing = "unchecked"
	NotRun     Standing = "not run"
	Unproven   Standing = "unproven"
	Flaky      Standing = "flaky"
	Failed     Standing = "failed"
	Reverted   Standing = "reverted"
)

// standings is the order of standings.
func standings() []Standing {
	return []Standing{Proven, Regression, Passed, Reviewed, Unchecked, NotRun, Unproven, Flaky, Failed, Reverted}
}

// Item is one item of the plan with what shows that it is done.
type Item struct {
	PlanItem
	Standing Standing `json:"standing"`
	Checks   []Check  `json:"checks,omitempty"`
	Tasks    []string `json:"tasks,omitempty"`  // ids of those that worked on it
	Review   *Review  `json:"review,omitempty"` // that has passed since its work ended
}

// Review is a review that has found no faults.
type Review struct {
	Task string `json:"task"`
	Item string `json:"item,omitempty"` // that it was the work of
	Name string `json:"name"`           // its item, or else its title
}

// words says of an item what its review has found.
func (it Item) words() string {
	switch {
	case it.Review == nil:
		return ""
	case it.Review.Item != "" && it.Review.Item == it.ID:
		return "a review: PASS"
	}
	return "reviewed: PASS by " + it.Review.Name
}

// Worth says what an item has been shown to be, and by which review where it stands on one.
func (it Item) Worth() string {
	switch {
	case it.Standing == Reviewed:
		return it.words()
	case it.Review != nil && (it.Standing == Unproven || it.Standing == Flaky):
		return string(it.Standing) + "; " + it.words()
	}
	return string(it.Standing)
}

// Check is one acceptance command with its newest receipts.
type Check struct {
	Command  string             `json:"command"`
	Standing Standing           `json:"standing"`
	Receipt  *centurion.Receipt `json:"receipt,omitempty"` // the one that says most; nil if it was never run
	Final    *centurion.Receipt `json:"final,omitempty"`   // the newest on the finished work, if that is another one
	Times    int                `json:"times"`             // receipts in all
	Former   *Former            `json:"former,omitempty"`  // its item does not ask for it any more: it counts for nothing
	Early    int                `json:"early,omitempty"`   // red runs of a check of the mission before its branch first passed it
}

// Doubt is something that a person should look at: about a check, or which files an item's work has changed.
type Doubt struct {
	Item    string   `json:"item,omitempty"`
	Command string   `json:"command,omitempty"`
	Kind    string   `json:"kind"` // unproven, flaky, failed, not run, unchecked, weakened, changed or outside its files
	Why     []string `json:"why,omitempty"`
}

// Command is a command line that a person may type next, and what it does.
type Command struct {
	Line string `json:"line"`
	What string `json:"what"`
}

// New makes a report. It changes nothing of d.
func New(d Data) *Report {
	r := &Report{Mission: d.Mission, Written: d.Now, Running: d.Mission.Status.Alive(), NoFiles: d.NoFiles}
	d.again = begunAgain(d.Events)
	r.Timeline = Lanes(d)
	r.WallMS = wall(d)
	r.Items = items(d)
	r.Checks = ownChecks(d, r.Items)
	countEarly(r.Checks, d.Events)
	r.Counts = count(r.Items)
	r.Agents, r.Models = spending(d)
	r.Files = files(d.Files)
	r.Decisions = decisions(d)
	r.HeldMS = min(heldUp(r.Timeline, r.Decisions).Milliseconds(), d.Mission.ElapsedMS)
	r.Messages = said(d)
	r.Troubles = append(troubles(d), reverted(d.Tasks)...)
	r.Doubts = append(doubts(r), outside(d.Tasks)...)
	r.Undone = undone(d.Tasks)
	r.Next = next(r)
	return r
}

// wall is the time from the mission's start to its end, or to now, in milliseconds.
func wall(d Data) int64 {
	if d.Mission.Started.IsZero() {
		return 0
	}
	end := d.Mission.Updated
	if d.Mission.Status.Alive() {
		end = d.Now
	}
	for _, e := range slices.Backward(d.Events) { // it is changed later, too: when its work is merged
		if e.Type.EndsMission() && !d.Mission.Status.Alive() {
			end = e.Time
			break
		}
	}
	return max(end.Sub(d.Mission.Started.Time).Milliseconds(), 0)
}

// plan is the plan as it was given, or as the events told it last, with the states that the tasks speak of.
func plan(d Data) []PlanItem {
	if d.Items != nil {
		return slices.Clone(d.Items)
	}
	var out []PlanItem
	for _, e := range d.Events {
		if e.Type != centurion.EventTodoUpdated {
			continue
		}
		if t, err := view.Decode(e); err == nil && len(t.Items) > 0 {
			out = slices.Clone(t.Items)
		}
	}
	for i := range out {
		if d.Mission.Status == centurion.MissionCompleted {
			out[i].Status = "done" // it completes with nothing else
			continue
		}
		for _, t := range d.Tasks {
			if t.Item == out[i].ID && t.Status == centurion.TaskCompleted && t.Undone.IsZero() {
				out[i].Status = "done"
			}
		}
	}
	return out
}

func items(d Data) []Item {
	out := []Item{}
	for _, p := range plan(d) {
		it := Item{PlanItem: p, Standing: Unchecked}
		for _, t := range d.Tasks {
			if t.Item == p.ID {
				it.Tasks = append(it.Tasks, t.ID)
			}
		}
		commands := slices.Clone(p.Verify)
		for _, r := range d.Receipts { // a line that has been changed since has left receipts, too
			if r.Item == p.ID && len(p.Verify) == 0 && !slices.Contains(commands, r.Command) {
				commands = append(commands, r.Command)
			}
		}
		for _, c := range commands {
			it.Checks = append(it.Checks, checkOf(c, d.Receipts, func(r centurion.Receipt) bool {
				return r.Item == p.ID || r.Final
			}))
		}
		if len(it.Checks) > 0 {
			it.Standing = worst(it.Checks)
		}
		it.Checks = append(it.Checks, formerChecks(d, p)...)
		if v, ok := d.Reviews[p.ID]; ok {
			it.Review = &v
			if it.Standing == Unchecked {
				it.Standing = Reviewed
			}
		}
		if it.Status != "done" && isReverted(it.ID, d.Tasks) {
			it.Standing = Reverted
		}
		out = append(out, it)
	}
	return out
}

// isReverted reports whether the work that was done last on an item was reverted.
func isReverted(item string, tasks []centurion.Task) (is bool) {
	for _, t := range tasks {
		if t.Item == item && t.Status == centurion.TaskCompleted && !t.Reviews {
			is = t.Reverted()
		}
	}
	return is
}

// checkOf gathers the receipts of one command. The newest that was more than one green run says what it is worth, the
// newest of all whether it still passes.
func checkOf(command string, all []centurion.Receipt, mine func(centurion.Receipt) bool) Check {
	c := Check{Command: command, Standing: NotRun}
	var newest, proof, final *centurion.Receipt
	for i := range all {
		r := &all[i]
		if r.Command != command || !mine(*r) {
			continue
		}
		c.Times++
		newest = later(newest, r)
		if r.Proof != "" {
			proof = later(proof, r)
		}
		if r.Final {
			final = later(final, r)
		}
	}
	if newest == nil {
		return c
	}
	c.Receipt = newest
	if newest.Passed && proof != nil {
		c.Receipt = proof
	}
	if final != nil && final != c.Receipt {
		c.Final = final
	}
	switch {
	case !newest.Passed:
		c.Standing = Failed
	case proof == nil:
		c.Standing = Passed
	case slices.Contains(standings(), Standing(proof.Proof)):
		c.Standing = Standing(proof.Proof)
	default:
		c.Standing = Unproven
	}
	return c
}

func later(a, b *centurion.Receipt) *centurion.Receipt {
	if a == nil || !b.Time.Before(a.Time.Time) {
		return b
	}
	return a
}

func worst(checks []Check) Standing {
	order, w := standings(), 0
	for _, c := range checks {
		w = max(w, slices.Index(order, c.Standing))
	}
	return order[w]
}

// ownChecks are the mission's own checks, and commands with receipts that no item asks for.
func ownChecks(d Data, items []Item) []Check {
	told := map[string]bool{}
	for _, it := range items {
		for _, c := range it.Checks {
			told[c.Command] = true
		}
	}
	out := []Check{}
	commands := slices.Concat(d.Checks, d.Mission.Options.Verify)
	dropped := map[string]*Former{}
	for _, r := range d.Receipts {
		if told[r.Command] {
			continue
		}
		if r.Item != "" && len(items) > 0 && !slices.Contains(commands, r.Command) {
			dropped[r.Command] = &Former{Item: r.Item, Dropped: true}
		}
		commands = append(commands, r.Command)
	}
	seen := map[string]bool{}
	for _, command := range commands {
		if !seen[command] {
			seen[command] = true
			c := checkOf(command, d.Receipts, func(centurion.Receipt) bool { return true })
			c.Former = dropped[command]
			out = append(out, c)
		}
	}
	return out
}

// countEarly counts the red runs of the mission's own checks that were no fault of the work: all that they ask for was not there yet.
func countEarly(checks []Check, events []centurion.Event) {
	for _, e := range events {
		if e.Type != centurion.EventVerifyFailed {
			continue
		}
		v := view.Read(e)
		if i := slices.IndexFunc(checks, func(c Check) bool { return c.Command == v.Command }); v.Early && i >= 0 {
			checks[i].Early++
		}
	}
}

func count(items []Item) Counts {
	c := Counts{Items: len(items)}
	for _, it := range items {
		if it.Status == "done" {
			c.Done++
		}
		switch it.Standing {
		case Proven:
			c.Proven++
		case Regression:
			c.Regression++
		case Passed:
			c.Passed++
		case Unproven:
			c.Unproven++
		case Flaky:
			c.Flaky++
		case Failed:
			c.Failed++
		case Reviewed:
			c.Reviewed++
		case Unchecked:
			c.Unchecked++
		case NotRun:
			c.NotRun++
		case Reverted:
			c.Reverted++
		}
	}
	return c
}
