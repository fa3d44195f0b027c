// Package report describes a mission as Markdown, as one self-contained HTML page and as data: the goal, what is proven and how, who
// worked when, the cost, and how to undo it. It owns content and layout; it reads no store and no git, asks no one and writes no file.
//
// Almost every text in a report was written by a model or a command, and is never treated as markup: HTML is escaped for its place in
// the page, Markdown is neutralised, and invisible characters are removed from both.
package report

import (
	"slices"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Data is the input of a report, as read by the caller. Only Mission is required.
type Data struct {
	Mission  centurion.Mission
	Tasks    []centurion.Task // oldest first
	Receipts []centurion.Receipt
	Sessions []centurion.Session // as far as they are stored
	// Items is the current plan. Nil means that it cannot be read; then it is taken from the events.
	Items  []PlanItem
	Checks []string             // the mission's own acceptance commands
	Events []centurion.Event    // all events of the mission, in order
	Files  []centurion.FileDiff // the changed files, with or without hunks
	// Reviews are the passed reviews that cover the current work of an item, by item id.
	Reviews map[string]Review
	// Branches are the branches with unmerged work of tasks, by task id.
	Branches map[string]string
	// NoFiles says in one line why Files is empty although something may have changed.
	NoFiles string
	Now     centurion.Time // the time of writing

	again map[int]int // see begunAgain; nil before [New]
}

// Report is the report of a mission as plain data, as printed by `--format json`.
type Report struct {
	Mission   centurion.Mission `json:"mission"`
	Written   centurion.Time    `json:"written"`
	Running   bool              `json:"running"`            // the mission is running: the report shows its current state
	WallMS    int64             `json:"wall_ms"`            // from its start to its end, or until now
	HeldMS    int64             `json:"held_ms,omitempty"`  // the part of its working time in which all agents waited for a person
	Counts    Counts            `json:"counts"`             // of the items, by standing
	Items     []Item            `json:"items"`              // in the order of the plan
	Checks    []Check           `json:"checks"`             // the mission's own, and commands of no item
	Timeline  Timeline          `json:"timeline"`           // who worked when
	Agents    []Spent           `json:"agents"`             // by agent, most expensive first
	Models    []Spent           `json:"models"`             // by model, most expensive first
	Files     []File            `json:"files"`              // changed files, by path
	NoFiles   string            `json:"no_files,omitempty"` // why Files is empty
	Decisions []Decision        `json:"decisions"`          // asks and their answers
	Messages  []Said            `json:"messages"`           // the person's messages to agents
	Troubles  []Trouble         `json:"troubles"`           // failures and their consequences
	Undone    []string          `json:"undone,omitempty"`   // tasks whose work a person undid
	Next      []Command         `json:"next"`               // commands to merge, undo or inspect it
	Doubts    []Doubt           `json:"doubts"`             // what needs a second look
}

// Counts counts the items of the plan by standing.
type Counts struct {
	Items      int `json:"items"`
	Done       int `json:"done"`
	Proven     int `json:"proven"`
	Regression int `json:"regression"`
	Passed     int `json:"passed"` // passed, without further proof
	Unproven   int `json:"unproven"`
	Flaky      int `json:"flaky"`
	Failed     int `json:"failed"`
	Reviewed   int `json:"reviewed"`           // without acceptance command, with a passed review
	Unchecked  int `json:"unchecked"`          // without acceptance command and passed review
	NotRun     int `json:"not_run"`            // with an acceptance command that was not run
	Reverted   int `json:"reverted,omitempty"` // a person reverted its work, and it was not done again
}

// Standing is the grade of a check or an item.
type Standing string

// The standings from best to worst; an item has that of its worst check.
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

// standings lists the standings in order.
var standings = []Standing{Proven, Regression, Passed, Reviewed, Unchecked, NotRun, Unproven, Flaky, Failed, Reverted}

// Item is an item of the plan with its proof.
type Item struct {
	PlanItem
	Standing Standing `json:"standing"`
	Checks   []Check  `json:"checks,omitempty"`
	Tasks    []string `json:"tasks,omitempty"`  // ids of its tasks
	Review   *Review  `json:"review,omitempty"` // passed since its work ended
}

// Review is a review that found no faults.
type Review struct {
	Task string `json:"task"`
	Item string `json:"item,omitempty"` // the item that the review itself was
	Name string `json:"name"`           // its item, or else its title
}

// words describes the review of an item.
func (it Item) words() string {
	switch {
	case it.Review == nil:
		return ""
	case it.Review.Item != "" && it.Review.Item == it.ID:
		return "a review: PASS"
	}
	return "reviewed: PASS by " + it.Review.Name
}

// Worth describes the standing of an item, naming the review if it depends on one.
func (it Item) Worth() string {
	switch {
	case it.Standing == Reviewed:
		return it.words()
	case it.Review != nil && (it.Standing == Unproven || it.Standing == Flaky):
		return string(it.Standing) + "; " + it.words()
	}
	return string(it.Standing)
}

// Check is an acceptance command with its newest receipts.
type Check struct {
	Command  string             `json:"command"`
	Standing Standing           `json:"standing"`
	Receipt  *centurion.Receipt `json:"receipt,omitempty"` // the most significant one; nil if it was never run
	Final    *centurion.Receipt `json:"final,omitempty"`   // the newest on the finished work, if it is another one
	Times    int                `json:"times"`             // number of receipts
	Former   *Former            `json:"former,omitempty"`  // set if its item no longer has the check, which then does not count
	Early    int                `json:"early,omitempty"`   // failed runs of a check of the mission before its branch first passed it
}

// Doubt is something for a person to check: a check, or files that an item's work changed.
type Doubt struct {
	Item    string   `json:"item,omitempty"`
	Command string   `json:"command,omitempty"`
	Kind    string   `json:"kind"` // unproven, flaky, failed, not run, unchecked, weakened, changed or outside its files
	Why     []string `json:"why,omitempty"`
}

// Command is a command line for the person's next step, and its effect.
type Command struct {
	Line string `json:"line"`
	What string `json:"what"`
}

// New makes a report. It does not modify d.
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

// wall is the time from the mission's start to its end, or until now, in milliseconds.
func wall(d Data) int64 {
	if d.Mission.Started.IsZero() {
		return 0
	}
	end := d.Mission.Updated
	if d.Mission.Status.Alive() {
		end = d.Now
	}
	for _, e := range slices.Backward(d.Events) { // its record changes later, too, such as at a merge
		if e.Type.EndsMission() && !d.Mission.Status.Alive() {
			end = e.Time
			break
		}
	}
	return max(end.Sub(d.Mission.Started.Time).Milliseconds(), 0)
}

// plan is the given plan, or its last state in the events, with the statuses of the tasks.
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
			out[i].Status = "done" // nothing else completes it
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
		for _, r := range d.Receipts { // removed commands have left receipts, too
			if r.Item == p.ID && len(p.Verify) == 0 {
				commands = text.Union(commands, r.Command)
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

// isReverted reports whether the newest work on an item was reverted.
func isReverted(item string, tasks []centurion.Task) (is bool) {
	for _, t := range tasks {
		if t.Item == item && t.Status == centurion.TaskCompleted && !t.Reviews {
			is = t.Reverted()
		}
	}
	return is
}

// checkOf collects the receipts of one command. Its grade is that of the newest receipt with more than one passed run; the newest of
// all tells whether it still passes.
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
	case slices.Contains(standings, Standing(proof.Proof)):
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
	w := 0
	for _, c := range checks {
		w = max(w, slices.Index(standings, c.Standing))
	}
	return standings[w]
}

// ownChecks are the mission's own checks, and commands with receipts but no item.
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
	for _, command := range text.Union(nil, commands...) {
		c := checkOf(command, d.Receipts, func(centurion.Receipt) bool { return true })
		c.Former = dropped[command]
		out = append(out, c)
	}
	return out
}

// countEarly counts failed runs of the mission's own checks that happened only because other items were not merged yet.
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
	by := map[Standing]*int{Proven: &c.Proven, Regression: &c.Regression, Passed: &c.Passed, Unproven: &c.Unproven, Flaky: &c.Flaky,
		Failed: &c.Failed, Reviewed: &c.Reviewed, Unchecked: &c.Unchecked, NotRun: &c.NotRun, Reverted: &c.Reverted}
	for _, it := range items {
		if it.Status == "done" {
			c.Done++
		}
		*by[it.Standing]++
	}
	return c
}
