// Package goal builds the text of a goal from a slash command's template and the person's attached files.
package goal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"centurion"
	"centurion/config"
	"centurion/permission"
	"centurion/trust"
	"centurion/workspace"
)

// Limits of what a command may bring into a goal, in bytes.
const (
	maxAttached = 64 << 10 // of one file
	maxPrinted  = 32 << 10 // by one shell command
)

// Expansion turns a command's template into a goal.
type Expansion struct {
	Command   config.Command
	Args      string
	Workspace *workspace.Workspace
	Rules     []permission.Level                                                        // what may be read
	Run       func(context.Context, centurion.Command) (centurion.CommandResult, error) // runs the shell commands of the template
	Note      func(string)                                                              // prints what was not expanded
}

var (
	// placeholders are !`shell`, $ARGUMENTS and $1 to $9.
	placeholders = regexp.MustCompile("!`([^`\n]+)`|\\$ARGUMENTS\\b|\\$([1-9])\\b")
	// mentions are words that start with an @, as in OpenCode, but not user@host or `@x`.
	mentions = regexp.MustCompile("(?:^|[^\\w`@])@([^\\s`,@]+)")
)

// Expand fills in the template. Arguments are never treated as a template themselves, and the output of a shell command mentions no
// files.
func (e Expansion) Expand(ctx context.Context) (string, error) {
	text := e.Command.Template
	words := SplitArgs(e.Args)
	found := placeholders.FindAllStringSubmatchIndex(text, -1)
	highest, used := 0, false
	for _, at := range found {
		used = used || at[2] < 0
		if at[4] >= 0 {
			highest = max(highest, int(text[at[4]]-'0'))
		}
	}
	var out, said strings.Builder // said is out without the output of shell commands
	end := 0
	for _, at := range found {
		out.WriteString(text[end:at[0]])
		said.WriteString(text[end:at[0]])
		end = at[1]
		if at[2] >= 0 {
			printed, err := e.shell(ctx, text[at[2]:at[3]], words)
			if err != nil {
				return "", err
			}
			out.WriteString(printed)
			said.WriteByte('\n')
			continue
		}
		value := e.Args
		if at[4] >= 0 {
			value = positional(words, int(text[at[4]]-'0'), highest)
		}
		out.WriteString(value)
		said.WriteString(value)
	}
	out.WriteString(text[end:])
	said.WriteString(text[end:])
	if !used && e.Args != "" { // the template has no place for them
		out.WriteString("\n\n" + e.Args)
		said.WriteString("\n\n" + e.Args)
	}
	if err := e.attach(&out, said.String()); err != nil {
		return "", err
	}
	goal := strings.TrimSpace(out.String())
	switch {
	case goal == "":
		return "", e.fail(centurion.KindUsage, "its text is empty", "say what is to be done in its file, or after its name")
	case len(goal) > MaxSize:
		return "", e.fail(centurion.KindUsage, "its text is longer than "+centurion.Bytes(MaxSize), "attach fewer files")
	}
	return goal, nil
}

func (e Expansion) fail(kind centurion.Kind, msg, hint string) error {
	return &centurion.Error{Op: fmt.Sprintf("run /%s of %s", e.Command.Name, e.Command.File), Kind: kind, Msg: msg, Hint: hint}
}

// positional returns the n-th word; the template's highest one gets all remaining words.
func positional(words []string, n, highest int) string {
	switch {
	case n > len(words):
		return ""
	case n == highest:
		return strings.Join(words[n-1:], " ")
	}
	return words[n-1]
}

// SplitArgs splits a text at blanks, except inside quotes, which are removed.
func SplitArgs(text string) []string {
	var out []string
	for _, m := range argument.FindAllString(text, -1) {
		if len(m) > 1 && (m[0] == '"' || m[0] == '\'') && m[len(m)-1] == m[0] {
			m = m[1 : len(m)-1]
		}
		out = append(out, m)
	}
	return out
}

var argument = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)

// shell returns the output of a shell command in a template that is the person's own or trusted. The arguments are the script's parameters, not part of its
// text, so that they are never executed.
func (e Expansion) shell(ctx context.Context, script string, words []string) (string, error) {
	if e.Command.File == config.FromPlugins {
		return "", e.fail(centurion.KindPermission, fmt.Sprintf("a plugin has added it, and it wants to run `%s`", script), "put the command into a file of your own")
	}
	if e.Command.Project {
		return "", e.fail(centurion.KindPermission, fmt.Sprintf("it came with the project and is not trusted, and wants to run `%s`", script),
			"look at it, and trust it if you want to: "+trust.Command)
	}
	var params strings.Builder
	params.WriteString("set --")
	for _, w := range words {
		params.WriteString(" '" + strings.ReplaceAll(w, "'", `'\''`) + "'")
	}
	r, err := e.Run(ctx, centurion.Command{Script: params.String() + "\n" + script, Dir: e.Workspace.Dir(), Env: []string{"ARGUMENTS=" + e.Args}, Keep: maxPrinted})
	switch {
	case err != nil:
		return "", err
	case r.TimedOut:
		return "", e.fail(centurion.KindTimeout, fmt.Sprintf("`%s` did not end in %s", script, r.Duration.Round(1e9)), "use a command that ends sooner")
	}
	printed := strings.TrimRight(strings.ToValidUTF8(r.Output, "\uFFFD"), "\n")
	if r.ExitCode != 0 {
		printed += "\n(exit code " + strconv.Itoa(r.ExitCode) + ")"
	}
	return printed, nil
}

// attach adds the files that a text mentions below it, each once.
func (e Expansion) attach(out *strings.Builder, text string) error {
	var done []string
	for _, m := range mentions.FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(m[1], ".;:!?)]}>'\"")
		rel, err := e.Workspace.Rel(name)
		if err != nil || name == "" || slices.Contains(done, rel) {
			e.leave(name, err)
			continue
		}
		fi, err := e.Workspace.Stat(rel)
		if err != nil || !fi.Mode().IsRegular() {
			e.leave(name, err)
			continue
		}
		if d := permission.Decide(e.Rules, "read", []string{rel}); d.Action != permission.Allow {
			return e.fail(centurion.KindPermission, "it may not read "+rel+": "+d.Reason, "allow it with a rule under `permission`, or leave @"+name+" out")
		}
		content, err := e.content(rel)
		if err != nil {
			return err
		}
		done = append(done, rel)
		fmt.Fprintf(out, "\n\n<file path=%q>\n%s\n</file>", rel, content)
	}
	return nil
}

// leave reports a mention that looks like a file but is none in this project.
func (e Expansion) leave(name string, err error) {
	if path.Ext(name) == "" || e.Note == nil || err == nil {
		return
	}
	e.Note(fmt.Sprintf("/%s: @%s is left as it stands: %v", e.Command.Name, name, err))
}

// content reads the start of a file.
func (e Expansion) content(rel string) (string, error) {
	f, fi, err := e.Workspace.Open(rel)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxAttached))
	if err != nil {
		return "", &centurion.Error{Op: "read file", Kind: centurion.KindInternal, Err: err}
	}
	cut := ""
	if fi.Size() > int64(len(b)) {
		for len(b) > maxAttached-utf8.UTFMax && !utf8.Valid(b) { // a character was cut in two
			b = b[:len(b)-1]
		}
		cut = fmt.Sprintf("\n[the first %d of %d bytes]", len(b), fi.Size())
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", e.fail(centurion.KindUsage, rel+" is no text", "leave @"+rel+" out")
	}
	return strings.TrimRight(string(b), "\n") + cut, nil
}
