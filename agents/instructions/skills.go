package instructions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"centurion"
	"centurion/guard"
)

// Limits of skills. Those of names and descriptions are from the standard.
const (
	maxName        = 64
	maxDescription = 1024 // characters
	maxSkills      = 256
	maxDepth       = 3        // directories between the place of skills and a SKILL.md
	maxListed      = 300      // bytes of a description in the list, which is in every request
	maxList        = 12 << 10 // bytes of the list; beyond it only names are listed
)

// Skill is a text that is loaded when work matches it.
type Skill struct {
	Name        string // lower-case letters, digits and single hyphens; equal to its directory's
	Description string // its purpose and when to use it
	Dir         string // for people: relative to the project, ~/… or absolute
	File        string // its SKILL.md, likewise
	Person      bool   // it is the person's own, not part of the project
	Body        string // without the front matter; only the head if longer than [MaxFile]
	Size        int    // bytes of the whole body
}

// Skills returns the available skills by name, and what was ignored and why. Of several with the same name the nearest counts: the
// project's before those of the directories above it and the person's, and .opencode before .claude before .agents.
func (f *Finder) Skills(ctx context.Context, withheld func(path string) bool) ([]Skill, []string, error) {
	if f == nil {
		return nil, nil, nil
	}
	s := skillSearch{search: search{ctx: ctx, cfg: f.cfg, want: Want{Withheld: withheld}}, byName: map[string]Skill{}}
	defer s.close()
	for _, t := range slices.Backward(s.levels()) {
		for _, dir := range []string{".opencode/skills", ".opencode/skill", ".claude/skills", ".agents/skills"} {
			s.below(t, dir, 0)
		}
	}
	for _, at := range []struct{ dir, skills string }{{f.cfg.OpenCode, "skills"}, {f.cfg.OpenCode, "skill"}, {f.cfg.Home, ".claude/skills"}, {f.cfg.Home, ".agents/skills"}} {
		if at.dir != "" {
			s.below(personTree(at.dir, f.cfg.Home), at.skills, 0)
		}
	}
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	all := slices.SortedFunc(maps.Values(s.byName), func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	return all, s.problems, nil
}

// Skill returns the skill with that name, ignoring case. The error has centurion.KindNotFound and suggests the nearest, or is that of
// ctx.
func (f *Finder) Skill(ctx context.Context, name string, withheld func(path string) bool) (Skill, error) {
	all, _, err := f.Skills(ctx, withheld)
	if err != nil {
		return Skill{}, err
	}
	names := make([]string, len(all))
	for i, s := range all {
		if strings.EqualFold(s.Name, strings.TrimSpace(name)) {
			return s, nil
		}
		names[i] = s.Name
	}
	e := &centurion.Error{Op: "load skill", Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no skill %q", name)}
	switch near := centurion.Nearest(name, names); {
	case near != "":
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	case len(names) > 0:
		e.Hint = "the skills are " + strings.Join(names, ", ")
	default:
		e.Hint = "there are none any more: do without"
	}
	return Skill{}, e
}

type skillSearch struct {
	search
	byName map[string]Skill
}

// below looks for skills in the directories of a directory.
func (s *skillSearch) below(t *tree, dir string, depth int) {
	if s.ctx.Err() != nil {
		return
	}
	names, err := t.names(dir)
	if err != nil && !isNotExist(err) {
		s.problem("%s: %v", t.show(dir), reason(err))
	}
	for _, name := range names {
		at := path.Join(dir, name)
		file := path.Join(at, "SKILL.md")
		switch _, data, err := t.read(file, s.want.Withheld); {
		case err == nil:
			s.add(t, at, data)
		case !isNotExist(err):
			s.problem("%s: %v", t.show(file), reason(err))
		case depth < maxDepth && t.isRealDir(at): // a link could lead in circles
			s.below(t, at, depth+1)
		}
	}
}

// add adds a skill.
func (s *skillSearch) add(t *tree, dir string, data []byte) {
	file := t.show(path.Join(dir, "SKILL.md"))
	skill, err := parse(normal(data), path.Base(dir))
	if err != nil {
		s.problem("%s: %v", file, err)
		return
	}
	skill.Dir, skill.File, skill.Person = t.show(dir), file, t.root == nil
	first, there := s.byName[skill.Name]
	switch {
	case there && skill.Person && !first.Person:
		s.problem("%s: the project has a skill of this name, which counts here (%s)", file, first.File)
	case there:
	case len(s.byName) == maxSkills:
		s.problem("%s and others: more than %d skills", file, maxSkills)
	default:
		s.byName[skill.Name] = skill
	}
}

// parse reads a SKILL.md: front matter with name and description, then the body. Other front matter, such as allowed tools, has no
// effect.
func parse(text, dir string) (Skill, error) {
	rest, ok := strings.CutPrefix(text, "---\n")
	yml, body, closed := strings.Cut("\n"+rest, "\n---")
	if !ok || !closed {
		return Skill{}, errors.New("it has no front matter with name and description between two lines ---")
	}
	if body != "" && body[0] != '\n' {
		return Skill{}, errors.New("the line that ends its front matter is not ---")
	}
	var front struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	err := guard.Call("read front matter", func() error { return yaml.Unmarshal([]byte(yml), &front) })
	if err != nil {
		return Skill{}, fmt.Errorf("its front matter cannot be read: %s", oneLine(err.Error(), 200))
	}
	switch n := utf8.RuneCountInString(front.Description); {
	case !validName(front.Name):
		return Skill{}, fmt.Errorf("its name %.80q is none: at most %d lower-case letters, digits and single hyphens", front.Name, maxName)
	case front.Name != dir:
		return Skill{}, fmt.Errorf("its name %q is not that of its directory, %q", front.Name, dir)
	case strings.TrimSpace(front.Description) == "":
		return Skill{}, errors.New("it has no description")
	case n > maxDescription:
		return Skill{}, fmt.Errorf("its description has %d characters, more than %d", n, maxDescription)
	}
	body = strings.TrimSpace(body)
	return Skill{Name: front.Name, Description: oneLine(front.Description, len(front.Description)), Body: head(body, MaxFile), Size: len(body)}, nil
}

func validName(s string) bool {
	for part := range strings.SplitSeq(s, "-") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return len(s) <= maxName
}

func oneLine(s string, limit int) string {
	return centurion.Clip(strings.Join(strings.Fields(s), " "), limit)
}

// List lists the skills for a model, one per line. It is empty without skills.
func List(all []Skill) string {
	var b strings.Builder
	for i, s := range all {
		line := fmt.Sprintf("- %s: %s\n", s.Name, oneLine(s.Description, maxListed))
		if b.Len()+len(line) > maxList {
			names := make([]string, 0, len(all)-i)
			for _, s := range all[i:] {
				names = append(names, s.Name)
			}
			b.WriteString("- and " + strings.Join(names, ", ") + "\n")
			break
		}
		b.WriteString(line)
	}
	return b.String()
}

// names returns the sorted entry names of a directory, whatever the entries are, and none if dir is no directory.
func (t *tree) names(dir string) ([]string, error) {
	fi, err := t.stat(dir)
	if err != nil || !fi.IsDir() {
		return nil, err
	}
	f, err := t.open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(4 * maxSkills)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

func (t *tree) isRealDir(name string) bool {
	fi, err := t.stat(name)
	if err != nil || !fi.IsDir() {
		return false
	}
	real, err := filepath.EvalSymlinks(t.path(name))
	parent, perr := filepath.EvalSymlinks(t.path(path.Dir(name)))
	return err == nil && perr == nil && real == filepath.Join(parent, path.Base(name))
}
