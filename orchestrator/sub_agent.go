package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/pulse"
	"centurion/orchestrator/state"
	"centurion/text"
	"centurion/tools"
)

// DefaultSubAgentIdle is how long nothing may come from a sub-agent before it is stopped. It is the first system's figure.
const DefaultSubAgentIdle = 2 * time.Minute

// idleGrace is what a request to the model has beyond that. A provider's own limit of silence may be as long, and is told of
// first by design: it leads to another request, the idle clock to the end of the work.
const idleGrace = 5 * time.Second

// subAgents fulfils tools.SubAgents for one conversation. A sub-agent is a task like any other, with a session below its
// parent's, a slot, a share of the budget and recovery; only its parent waits for it, by the clock that stands here.
type subAgents struct {
	m *mission
	c *conversation
}

var _ tools.SubAgents = subAgents{}

// Spawn records the task and launches it. The same call, repeated after a restart, finds the task that it made before.
func (s subAgents) Spawn(ctx context.Context, call *tools.Call, want tools.SubAgent) (centurion.Task, error) {
	c, m := s.c, s.m
	key := call.Message + "/" + call.ID
	if t, made, err := m.h.cfg.Store.TaskByCall(ctx, c.ID(), key); made || err != nil {
		return t, err
	}
	held, err := agents.ForSubAgent(m.h.briefs.Held(c.Agent, c.Sess.Record()), want.Tools)
	if err != nil {
		return centurion.Task{}, err
	}
	if err := brief.DepthAllows(c.Sess.Record().Metadata.Address); err != nil {
		return centurion.Task{}, err
	}
	if want.Model != "" {
		model, err := m.h.cfg.Model(want.Model)
		if err != nil {
			return centurion.Task{}, err
		}
		want.Model = model.Ref.String()
	}
	title := centurion.Clip(strings.Join(strings.Fields(want.Prompt), " "), 60)
	if err := c.Desk().MayStart(ctx, call, c.Agent.Name, title); err != nil {
		return centurion.Task{}, err
	}
	return m.recorder.Record(centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.st.ID, Parent: c.ID(), Call: key,
		Agent: c.Agent.Name, Title: title, Prompt: want.Prompt, Created: centurion.Now(), Budget: m.h.cfg.TaskBudget,
		Sub: &centurion.SubAgent{Tools: held, Model: want.Model, System: want.System}}, call.Begun)
}

// Join waits for the end of a sub-agent, sees to it that it has one, and gathers what there is to tell of it.
func (s subAgents) Join(ctx context.Context, _ *tools.Call, id string) (tools.SubReport, error) {
	m := s.m
	r := m.st.Run(id)
	if r != nil {
		defer s.c.Pulse.Attend(id)()
		if err := s.c.Leave(ctx, "sub-agent "+id); err != nil {
			return tools.SubReport{}, err
		}
		ended := s.c.Live.Wait(agent.WaitChild)
		m.attendSubAgent(ctx, r)
		ended()
		if err := s.c.Enter(); err != nil {
			return tools.SubReport{}, err
		}
	}
	return m.subReport(context.WithoutCancel(ctx), id) // what it did is told although the work was stopped
}

// attendSubAgent returns when a sub-agent has ended. It ends it itself when its parent's turn ends, unless that is because
// the mission stops and takes everything with it, and when nothing has come from it for too long.
func (m *mission) attendSubAgent(ctx context.Context, r *state.Run) {
	limit := m.h.cfg.SubAgentIdle
	for stopped := ctx.Done(); ; {
		wait := m.h.cfg.PollInterval
		if s := signsOf(m.sessions.On(r.ID)); s.Turn && !s.Waits { // nor does the clock run while it waits for another's word or end
			wait = limit - s.Silent
			if s.Asking {
				wait += idleGrace
			}
			if wait <= 0 {
				r.Cancel(&centurion.Error{Kind: centurion.KindTimeout,
					Msg:  fmt.Sprintf("nothing has come from it for %s, since %s", text.Took(limit), s.Did),
					Hint: "give it a smaller task, or raise sub_agent_idle"})
				<-r.Done // its processes have ended then, too
				return
			}
		}
		began := time.Now()
		timer := time.NewTimer(wait)
		select {
		case <-r.Done:
		case <-timer.C:
			if late := time.Since(began) - wait; late > pulse.Standstill { // the machine slept, and so did the sub-agent
				if c := m.sessions.On(r.ID); c != nil {
					c.Pulse.Beat()
				}
			}
		case <-stopped:
			stopped = nil // once
			if m.st.Ctx.Err() == nil {
				r.Cancel(&centurion.Error{Kind: centurion.KindCancelled, Msg: "the turn of the agent that started it was stopped"})
			}
			<-r.Done
		}
		timer.Stop()
		select {
		case <-r.Done:
			return
		default:
		}
	}
}

// signsOf returns how the conversation of a sub-agent stands, which is nil while it has none. It waits while that is for a slot, a person, a
// check, the end of others' commands, or a time at which a failed request is repeated.
func signsOf(c *conversation) pulse.Signs {
	if c == nil {
		return pulse.Signs{}
	}
	return c.Pulse.Signs(true)
}

// subReport reads all there is to tell of a sub-agent.
func (m *mission) subReport(ctx context.Context, id string) (tools.SubReport, error) {
	t, err := m.h.cfg.Store.Task(ctx, id)
	rep := tools.SubReport{Task: t}
	if err != nil || t.Session == "" {
		return rep, err
	}
	rec, err := m.h.cfg.Store.Session(ctx, t.Session)
	if err != nil {
		return rep, err
	}
	if rec.Model != nil {
		rep.Model = rec.Model.Provider + "/" + rec.Model.ID
	}
	messages, err := m.h.cfg.Store.Messages(ctx, t.Session)
	rep.Calls = tools.SubCalls(messages)
	if t.Result == "" && t.Status != centurion.TaskCompleted {
		rep.Task.Result, err = m.st.LastText(ctx, t.Session)
	}
	return rep, err
}

// cast returns the agents that a profile has.
func (c *Config) cast(profile string) *agents.Cast {
	if profile == agents.ProfileAssistant {
		return c.Assistant
	}
	return c.Cast
}

// checkProfile refuses a profile that there is not, and what a profile has not.
func checkProfile(opts centurion.MissionOptions) error {
	known := []string{agents.ProfileMission, agents.ProfileAssistant}
	switch {
	case opts.Profile != "" && !slices.Contains(known, opts.Profile):
		e := &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: fmt.Sprintf("there is no profile %q; the profiles are %s", opts.Profile, strings.Join(known, ", "))}
		if near := centurion.Nearest(opts.Profile, known); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	case state.Alone(opts.Profile) && opts.PlanOnly:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant makes no plans", Hint: "take --profile mission, or ask it for a plan in words"}
	case state.Alone(opts.Profile) && opts.Plan != "":
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant carries out no plans", Hint: "leave out --plan, or use --profile mission"}
	case state.Alone(opts.Profile) && opts.Level > 0:
		return &centurion.Error{Op: "start mission", Kind: centurion.KindUsage, Msg: "the profile assistant knows no levels", Hint: "leave out --level, or take --profile mission"}
	}
	return nil
}
