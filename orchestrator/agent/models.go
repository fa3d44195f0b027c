package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"centurion"
	"centurion/acp"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/state"
	"centurion/recovery"
	"centurion/session"
	"centurion/text"
	"centurion/tools"
)

// Model is a model for sessions.
type Model struct {
	Client  session.Model
	Ref     centurion.ModelRef
	Price   *centurion.Price
	MaxOut  int             // limit of an answer in tokens; 0 leaves it to the endpoint
	Context int             // window in tokens; 0 if unknown
	Media   centurion.Media // the accepted file types
	Outside *acp.Program    // takes the turns instead of Client; nil for a model
	// Closed returns for how long the provider refuses this model after "too many requests"; nil means never.
	Closed func() time.Duration
}

// Models finds the models of sessions.
type Models struct {
	Model func(ref string) (Model, error) // by its "provider/model" name; "" is the project's default
	// Fallback lists the models ("provider/model", in order of preference) that replace an agent's own model when it fails; nil means
	// none.
	Fallback func(agent, model string) []string
	Recovery recovery.Policy // the number of retries of a failed turn, and their delays
}

// chain lists the fallbacks of an agent's model.
func (m Models) chain(agent string, own centurion.ModelRef) []string {
	if m.Fallback == nil {
		return nil
	}
	return slices.Clone(m.Fallback(agent, own.String()))
}

// Free returns the model for a new session, and the reason if it is not the session's own. It is the own model unless its provider
// refuses requests for longer than a rate limit is waited for; then it is the first available fallback.
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
			return ref, fmt.Sprintf("the provider accepts no requests for %s for %s; using %s", own, text.Took(left.Round(time.Second)), ref)
		}
	}
	return own, ""
}

// ModelOf returns the model of a task's next attempt: the current one of its session, or the one for a new session. own is the
// session's own model, and why the reason for another one.
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

// Portion is the reservation for a task's start: the cost of a small first request of its agent. It is zero if nothing is limited.
func (m *Sessions) Portion(t centurion.Task) budget.Amount {
	if m.reserves.State().Limit == (budget.Amount{}) {
		return budget.Amount{}
	}
	rec := m.st.Spent.Load()
	agent, err := m.st.CarriesOut(t)
	if err != nil {
		return budget.Amount{budget.Rounds: 1} // the task will fail at its start and report that
	}
	model, err := m.cfg.Model(cmp.Or(agent.Model, rec.Options.Model))
	if err != nil {
		return budget.Amount{budget.Rounds: 1}
	}
	if model.Outside != nil { // its requests are not seen
		return budget.Amount{}
	}
	bytes := len(agent.Prompt) + len(t.Prompt)
	if held, err := tools.Named(agent.Tools...); err == nil {
		for _, t := range held {
			bytes += len(t.Name()) + len(t.Description()) + schemaBytes
		}
	}
	for _, t := range tools.HeldExternal(m.cfg.External, agent.HoldsExternal) {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return budget.Portion(model.Price, session.TokensOf(bytes))
}

// schemaBytes is the rough size of a tool's schema.
const schemaBytes = 500

// Cover waits until the initial portion of a task is reserved.
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
