package permission

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"centurion/text"
)

// Place is where a script runs, and what is known of the files there. The two functions look at the file system for this package, which
// opens no file; without them the analysis is lexical.
type Place struct {
	Dir     string // the project's directory, absolute
	Workdir string // where the script runs, relative to Dir; its paths start there
	Home    string // the home directory
	// Follow returns where an absolute path that is not cleaned leads when all links are followed: relative to Dir with slashes inside
	// it, absolute outside, and nothing if there is no such file. glob says that the path is a pattern of files, and deep that the links
	// below a directory count, too. ok is false if these are too many.
	Follow func(name string, glob, deep bool) (targets []string, ok bool)
	// GitRuns says what the configuration of the repository around an absolute directory makes reading commands of git run; "" for
	// nothing.
	GitRuns func(dir string) string
}

// Shell is what a script does, as far as its text and [Place] show. The analysis does not see what a program or script file does when
// run, or that a recursive search finds a hidden file.
type Shell struct {
	Commands []string // every simple command anywhere in it, as text without quotes, for rule matching
	Always   []string // the patterns that "always" would allow: "go test *"; none if only "once" makes sense
	Paths    []string // the outside paths that "always" would allow too, as patterns of external_directory; none without Always
	ReadOnly bool     // it plainly only reads, inside the directory, and no file that usually holds secrets
	Outside  []string // absolute paths outside the directory that it touches, or ~user
	Network  bool     // it uses the network
	Push     bool     // it publishes something: git push, npm publish
	Err      error    // it cannot be parsed
	Why      string   // why it is not ReadOnly; "" if it is
}

// ParseShell analyses the text of a shell script for execution in dir, an absolute path, with the home directory home, without looking
// at the file system: see [Place.Parse].
func ParseShell(script, dir, home string) Shell { return Place{Dir: dir, Home: home}.Parse(script) }

// Parse analyses a shell script. It is parsed as bash; a command that dash or another system's sh would read differently counts as
// unknown.
func (p Place) Parse(script string) Shell {
	a := analyze(script, p)
	s := Shell{Outside: a.outside, Err: a.err}
	for _, u := range a.units {
		s.Network = s.Network || u.network
		s.Push = s.Push || u.push
		if u.guessed {
			continue
		}
		s.Commands = text.Union(s.Commands, u.show)
		s.Why = cmp.Or(s.Why, u.why)
		if u.why != "" && u.always != "" && !u.opaque {
			s.Always = text.Union(s.Always, u.always)
		}
	}
	if len(a.outside) > 0 {
		s.Why = cmp.Or(s.Why, a.outside[0]+" lies outside the project")
	}
	if !slices.ContainsFunc(a.units, func(u unit) bool { return !u.guessed && u.why != "" && (u.opaque || u.always == "") }) {
		s.Paths = a.beyond()
	}
	for _, p := range a.reads {
		if s.Why == "" && Secret(p) {
			s.Why = p + " usually holds secrets"
		}
	}
	s.ReadOnly = s.Why == ""
	for _, u := range a.units {
		if s.ReadOnly && !u.guessed && u.always != "" && !u.opaque { // only a rule of the person's asks about it
			s.Always = text.Union(s.Always, u.always)
		}
	}
	return s
}

// beyond lists the outside paths as patterns for "always": for a written file its directory, as for the tools that write files, and
// otherwise only the named path.
func (a *analyzer) beyond() (out []string) {
	for _, p := range a.outside {
		if strings.ContainsAny(p, "*?~"+unknown) {
			continue
		}
		if dir := path.Dir(p); slices.Contains(a.writes, p) && dir != "/" && dir != path.Clean(slash(a.place.Home)) {
			p = dir + "/*"
		}
		out = text.Union(out, p)
	}
	return out
}

// analysis is a finished analyzer.
type analysis struct {
	*analyzer
	err error
}

func analyze(script string, p Place) analysis {
	a := &analyzer{place: p, shared: &shared{parser: syntax.NewParser(syntax.Variant(syntax.LangBash))}, dirs: []string{path.Join(slash(p.Dir), slash(p.Workdir))}}
	if err := a.script(script); err != nil {
		a.units = nil
		a.seeds = append(a.seeds, script)
		a.add(unit{match: unknown, show: script, alts: []string{script}, opaque: true, why: "it cannot be parsed: " + err.Error()})
		for line := range strings.Lines(script[:min(len(script), maxText)]) { // the readable part may still be denied
			a.guessScript(line, a.depth+1)
		}
		return analysis{a, err}
	}
	a.finish()
	slices.Sort(a.reads)
	a.reads = slices.Compact(a.reads)
	return analysis{a, nil}
}

// DecideShell answers a bash access by the text of the script alone: see [Place.Decide].
func DecideShell(levels []Level, script, dir, home string, confined bool) Decision {
	return Place{Dir: dir, Home: home}.Decide(levels, script, confined)
}

