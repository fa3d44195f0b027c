package verify

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"centurion"
)

// role is the role of a piece of a change in a proof.
type role int

const (
	work     role = iota // it is reverted
	check                // it stays: a test, or a file named by the command
	manifest             // it stays, because without it only the build would break: the project's dependencies
)

// changes is a diff divided by roles.
type changes struct {
	diff    []centurion.FileDiff
	command string
	inline  map[string]lines  // by path: the place of its tests in the new file
	mixed   map[string][]byte // by path: the old content with the new tests, if a hunk has both work and tests
	all     bool              // manifests are the only work
}

// lines is a range of lines, from 1, both ends included.
type lines struct{ first, last int }

func (c changes) any(want role) bool {
	return slices.ContainsFunc(c.diff, func(f centurion.FileDiff) bool { return c.pieces(f, want) })
}

// role returns the role of a hunk, or of a file without hunks if h is nil.
func (c changes) role(f centurion.FileDiff, h *centurion.Hunk) role {
	switch {
	case testFile(f.Path), c.named(f.Path):
		return check
	case manifestFile(f.Path):
		if c.all {
			return work
		}
		return manifest
	}
	if in, ok := c.inline[f.Path]; ok && h != nil && c.mixed[f.Path] == nil {
		if at := touchedBy(*h); !at.outside(in) {
			return check
		}
	}
	return work
}

func (c changes) named(file string) bool {
	return slices.ContainsFunc(scripts(c.command), func(s string) bool { return file == s || strings.HasSuffix(file, "/"+s) })
}

// split separates work and checks. It reads files that contain both.
func (p *proving) split(ctx context.Context, diff []centurion.FileDiff) (changes, error) {
	c := changes{diff: diff, command: p.work.Command, inline: map[string]lines{}, mixed: map[string][]byte{}}
	for _, f := range diff {
		if path.Ext(f.Path) != ".rs" || f.Status == "deleted" || len(f.Hunks) == 0 {
			continue
		}
		after, err := p.trees.Read(ctx, p.work.After, f.Path)
		if err != nil {
			return c, err
		}
		in, ok := inlineTests(after)
		if !ok {
			continue
		}
		c.inline[f.Path] = in
		if slices.ContainsFunc(f.Hunks, func(h centurion.Hunk) bool { at := touchedBy(h); return at.outside(in) && at.in(in.first, in.last) }) {
			before, err := p.old(ctx, f)
			if err != nil {
				return c, err
			}
			c.mixed[f.Path] = graft(before, after, in)
		}
	}
	c.all = !c.any(work) && c.any(manifest)
	return c, nil
}

// old reads the old content of a changed file; empty if it did not exist.
func (p *proving) old(ctx context.Context, f centurion.FileDiff) ([]byte, error) {
	if f.Status == "added" {
		return nil, nil
	}
	name := f.Path
	if f.Old != "" {
		name = f.Old
	}
	b, err := p.trees.Read(ctx, p.work.Before, name)
	if centurion.KindOf(err) == centurion.KindNotFound {
		return nil, nil
	}
	return b, err
}

// inlineTests finds a Rust file's module of tests: from #[cfg(test)] to the closing brace in the attribute's column.
func inlineTests(src []byte) (lines, bool) {
	all := strings.Split(string(src), "\n")
	for i, l := range all {
		body := strings.TrimLeft(l, " \t")
		if !strings.HasPrefix(body, "#[cfg(test)]") {
			continue
		}
		indent := l[:len(l)-len(body)]
		for j := i + 1; j < len(all); j++ {
			if strings.TrimRight(all[j], " \t\r") == indent+"}" {
				return lines{i + 1, j + 1}, true
			}
		}
		return lines{i + 1, len(all)}, true
	}
	return lines{}, false
}

// graft replaces the tests of before by those of after.
func graft(before, after []byte, in lines) []byte {
	tests := strings.Join(strings.Split(string(after), "\n")[in.first-1:in.last], "\n")
	if old, ok := inlineTests(before); ok {
		all := strings.Split(string(before), "\n")
		return []byte(strings.Join(slices.Concat(all[:old.first-1], []string{tests}, all[old.last:]), "\n"))
	}
	return slices.Concat(bytes.TrimRight(before, "\n"), []byte("\n\n"+tests+"\n"))
}

// testDirs are directories of tests or their data.
var testDirs = []string{"test", "tests", "__tests__", "testdata", "fixtures", "__fixtures__", "__snapshots__", "snapshots", "golden", "spec",
	"specs", "e2e", "androidTest", "testFixtures", "testing", "__mocks__", "mocks", "Tests", "UnitTests", "cypress"}

