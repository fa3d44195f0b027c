package toolserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
	"centurion/text"
)

// The results of tools. No list of them is nil: clients hold a result against its schema.

// Seen is a mission as a client sees it.
type Seen struct {
	ID        string  `json:"id"`
	Goal      string  `json:"goal" jsonschema:"its beginning"`
	Status    string  `json:"status" jsonschema:"planning, running, paused, blocked, completed, failed or cancelled"`
	Verdict   string  `json:"verdict" jsonschema:"the status with what it is worth"`
	Reason    string  `json:"reason,omitempty"`
	Done      int     `json:"items_done"`
	Items     int     `json:"items" jsonschema:"items of its plan"`
	Asks      int     `json:"open_questions" jsonschema:"see list_questions"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"cost_usd"`
	CostKnown bool    `json:"cost_known" jsonschema:"false if a model has no known price"`
	Seconds   int64   `json:"seconds"`
	Branch    string  `json:"branch,omitempty" jsonschema:"the git branch with its work"`
}

// goalShown is how many bytes of a goal a client sees.
const goalShown = 200

// seen describes a mission. A plan that cannot be read has no items.
func (p *Project) seen(ctx context.Context, m server.Mission) Seen {
	todo, _ := call(ctx, p, func(api server.API) (event.TodoData, error) { return api.Todo(ctx, m.ID) })
	return Seen{ID: m.ID, Goal: centurion.Clip(text.Clean(m.Goal), goalShown), Status: string(m.Status), Verdict: m.Status.Word(m.Evidence, m.Options.Profile),
		Reason: m.Reason, Done: todo.Done, Items: todo.Total(), Asks: m.Asks, Tokens: m.Tokens.Total(), USD: m.USD, CostKnown: !m.Unpriced,
		Seconds: m.DurationMS / 1000, Branch: m.Branch}
}

// line is the mission in one line.
func (s Seen) line() string {
	return text.Dots(s.Verdict, text.When(s.Items > 0, fmt.Sprintf("%d of %s done", s.Done, centurion.Count(s.Items, "item"))),
		text.When(s.Asks > 0, centurion.Count(s.Asks, "open question")), text.Tokens(s.Tokens)+" tokens", text.If(s.CostKnown, text.USD(s.USD), "$?"))
}

// Missions are the missions of the project.
type Missions struct {
	Missions []Seen `json:"missions"`
	More     int    `json:"more" jsonschema:"older missions that are not listed"`
}

// Todo is a mission's plan.
type Todo struct {
	Mission string           `json:"mission"`
	Items   []event.PlanItem `json:"items"`
}

// items are the items of a mission's plan; none if it has no plan.
func (p *Project) items(ctx context.Context, m server.Mission) (items []event.PlanItem, err error) {
	if m.HasPlan {
		items, err = p.Plan(ctx, m.ID)
	}
	if centurion.KindOf(err) == centurion.KindNotFound {
		err = nil
	}
	return append([]event.PlanItem{}, items...), err
}

// Check is the newest run of a check.
type Check struct {
	Item    string `json:"item,omitempty"`
	Command string `json:"command"`
	Passed  bool   `json:"passed"`
	Proof   string `json:"proof,omitempty" jsonschema:"proven means that it fails without the work"`
	Why     string `json:"why,omitempty"`
}

// checks are the newest runs of each check, oldest first.
func checks(all []centurion.Receipt) []Check {
	out := []Check{}
	for _, r := range all {
		out = slices.DeleteFunc(out, func(c Check) bool { return c.Item == r.Item && c.Command == r.Command })
		out = append(out, Check{r.Item, r.Command, r.Passed, string(r.Proof), cmp.Or(r.Why, r.Error)})
	}
	return out
}

// Result is what has become of a mission.
type Result struct {
	Mission   Seen                   `json:"mission"`
	Summary   string                 `json:"summary" jsonschema:"the last words of the mission's own agent; for delegate, its answer"`
	Evidence  string                 `json:"evidence"`
	Checks    []Check                `json:"checks"`
	Files     []centurion.FileChange `json:"changed_files" jsonschema:"once the mission rests"`
	Open      []event.PlanItem       `json:"open_items"`
	Questions []Question             `json:"questions"`
	Next      string                 `json:"next" jsonschema:"what to do now"`
}

