package orchestrator

import (
	"context"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/state"
	"centurion/tools"
)

// conversation is a session that is being driven.
type conversation = agent.Conversation

// open loads a session to be driven.
func (m *mission) open(ctx context.Context, id string, t *state.Run) (*conversation, error) {
	rec, err := m.h.cfg.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := state.Dropped(rec); err != nil {
		return nil, err
	}
	agent, err := m.wakes(rec)
	if err != nil {
		return nil, err
	}
	held, err := tools.Named(m.h.briefs.Held(agent, rec)...)
	if err != nil {
		return nil, err
	}
	c, err := m.sessions.New(ctx, rec, agent, t)
	if err != nil {
		return nil, err
	}
	book := &notes.Notebook{Workspace: m.h.cfg.Workspace, Plan: m.plan, Agent: agent.Name, Rewrites: rewrites(c), Writes: agent.Holds("update_context"), Current: c.Current}
	if t != nil {
		book.Item = t.Item
	}
	if err := m.sessions.Open(ctx, c, rec, m.dress(c, held, rec), m.callOf(c, rec, book), &surroundings{m: m, c: c, notes: book}); err != nil {
		return nil, err
	}
	return c, nil
}

// rewrites reports whether the conversation may replace the shared texts: whoever owns the mission, and a reviewer. All
// others add notes.
func rewrites(c *conversation) bool { return c.Task == nil || c.Agent.Name == agents.Reviewer }

// dress gives the tools of a session what they need of it beside their call.
func (m *mission) dress(c *conversation, held []tools.Tool, rec centurion.Session) []tools.Tool {
	for i, t := range held {
		if rec.Metadata.Roster != "" && hasRoster(t.Name()) {
			t = rostered{Tool: t, roster: rec.Metadata.Roster}
		}
		if t.Name() == brief.SkillTool {
			t = longer{Tool: t, more: "Skills:\n" + rec.Metadata.Skills}
		}
		if m.ownsFiles(t.Name()) {
			t = longer{Tool: t, more: tools.Overlaps(m.iso.Isolated())}
		}
		if t.Name() == "update_context" && !rewrites(c) {
			t = tools.NotesOnly()
		}
		held[i] = fenced{Tool: t, m: m, c: c}
		if t.Name() == brief.DelegateTool && len(rec.Metadata.Offered) > 0 {
			held[i] = fenced{Tool: t, m: m, c: c, narrowed: tools.DelegationTo(rec.Metadata.Offered)}
		}
	}
	return held
}

// ownsFiles reports whether the text of a tool says what becomes of files that several work on. Where there are no items it does not come to that.
func (m *mission) ownsFiles(tool string) bool {
	return !state.Alone(m.st.Profile) && slices.Contains([]string{"update_todo", "edit", "bash"}, tool)
}

// longer is a tool with more to its description.
type longer struct {
	tools.Tool
	more string
}

func (l longer) Description() string { return l.Tool.Description() + "\n\n" + l.more }

// callOf returns what the session's tool calls may touch: the ways up only for the tools that go there.
func (m *mission) callOf(c *conversation, rec centurion.Session, book *notes.Notebook) tools.Call {
	h, agent := m.h, c.Agent
	call := tools.Call{Mission: m.st.ID, Agent: agent.Name, Workspace: h.cfg.Workspace, Seen: &tools.Seen{}, Writers: &h.files,
		Runner: h.cfg.Runner, Mark: h.cfg.Mark, Gate: c.Desk(), Web: h.cfg.Web, Await: h.cfg.Await, Asker: c.Desk()}
	if c.Task != nil {
		call.Task = c.Task.ID
	}
	if agent.Holds("delegate_task") || agent.Holds("mission_complete") {
		call.Delegator = m.toolset.Delegator(c)
	}
	if agent.Holds("sub_agent") {
		call.SubAgents = m.toolset.SubAgents(c)
	}
	if agent.Holds("update_todo") {
		call.Planner = m.toolset.Planner(c)
	}
	if agent.Holds("update_context") {
		call.Notebook = book
	}
	if rec.Metadata.Skills != "" {
		call.Skills = h.briefs.Skills(agent.Name)
	}
	if agent.Holds("run_background") || agent.Holds("check_background") {
		call.Background = m.commands.Of(c)
	}
	return call
}
