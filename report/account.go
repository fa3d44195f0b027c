package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Spent is the usage of one agent or one model.
type Spent struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"` // answered requests
	centurion.Usage
}

// other is the row for usage of the mission that no answer reports.
const other = "(not told by an answer)"

// answer is the event of a finished answer, and its session's model at that time.
type answer struct {
	view.Fact
	model string
}

// spending sums the usage of models by agent and by model. Usage of the mission beyond that, such as interrupted answers, gets a row of
// its own, so that the sums agree.
func spending(d Data) (agents, models []Spent) {
	byAgent, byModel := map[string]Spent{}, map[string]Spent{}
	add := func(to map[string]Spent, name string, u centurion.Usage, n int) {
		s := to[name]
		to[name] = Spent{Name: name, Requests: s.Requests + n, Usage: s.Usage.Plus(u)}
	}
	var sum centurion.Usage
	for _, a := range answers(d) {
		add(byAgent, cmp.Or(a.Agent, "unknown"), a.Usage, 1)
		add(byModel, cmp.Or(a.model, "unknown"), a.Usage, 1)
		sum = sum.Plus(a.Usage)
	}
	if rest := minus(d.Mission.Usage, sum); rest.Tokens.Total() > 0 || rest.USD > 1e-6 {
		add(byAgent, other, rest, 0)
		add(byModel, other, rest, 0)
	}
	return dearest(byAgent), dearest(byModel)
}

// answers returns each answer of a model once, with its session's model at that time.
func answers(d Data) map[string]answer {
	models := modelsOf(d)
	out := map[string]answer{}
	for _, e := range d.Events {
		models.see(e)
		if e.Type != centurion.EventMessageUpdated {
			continue
		}
		a, err := view.Decode(e)
		if err != nil || a.Usage.Tokens.Total() == 0 && a.Usage.USD == 0 {
			continue
		}
		out[e.Session+"/"+a.Message] = answer{a, models[e.Session]}
	}
	return out
}

// minus is a-b, with no field below zero.
func minus(a, b centurion.Usage) centurion.Usage {
	t, u := a.Tokens, b.Tokens
	return centurion.Usage{USD: max(a.USD-b.USD, 0), Unpriced: a.Unpriced, Tokens: centurion.Tokens{Input: max(t.Input-u.Input, 0),
		Output: max(t.Output-u.Output, 0), Reasoning: max(t.Reasoning-u.Reasoning, 0),
		Cache: centurion.CacheUsage{Read: max(t.Cache.Read-u.Cache.Read, 0), Write: max(t.Cache.Write-u.Cache.Write, 0)}}}
}

