package verify

import (
	"centurion"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// clauseKind classifies a clause of a chain by its effect on the project.
type clauseKind int

const (
	runs  clauseKind = iota // it runs tests, a script or a program of the project: it can see the work
	sets                    // it only sets up the shell for later clauses
	looks                   // it looks at the project and changes nothing: formatting, lint, build, search
	acts                    // anything else
)

// kindOf classifies a statement by all its calls, including pipes and substitutions.
func kindOf(s *syntax.Stmt) clauseKind {
	if plain(s) && setsUp(s.Cmd) {
		return sets
	}
	kind := looks
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) == 0 {
				break
			}
			switch args := literals(n.Args); {
			case runsProject(args):
				kind = runs
			case kind == looks && !onlyLooks(args):
				kind = acts
			}
		case *syntax.Redirect:
			if kind == looks && writes(n) {
				kind = acts
			}
		case *syntax.DeclClause, *syntax.FuncDecl:
			if kind == looks {
				kind = acts
			}
		}
		return kind != runs
	})
	return kind
}

// setsUp reports whether a command only changes the shell, without calling anything.
func setsUp(cmd syntax.Command) bool {
	builtins := []string{"cd", "pushd", "popd", "set", "shopt", "source", ".", "umask", "ulimit", "unset", "alias", "unalias", "trap", "export"}
	calls := hasNode(cmd, func(n syntax.Node) bool { _, ok := n.(*syntax.CmdSubst); return ok })
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		return len(cmd.Args) == 0 && !calls || len(cmd.Args) > 0 && slices.Contains(builtins, cmd.Args[0].Lit())
	case *syntax.DeclClause:
		return !calls
	}
	return false
}

func writes(r *syntax.Redirect) bool {
	return !slices.Contains([]syntax.RedirOperator{syntax.RdrIn, syntax.WordHdoc, syntax.DplIn, syntax.DplOut}, r.Op) && (r.Word == nil || r.Word.Lit() != "/dev/null")
}

// literals are the words of a call without quotes; dynamic parts become "$".
func literals(words []*syntax.Word) []string {
	var out []string
	for _, w := range words {
		var b strings.Builder
		for _, part := range w.Parts {
			literal(&b, part)
		}
		out = append(out, b.String())
	}
	return out
}

