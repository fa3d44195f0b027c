// Package permission decides what an agent may do. It owns the rules, in OpenCode's format, the built-in defaults, and the analysis of
// shell scripts that lets a rule for "rm *" find rm anywhere. It is pure: it opens no file, runs nothing and asks no one; where a path
// leads is answered by functions of a [Place]. Carrying out a decision, and asking a person, is up to the caller.
//
// # How a decision is made
//
// Rules come in levels: the built-in defaults, the person's own configuration, the project's, the agent's, and what a person has
// approved with "always". Within a level the last matching rule decides, as in OpenCode. Levels are read in order and a later decision
// replaces an earlier one, except that a deny stays: no later level lifts it, so nothing in a repository can undo what a person has
// forbidden. Rules that refine each other therefore belong in one level. If no rule matches, the answer is ask. If an access has
// several patterns, the strictest answer counts: a deny beats an ask, which beats an allow.
//
// A pattern must match all of a path or command: * stands for any characters, including slashes, ? for one character, and a final " *"
// also for nothing, so that "git push *" covers a bare "git push". Case is ignored on Windows and macOS, as in file names.
package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"centurion"
	"centurion/text"
)

// Action is what happens to an access.
type Action string

// The actions, from mildest to strictest.
const (
	Allow Action = "allow" // it is allowed
	Ask   Action = "ask"   // a person is asked
	Deny  Action = "deny"  // it is refused
)

// rank orders actions by strictness.
func (a Action) rank() int {
	switch a {
	case Allow:
		return 0
	case Deny:
		return 2
	}
	return 1
}

// Network is the permission whose patterns are hosts, to which a confined command may connect. A port other than 80 and 443 is part of the
// name, as in "localhost:3000".
const Network = "network"

// DefaultLevel is the name of the level with [Defaults]. The analysis of a shell script refines only the decisions of this level: rules
// written by a person are taken literally.
const DefaultLevel = "default"

// Rule is one line of a permission configuration. Permission is a name such as read, edit or bash, possibly a pattern.
type Rule struct {
	Permission string `json:"permission"`
	Pattern    string `json:"pattern"`
	Action     Action `json:"action"`
}

// String returns the rule as a person would write it: `bash "git push *": deny`.
func (r Rule) String() string { return fmt.Sprintf("%s %q: %s", r.Permission, r.Pattern, r.Action) }

// Level is a list of rules from one place.
type Level struct {
	Name      string // the origin of the rules, for people: "default", "~/.config/opencode/opencode.json", "agent reviewer"
	Rules     []Rule
	Untrusted bool // its rules may only make a decision stricter: a project's file that no person has trusted yet
}

// Decision is the answer for one access.
type Decision struct {
	Action Action
	Rule   Rule   // the rule that decided; zero if none did
	Level  string // the level of that rule; "" if none did
	Reason string // for the model and the person: the rule, where it is, and what would change it
	late   late
}

// ByDefault reports whether no rule decided but a built-in one.
func (d Decision) ByDefault() bool { return d.Level == "" || d.Level == DefaultLevel }

// late is what a decision's reason is written from once it is known to count: most of a script's decisions do not.
type late struct{ permission, show, said string }

// told returns the decision with its reason.
func (d Decision) told() Decision {
	switch l := d.late; {
	case l == late{}:
		return d
	case l.said != "":
		d.Reason = fmt.Sprintf("%q %s", clip(l.show), l.said)
	default:
		d.Reason = reason(d, l.permission, l.show)
	}
	d.late = late{}
	return d
}

// Stricter returns the stricter of two decisions, d if they are equally strict.
func (d Decision) Stricter(e Decision) Decision {
	if e.Action.rank() > d.Action.rank() {
		return e
	}
	return d
}

