package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/recovery"
	"centurion/store"
	"centurion/text"
)

// healthy ends a row of failures: a good answer has come, or what comes next begins anew.
func (c *conversation) healthy() { c.streak, c.failed = recovery.Streak{}, nil }

// fallbacks lists what the session can go on with: the models behind its own one that this row of failures has not ended
// with, without those that cannot be had.
func (c *conversation) fallbacks() []string {
	rec := c.sess.Record()
	now := c.m.h.modelName(c)
	return slices.DeleteFunc(c.m.h.chain(rec.Agent, rec.Own()), func(name string) bool {
		if name == now || slices.Contains(c.failed, name) {
			return true
		}
		_, err := c.m.h.cfg.Model(name)
		return err != nil
	})
}

// chain lists what stands in for a model of an agent.
func (h *Host) chain(agent string, own centurion.ModelRef) []string {
	if h.cfg.Fallback == nil {
		return nil
	}
	return slices.Clone(h.cfg.Fallback(agent, own.String()))
}

// fallBack goes on with another model: recorded, told, and with lanes of the other one's provider. The row of failures
// begins anew, but for the models that it has ended with.
func (c *conversation) fallBack(ctx context.Context, d recovery.Decision, cause error) error {
	model, err := c.m.h.cfg.Model(d.Model)
	if err != nil {
		return err
	}
	failed := append(slices.Clone(c.failed), c.m.h.modelName(c))
	e := centurion.Event{Type: centurion.EventSessionModel, Mission: c.m.st.ID, Session: c.id(), Data: event.Data(event.ModelData{Agent: c.agent.Name, From: c.m.h.modelName(c), To: model.Ref.String(), Kind: d.Kind, Reason: d.Reason, Error: cause.Error()})}
	if c.task != nil {
		e.Task = c.task.ID
	}
	err = c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.current(); err != nil {
			return err
		}
		if err := c.sess.PutModel(tx, model.Ref, centurion.Retry{At: centurion.Now(), Failed: failed}); err != nil {
			return err
		}
		_, err := tx.Append(e)
		return err
	})
	if err != nil {
		return err
	}
	c.healthy()
	c.failed = failed
	c.talkTo(model)
	if err := c.load(ctx, c.id()); err != nil {
		return err
	}
	if !c.slot.Move(model.Ref) {
		return nil
	}
	c.m.st.Notify()
	if err := c.m.st.MoveRun(ctx, c.task, centurion.TaskWaiting, func(t *centurion.Task) { t.Reason = "a free place at " + model.Ref.String() }); err != nil {
		return err
	}
	if err := c.slot.Acquire(ctx); err != nil {
		return err
	}
	return c.running(ctx)
}

// talkTo makes a model the one that the session is opened with.
func (c *conversation) talkTo(m Model) {
	c.cfg.Model, c.cfg.Ref, c.cfg.Price = asked{c.pulse.Heard(m.Client), &c.live}, m.Ref, m.Price
	c.cfg.MaxOut, c.cfg.Window = m.MaxOut, m.Context
	c.cfg.Media, c.cfg.Call.Media = m.Media, m.Media
}

// errAsk ends a turn that only a person can let go on.
type errAsk struct{ why *centurion.Error }

func (e *errAsk) Error() string { return e.why.Error() }

func (e *errAsk) Unwrap() error { return e.why }

// giveUp ends a row of failures that cannot be recovered: whoever lets the session go on begins a new one.
func (c *conversation) giveUp(ctx context.Context, d recovery.Decision, cause error) error {
	c.healthy()
	err := c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := c.current(); err != nil {
			return err
		}
		return c.sess.ClearRetry(tx)
	})
	if err != nil {
		return err
	}
	failed := &centurion.Error{Kind: d.Kind, Err: cause, Hint: d.Hint}
	if d.Action == recovery.AskPerson {
		reason := d.Reason
		if said := cause.Error(); !strings.Contains(reason, said) {
			reason += ": " + said
		}
		failed = &centurion.Error{Kind: d.Kind, Msg: reason, Hint: failed.Hint}
		return &errAsk{failed}
	}
	return failed
}

// modelOf returns the model that a task's next attempt talks to: what its session has, or what a new one is given, with
// its own one, and why it is not that.
func (m *mission) modelOf(ctx context.Context, task string) (ref, own centurion.ModelRef, why string, err error) {
	t, err := m.h.cfg.Store.Task(ctx, task)
	if err != nil {
		return ref, own, "", err
	}
	if t.Session != "" {
		rec, err := m.h.cfg.Store.Session(ctx, t.Session)
		if err != nil || rec.Model == nil {
			return ref, own, "", err
		}
		return centurion.ModelRef{Provider: rec.Model.Provider, ID: rec.Model.ID}, rec.Own(), "", nil
	}
	agent, err := m.st.CarriesOut(t)
	if err != nil {
		return ref, own, "", err
	}
	parent, err := m.h.cfg.Store.Session(ctx, t.Parent)
	if err != nil {
		return ref, own, "", err
	}
	own = parent.Own()
	if name := agent.Model; name != "" {
		model, err := m.h.cfg.Model(name)
		if err != nil {
			return ref, own, "", err
		}
		own = model.Ref
	}
	ref, why = m.h.free(agent.Name, own)
	return ref, own, why, nil
}

// free returns the model that a new session begins with: its own one, unless its provider lets nobody ask it for longer
// than one waits for a rate limit; then the first behind it that can be asked now.
func (h *Host) free(agent string, own centurion.ModelRef) (centurion.ModelRef, string) {
	others := h.chain(agent, own)
	if len(others) == 0 {
		return own, ""
	}
	closed := func(name string) (centurion.ModelRef, time.Duration, bool) {
		m, err := h.cfg.Model(name)
		if err != nil {
			return m.Ref, 0, false
		}
		if m.Closed == nil {
			return m.Ref, 0, true
		}
		return m.Ref, m.Closed(), true
	}
	_, left, _ := closed(own.String())
	if left <= cmp.Or(h.cfg.Recovery.RateLimitWait, recovery.DefaultRateLimitWait) {
		return own, ""
	}
	for _, name := range others {
		if ref, wait, ok := closed(name); ok && wait == 0 {
			return ref, fmt.Sprintf("the provider lets nobody ask %s for %s; going on with %s", own, text.Took(left.Round(time.Second)), ref)
		}
	}
	return own, ""
}

// beganWith tells that a new session does not begin with the model that it was given.
func beganWith(tx *store.Tx, rec *centurion.Session, why string) error {
	_, err := tx.Append(centurion.Event{Type: centurion.EventSessionModel, Mission: rec.Metadata.Mission, Session: rec.ID, Task: rec.Metadata.Task,
		Data: event.Data(event.ModelData{Agent: rec.Agent, From: rec.Own().String(), To: rec.Model.Provider + "/" + rec.Model.ID,
			Kind: centurion.KindRateLimit, Reason: why})})
	return err
}

// remodel gives sessions whose own model is one another one, from their next request on.
func remodel(tx *store.Tx, sessions []centurion.Session, from, to string) error {
	for _, s := range sessions {
		if s.Model == nil || s.Own().String() != from {
			continue
		}
		rec, err := tx.Session(s.ID)
		if err != nil {
			return err
		}
		provider, id, _ := strings.Cut(to, "/")
		rec.Model, rec.Metadata.OwnModel = &centurion.SessionModel{ID: id, Provider: provider}, nil
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
	}
	return nil
}
