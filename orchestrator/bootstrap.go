package orchestrator

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/permission"
	"centurion/tools"
)

// bootstrap is what a session is told before its first message. It is fixed when the session is created.
type bootstrap struct {
	system string // the system prompt
	skills string // the skills it may load
	given  []centurion.Given
}

// instructionShare is the part of a model's window that instructions may take: an eighth of its tokens, of four bytes each.
const instructionShare = 2

// bootstrap puts an agent's system prompt together: its own prompt and surroundings, then as much of what project and
// person have written down as want says and a window of so many tokens has room for. The error is that of ctx: what cannot
// be read is left out.
func (h *Host) bootstrap(ctx context.Context, a agents.Agent, window int, want instructions.Want, isolation string) (bootstrap, error) {
	if want.Max == 0 && window > 0 {
		want.Max = max(window/instructionShare, 1)
	}
	want.Withheld = h.withheld(a.Name)
	found, err := h.cfg.Instructions.Find(ctx, want)
	if err != nil {
		return bootstrap{}, err
	}
	found.ReadOnly = !slices.ContainsFunc([]string{"write", "edit", "bash"}, a.Holds)
	b := bootstrap{system: h.systemPrompt(a, isolation) + found.Prompt()}
	for _, f := range found.Files {
		b.given = append(b.given, centurion.Given{Path: f.Name, Version: f.Version, Bytes: len(f.Text), Whole: f.Whole()})
	}
	if !a.Holds(skillTool) {
		return b, nil
	}
	all, _, err := h.cfg.Instructions.Skills(ctx, want.Withheld)
	if err != nil {
		return bootstrap{}, err
	}
	b.skills = instructions.List(all)
	if want.Full {
		b.system += instructions.SkillsPrompt(all)
	}
	return b, nil
}

// bootstrap is what a task's session is told: of the instructions only those that hold where its item's files are.
func (m *mission) bootstrap(ctx context.Context, a agents.Agent, t centurion.Task, ref centurion.ModelRef) (bootstrap, error) {
	var near []string
	if p, err := m.plan.Read(); err == nil && p.Doc != nil && t.Item != "" {
		if it, ok := p.Doc.Item(t.Item); ok {
			near = it.Files
		}
	}
	window := 0
	if model, err := m.h.cfg.Model(ref.String()); err == nil {
		window = model.Context
	}
	isolation := centurion.IsolationShared
	if m.iso.Isolated() {
		isolation = centurion.IsolationWorktree
	}
	return m.h.bootstrap(ctx, a, window, instructions.Want{Near: near}, isolation)
}

// withheld keeps from a prompt, for which nobody is asked, what an agent may not read, or only when a person has said so
// because it usually holds secrets. A project's own file could name such a one, or be a link to it.
func (h *Host) withheld(agent string) func(path string) bool {
	builtIn := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	levels := h.cfg.Rules(agent)
	return func(path string) bool {
		access := []string{path}
		return permission.Decide(builtIn, "read", access).Action != permission.Allow ||
			permission.Decide(levels, "read", access).Action == permission.Deny
	}
}

// callable lists the agents that one may delegate to, but for those that the rules deny it in any case.
func (h *Host) callable(a agents.Agent) []string {
	levels := h.cfg.Rules(a.Name)
	return slices.DeleteFunc(slices.Clone(a.Delegates), func(to string) bool {
		return permission.Decide(levels, "task", []string{to}).Action == permission.Deny
	})
}

const (
	delegateTool   = "delegate_task"
	skillTool      = "skill"
	webSearchTool  = "websearch"
	codeSearchTool = "codesearch"
)

// heldWith returns the tools of a session: those of its agent but for what could only be refused. That is skill if there were no skills
// when it began, a search without an engine, delegating to nobody, and what serves another tool that the agent does not hold.
func (h *Host) heldWith(a agents.Agent, rec centurion.Session) []string {
	delegates := a.Holds(delegateTool) && len(a.Delegates) > 0 && depthAllows(rec.Metadata.Address) == nil
	return slices.DeleteFunc(slices.Clone(a.Tools), func(t string) bool {
		switch t {
		case delegateTool, "get_task_result", "list_tasks", "cancel_task":
			return !delegates
		case "check_background":
			return !a.Holds("run_background")
		case skillTool:
			return rec.Metadata.Skills == ""
		case webSearchTool, codeSearchTool:
			return h.cfg.Web != nil && h.cfg.Web.CanSearch(t == codeSearchTool) != nil
		}
		return false
	})
}

// skills fulfils tools.Skills for one conversation.
type skills struct{ c *conversation }

var _ tools.Skills = skills{}

// Skill reads a skill as it is now.
func (s skills) Skill(ctx context.Context, _ *tools.Call, name string) (instructions.Skill, error) {
	h := s.c.m.h
	return h.cfg.Instructions.Skill(ctx, name, h.withheld(s.c.agent.Name))
}

// systemPrompt is an agent's prompt with its surroundings. It is fixed when a session is created, so that it is the same
// in every request of that session.
func (h *Host) systemPrompt(a agents.Agent, isolation string) string {
	where := fmt.Sprintf("- Project directory: %s. Paths are relative to it.\n", h.cfg.Workspace.Dir())
	if isolation == centurion.IsolationWorktree {
		where = ownCheckout
		if !slices.ContainsFunc([]string{"write", "edit"}, a.Holds) {
			where = sharedCheckout
		}
	}
	return a.Prompt + fmt.Sprintf("\nSurroundings\n\n%s- System: %s/%s. Date: %s.\n", where, runtime.GOOS, runtime.GOARCH, time.Now().Format(time.DateOnly))
}

// ownCheckout tells a model where it works when sessions are kept apart.
const ownCheckout = `- Project directory: you work in a worktree of your own of the project's git repository. Paths, also of shell commands, are relative to it. You see changes of others after they have been integrated and you have started anew.
- The host commits your work and integrates it into the mission's branch when you end your turn; the person merges that branch later. No git commit, push or branch is needed.
`

// sharedCheckout tells the same to one who writes nothing.
const sharedCheckout = `- Project directory: a checkout of the project's git repository with everything that is merged so far. Paths are relative to it; so are those of shell commands.
`
