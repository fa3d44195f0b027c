package toolset

import (
	"context"
	"fmt"
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

// idleGrace is added to the limit during a request to the model. The provider's own limit of silence may be the same, and has to come first: it
// only repeats the request.
const idleGrace = 5 * time.Second

// subAgents implements tools.SubAgents for one conversation. A sub-agent is a task like any other, with a session, a slot, a share of the
// budget and recovery. In addition, its parent waits for it and limits its silence.
type subAgents struct {
	*Set
	c *agent.Conversation
}

// SubAgents returns how a conversation starts sub-agents.
func (s *Set) SubAgents(c *agent.Conversation) tools.SubAgents { return subAgents{s, c} }

// Spawn records the task and launches it. A call that is repeated after a restart finds its first task.
func (s subAgents) Spawn(ctx context.Context, call *tools.Call, want tools.SubAgent) (centurion.Task, error) {
	c := s.c
	key := call.Message + "/" + call.ID
	if t, made, err := s.Mission.Store.TaskByCall(ctx, c.ID(), key); made || err != nil {
		return t, err
	}
	own := s.Briefs.Held(c.Agent, c.Sess.Record())
	for _, t := range c.Sess.Record().Metadata.External {
		own = append(own, t.Name)
	}
	held, err := agents.ForSubAgent(own, want.Tools)
	if err != nil {
		return centurion.Task{}, err
	}
	if err := brief.DepthAllows(c.Sess.Record().Metadata.Address); err != nil {
		return centurion.Task{}, err
	}
	if want.Model != "" {
		model, err := s.Model(want.Model)
		if err != nil {
			return centurion.Task{}, err
		}
		want.Model = model.Ref.String()
	}
	title := centurion.Clip(strings.Join(strings.Fields(want.Prompt), " "), 60)
	if err := c.Desk().MayStart(ctx, call, c.Agent.Name, title); err != nil {
		return centurion.Task{}, err
	}
	return s.Launcher.Record(centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: s.Mission.ID, Parent: c.ID(), Call: key,
		Agent: c.Agent.Name, Title: title, Prompt: want.Prompt, Created: centurion.Now(), Budget: s.TaskBudget,
		Sub: &centurion.SubAgent{Tools: held, Model: want.Model, System: want.System}}, call.Begun)
}

// Join waits for the end of a sub-agent and reports it. A sub-agent that is silent for too long is ended.
func (s subAgents) Join(ctx context.Context, _ *tools.Call, id string) (tools.SubReport, error) {
	r := s.Mission.Run(id)
	if r != nil {
		defer s.c.Pulse.Attend(id)()
		if err := s.c.Leave(ctx, "sub-agent "+id); err != nil {
			return tools.SubReport{}, err
		}
		ended := s.c.Live.Wait(agent.WaitChild)
		s.attend(ctx, r)
		ended()
		if err := s.c.Enter(); err != nil {
			return tools.SubReport{}, err
		}
	}
	return s.report(context.WithoutCancel(ctx), id) // its work is reported even if the parent was stopped
}

// attend returns when a sub-agent has ended. It ends the sub-agent when it is silent for too long, and when its parent's turn ends. If the
// mission stops, all tasks end without it.
func (s subAgents) attend(ctx context.Context, r *state.Run) {
	limit := s.SubAgentIdle
	for stopped := ctx.Done(); ; {
		wait := s.Poll
		var now pulse.Signs
		if c := s.Sessions.On(r.ID); c != nil {
			now = c.Pulse.Signs(true)
		}
		// Waits do not count: for a slot, a person, a check, commands of others, or the time to repeat a failed request.
		if now.Turn && !now.Waits {
			wait = limit - now.Silent
			if now.Asking {
				wait += idleGrace
			}
			if wait <= 0 {
				r.Cancel(&centurion.Error{Kind: centurion.KindTimeout,
					Msg:  fmt.Sprintf("nothing has come from it for %s, since %s", text.Took(limit), now.Did),
					Hint: "give it a smaller task, or raise sub_agent_idle"})
				<-r.Done // by then its processes have ended, too
				return
			}
		}
		began := time.Now()
		timer := time.NewTimer(wait)
		select {
		case <-r.Done:
		case <-timer.C:
			if late := time.Since(began) - wait; late > pulse.Standstill { // the machine slept, and so did the sub-agent
				if c := s.Sessions.On(r.ID); c != nil {
					c.Pulse.Beat()
				}
			}
		case <-stopped:
			stopped = nil // once
			if s.Mission.Ctx.Err() == nil {
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

// report reads the outcome of a sub-agent.
func (s subAgents) report(ctx context.Context, id string) (tools.SubReport, error) {
	t, err := s.Mission.Store.Task(ctx, id)
	rep := tools.SubReport{Task: t}
	if err != nil || t.Session == "" {
		return rep, err
	}
	rec, err := s.Mission.Store.Session(ctx, t.Session)
	if err != nil {
		return rep, err
	}
	if rec.Model != nil {
		rep.Model = rec.Model.Provider + "/" + rec.Model.ID
	}
	messages, err := s.Mission.Store.Messages(ctx, t.Session)
	rep.Calls = tools.SubCalls(messages)
	if t.Result == "" && t.Status != centurion.TaskCompleted {
		rep.Task.Result, err = s.Mission.LastText(ctx, t.Session)
	}
	return rep, err
}
