package tools

import (
	"context"
	"strings"
	"testing"

	"centurion"
	"centurion/agents/instructions"
	"centurion/permission"
)

// shelf has one skill.
type shelf struct{ skill instructions.Skill }

func (s shelf) Skill(_ context.Context, _ *Call, name string) (instructions.Skill, error) {
	if name != s.skill.Name {
		return instructions.Skill{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no skill " + name}
	}
	return s.skill, nil
}

// A skill is loaded with its directory and where it came from, if the rules allow it.
func TestSkill(t *testing.T) {
	b := newBench(t)
	b.refused("skill", args{"name": "x"}, centurion.KindPermission, "there are no skills here", "do without")
	s := shelf{instructions.Skill{Name: "notes", Description: "writes notes", Dir: ".opencode/skills/notes", File: ".opencode/skills/notes/SKILL.md", Body: "One line.", Size: 9}}
	b.Skills = s
	want(t, "output", b.must("skill", args{"name": "notes"}).Output,
		"Skill notes: writes notes\nIt came with the project. Its directory is .opencode/skills/notes; paths in it are relative to that.\n\nOne line.\n")
	want(t, "cut", b.must("skill", args{"name": "notes"}).Metadata["truncated"], any(false))
	b.gate.asked = b.gate.asked[:1]
	want(t, "asked", strings.Join(b.gate.permissions(), " "), "skill notes")
	b.refused("skill", args{"name": "other"}, centurion.KindNotFound, "there is no skill other")
	b.refused("skill", args{}, centurion.KindUsage, "name")

	s.skill.Person, s.skill.Size = true, 100_000
	b.Skills = s
	out := b.must("skill", args{"name": "notes"}).Output
	for _, part := range []string{"It is the person's own.", "(this is the head, 9 of 100000 bytes: read .opencode/skills/notes/SKILL.md for the rest)"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not in %s", part, out)
		}
	}
	b.gate.rules = []permission.Rule{{Permission: "skill", Pattern: "n*", Action: permission.Deny}}
	b.refused("skill", args{"name": "notes"}, centurion.KindPermission, "n*")
}