// ParseRules reads the value of a "permission" key: an action for everything, or an object of permissions, each with an action or an
// object of patterns with actions. The rules keep the file's order, because the last match wins. Empty input and null mean no rules.
// Errors are [centurion.KindConfig], name the key and suggest the nearest action.
func ParseRules(raw json.RawMessage) ([]Rule, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	p := ruleParser{dec: json.NewDecoder(bytes.NewReader(raw))}
	err := p.value("permission", "*", func(permission string) error {
		return p.value("permission."+permission, permission, nil)
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return nil, configError("permission", "text follows after the value", "")
	}
	return p.rules, nil
}

type ruleParser struct {
	dec   *json.Decoder
	rules []Rule
}

// value reads an action, or an object whose keys are passed to each; if each is nil they are patterns of permission.
func (p *ruleParser) value(key, permission string, each func(string) error) error {
	tok, err := p.dec.Token()
	if err != nil {
		return configError(key, "not valid JSON: "+err.Error(), "")
	}
	switch v := tok.(type) {
	case nil:
		return nil
	case string:
		return p.add(key, permission, "*", v)
	case json.Delim:
		if v == '{' {
			break
		}
		return configError(key, "a list is not a permission", wantAction)
	default:
		return configError(key, fmt.Sprintf("%v is not a permission", v), wantAction)
	}
	for p.dec.More() {
		tok, err := p.dec.Token()
		if err != nil {
			return configError(key, "not valid JSON: "+err.Error(), "")
		}
		name, _ := tok.(string) // the decoder allows only strings here
		if each != nil {
			err = each(name)
		} else {
			err = p.action(key+"."+name, permission, name)
		}
		if err != nil {
			return err
		}
	}
	if _, err := p.dec.Token(); err != nil {
		return configError(key, "not valid JSON: "+err.Error(), "")
	}
	return nil
}

func (p *ruleParser) action(key, permission, pattern string) error {
	tok, err := p.dec.Token()
	if err != nil {
		return configError(key, "not valid JSON: "+err.Error(), "")
	}
	s, ok := tok.(string)
	if !ok {
		return configError(key, fmt.Sprintf("%v is not an action", tok), wantAction)
	}
	return p.add(key, permission, pattern, s)
}

func (p *ruleParser) add(key, permission, pattern, action string) error {
	switch a := Action(action); a {
	case Allow, Ask, Deny:
		p.rules = append(p.rules, Rule{permission, pattern, a})
		return nil
	}
	near := nearest(action)
	hint := text.If(near != "", fmt.Sprintf("did you mean %q?", near), wantAction)
	return configError(key, fmt.Sprintf("%q is not an action (%s)", action, wantAction), hint)
}

const wantAction = `use "allow", "ask" or "deny"`

func configError(key, msg, hint string) error {
	return &centurion.Error{Op: "read permissions", Kind: centurion.KindConfig, Msg: key + ": " + msg, Hint: hint}
}

// nearest returns the action that a word probably means, or "".
func nearest(word string) Action {
	word = strings.ToLower(strings.TrimSpace(word))
	synonyms := map[string]Action{"yes": Allow, "true": Allow, "ok": Allow, "no": Deny, "false": Deny, "never": Deny,
		"reject": Deny, "block": Deny, "prompt": Ask, "confirm": Ask}
	if a, ok := synonyms[word]; ok {
		return a
	}
	return Action(centurion.Nearest(word, []string{string(Allow), string(Ask), string(Deny)}))
}

// ExpandHome returns the rules with a leading ~ or $HOME of their patterns replaced by home, an absolute path.
func ExpandHome(rules []Rule, home string) []Rule {
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Pattern != "" && (r.Pattern[0] == '~' || r.Pattern[0] == '$') }) {
		return rules
	}
	out := make([]Rule, len(rules))
	for i, r := range rules {
		r.Pattern = expandHome(r.Pattern, home)
		out[i] = r
	}
	return out
}

func expandHome(p, home string) string {
	if home == "" {
		return p
	}
	for _, prefix := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok && (rest == "" || rest[0] == '/') {
			return home + rest
		}
	}
	return p
}

// Match reports whether all of s matches pattern; see the package comment for patterns.
func Match(pattern, s string) bool {
	if foldCase {
		pattern, s = strings.ToLower(pattern), strings.ToLower(s)
	}
	if head, ok := strings.CutSuffix(pattern, " *"); ok && glob(head, s) {
		return true
	}
	return glob(pattern, s)
}

const (
	windows  = runtime.GOOS == "windows"
	foldCase = windows || runtime.GOOS == "darwin"
)