// testNames matches the names of test files in the usual languages.
var testNames = centurion.Pattern(`^(?:` + strings.Join([]string{
	`.+_test\.(?:go|py|rb|exs?|cc|cpp|cxx|c|rs|dart|lua|clj|php|sh|ml|bats|zig)`,
	`test_.+\.(?:py|rb|c|cc|cpp|rs|sh|lua|php|zig)|tests?\.(?:py|rs|sh|c|cc|cpp|[cm]?[jt]sx?|rb|php|zig)|conftest\.py|test-.+\.(?:[cm]?[jt]sx?|sh|c)`,
	`.+[.\-_](?:test|tests|spec|e2e|cy|test-d)\.[cm]?[jt]sx?`,
	`(?:jest|vitest|tests?)[.\-](?:setup|globals?)\.[cm]?[jt]sx?|setup[.\-]?(?:[Tt]ests?|jest|vitest)\.[cm]?[jt]sx?`,
	`.+_spec\.(?:rb|lua|cr)|(?:spec|test|rails)_helper\.(?:rb|exs)`,
	`.+_unittest\.(?:cc|cpp|cxx)|.+_tests\.rs`,
	`(?:Test[A-Z]\w*|[A-Z]\w*(?:Tests?|TestCase|IT|Spec|Specs))\.(?:java|kt|kts|scala|groovy|cs|fs|vb|swift|php|m|mm|cpp)`,
	`.+\.(?:bats|t|snap|golden|approved\.\w+|feature)`,
	`(?:pytest\.ini|tox\.ini|phpunit\.xml(?:\.dist)?|\.rspec|\.mocharc\.\w+|(?:jest|vitest|karma|playwright|cypress|ava|web-test-runner)\.(?:config|workspace)(?:\.\w+)?\.\w+|\.coveragerc|nextest\.toml)`,
}, "|") + `)$`)

// testFile reports whether a path, with slashes, is that of a test, of test data, or of a test runner's configuration.
func testFile(file string) bool {
	dir, name := path.Split(file)
	if testNames().MatchString(name) {
		return true
	}
	for part := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if slices.Contains(testDirs, part) || strings.HasSuffix(part, ".Tests") || strings.HasSuffix(part, "Tests") && part != "" {
			return true
		}
	}
	return false
}

// documents reports whether all the work is text for people, which no test runs: a text search is its check.
func (c changes) documents() bool {
	return !slices.ContainsFunc(c.diff, func(f centurion.FileDiff) bool {
		name := path.Base(f.Path)
		return !slices.Contains([]string{".md", ".markdown", ".rst", ".adoc", ".txt", ".org", ".tex"}, strings.ToLower(path.Ext(name))) &&
			!slices.Contains([]string{"README", "LICENSE", "CHANGELOG", "NOTICE", "AUTHORS", "COPYING"}, name) && c.pieces(f, work)
	})
}

// pieces reports whether a file's change has a piece of a role.
func (c changes) pieces(f centurion.FileDiff, want role) bool {
	if len(f.Hunks) == 0 {
		return c.role(f, nil) == want
	}
	return slices.ContainsFunc(f.Hunks, func(h centurion.Hunk) bool { return c.role(f, &h) == want })
}

// manifests are the files that declare a project's dependencies.
var manifests = []string{"go.mod", "go.sum", "go.work", "go.work.sum", "package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock",
	"pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", "deno.json", "deno.lock", "Cargo.toml", "Cargo.lock", "pyproject.toml", "setup.py",
	"setup.cfg", "requirements.txt", "requirements-dev.txt", "Pipfile", "Pipfile.lock", "poetry.lock", "uv.lock", "Gemfile", "Gemfile.lock", "composer.json",
	"composer.lock", "mix.exs", "mix.lock", "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.lockfile",
	"CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "meson.build", "Package.swift", "Package.resolved", "packages.lock.json", "pubspec.yaml", "pubspec.lock", "rebar.config",
	"BUILD.bazel", "MODULE.bazel", "build.zig", "build.zig.zon"}

// tsManifests matches build settings of JavaScript and TypeScript.
var tsManifests = centurion.Pattern(`^(?:[tj]sconfig(?:[.\-].+)?\.json|(?:vite|babel)\.config\.\w+|\.babelrc(?:\.\w+)?|\.swcrc)$`)

func manifestFile(file string) bool {
	name := path.Base(file)
	return slices.Contains(manifests, name) || tsManifests().MatchString(name) || slices.Contains([]string{".csproj", ".fsproj", ".vbproj", ".sln", ".gemspec"}, path.Ext(name))
}

