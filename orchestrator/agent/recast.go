package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/tools"
)

// A message may name another agent or model than its session has. Both change in the transaction that takes the message in, so that a host
// that dies leaves the old ones or the new ones, and before the request that has the message.

// errRecast ends a turn in which the session has got another agent or model; it is continued with that.
var errRecast = errors.New("the session has another agent or model")

// cast is how a conversation changes with the messages that it takes in.
type cast struct {
	c      *Conversation
	begins map[string]func(*centurion.Session) // by the agent that takes over
	now    centurion.Session                   // after the messages
}

// castOf prepares what the agents begin with that messages name, if one of them is not the session's own.
func castOf(ctx context.Context, c *Conversation, waiting []store.Delivery) (*cast, error) {
	k := &cast{c, map[string]func(*centurion.Session){}, c.Sess.Record()}
	if !slices.ContainsFunc(waiting, func(d store.Delivery) bool { return d.Agent != "" && d.Agent != k.now.Agent }) {
		return k, nil
	}
	for _, d := range waiting {
		if d.Agent == "" || k.begins[d.Agent] != nil {
			continue
		}
		begins, err := c.m.above.Begins(ctx, d.Agent)
		if err != nil {
			return nil, err
		}
		k.begins[d.Agent] = begins
	}
	return k, nil
}

// take gives the session, in tx, what a message names. Known is false for an agent that is not prepared.
func (k *cast) take(tx *store.Tx, rec *centurion.Session, d store.Delivery) (known bool, err error) {
	begins := k.begins[d.Agent]
	if d.Agent == "" || d.Agent == rec.Agent {
		begins = nil
	} else if begins == nil {
		return false, nil
	}
	err = state.Recast(tx, rec, begins, d.Model)
	k.now = *rec
	return true, err
}

// over lets the conversation go on as what the session has become: between turns at once, else it ends the turn for that.
func (k *cast) over(ctx context.Context, arrived []centurion.Message, idle bool) ([]centurion.Message, error) {
	was := k.c.Sess.Record()
	if k.now.Agent == was.Agent && *k.now.Model == *was.Model {
		return arrived, nil
	}
	if err := k.c.m.above.Recast(ctx, k.c, k.now); err != nil {
		return nil, err
	}
	if idle {
		return nil, k.c.Load(ctx) // with the messages
	}
	return nil, errRecast
}

// Play makes an agent that of a conversation, with the model of the session. Its tools follow with Equip.
func (m *Sessions) Play(c *Conversation, agent agents.Agent, rec centurion.Session) error {
	model, err := m.cfg.Model(rec.Model.Provider + "/" + rec.Model.ID)
	if err != nil {
		return err
	}
	c.Agent = agent
	c.cfg.MaxSteps, c.cfg.Temperature, c.cfg.Policy = agent.Steps, agent.Temperature, cmp.Or(m.cfg.Policies[agent.Name], m.cfg.Session.Policy)
	c.talkTo(model)
	return nil
}

// Equip gives a conversation its tools, and what they may access.
func (m *Sessions) Equip(c *Conversation, held []tools.Tool, call tools.Call, around Around) {
	call.Media = c.cfg.Media
	if seen := c.cfg.Call.Seen; seen != nil { // what it has read stays in its history
		call.Seen = seen
	}
	c.cfg.Tools, c.cfg.Call, c.cfg.Renewed, c.around = held, call, around.Renewed, around
}
