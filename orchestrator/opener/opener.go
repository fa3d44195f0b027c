// Package opener opens the conversations of a mission: it finds a session's agent, gives it its tools, which run where the session
// works and are fenced off from superseded attempts, and sets what its model is told at the end of each request.
package opener

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/background"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/commander"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/ownership"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/orchestrator/toolset"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// Opener opens the conversations of one mission.
type Opener struct {
	Mission   *state.Mission
	Plan      *plan.Plan
	Checkouts *isolation.Checkouts
	Sessions  *agent.Sessions
	Claims    *ownership.Files
	Commands  *background.Commands
	Reserves  *budget.Reserves
	Brief     *brief.Writer
	Briefs    *brief.Desk
	Loop      *commander.Loop
	Tools     *toolset.Set
	Call      tools.Call // shared by the calls of all conversations
}

// Open loads a session to be driven, with its tools; t is its task's run, nil for the mission's own agent. The error has
// centurion.KindConflict for a session driven by another conversation, and KindConfig for one whose agent is gone.
func (o *Opener) Open(ctx context.Context, id string, t *state.Run) (*agent.Conversation, error) {
	rec, err := o.Mission.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := state.Dropped(rec); err != nil {
		return nil, err
	}
	own, err := o.agentOf(rec)
	if err != nil {
		return nil, err
	}
	if rec.Metadata.Plugged == nil {
		if err := o.plug(ctx, own, &rec); err != nil {
			return nil, err
		}
	}
	c, err := o.Sessions.New(ctx, rec, own, t)
	if err == nil {
		err = o.equip(c, rec)
	}
	if err == nil {
		err = o.Sessions.Open(ctx, c, rec)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// plug gives a session what plugins make of what its requests begin with, and stores that.
func (o *Opener) plug(ctx context.Context, a agents.Agent, rec *centurion.Session) error {
	if o.Briefs.Plug(ctx, a, rec); rec.Metadata.Plugged == nil {
		return nil
	}
	return o.Mission.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Session(rec.ID)
		if err != nil {
			return err
		}
		now.Metadata.Plugged = rec.Metadata.Plugged
		return cmp.Or(tx.PutSession(&now), session.Plugged(tx, &now, nil))
	})
}

// held returns the tools of a conversation.
func (o *Opener) held(c *agent.Conversation, rec centurion.Session) ([]tools.Tool, error) {
	held, err := tools.Named(o.Briefs.Held(c.Agent, rec)...)
	if err != nil {
		return nil, err
	}
	for _, t := range rec.Metadata.External {
		e, err := tools.NewExternal(t, o.Briefs.External)
		if err != nil {
			return nil, err
		}
		held = append(held, e)
	}
	return o.WrapTools(c, held, rec), nil
}

// equip gives a conversation the tools of its agent.
func (o *Opener) equip(c *agent.Conversation, rec centurion.Session) error {
	held, err := o.held(c, rec)
	if err != nil {
		return err
	}
	book := &notes.Notebook{Workspace: o.Call.Workspace, Plan: o.Plan, Agent: c.Agent.Name, Rewrites: rewrites(c), Writes: c.Agent.Holds("update_context"), Current: c.Current}
	if c.Task != nil {
		book.Item = c.Task.Item
	}
	o.Sessions.Equip(c, held, o.callOf(c, rec, book), &around{o, c, book})
	return nil
}

// Recast gives a conversation the agent, the tools and the model of its record as it is now.
func (o *Opener) Recast(ctx context.Context, c *agent.Conversation, rec centurion.Session) error {
	own, err := o.agentOf(rec)
	if err == nil && rec.Metadata.Plugged == nil {
		err = o.plug(ctx, own, &rec)
	}
	if err == nil {
		err = o.Sessions.Play(c, own, rec)
	}
	if err != nil {
		return err
	}
	return o.equip(c, rec)
}

// Begins returns how the session of the mission's own agent changes when another agent takes it over: what is fixed for a conversation is
// fixed anew.
func (o *Opener) Begins(ctx context.Context, name string) (func(*centurion.Session), error) {
	a, err := o.Mission.Cast.Find(name)
	if err != nil {
		return nil, err
	}
	m, err := o.Mission.Store.Mission(ctx, o.Mission.ID)
	if err != nil {
		return nil, err
	}
	rec, err := o.Mission.Store.Session(ctx, m.Session)
	if err != nil {
		return nil, err
	}
	told, err := o.Briefs.Open(ctx, a, o.Briefs.Window(rec.Own()), instructions.Want{Full: true}, m.Isolation)
	return func(rec *centurion.Session) {
		rec.Agent = a.Name
		d := &rec.Metadata
		d.System, d.AgentFile, d.Roster, d.Offered = told.System, a.Source, o.Mission.Cast.Roster(a), o.Briefs.Callable(a)
		d.Skills, d.External, d.Given, d.Plugged = told.Skills, told.External, told.Given, nil
	}, err
}

// rewrites reports whether the conversation may replace the shared texts: the owner of the mission, and a reviewer. All others add
// notes.
func rewrites(c *agent.Conversation) bool { return c.Task == nil || c.Agent.Name == agents.Reviewer }