// Decide answers a bash access: the strictest answer for anything the script does.
//
// Every simple command, wherever it is and however it is disguised, is matched against the rules for bash. Decisions of the default
// level are refined: a command that plainly only reads is allowed and, if the child is confined, so is any other that neither uses the
// network nor hides what it runs; the network is no reason to ask, either, if a rule allows it to hosts by name. A command that is unknown
// before it runs asks, unless its rule allows everything and no rule denies or asks for anything it could turn out to be. Paths outside the directory are decided as external_directory, and files that are read
// or written as read and edit, under the name that is written and where that leads.
func (p Place) Decide(levels []Level, script string, confined bool) Decision {
	levels = slices.Clone(levels)
	for i := range levels {
		levels[i].Rules = ExpandHome(levels[i].Rules, p.Home)
	}
	a := analyze(script, p)
	named := confined && NamesHosts(levels)
	var d Decision
	take := func(e Decision) {
		if d == (Decision{}) {
			d = e
		}
		d = d.Stricter(e)
	}
	for _, u := range a.units {
		if !u.guessed {
			take(u.decide(levels, confined, named))
		}
		for _, alt := range u.alts {
			e := decideText(levels, "bash", alt, u.show)
			if e.Action == Deny || e.Action == Ask && e.Level != DefaultLevel && e.Level != "" && !u.guessed {
				take(e)
			}
		}
	}
	for _, p := range a.outside {
		take(Decide(levels, "external_directory", []string{p}))
	}
	for _, p := range a.reads {
		if e := Decide(levels, "read", []string{p}); e.Level != "" {
			take(e)
		}
	}
	for _, p := range a.writes {
		if e := decideText(levels, "edit", p, strings.ReplaceAll(p, unknown, "…")); e.Level != "" {
			take(e)
		}
	}
	return cmp.Or(d, Decision{Action: Allow, Level: DefaultLevel, Reason: "it does nothing"}).told()
}

// NamesHosts reports whether a trusted rule allows connections to some host.
func NamesHosts(levels []Level) bool {
	return slices.ContainsFunc(levels, func(l Level) bool {
		return !l.Untrusted && slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Permission == Network && r.Action == Allow })
	})
}

// decide answers for one command.
func (u unit) decide(levels []Level, confined, named bool) Decision {
	d := decideText(levels, "bash", u.match, u.show)
	if d.ByDefault() {
		d = doubt(levels, u.refine(d, confined, named), "bash", u.match, u.show)
	}
	if !u.opaque || d.Action != Allow {
		return d
	}
	if d.Rule.Pattern != "*" {
		d.Action = Ask
		d.late.said = fmt.Sprintf("asks although the rule %s in %s matches, because %s", d.Rule, d.Level, u.why)
		d.late.show = u.show
	}
	return doubt(levels, d, "bash", unknown, u.show)
}

// refine turns the default level's decision into an answer for what the command does.
func (u unit) refine(d Decision, confined, named bool) Decision {
	if d.Action == Deny {
		return d
	}
	why := ""
	d.Action = Ask
	switch {
	case u.why == "":
		d.Action, why = Allow, "plainly only reads"
	case u.push:
		why = "needs approval: it publishes something (a bash rule for it stops this question)"
	case u.network && !named:
		why = "needs approval: it uses the network (a bash rule for it stops this question)"
	case confined && !u.opaque:
		d.Action, why = Allow, "is allowed because commands are confined to the project"
	default:
		why = "needs approval: " + u.why + " (a bash rule for it stops this question)"
	}
	d.late = late{show: u.show, said: why}
	return d
}

// decideText is [Decide] for one text that may have unknown parts.
func decideText(levels []Level, permission, text, show string) Decision {
	d := decideOne(levels, permission, text)
	if d.Level == "" {
		show = strings.ReplaceAll(text, unknown, "…")
	}
	d.late = late{permission: permission, show: show}
	return doubt(levels, d, permission, text, show)
}

// doubt turns an allow for a text with unknown parts into an ask if a rule would deny or ask for something the text could turn out to
// be.
func doubt(levels []Level, d Decision, permission, text, show string) Decision {
	if d.Action != Allow || !strings.Contains(text, unknown) {
		return d
	}
	for _, l := range levels {
		if l.Name == DefaultLevel {
			continue // the allowing rule has lifted this ask
		}
		for i := len(l.Rules) - 1; i >= 0; i-- {
			r := l.Rules[i]
			if !Match(r.Permission, permission) {
				continue
			}
			if Match(r.Pattern, text) {
				break
			}
			if r.Action != Allow && couldMatch(r.Pattern, text) {
				d.Action, d.Rule, d.Level, d.late = Ask, r, l.Name, late{}
				d.Reason = fmt.Sprintf("%s of %q asks because it could turn out to be what the rule %s in %s speaks of",
					permission, clip(show), r, l.Name)
				return d
			}
		}
	}
	return d
}

// couldMatch reports whether pattern matches for some value of the unknown parts of text.
func couldMatch(pattern, text string) bool {
	if head, ok := strings.CutSuffix(pattern, " *"); ok && couldMatch(head, text) {
		return true
	}
	if foldCase {
		pattern, text = strings.ToLower(pattern), strings.ToLower(text)
	}
	p, t := []rune(pattern), []rune(text)
	// row[j] says whether the pattern so far and the first j runes of the text have a string in common.
	row := make([]bool, len(t)+1)
	row[0] = true
	for j := 0; j < len(t) && t[j] == 0; j++ {
		row[j+1] = true
	}
	for i := range p {
		next := make([]bool, len(t)+1)
		next[0] = row[0] && p[i] == '*'
		for j := range t {
			switch {
			case p[i] == '*':
				next[j+1] = next[j] || row[j+1]
			case t[j] == 0:
				next[j+1] = next[j] || row[j+1] || row[j]
			default:
				next[j+1] = row[j] && (p[i] == '?' || p[i] == t[j])
			}
		}
		row = next
	}
	return row[len(t)]
}
