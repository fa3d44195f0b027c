package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents/instructions"
	"centurion/config"
	"centurion/permission"
	"centurion/text"
)

// instructions reports what project and person have written for agents, and what of it is ignored.
func (d *doctor) instructions(ctx context.Context) []Finding {
	const name = "instructions"
	c, err := config.Load(d.config())
	if err != nil {
		return nil // the configuration's own finding says so
	}
	found, err := c.Finder().Find(ctx, instructions.Want{Full: true, Withheld: secret})
	if err != nil {
		return []Finding{failed(name, err)}
	}
	skills, passed, err := c.Finder().Skills(ctx, secret)
	if err != nil {
		return []Finding{failed(name, err)}
	}
	files := text.Each(found.Files, func(f instructions.File) string { return f.Name })
	names := text.Each(skills, func(s instructions.Skill) string { return s.Name })
	cut := len(slices.DeleteFunc(found.Files, instructions.File.Whole))
	out := []Finding{{Name: name, Status: OK, Detail: centurion.Count(len(files), "file") + list(files) + ", " + centurion.Count(len(names), "skill") + list(names)}}
	if cut > 0 {
		out = append(out, Finding{name, Warn, fmt.Sprintf("%s shown in part only", centurion.Count(cut, "file")),
			fmt.Sprintf("keep each below %s and all together below %s", centurion.Bytes(instructions.MaxFile), centurion.Bytes(instructions.MaxAll))})
	}
	for _, p := range append(found.Problems, passed...) {
		out = append(out, Finding{name, Warn, safe(p), "correct or remove it"})
	}
	return out
}

// list puts names in brackets.
func list(names []string) string {
	return text.When(len(names) > 0, " ("+safe(strings.Join(names, ", "))+")")
}

// safe makes names chosen by a project harmless for the terminal.
func safe(s string) string {
	return centurion.Clip(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?")), 400)
}

// secret reports whether a file is never given to an agent unasked, whatever a person's rules say.
func secret(path string) bool {
	levels := []permission.Level{{Name: permission.DefaultLevel, Rules: permission.Defaults(false)}}
	return permission.Decide(levels, "read", []string{path}).Action != permission.Allow
}