// WrapTools adds to a session's tools what they need besides their call.
func (o *Opener) WrapTools(c *agent.Conversation, held []tools.Tool, rec centurion.Session) []tools.Tool {
	for i, t := range held {
		var told centurion.Defined
		if p := rec.Metadata.Plugged; p != nil {
			told = p.Tools[t.Name()]
		}
		if told.Description != "" {
			t = redescribed{t, told.Description}
		}
		if rec.Metadata.Roster != "" && t.Name() == brief.DelegateTool {
			t = longer{Tool: t, more: "Agents of this project that it takes as well:\n" + rec.Metadata.Roster}
		}
		if t.Name() == brief.SkillTool {
			t = longer{Tool: t, more: "Skills:\n" + rec.Metadata.Skills}
		}
		if o.ownsFiles(t.Name()) {
			t = longer{Tool: t, more: tools.Overlaps(o.Checkouts.Isolated())}
		}
		if t.Name() == "update_context" && !rewrites(c) {
			t = tools.NotesOnly()
		}
		f := fenced{Tool: t, Opener: o, c: c}
		if n, ok := t.(tools.Narrower); ok {
			f.narrowed = n.Narrowed()
		}
		if told.Parameters != nil {
			f.narrowed = told.Parameters
		}
		if t.Name() == brief.DelegateTool && len(rec.Metadata.Offered) > 0 {
			f.narrowed = tools.DelegationTo(rec.Metadata.Offered)
		}
		held[i] = f
		if o.Call.Hooks != nil {
			held[i] = hooked{f, o.Call.Hooks}
		}
	}
	return held
}

// ownsFiles reports whether the text of a tool explains what happens to files that several agents work on, which requires items.
func (o *Opener) ownsFiles(tool string) bool {
	return !state.Alone(o.Mission.Profile) && slices.Contains([]string{"update_todo", "edit", "bash"}, tool)
}

// redescribed is a tool that plugins describe.
type redescribed struct {
	tools.Tool
	words string
}

func (r redescribed) Description() string { return r.words }

// Narrowed implements [tools.Narrower], as the tool does.
func (r redescribed) Narrowed() json.RawMessage {
	if n, ok := r.Tool.(tools.Narrower); ok {
		return n.Narrowed()
	}
	return nil
}

// longer is a tool with an extended description.
type longer struct {
	tools.Tool
	more string
}

func (l longer) Description() string { return l.Tool.Description() + "\n\n" + l.more }

// callOf returns what the session's tool calls may access: the ways up only for the tools that use them.
func (o *Opener) callOf(c *agent.Conversation, rec centurion.Session, book *notes.Notebook) tools.Call {
	call, a := o.Call, c.Agent
	call.Agent, call.Seen, call.Gate, call.Asker = a.Name, &tools.Seen{}, c.Desk(), c.Desk()
	if c.Task != nil {
		call.Task = c.Task.ID
	}
	if a.Holds("delegate_task") || a.Holds("mission_complete") {
		call.Delegator = o.Tools.Delegator(c)
	}
	if a.Holds("sub_agent") {
		call.SubAgents = o.Tools.SubAgents(c)
	}
	if a.Holds("update_todo") {
		call.Planner = o.Tools.Planner(c)
	}
	if a.Holds("update_context") {
		call.Notebook = book
	}
	if rec.Metadata.Skills != "" {
		call.Skills = o.Briefs.Skills(a.Name)
	}
	if a.Holds("run_background") || a.Holds("check_background") {
		call.Background = o.Commands.Of(c)
	}
	return call
}

// agentOf returns a session's agent. A session whose agent is gone does not get another one: the error has centurion.KindConfig and
// names the missing file.
func (o *Opener) agentOf(rec centurion.Session) (agents.Agent, error) {
	a, err := o.Mission.Cast.Get(rec.Agent)
	if err != nil {
		e := &centurion.Error{Op: "open session " + rec.ID, Kind: centurion.KindConfig, Err: err, Hint: "define the agent again, then `centurion resume`"}
		if f := rec.Metadata.AgentFile; f != "" {
			e.Err = nil
			e.Msg = fmt.Sprintf("it belongs to the agent %q of %s, which is there no more", rec.Agent, f)
			e.Hint = "put " + f + " back, then `centurion resume`"
		}
		return agents.Agent{}, e
	}
	if rec.Metadata.Tools != nil {
		return a.SubAgent(rec.Metadata.Tools, ""), nil // its prompt is in its record
	}
	if rec.Metadata.Task != "" {
		a = a.ForTask()
	}
	return a, nil
}

// around is the environment of one conversation.
type around struct {
	*Opener
	c     *agent.Conversation
	notes *notes.Notebook
}

var _ agent.Around = (*around)(nil)

// News says which files others have changed too.
func (s *around) News(ctx context.Context) ([]centurion.Message, error) {
	return s.Claims.News(ctx, s.c)
}

// Renewed gives the conversation the tools from outside that there are now, and what plugins now make of its beginning.
func (s *around) Renewed(ctx context.Context, rec *centurion.Session) []tools.Tool {
	now := *rec
	s.Briefs.Renew(ctx, s.c.Agent, &now)
	held, err := s.held(s.c, now)
	if err != nil { // they were usable a moment ago
		return nil
	}
	*rec = now
	return held
}

// Seen marks the one-time parts of Status as read.
func (s *around) Seen() {
	s.Commands.Heard(s.c.ID())
	s.notes.Heard()
}

// Status is what the model should know right now: for planners, the state of the plan; for a worker, who else works on what, and which
// of its background commands have ended.
func (s *around) Status() string {
	c := s.c
	if c.Task == nil {
		return strings.TrimSpace(strings.TrimRight(s.Brief.Status(&s.Claims.Registry, s.Loop.HasClaimed(), s.Reserves)+"\n"+s.Claims.WhoElse("", c.ID())+s.notes.Overlong(), "\n") + "\n" + s.Commands.News(c.ID()))
	}
	var b strings.Builder
	b.WriteString(c.Task.Left())
	b.WriteString(s.Claims.WhoElse(c.Holder, c.ID()))
	if long := s.notes.Overlong(); long != "" {
		b.WriteString(long + "\n")
	}
	b.WriteString(s.Commands.News(c.ID()))
	return strings.TrimSpace(b.String())
}
