package todo

import (
	"fmt"
	"slices"
	"strings"
)

// attributeOf parses `key: value`. The key is one word, returned in lower case.
func attributeOf(s string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(s, ":")
	if !ok || key == "" || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", "", false
	}
	for i := range len(key) {
		c := key[i]
		if !isLetter(c) && (i == 0 || (c < '0' || c > '9') && c != '-' && c != '_') {
			return "", "", false
		}
	}
	return strings.ToLower(key), strings.TrimSpace(value), true
}

// set applies an attribute of line at to the item.
func (n *node) set(d *Doc, at int, key, value string) {
	switch key {
	case "note":
		n.Notes = append(n.Notes, value)
		return
	case "after", "files", "race", "verify", "proof":
		if value == "" {
			d.problem(at, fmt.Sprintf("%s: of %s is empty", key, n.name()), n)
			return
		}
	}
	switch key {
	case "after":
		n.afterLine = at
		for _, id := range list(value) {
			// Models write these for "nothing"; they are not ids anyway.
			if low := strings.ToLower(id); low != "none" && id != "-" {
				n.After = append(n.After, strings.Fields(id)...)
			}
		}
	case "files":
		n.Files = append(n.Files, list(value)...)
	case "race":
		n.raceLine = at
		for _, agent := range list(value) {
			n.Race = append(n.Race, strings.TrimPrefix(agent, "@"))
		}
	case "verify":
		c, ok := command(value)
		if !ok {
			d.problem(at, fmt.Sprintf("verify: of %s needs one command, all of it in one pair of backticks", n.name()), n)
			return
		}
		n.Verify = append(n.Verify, c)
	case "proof":
		n.Proof = unquote(value)
		if !proofs(n.Proof) {
			d.problem(at, fmt.Sprintf("proof: of %s is %q: the only value is %s", n.name(), n.Proof, ProofRegression), n)
		}
	default:
		if n.Attrs == nil {
			n.Attrs = map[string][]string{}
		}
		n.Attrs[key] = append(n.Attrs[key], unquote(value))
	}
}

// MaxRace is the most tries of one item: each costs as much as the item alone.
const MaxRace = 5

// notRun says why the item's race cannot be run, or returns "".
func (n *node) notRun() string {
	i := slices.IndexFunc(n.Race, func(agent string) bool { return !isAgent(agent) })
	switch {
	case len(n.Race) == 0:
	case i >= 0:
		return fmt.Sprintf("has %q, which is no name of an agent", n.Race[i])
	case len(n.Race) == 1:
		return fmt.Sprintf("names one agent: name two or more, or write @%s behind the title", n.Race[0])
	case len(n.Race) > MaxRace:
		return fmt.Sprintf("names %d agents: at most %d can try one item", len(n.Race), MaxRace)
	case len(n.Verify) == 0:
		return "needs a verify: of the item, which tells whose work is right"
	}
	return ""
}

// proofs reports whether a value of proof: is known; an empty one means the default.
func proofs(value string) bool { return value == "" || value == ProofRegression }

// command parses the value of a verify attribute. A value that only begins with code is refused: run literally it would be another
// command than intended.
func command(value string) (string, bool) {
	if value == "" {
		return "", false
	}
	if value[0] != '`' {
		return value, true
	}
	c := unquote(value)
	return c, c != value && strings.TrimSpace(c) != ""
}

// unquote removes the backticks from a value that is a single code span.
func unquote(s string) string {
	inner := strings.TrimLeft(s, "`")
	ticks := len(s) - len(inner)
	if ticks == 0 {
		return s
	}
	fence := s[:ticks]
	inner, ok := strings.CutSuffix(inner, fence)
	if !ok || strings.HasSuffix(inner, "`") {
		return s
	}
	run := 0
	for i := range len(inner) {
		if inner[i] == '`' {
			run++
			continue
		}
		if run == ticks {
			return s // it ends before the end
		}
		run = 0
	}
	if len(inner) > 1 && inner[0] == ' ' && inner[len(inner)-1] == ' ' && strings.Trim(inner, " ") != "" {
		inner = inner[1 : len(inner)-1] // spaces that allow code to begin with a backtick
	}
	return inner
}

// quote puts a value into backticks so that unquote returns it.
func quote(s string) string {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		return fence + " " + s + " " + fence
	}
	return fence + s + fence
}

// list splits a value at its commas, except inside backticks or braces, and drops empty entries.
func list(s string) []string {
	var out []string
	start, depth, code := 0, 0, false
	add := func(end int) {
		if v := unquote(strings.TrimSpace(s[start:end])); v != "" {
			out = append(out, v)
		}
		start = end + 1
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c == '`':
			code = !code
		case code:
		case c == '{':
			depth++
		case c == '}':
			depth = max(0, depth-1)
		case c == ',' && depth == 0:
			add(i)
		}
	}
	add(len(s))
	return out
}

// joinList joins values without backticks so that list returns them.
func joinList(values []string) string {
	if plain := strings.Join(values, ", "); slices.Equal(list(plain), values) {
		return plain
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = quote(v)
	}
	return strings.Join(quoted, ", ")
}