func literal(b *strings.Builder, part syntax.WordPart) {
	switch part := part.(type) {
	case *syntax.Lit:
		b.WriteString(strings.ReplaceAll(part.Value, `\`, ""))
	case *syntax.SglQuoted:
		b.WriteString(part.Value)
	case *syntax.DblQuoted:
		for _, p := range part.Parts {
			literal(b, p)
		}
	default:
		b.WriteByte('$')
	}
}

// runners only run tests.
var runners = []string{"pytest", "py.test", "nose2", "nosetests", "tox", "nox", "behave", "robot", "stestr", "jest", "vitest", "mocha", "ava", "jasmine", "karma", "playwright", "cypress", "tap", "bats", "shellspec",
	"ctest", "rspec", "cucumber", "phpunit", "pest", "behat", "codecept", "busted", "prove", "gotestsum", "ginkgo", "cargo-nextest", "testscript", "newman"}

// tools run tests if one of their words says so.
var tools = []string{"go", "cargo", "npm", "pnpm", "yarn", "bun", "deno", "make", "gmake", "just", "task", "ninja", "rake", "rails", "invoke", "mix", "swift", "flutter", "dart", "zig", "stack", "cabal", "lein", "sbt", "bazel", "bazelisk",
	"dotnet", "composer", "gradle", "gradlew", "mvn", "mvnw", "ant", "rebar3", "dune", "crystal", "nimble", "gleam", "forge", "hardhat", "meson", "xcodebuild", "hatch", "pdm", "turbo", "nx"}

// lookers examine a project without running it: formatters, linters, compilers, and programs that search and compare. They do not change it.
var lookers = []string{"gofmt", "goimports", "gofumpt", "golines", "staticcheck", "revive", "errcheck", "govulncheck", "black", "ruff", "flake8", "mypy", "pyright", "pylint", "isort", "pycodestyle", "pydocstyle", "bandit", "py_compile", "compileall",
	"eslint", "tsc", "prettier", "biome", "stylelint", "jshint", "standard", "oxlint", "rubocop", "shellcheck", "shfmt", "cppcheck", "ktlint", "detekt", "checkstyle", "rustfmt", "stylua", "luacheck", "php-cs-fixer", "phpstan", "psalm", "phpcs",
	"swiftformat", "hlint", "ormolu", "vale", "codespell", "typos", "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "rustc", "test", "[", "grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "wc", "ls", "stat", "file", "sort", "uniq", "cut", "tr", "jq",
	"diff", "cmp", "echo", "printf", "true", "false", ":", "which", "command", "type", "basename", "dirname", "xmllint", "sha256sum"}

var (
	// testWord matches a word of a tool that stands for tests.
	testWord = centurion.Pattern(`(?i)^(?:.*[:/_.-])?(?:\w*tests?|t|specs?|checks?|verify|e2e|eunit|nextest|runtest)(?:[:_.-].*)?$`)
	// lookWord matches a word or a name without tests.
	lookWord = centurion.Pattern(`(?i)lint|fmt|(?:^|[^a-z])(?:format|style|vet|tidy|clippy|analy[sz]e)|type-?check`)
	// foreign matches paths of programs that are not the project's own.
	foreign = centurion.Pattern(`(?:^|/)(?:node_modules|\.?venv|vendor)/`)
	shells  = centurion.Pattern(`^(?:bash|sh|zsh|dash|ksh)$`)
)

// program finds the program that a call runs, behind wrappers, and its words.
func program(args []string) (name string, rest []string) {
	wrapped := false
	for i, word := range args {
		name := path.Base(word)
		switch {
		case slices.Contains(wrappers, name) || name == "xvfb-run" || name == "stdbuf" || wrapped && name == "exec":
			wrapped = true
		case wrapped && (strings.HasPrefix(word, "-") || strings.Contains(word, "=") || strings.Trim(word, "0123456789.smh") == ""):
		default:
			return word, args[i+1:]
		}
	}
	return "", nil
}

// runsProject reports whether a call runs something of the project: tests, a script, or a program.
func runsProject(args []string) bool {
	full, rest := program(args)
	name := path.Base(full)
	switch {
	case len(args) > 1 && args[0] == "command" && strings.HasPrefix(args[1], "-"), full == "" || slices.Contains(lookers, name) || lookWord().MatchString(name):
		return false
	case slices.Contains(runners, name):
		return true
	case name == "go" || name == "cargo":
		return toolRuns(name, rest)
	case slices.Contains(tools, name) && (name != "deno" && name != "bun" || interpreted(name, rest) != runs):
		return slices.ContainsFunc(rest, func(w string) bool {
			return !strings.HasPrefix(w, "-") && (testWord().MatchString(w) && !lookWord().MatchString(w) || slices.Contains(runners, w))
		})
	case interpreters().MatchString(name):
		return interpreted(name, rest) == runs
	}
	return strings.Contains(full, "/") && !foreign().MatchString(full) && (!strings.HasPrefix(full, "/") && !strings.HasPrefix(full, ".."))
}

// runsTests reports whether a statement calls a test runner, whose exit code shows whether the tests have passed. Scripts and programs of the project
// do not count.
func runsTests(s *syntax.Stmt) bool {
	return hasCall(s, func(args []string) bool {
		full, rest := program(args)
		switch name := path.Base(full); {
		case !runsProject(args):
			return false
		case slices.Contains(runners, name), name == "node" && slices.Contains(rest, "--test"):
			return true
		case slices.Contains(tools, name):
			return slices.ContainsFunc(rest, func(w string) bool { return testWord().MatchString(w) || slices.Contains(runners, w) })
		case strings.HasPrefix(name, "py"):
			return len(rest) > 1 && slices.Contains(rest, "-m") && slices.ContainsFunc(rest, func(w string) bool { return w == "unittest" || slices.Contains(runners, w) })
		}
		return false
	})
}

// callsTests is runsTests for a whole command.
func callsTests(command string) bool {
	file := parse(command)
	return file != nil && slices.ContainsFunc(file.Stmts, runsTests)
}

// toolRuns is for tools whose sub-command decides.
func toolRuns(name string, rest []string) bool {
	for len(rest) > 0 && (strings.HasPrefix(rest[0], "-") || strings.HasPrefix(rest[0], "+")) {
		if rest[0] == "-C" && len(rest) > 1 {
			rest = rest[1:]
		}
		rest = rest[1:]
	}
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case "test":
		return true
	case "t", "nextest", "bench", "r":
		return name == "cargo"
	case "run": // the project's own, not that of another module
		return name == "cargo" || slices.ContainsFunc(rest[1:], func(w string) bool { return strings.HasPrefix(w, ".") || strings.HasSuffix(w, ".go") })
	}
	return false
}

// interpreted classifies a call of an interpreter by what it runs: a script or inline code of the project, one that only looks, or something else.
func interpreted(name string, rest []string) clauseKind {
	shell := shells().MatchString(name)
	for i, w := range rest {
		next := ""
		if i+1 < len(rest) {
			next = rest[i+1]
		}
		switch {
		case w == "-n" && shell, w == "-l" && name == "php", w == "-c" && (name == "ruby" || name == "perl" || name == "node"), w == "--check":
			return looks // it only parses
		case w == "-c" && shell:
			return kindOfScript(next)
		case w == "-m" && strings.HasPrefix(name, "py"):
			return kindOfProgram(next, slices.Contains([]string{"venv", "pip", "build"}, next))
		case inlineScript(name, w):
			return runs
		case strings.HasPrefix(w, "-") || w == "run" && (name == "deno" || name == "bun"):
		case name == "deno" || name == "bun":
			if testWord().MatchString(w) || strings.Contains(w, ".") {
				return runs
			}
			return acts
		default:
			return kindOfProgram(path.Base(w), foreign().MatchString(w))
		}
	}
	return looks // at most its version
}

// kindOfProgram classifies a script or a module by its name.
func kindOfProgram(name string, others bool) clauseKind {
	switch {
	case slices.Contains(runners, name):
		return runs
	case slices.Contains(lookers, name) || lookWord().MatchString(name):
		return looks
	case others:
		return acts
	}
	return runs
}

// kindOfScript classifies a script that is given to a shell.
func kindOfScript(script string) clauseKind {
	file := parse(script)
	if file == nil {
		return acts
	}
	kind := looks
	for _, s := range file.Stmts {
		for _, part := range flatten(s, true) {
			switch kindOf(part) {
			case runs:
				return runs
			case acts:
				kind = acts
			}
		}
	}
	return kind
}

// inPlace matches a group of sed's short options with which it writes files.
var inPlace = centurion.Pattern(`^-[nErsuz]*i`)

// rewrites reports whether a formatter or linter changes files: by a flag, or by itself unless a flag keeps it from that.
func rewrites(name string, rest []string) bool {
	has := func(flags ...string) bool {
		return slices.ContainsFunc(rest, func(w string) bool { return slices.Contains(flags, w) })
	}
	switch {
	case name == "black", name == "isort", name == "rustfmt", name == "ruff" && has("format"):
		return !has("--check", "--check-only", "--diff", "-c", "--version")
	case name == "gofmt", name == "goimports", name == "gofumpt", name == "shfmt", name == "prettier":
		return has("-w", "--write")
	case name == "clang-format", name == "autopep8", name == "yapf":
		return has("-i", "--in-place")
	}
	return has("--fix", "--write", "--autocorrect", "--autocorrect-all", "--auto-correct")
}

// onlyLooks reports whether a call changes nothing that tests may depend on.
func onlyLooks(args []string) bool {
	if len(args) > 1 && args[0] == "command" && strings.HasPrefix(args[1], "-") { // it only queries
		return true
	}
	full, rest := program(args)
	name := path.Base(full)
	switch name {
	case "":
		return true
	case "sed":
		return !slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "--in-place") || inPlace().MatchString(w) })
	case "awk", "gawk", "mawk":
		return !slices.Contains(rest, "inplace")
	case "find":
		return !slices.ContainsFunc(rest, func(w string) bool {
			return strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || w == "-delete"
		})
	case "git":
		return len(rest) > 0 && slices.Contains([]string{"diff", "status", "grep", "ls-files", "log", "show", "rev-parse"}, rest[0])
	case "go":
		return len(rest) > 0 && slices.Contains([]string{"vet", "build", "list", "doc", "version", "env"}, rest[0])
	case "cargo":
		return len(rest) > 0 && slices.Contains([]string{"check", "clippy", "build", "fmt", "doc"}, rest[0]) && (rest[0] != "fmt" || slices.Contains(rest, "--check"))
	}
	if rewrites(name, rest) {
		return false
	}
	return slices.Contains(lookers, name) || lookWord().MatchString(name) || slices.Contains(tools, name) && slices.ContainsFunc(rest, lookWord().MatchString) ||
		interpreters().MatchString(name) && name != "." && name != "source" && interpreted(name, rest) == looks
}