// result collects what is known of a mission.
func (p *Project) result(ctx context.Context, id string) (Result, error) {
	m, err := p.mission(ctx, id)
	if err != nil {
		return Result{}, err
	}
	r := Result{Mission: p.seen(ctx, m), Summary: m.Summary, Files: []centurion.FileChange{}}
	items, _ := p.items(ctx, m) // mission_todo says why they cannot be read
	r.Open = slices.DeleteFunc(items, func(it event.PlanItem) bool { return it.Status == "done" || it.Status == "cancelled" })
	err = p.Call(ctx, func(api server.API) error {
		receipts, err := api.Receipts(ctx, m.ID)
		if r.Checks = checks(receipts); m.Status.Alive() || err != nil {
			return err
		}
		change, derr := api.Diff(ctx, m.ID, takeover.DiffOptions{})
		if r.Files = append(r.Files, change.Files...); centurion.KindOf(derr) == centurion.KindConflict {
			derr = nil // it has changed nothing
		}
		return derr
	})
	if err == nil {
		r.Questions, err = p.asks(ctx, m.ID)
	}
	if m.Options.Profile == "" { // an answer proves nothing, and need not
		r.Evidence = m.Evidence.Words()
	}
	r.Next = next(m, len(r.Questions), len(r.Files))
	return r, err
}

// next says what a client can do now.
func next(m server.Mission, asks, files int) string {
	switch {
	case m.Status.Alive() && asks > 0:
		return "an agent waits for an answer; then call mission_result again"
	case m.Status.Alive():
		return "it continues; call mission_result with wait_seconds"
	case m.Status == centurion.MissionCompleted && m.Options.Profile != "":
		return "continue this conversation with send and wait_seconds"
	case m.Status == centurion.MissionCompleted && m.Merged == nil && m.Branch != "" && files > 0:
		return "the user merges the work with: centurion merge " + m.ID
	case m.Status.Ended():
		return "nothing is left to do"
	}
	if m.Status == centurion.MissionBlocked {
		return "tell it what it needs with send, which continues it"
	}
	return "resume continues it; the user raises a limit with: centurion resume " + m.ID
}

// Question is an ask of an agent.
type Question struct {
	ID      string   `json:"id"`
	Type    string   `json:"type" jsonschema:"question, permission or plan"`
	Mission string   `json:"mission"`
	Agent   string   `json:"agent,omitempty"`
	Text    string   `json:"text" jsonschema:"the question, or all of what would be approved"`
	Why     string   `json:"why,omitempty"`
	Details string   `json:"details,omitempty" jsonschema:"the call that would be approved, as JSON"`
	Options []string `json:"options"`
	Answer  string   `json:"answer_with"`
}

// Questions are open asks.
type Questions struct {
	Questions []Question `json:"questions"`
}

// asks lists the open asks of a mission, or of all for "". What is approved is shown with every character of it.
func (p *Project) asks(ctx context.Context, mission string) ([]Question, error) {
	all, err := call(ctx, p, func(api server.API) ([]store.Ask, error) { return api.Asks(ctx) })
	out := []Question{}
	for _, a := range all {
		if mission != "" && a.Mission != mission {
			continue
		}
		q := Question{ID: a.ID, Type: a.Type, Mission: a.Mission, Agent: strings.TrimSpace(a.Agent + " " + a.Address), Text: a.Text, Options: append([]string{}, a.Options...),
			Answer: "a text" + text.When(len(a.Options) > 0, " or the number of an option, from 1")}
		if a.Type != store.AskQuestion {
			q.Text, q.Why, q.Answer = text.Escape(text.Dots(a.Permission, cmp.Or(a.Title, strings.Join(a.Patterns, " ")))), a.Text, "once or deny"
			if details, merr := json.Marshal(a.Metadata); merr == nil && len(a.Metadata) > 0 {
				q.Details = string(text.EscapeJSON(details))
			}
		}
		if !p.Own(a.Mission) {
			q.Answer = "nothing: it was not started here, so only the user answers it"
		}
		out = append(out, q)
	}
	return out, err
}

// Done is the outcome of a call that has no other.
type Done struct {
	Mission string `json:"mission"`
	Said    string `json:"said"`
}