// glob matches in O(len(pattern) · len(s)): on a mismatch it retries only the last star.
func glob(pattern, s string) bool {
	star, retry := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, retry = i, j
			i++
		case i < len(pattern) && pattern[i] == '?' && s[j] != 0:
			i++
			j += width(s[j:])
		case i < len(pattern) && pattern[i] == s[j]:
			i++
			j++
		case star >= 0:
			retry += width(s[retry:])
			i, j = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// width is the number of bytes of the first character of s, which is not empty.
func width(s string) int {
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// Decide answers an access of the given permission. Each pattern is decided on its own and the strictest answer counts; without
// patterns only "*" matches.
func Decide(levels []Level, permission string, patterns []string) Decision {
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	d := decideOne(levels, permission, patterns[0])
	for _, p := range patterns[1:] {
		d = d.Stricter(decideOne(levels, permission, p))
	}
	return d.told()
}

func decideOne(levels []Level, permission, pattern string) Decision {
	d := Decision{Action: Ask}
	for _, l := range levels {
		for i := len(l.Rules) - 1; i >= 0; i-- {
			r := l.Rules[i]
			if r.Permission != permission && !Match(r.Permission, permission) || !Match(r.Pattern, pattern) {
				continue
			}
			// The analysis of a shell script may allow what the defaults ask about, but not what a file asks about.
			if !l.Untrusted || r.Action.rank() > d.Action.rank() || r.Action == Ask && d.Action == Ask && d.ByDefault() {
				d = Decision{Action: r.Action, Rule: r, Level: l.Name}
			}
			break
		}
		if d.Action == Deny {
			break // no later level lifts a deny
		}
	}
	d.late = late{permission: permission, show: pattern}
	return d
}

// Widens returns the rules that would make a decision milder if they came after the levels, which an untrusted level cannot do.
// Patterns are compared literally.
func Widens(levels []Level, rules []Rule) []Rule {
	var out []Rule
	for _, r := range rules {
		wider := decideOne(levels, r.Permission, r.Pattern).Action.rank() > r.Action.rank()
		for _, l := range levels {
			for _, before := range l.Rules {
				wider = wider || before.Action.rank() > r.Action.rank() && Match(r.Permission, before.Permission) && Match(r.Pattern, before.Pattern)
			}
		}
		if wider {
			out = append(out, r)
		}
	}
	return out
}

// reason explains a decision and what would change it.
func reason(d Decision, permission, pattern string) string {
	what := permission + text.When(pattern != "", fmt.Sprintf(" of %q", clip(pattern)))
	switch {
	case d.Level == "":
		return fmt.Sprintf("%s needs approval: no rule covers it (a rule for %q in the permission configuration stops this question)",
			what, permission)
	case d.Action == Deny:
		return fmt.Sprintf("%s is denied by the rule %s in %s; change that rule to permit it", what, d.Rule, d.Level)
	case d.Action == Ask:
		return fmt.Sprintf("%s needs approval by the rule %s in %s (an allow rule stops this question)", what, d.Rule, d.Level)
	}
	return fmt.Sprintf("%s is allowed by the rule %s in %s", what, d.Rule, d.Level)
}

// clip shortens a script to a readable line.
func clip(s string) string { return centurion.Clip(s, 200) }

// secretRules ask about files that usually hold secrets, anywhere in the tree. The last three patterns are examples without secrets.
var secretRules = sync.OnceValue(func() []Rule {
	secret := []string{"*.env", "*.env.*", "*.envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
		"*.netrc", "*.pgpass", "*.npmrc", "*.pypirc", "*.htpasswd", "*.git-credentials", "*credentials", "*credentials.json",
		"*credentials.toml", "*credentials.y*ml", "*secrets.json", "*secrets.y*ml", "*secrets.toml", "*service-account*.json",
		"id_rsa*", "*/id_rsa*", "id_ed25519*", "*/id_ed25519*", "id_ecdsa*", "*/id_ecdsa*", "id_dsa*", "*/id_dsa*",
		".ssh/*", "*/.ssh/*", ".aws/*", "*/.aws/*", ".gnupg/*", "*/.gnupg/*"}
	var rules []Rule
	for i, p := range append(secret, "*.env.example", "*.env.sample", "*.env.template") {
		action := Ask
		if i >= len(secret) {
			action = Allow
		}
		rules = append(rules, Rule{"read", p, action})
	}
	return rules
})

// Secret reports whether a path names a file that usually holds secrets, such as .env or id_rsa.
func Secret(name string) bool {
	name = path.Clean(slash(name))
	secret := false
	for _, r := range secretRules() {
		if Match(r.Pattern, name) {
			secret = r.Action == Ask
		}
	}
	return secret
}

// Defaults returns the built-in rules: everything in the project may be read and edited, but reading files that usually hold secrets
// asks first, as do everything outside, the network, and endlessly repeated calls. Shell commands ask, or are allowed if the child is
// confined; [DecideShell] refines that by what a script does.
func Defaults(confined bool) []Rule {
	bash := Ask
	if confined {
		bash = Allow
	}
	rules := []Rule{{"read", "*", Allow}}
	rules = append(rules, secretRules()...)
	for _, p := range []string{"edit", "write", "ls", "list", "glob", "grep", "todowrite", "update_todo", "task", "question", "skill"} {
		rules = append(rules, Rule{p, "*", Allow})
	}
	return append(rules, Rule{"bash", "*", bash}, Rule{"external_directory", "*", Ask}, Rule{Network, "*", Ask}, Rule{"webfetch", "*", Ask},
		Rule{"websearch", "*", Ask}, Rule{"codesearch", "*", Ask}, Rule{"doom_loop", "*", Ask})
}
