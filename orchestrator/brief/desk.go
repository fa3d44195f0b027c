package brief

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/agents/instructions"
	"centurion/orchestrator/isolation"
	"centurion/permission"
	"centurion/tools"
	"centurion/tools/web"
	"centurion/workspace"
)

// Desk writes what the sessions of a project are told before their first message.
type Desk struct {
	Rules        func(agent string) []permission.Level
	Instructions *instructions.Finder // nil finds nothing
	Web          *web.Client          // nil where there is no network
	Workspace    *workspace.Workspace
	Project      *isolation.Project
	Window       func(centurion.ModelRef) int // of a model, in tokens; 0 where that is not known
}

// Opening is what a session is told before its first message. It is fixed when the session is created.
type Opening struct {
	System string // the system prompt
	Skills string // the skills it may load
	Given  []centurion.Given
}

// instructionShare is the part of a model's window that instructions may take: an eighth of its tokens, of four bytes each.
const instructionShare = 2

// Open puts an agent's system prompt together: its own prompt and surroundings, then as much of what project and
// person have written down as want says and a window of so many tokens has room for. The error is that of ctx: what cannot
// be read is left out.
func (d *Desk) Open(ctx context.Context, a agents.Agent, window int, want instructions.Want, isolation string) (Opening, error) {
	if want.Max == 0 && window > 0 {
		want.Max = max(window/instructionShare, 1)
	}
	want.Withheld = d.Withheld(a.Name)
	found, err := d.Instructions.Find(ctx, want)
	if err != nil {
		return Opening{}, err
	}
	found.ReadOnly = !slices.ContainsFunc([]string{"write", "edit", "bash"}, a.Holds)
	b := Opening{System: d.systemPrompt(a, isolation) + found.Prompt()}
	for _, f := range found.Files {
		b.Given = append(b.Given, centurion.Given{Path: f.Name, Version: f.Version, Bytes: len(f.Text), Whole: f.Whole()})
	}
	if !a.Holds(SkillTool) {
		return b, nil
	}
	all, _, err := d.Instructions.Skills(ctx, want.Withheld)
	if err != nil {
		return Opening{}, err
	}
	b.Skills = instructions.List(all)
	if want.Full {
		b.System += instructions.SkillsPrompt(all)
	}
	return b, nil
}

// Withheld keeps from a prompt, for which nobody is asked, what an agent may not read, or only when a person has said so
// because it usually holds secrets. A project's own file could name such a one, or be a link to it.
func (d *Desk) Withheld(agent string) func(path string) bool {
	builtIn := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	levels := d.Rules(agent)
	return func(path string) bool {
		access := []string{path}
		return permission.Decide(builtIn, "read", access).Action != permission.Allow ||
			permission.Decide(levels, "read", access).Action == permission.Deny
	}
}

// Callable lists the agents that one may delegate to, but for those that the rules deny it in any case.
func (d *Desk) Callable(a agents.Agent) []string {
	levels := d.Rules(a.Name)
	return slices.DeleteFunc(slices.Clone(a.Delegates), func(to string) bool {
		return permission.Decide(levels, "task", []string{to}).Action == permission.Deny
	})
}

const (
	DelegateTool   = "delegate_task"
	SkillTool      = "skill"
	webSearchTool  = "websearch"
	codeSearchTool = "codesearch"
)

// Held returns the tools of a session: those of its agent but for what could only be refused. That is skill if there were no skills
// when it began, a search without an engine, delegating to nobody, and what serves another tool that the agent does not hold.
func (d *Desk) Held(a agents.Agent, rec centurion.Session) []string {
	delegates := a.Holds(DelegateTool) && len(a.Delegates) > 0 && DepthAllows(rec.Metadata.Address) == nil
	return slices.DeleteFunc(slices.Clone(a.Tools), func(t string) bool {
		switch t {
		case DelegateTool, "get_task_result", "list_tasks", "cancel_task":
			return !delegates
		case "check_background":
			return !a.Holds("run_background")
		case SkillTool:
			return rec.Metadata.Skills == ""
		case webSearchTool, codeSearchTool:
			return d.Web != nil && d.Web.CanSearch(t == codeSearchTool) != nil
		}
		return false
	})
}

// maxDepth is how deep work is handed on: Commander → Planner → Planner. The casts allow no more either; this holds for a
// cast that somebody made otherwise.
const maxDepth = 2

// DepthAllows checks that a session at the address may hand work on.
func DepthAllows(address string) error {
	depth := 0
	for part := range strings.SplitSeq(address, "/") {
		if part != "" {
			depth++
		}
	}
	if depth-1 < maxDepth { // the root's own number is no step down
		return nil
	}
	return &centurion.Error{Kind: centurion.KindPermission,
		Msg:  fmt.Sprintf("a task at depth %d does not hand work on", depth-1),
		Hint: "do it yourself, or say in your result what is left to do"}
}

// systemPrompt is an agent's prompt with its surroundings. It is fixed when a session is created, so that it is the same
// in every request of that session.
func (d *Desk) systemPrompt(a agents.Agent, isolation string) string {
	where := fmt.Sprintf("- Project directory: %s. Paths are relative to it.\n", d.Workspace.Dir())
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

// Skills returns what fulfils [tools.Skills] for an agent.
func (d *Desk) Skills(agent string) tools.Skills { return skills{d, agent} }

type skills struct {
	d     *Desk
	agent string
}

// Skill reads a skill as it is now.
func (s skills) Skill(ctx context.Context, _ *tools.Call, name string) (instructions.Skill, error) {
	return s.d.Instructions.Skill(ctx, name, s.d.Withheld(s.agent))
}
