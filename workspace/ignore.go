package workspace

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxIgnoreFile is the largest .gitignore that is read, in bytes; larger ones are not written by people.
const maxIgnoreFile = 1 << 20

// ruleSet is the ignore rules of one directory of a walk. The last matching rule decides, as in git.
type ruleSet struct {
	prefix []string // from the root of the git repository to the project
	rules  []rule
}

// rule is one line of a .gitignore. go-git's patterns match a path if one of its parents matches, so that `!keep` would include
// everything in a directory called keep. A walk asks at every level, so each rule is given only the part of a path that it covers.
type rule struct {
	pattern gitignore.Pattern
	domain  int  // length of the path of the file's directory
	names   int  // length of the pattern; 0 if it contains ** and so covers any depth
	least   int  // minimum length of a path below the directory
	deep    bool // matches at any depth below its directory
}

func (s ruleSet) ignores(rel string, isDir bool) bool {
	path := slices.Concat(s.prefix, strings.Split(rel, "/"))
	for _, r := range slices.Backward(s.rules) {
		if m := r.match(path, isDir); m != gitignore.NoMatch {
			return m == gitignore.Exclude
		}
	}
	return false
}

func (r rule) match(path []string, isDir bool) gitignore.MatchResult {
	below := len(path) - r.domain
	switch {
	case below < r.least:
		return gitignore.NoMatch
	case r.deep:
		path = slices.Concat(path[:r.domain], path[len(path)-r.names:])
	case r.names > 0 && below != r.names:
		return gitignore.NoMatch
	}
	return r.pattern.Match(path, isDir)
}

// with adds the rules of a directory of the project.
func (s ruleSet) with(w *Workspace, dir string) ruleSet {
	names := []string{".gitignore"}
	if dir == "." {
		names = []string{".git/info/exclude", ".gitignore"}
	}
	domain := s.prefix
	if dir != "." {
		domain = slices.Concat(s.prefix, strings.Split(dir, "/"))
	}
	for _, name := range names {
		from := w
		if w.project != nil && name != ".gitignore" {
			from = w.project // a checkout does not have this file
		}
		b, _, err := from.ReadFile(path.Join(dir, name), maxIgnoreFile)
		if err == nil {
			s.rules = append(slices.Clip(s.rules), parseIgnore(string(b), domain)...)
		}
	}
	return s
}

// outerRules returns the rules of the git repository around the project, if the project is not a repository itself. What lies around it
// is in no workspace.
func (w *Workspace) outerRules() (s ruleSet) {
	if _, err := w.root.Lstat(".git"); err == nil {
		return s
	}
	for dir := w.dir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		top := &Workspace{dir: dir, given: dir, root: onHost(dir)}
		if _, err := top.root.Lstat(".git"); err != nil {
			continue
		}
		inner, _ := below(dir, w.dir)
		for _, above := range ancestors(inner) {
			s = s.with(top, above)
		}
		s.prefix = strings.Split(inner, "/")
		break
	}
	return s
}

func parseIgnore(text string, domain []string) []rule {
	var rules []rule
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		rules = append(rules, parseRule(line, domain))
	}
	return rules
}

func parseRule(line string, domain []string) rule {
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " ")
	}
	body, not := strings.CutPrefix(line, "!")
	body, dirOnly := strings.CutSuffix(body, "/")
	r := rule{domain: len(domain)}
	for strings.HasPrefix(body, "**/") {
		body, r.deep = body[len("**/"):], true
	}
	if !strings.Contains(body, "/") {
		r.deep = true
	}
	body = strings.TrimPrefix(body, "/")
	parts := strings.Split(body, "/")
	if slices.Contains(parts, "**") {
		r.deep = false
	} else {
		r.names = len(parts)
	}
	for i, p := range parts {
		if p != "**" || i == len(parts)-1 { // a/** matches the content of a, not a
			r.least++
		}
	}
	for i, p := range parts {
		p = strings.ReplaceAll(p, "[!", "[^") // git accepts both, package filepath only one
		if p != "**" {
			for strings.Contains(p, "**") {
				p = strings.ReplaceAll(p, "**", "*") // within a name two stars are one
			}
		}
		parts[i] = p
	}
	body = "/" + strings.Join(parts, "/")
	if dirOnly {
		body += "/"
	}
	if not {
		body = "!" + body
	}
	r.pattern = gitignore.ParsePattern(body, domain)
	return r
}
