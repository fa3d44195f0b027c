package orchestrator

import (
	"slices"

	"centurion"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/tools"
)

// dress gives the tools of a session what they need of it beside their call.
func (c *conversation) dress(held []tools.Tool, rec centurion.Session) []tools.Tool {
	for i, t := range held {
		c.names = append(c.names, t.Name())
		if rec.Metadata.Roster != "" && hasRoster(t.Name()) {
			t = rostered{Tool: t, roster: rec.Metadata.Roster}
		}
		if t.Name() == brief.SkillTool {
			t = longer{Tool: t, more: "Skills:\n" + rec.Metadata.Skills}
		}
		if c.m.ownsFiles(t.Name()) {
			t = longer{Tool: t, more: tools.Overlaps(c.m.iso.Isolated())}
		}
		if t.Name() == "update_context" && !c.rewrites() {
			t = tools.NotesOnly()
		}
		held[i] = fenced{Tool: t, c: c}
		if t.Name() == brief.DelegateTool && len(rec.Metadata.Offered) > 0 {
			held[i] = fenced{Tool: t, c: c, narrowed: tools.DelegationTo(rec.Metadata.Offered)}
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

// surroundings are what the session's tool calls may touch: the ways up only for the tools that go there.
func (c *conversation) surroundings(rec centurion.Session) tools.Call {
	h, agent := c.m.h, c.agent
	call := tools.Call{Mission: c.m.st.ID, Agent: agent.Name, Workspace: h.cfg.Workspace, Seen: &tools.Seen{}, Writers: &h.files,
		Runner: h.cfg.Runner, Mark: h.cfg.Mark, Gate: c.desk(), Web: h.cfg.Web, Await: h.cfg.Await, Asker: c.desk()}
	if c.task != nil {
		call.Task = c.task.ID
	}
	if agent.Holds("delegate_task") || agent.Holds("mission_complete") {
		call.Delegator = delegator{c}
	}
	if agent.Holds("sub_agent") {
		call.SubAgents = subAgents{c}
	}
	if agent.Holds("update_todo") {
		call.Planner = planner{c}
	}
	if agent.Holds("update_context") {
		call.Notebook = notebook{c}
	}
	if rec.Metadata.Skills != "" {
		call.Skills = h.briefs.Skills(agent.Name)
	}
	if agent.Holds("run_background") || agent.Holds("check_background") {
		call.Background = backer{c}
	}
	return call
}

// recall rebuilds what a session that goes on knows of files: what it was given when it began, and what it has read and
// written since, as far as it still stands in what its model is sent. Which versions those were is what counts, wherever
// and in whichever copy of the conversation the calls were made.
func recall(seen *tools.Seen, rec centurion.Session, s *session.Session) {
	for _, g := range rec.Metadata.Given {
		if g.Whole {
			seen.Saw(g.Path, g.Version)
		}
	}
	for call := range s.Calls() {
		seen.Recall(call)
	}
}