func dearest(by map[string]Spent) []Spent {
	out := slices.AppendSeq([]Spent{}, maps.Values(by))
	slices.SortFunc(out, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(b.USD, a.USD), cmp.Compare(b.Tokens.Total(), a.Tokens.Total()), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// File is a changed file with the beginning of its patch.
type File struct {
	centurion.FileChange
	Patch string `json:"patch,omitempty"` // its hunks, at most maxPatch bytes
	Cut   bool   `json:"cut,omitempty"`   // Patch is shortened
}

// Lines formats the added and deleted lines, "" if unknown.
func (f File) Lines() string {
	switch {
	case f.Binary:
		return "binary"
	case f.Added+f.Deleted == 0:
		return ""
	}
	return fmt.Sprintf("+%d −%d", f.Added, f.Deleted)
}

const (
	maxPatch   = 6 << 10   // bytes of one file's patch
	maxPatches = 200 << 10 // bytes of all patches, so that a browser opens the page at once
)

func files(all []centurion.FileDiff) []File {
	out := []File{}
	left := maxPatches
	for _, d := range all {
		f := File{FileChange: d.FileChange}
		var b strings.Builder
		for _, h := range d.Hunks {
			b.WriteString(h.Header + "\n" + h.Text)
		}
		f.Patch = b.String()
		if room := min(maxPatch, left); len(f.Patch) > room {
			f.Patch, f.Cut = wholeLines(f.Patch, room), true
		}
		left -= len(f.Patch)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// wholeLines returns the first whole lines of s, at most n bytes.
func wholeLines(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:strings.LastIndexByte(s[:n], '\n')+1]
}

// Decision is an ask with its answer.
type Decision struct {
	Time    centurion.Time `json:"time"`
	Type    string         `json:"type"` // permission, question or plan
	Agent   string         `json:"agent,omitempty"`
	Address string         `json:"address,omitempty"` // of that agent
	Task    string         `json:"task,omitempty"`    // the item and the title of that agent's task
	Asked   string         `json:"asked"`
	Answer  string         `json:"answer,omitempty"` // empty while it is open
	By      string         `json:"by,omitempty"`     // person, policy, timeout, abort or shutdown
	WaitMS  int64          `json:"wait_ms,omitempty"`
}

// of names the asking agent, after "of ".
func (x Decision) of() string {
	task := text.When(!strings.HasPrefix(x.Asked, x.Task), x.Task) // a question of the host's own names it already
	return text.When(x.Agent != "", whole(x.Agent, x.Address, task))
}

// decisions are the asks of a mission in order.
func decisions(d Data) []Decision {
	out := []Decision{}
	open := map[string]int{} // by the ask's id
	for _, e := range d.Events {
		switch e.Type {
		case centurion.EventPermissionAsked, centurion.EventQuestionAsked, centurion.EventPlanAsked:
			a, err := view.Decode(e)
			if err != nil {
				continue
			}
			what := cmp.Or(a.Text, a.Title)
			if a.Permission != "" {
				what = cmp.Or(strings.Join(a.Patterns, ", "), a.Title)
				if a.Permission == "bash" { // as written, not in the parts that the rules check
					what = cmp.Or(a.Title, what)
				}
				what = strings.TrimSuffix(a.Permission+": "+what, ": ")
			}
			open[a.ID] = len(out)
			out = append(out, Decision{Time: e.Time, Type: a.Type, Agent: a.Agent, Address: a.Address, Task: taskOf(d, e), Asked: cmp.Or(what, "the plan"), Answer: a.Answer, By: a.By})
		case centurion.EventPermissionReplied, centurion.EventQuestionAnswered, centurion.EventPlanAnswered:
			a, err := view.Decode(e)
			i, asked := open[a.ID]
			if err != nil || !asked {
				continue
			}
			out[i].Answer, out[i].By = a.Answer, a.By
			out[i].WaitMS = max(e.Time.Sub(out[i].Time.Time).Milliseconds(), 0)
		}
	}
	return out
}

// Trouble is a failure and its consequence.
type Trouble struct {
	Time   centurion.Time `json:"time"`
	Where  string         `json:"where"` // the item, the task's title, or the mission
	What   string         `json:"what"`
	Then   string         `json:"then"`             // what happened next
	Repeat int            `json:"repeat,omitempty"` // how often the same followed immediately
}

// repeated describes the failure before a retry of a task or a request, and the retry.
func repeated(r view.Fact) (what, then string) {
	then = triedAgain + suffix(" after ", span(r.WaitMS))
	if r.WaitMS == 0 && r.Attempt > 1 {
		then = triedAgain + ", attempt " + itoa(r.Attempt)
	}
	return cmp.Or(r.Error.Text, r.Reason, "the attempt before ended early"), then
}

// troubles are the failures, with what the host or the task did about them.
func troubles(d Data) []Trouble {
	out := []Trouble{}
	waits, attempts, retries := holds(d), d.attempts(), retriedErrors(d.Events)
	for i, e := range d.Events {
		t := Trouble{Time: e.Time, Where: place(d, e)}
		f := view.Read(e)
		switch e.Type {
		case centurion.EventTaskRetrying, centurion.EventProviderRetry:
			if _, ok := attempts[i]; ok {
				continue // reported with the mission's resume
			}
			if _, ok := held(e); ok {
				t = waits[i]
				break
			}
			t.What, t.Then = repeated(f)
			if _, ok := retries.told[i]; ok {
				t.Then += "; " + fate(d, e, i)
			}
		case centurion.EventSessionError:
			if retries.by[i] > 0 {
				continue // reported with its consequence
			}
			t.What, t.Then = cmp.Or(f.Error.Text, string(f.Kind)), fate(d, e, i)
		case centurion.EventSessionModel:
			t.What, t.Then = cmp.Or(f.Error.Text, f.Reason), text.When(f.Kind != "", "continued with "+f.To+" instead of "+f.From) // else a person wanted it
		case centurion.EventTaskStalled:
			t.What, t.Then = "nothing came from it for "+span(f.SilentMS)+": "+f.Last, "its turn was cut off and tried again"
		case centurion.EventTaskFenced:
			t.What, t.Then = "attempt "+itoa(f.Attempt)+" was superseded and still wanted to write: "+f.Refused, "it was refused"
		case centurion.EventMissionResumed:
			if alive(d.Events[:i]) {
				t.What, t.Then = cmp.Or(f.Reason, "its host went away"), "a new host continued from the stored state"+begun(attempts, i)
			}
		case centurion.EventVerifyFailed:
			if !f.Early {
				t.What, t.Then = "check failed: "+f.Command+suffix(": ", cmp.Or(f.Error.Text, redLine(f.Output))), fate(d, e, i)
			}
		case centurion.EventMergeConflict:
			t.What, t.Then = "conflict in "+strings.Join(f.Files, ", "), fate(d, e, i)
		case centurion.EventBudgetExceeded:
			t.What, t.Then = "the limit "+f.Limit+" was reached", fate(d, e, i)
		case centurion.EventTaskFailed, centurion.EventTaskBlocked:
			t.What, t.Then = text.If(f.TaskError() != nil, f.Error.Message, f.Reason), stopped(d, e)
		default:
			t.What, t.Then = slip(d, e, i)
		}
		if t.Then == "" {
			continue
		}
		if n := len(out); n > 0 && again(out[n-1], t) {
			out[n-1].Repeat++
			out[n-1].Then = t.Then
			continue
		}
		out = append(out, t)
	}
	return out
}

// triedAgain begins the consequence of a retried attempt or request.
const triedAgain = "tried again"

// again reports whether a trouble repeats the one before it: retries of the same thing differ only in their number and delay.
func again(before, t Trouble) bool {
	return before.Where == t.Where && before.What == t.What &&
		(before.Then == t.Then || strings.HasPrefix(before.Then, triedAgain) && strings.HasPrefix(t.Then, triedAgain))
}

// alive reports whether the mission was running after these events, as far as they show.
func alive(events []centurion.Event) bool {
	for _, e := range slices.Backward(events) {
		switch {
		case e.Type.EndsMission():
			return false
		case e.Type == centurion.EventMissionStarted || e.Type == centurion.EventMissionResumed:
			return true
		}
	}
	return false
}

// fate is what later happened to the task or mission of the event with index i.
func fate(d Data, e centurion.Event, i int) string {
	for _, later := range d.Events[i+1:] {
		if e.Task != "" && later.Task == e.Task {
			switch later.Type {
			case centurion.EventTaskCompleted:
				return "recovered: the task was completed"
			case centurion.EventTaskFailed, centurion.EventTaskBlocked, centurion.EventTaskCancelled:
				return "the task ended: " + strings.TrimPrefix(string(later.Type), "task.")
			}
		}
		if e.Task == "" && later.Type.EndsMission() {
			return "the mission: " + strings.TrimPrefix(string(later.Type), "mission.")
		}
	}
	return "the task continued"
}

// place describes where an event happened, in a person's terms.
func place(d Data, e centurion.Event) string {
	t := d.task(e)
	if t == nil {
		return cmp.Or(e.Task, "the mission")
	}
	return strings.TrimSpace(t.Item + " " + cmp.Or(t.Title, t.ID))
}

// task returns the task of an event, or nil.
func (d Data) task(e centurion.Event) *centurion.Task {
	i := slices.IndexFunc(d.Tasks, func(t centurion.Task) bool { return e.Task != "" && t.ID == e.Task })
	if i < 0 {
		return nil
	}
	return &d.Tasks[i]
}

func suffix(before, s string) string { return text.When(s != "", before+s) }
