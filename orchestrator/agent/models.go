package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"centurion"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/recovery"
	"centurion/session"
	"centurion/text"
	"centurion/tools"
)

// Model is a model that sessions can talk to.
type Model struct {
	Client  session.Model
	Ref     centurion.ModelRef
	Price   *centurion.Price
	MaxOut  int             // tokens of one answer; 0 leaves it to the endpoint
	Context int             // tokens of its window; 0 means unknown
	Media   centurion.Media // which files it takes
	// Closed returns for how long the provider lets nobody ask this model, because it said "too many requests"; nil means
	// that it never does.
	Closed func() time.Duration
}

// Models finds the models that sessions talk to.
type Models struct {
	Model func(ref string) (Model, error) // by its "provider/model" name; "" is the project's default
	// Fallback lists what a session of an agent whose own model is the given one goes on with when that fails, as
	// "provider/model", in the order of preference; nil means nothing.
	Fallback func(agent, model string) []string
	Recovery recovery.Policy // how often, and after which wait, a failed turn is repeated
}

// chain lists what stands in for a model of an agent.
func (m Models) chain(agent string, own centurion.ModelRef) []string {
	if m.Fallback == nil {
		return nil
	}
	return slices.Clone(m.Fallback(agent, own.String()))
}

// Free returns the model that a new session begins with, and why it is not its own one: its own one, unless its provider lets nobody
// ask it for longer than one waits for a rate limit; then the first behind it that can be asked now.
func (m Models) Free(agent string, own centurion.ModelRef) (centurion.ModelRef, string) {
	others := m.chain(agent, own)
	if len(others) == 0 {
		return own, ""
	}
	closed := func(name string) (centurion.ModelRef, time.Duration, bool) {
		model, err := m.Model(name)
		if err != nil {
			return model.Ref, 0, false
		}
		if model.Closed == nil {
			return model.Ref, 0, true
		}
		return model.Ref, model.Closed(), true
	}
	_, left, _ := closed(own.String())
	if left <= cmp.Or(m.Recovery.RateLimitWait, recovery.DefaultRateLimitWait) {
		return own, ""
	}
	for _, name := range others {
		if ref, wait, ok := closed(name); ok && wait == 0 {
			return ref, fmt.Sprintf("the provider lets nobody ask %s for %s; going on with %s", own, text.Took(left.Round(time.Second)), ref)
		}
	}
	return own, ""
}

// ModelOf returns the model that a task's next attempt talks to: what its session has, or what a new one is given, with
// its own one, and why it is not that.
func (m *Sessions) ModelOf(ctx context.Context, task string) (ref, own centurion.ModelRef, why string, err error) {
	t, err := m.st.Store.Task(ctx, task)
	if err != nil {
		return ref, own, "", err
	}
	if t.Session != "" {
		rec, err := m.st.Store.Session(ctx, t.Session)
		if err != nil || rec.Model == nil {
			return ref, own, "", err
		}
		return centurion.ModelRef{Provider: rec.Model.Provider, ID: rec.Model.ID}, rec.Own(), "", nil
	}
	agent, err := m.st.CarriesOut(t)
	if err != nil {
		return ref, own, "", err
	}
	parent, err := m.st.Store.Session(ctx, t.Parent)
	if err != nil {
		return ref, own, "", err
	}
	own = parent.Own()
	if name := agent.Model; name != "" {
		model, err := m.cfg.Model(name)
		if err != nil {
			return ref, own, "", err
		}
		own = model.Ref
	}
	ref, why = m.cfg.Free(agent.Name, own)
	return ref, own, why, nil
}

// Portion is what is reserved for a task when it is started: what a small first request of its agent may cost.
// Nothing where nothing is limited.
func (m *Sessions) Portion(t centurion.Task) budget.Amount {
	if m.reserves.State().Limit == (budget.Amount{}) {
		return budget.Amount{}
	}
	rec := m.st.Spent.Load()
	agent, err := m.st.CarriesOut(t)
	if err != nil {
		return budget.Amount{budget.Rounds: 1} // it will fail when it starts, and is told then
	}
	model, err := m.cfg.Model(cmp.Or(agent.Model, rec.Options.Model))
	if err != nil {
		return budget.Amount{budget.Rounds: 1}
	}
	bytes := len(agent.Prompt) + len(t.Prompt)
	if held, err := tools.Named(agent.Tools...); err == nil {
		for _, t := range held {
			bytes += len(t.Name()) + len(t.Description()) + schemaBytes
		}
	}
	return budget.Portion(model.Price, session.TokensOf(bytes))
}

// schemaBytes is how long the schema of a tool is, roughly.
const schemaBytes = 500

// Cover waits until what a task needs at its start is reserved for it.
func (m *Sessions) Cover(ctx context.Context, r *state.Run) error {
	if r.Covered {
		return nil
	}
	t := r.Now.Load()
	return m.reserves.Cover(ctx, r.Account, m.Portion(*t), func(why string) (func() error, error) {
		r.Place.Leave()
		r.Place = nil
		return func() error { return nil }, m.st.MoveRun(ctx, r, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = why })
	})
}
