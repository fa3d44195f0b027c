package tools

import (
	"context"
	"fmt"
	"path"
	"strings"

	"centurion/agents/instructions"
)

// Skills loads a skill by name. The orchestrator implements it: it knows where skills are and what an agent may read.
type Skills interface {
	// Skill returns a skill. Errors are centurion.KindNotFound, with the nearest name, and that of ctx.
	Skill(ctx context.Context, c *Call, name string) (instructions.Skill, error)
}

type skillInput struct {
	Name string `json:"name"`
}

func skillTool() Tool {
	return define("skill", object(need("name", nonEmpty("The skill's name from the list"))),
		func(skillInput) Effect { return Effect{ReadOnly: true} }, runSkill)
}

func runSkill(ctx context.Context, c *Call, in skillInput) (Result, error) {
	if c.Skills == nil {
		return denied("skill", "there are no skills here", "do without")
	}
	s, err := c.Skills.Skill(ctx, c, in.Name)
	if err != nil {
		return Result{}, err
	}
	if err := c.Gate.Ask(ctx, c, Access{Permission: "skill", Patterns: []string{s.Name}, Always: []string{s.Name},
		Metadata: map[string]any{"skill": s.Name, "filepath": s.File}}); err != nil {
		return Result{}, err
	}
	from := "came with the project"
	if s.Person {
		from = "is the person's own"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %s: %s\nIt %s. Its directory is %s; paths in it are relative to that.\n\n%s\n", s.Name, s.Description, from, path.Clean(s.Dir), s.Body)
	if len(s.Body) < s.Size {
		fmt.Fprintf(&b, "\n(this is the head, %d of %d bytes: read %s for the rest)\n", len(s.Body), s.Size, s.File)
	}
	return Result{Output: b.String(), Title: s.Name, Metadata: map[string]any{"skill": s.Name, "dir": s.Dir, "truncated": len(s.Body) < s.Size}}, nil
}