// interpreters matches programs that run their first file argument.
var interpreters = centurion.Pattern(`^(?:bash|sh|zsh|dash|ksh|fish|source|\.|python[\d.]*|pypy3?|node|nodejs|deno|bun|tsx|ts-node|ruby|perl|php|lua|Rscript|pwsh|osascript|julia|elixir|escript|bats)$`)

// wrappers run the command after them.
var wrappers = []string{"env", "time", "exec", "command", "sudo", "nice", "timeout", "npx", "uv", "poetry", "pipenv", "bundle", "run", "!", "if", "then", "do"}

// judges are filters whose own exit code tells whether the output of a program is right.
var judges = []string{"grep", "egrep", "fgrep", "rg", "diff", "cmp"}

// checking matches the names of scripts that check something themselves.
var checking = centurion.Pattern(`(?i)check|test|spec|verif|valid|assert|expect|lint`)

// scripts returns the files that a command runs as its check, as named there: `bash check.sh`, `./check`, `python verify.py`. A program whose
// output a filter judges, as in `python app.py | grep -x Hello`, is what is checked, unless its name says that it checks.
func scripts(command string) []string {
	var out []string
	first, by := true, "" // by is the interpreter that waits for its script
	pipe, last := 0, ";"  // where the scripts of a pipe begin in out, and the word before
	for _, word := range words(command) {
		name := path.Base(word)
		switch before := last; {
		case word == ";" || word == "|":
			if first, by, last = true, "", word; word == ";" || before == "|" {
				pipe, last = len(out), ";"
			}
			continue
		case first && before == "|" && slices.Contains(judges, name):
			out = append(out[:pipe], slices.DeleteFunc(out[pipe:], func(s string) bool { return !checking().MatchString(path.Base(s)) })...)
			first = false
		case first && (strings.Contains(word, "=") || slices.Contains(wrappers, name)):
		case first:
			if first = false; interpreters().MatchString(name) {
				by = name
			} else if strings.Contains(word, "/") {
				out = append(out, path.Clean(word))
			}
		case by != "" && strings.HasPrefix(word, "-"):
			if inlineScript(by, word) {
				by = ""
			}
		case by != "" && word == "run": // deno run, bun run
		case by != "":
			out, by = append(out, path.Clean(word)), ""
		}
		last = word
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "..") })
}

// inlineScript reports whether an interpreter's flag means that no file follows.
func inlineScript(by, flag string) bool {
	switch flag {
	case "-c":
		return true
	case "-m":
		return strings.HasPrefix(by, "py")
	case "-e", "-p", "--eval", "--print", "-r":
		return !strings.HasSuffix(by, "sh")
	}
	return flag == "--test" // node finds them itself, and test names are recognised
}

// words splits a command at unquoted spaces; separators of commands become the word ";", or "|".
func words(command string) []string {
	var out []string
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			out = append(out, word.String())
			word.Reset()
		}
	}
	quote := rune(0)
	for _, r := range command {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote = r
		case r == ' ' || r == '\t':
			end()
		case r == '|':
			end()
			out = append(out, "|")
		case strings.ContainsRune("\n;&()", r):
			end()
			out = append(out, ";")
		default:
			word.WriteRune(r)
		}
	}
	end()
	return out
}

// CanOnlyPass reports whether a command always passes, and so proves nothing, such as `true`. It returns false unless that is clear from
// the text alone.
func CanOnlyPass(command string) bool { return trivial(command) }

// trivial reports whether a command can only pass: `true`, `:`, `exit 0`, `echo …`, and combinations of them. Anything that ends in `||` with one of
// them counts, too.
func trivial(command string) bool {
	first, only := true, true
	name := ""
	for _, word := range words(command) {
		switch {
		case word == ";" || word == "|":
			first = true
			continue
		case first:
			first, name = false, path.Base(word)
			only = only && slices.Contains([]string{"true", ":", "echo", "printf", "exit"}, name)
		case name == "exit":
			only = only && word == "0"
		}
		if strings.ContainsAny(word, "$`>") { // it may do something else as well
			only = false
		}
	}
	return only || yes().MatchString(command) && !leaves().MatchString(command)
}

// yes matches the end of a command that passes regardless of its check, leaves anything that may end it before.
var (
	yes    = centurion.Pattern(`(?:\|\||;)\s*(?:true|:|exit 0|echo\b[^;&|$` + "`" + `]*)\s*$`)
	leaves = centurion.Pattern(`\b(?:exit\s+[^0\s]|set|trap|return|exec)\b`)
)
