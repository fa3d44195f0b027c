package verify

import (
	"slices"
	"strings"
	"testing"
)

// Every program that is known is taken for what it is: a runner, a tool that runs tests by a word, one that only looks, a filter, a wrapper.
func TestKnownPrograms(t *testing.T) {
	t.Parallel()
	kind := func(command string) clauseKind { return kindOf(parse(command).Stmts[0]) }
	for what, c := range map[string]struct {
		words string
		is    func(word string) bool
	}{
		"runners": {"pytest py.test nose2 nosetests tox nox behave robot stestr jest vitest mocha ava jasmine karma playwright cypress tap bats shellspec ctest rspec cucumber phpunit pest behat codecept busted prove gotestsum ginkgo cargo-nextest testscript newman",
			func(w string) bool { return callsTests(w) && callsTests("npx "+w) && kind("python3 -m "+w) == runs }},
		"tools": {"go cargo npm pnpm yarn bun deno make gmake just task ninja rake rails invoke mix swift flutter dart zig stack cabal lein sbt bazel bazelisk dotnet composer gradle gradlew mvn mvnw ant rebar3 dune crystal nimble gleam forge hardhat meson xcodebuild hatch pdm turbo nx",
			func(w string) bool {
				return callsTests(w+" test") && !callsTests(w+" build") && kind(w+" build") != runs && kind("./"+w+" test") == runs
			}},
		"lookers": {"gofmt goimports gofumpt golines staticcheck revive errcheck govulncheck black ruff flake8 mypy pyright pylint isort pycodestyle pydocstyle bandit py_compile compileall eslint tsc prettier biome stylelint jshint standard oxlint rubocop shellcheck shfmt cppcheck ktlint detekt checkstyle rustfmt stylua luacheck php-cs-fixer phpstan psalm phpcs " +
			"swiftformat hlint ormolu vale codespell typos gcc g++ cc c++ clang clang++ javac rustc test [ grep egrep fgrep rg cat head tail wc ls stat file sort uniq cut tr jq diff cmp echo printf true false : which command type basename dirname xmllint sha256sum",
			func(w string) bool { return kind(w+" --check x") == looks }},
		"filters": {"grep egrep fgrep rg ag head tail tee cat sed awk gawk wc sort uniq cut tr jq less more column nl fold xargs",
			func(w string) bool {
				return Muffled("./check.sh | "+w) == "it ends in the filter `"+w+"`, and what that finds decides"
			}},
		"actors": {"tee rm touch mv", func(w string) bool { return kind(w+" x") == acts && kind("go test ./... | "+w+" x") == runs }},
		"wrappers": {"env time exec command sudo nice timeout npx uv poetry pipenv bundle run",
			func(w string) bool {
				return callsTests(w+" pytest") && slices.Equal(scripts(w+" a/x.sh"), []string{"a/x.sh"}) && slices.Equal(scripts(w+" bash b.sh"), []string{"b.sh"})
			}},
		"before a command": {"! if then do", func(w string) bool { return slices.Equal(scripts("true; "+w+" a/x.sh"), []string{"a/x.sh"}) }},
		"flags of a script in a line": {"-c -e -p --eval --print -r --test", func(w string) bool {
			return len(scripts("node "+w+" a.js")) == 0 && (w == "-c" || w == "--test" || slices.Equal(scripts("bash "+w+" a.sh"), []string{"a.sh"}))
		}},
		"interpreters": {"bash python3 node ruby", func(w string) bool {
			return len(scripts(w+"; echo a.sh")) == 0 && slices.Equal(scripts(w+" a.sh"), []string{"a.sh"})
		}},
		"printers":           {"echo printf true : ls cat which type", func(w string) bool { return onlyPrints(parse(w + " x").Stmts[0]) }},
		"no printers":        {"tee exit sed ./x", func(w string) bool { return !onlyPrints(parse(w + " x").Stmts[0]) }},
		"ends":               {"exit return false", func(w string) bool { return mayFail(parse(w).Stmts[0]) }},
		"no ends":            {"true exec x", func(w string) bool { return !mayFail(parse(w).Stmts[0]) }},
		"of the shell":       {"cd pushd popd set shopt source . umask ulimit unset alias unalias trap export", func(w string) bool { return setsUp(parse(w + " x").Stmts[0].Cmd) }},
		"git that looks":     {"diff status grep ls-files log show rev-parse", func(w string) bool { return kind("git "+w) == looks }},
		"git that acts":      {"add commit checkout stash", func(w string) bool { return kind("git "+w) == acts }},
		"go that looks":      {"vet build list doc version env", func(w string) bool { return kind("go "+w) == looks }},
		"cargo that runs":    {"test t nextest bench r run", func(w string) bool { return kind("cargo "+w) == runs }},
		"go that acts":       {"t nextest bench r run get", func(w string) bool { return kind("go "+w) == acts }},
		"cargo that looks":   {"check clippy build doc", func(w string) bool { return kind("cargo "+w) == looks }},
		"flags that rewrite": {"--fix --write --autocorrect --autocorrect-all --auto-correct", func(w string) bool { return kind("eslint "+w+" .") == acts && kind("eslint . "+w) == acts }},
		"formatters that rewrite by themselves": {"black isort rustfmt", func(w string) bool {
			return kind(w+" x") == acts && kind(w+" --diff x") == looks && kind(w+" --check-only x") == looks && kind(w+" -c x") == looks && kind(w+" --version") == looks
		}},
		"formatters that are told to": {"gofmt goimports gofumpt shfmt prettier", func(w string) bool {
			return kind(w+" x") == looks && kind(w+" -w x") == acts && kind(w+" --write x") == acts
		}},
		"formatters in place": {"clang-format yapf autopep8", func(w string) bool { return kind(w+" -i x") == acts && kind(w+" --in-place x") == acts }},
	} {
		for w := range strings.FieldsSeq(c.words) {
			if !c.is(w) {
				t.Errorf("%s: %s is none", what, w)
			}
		}
	}
}

// The name of an imported package, as the file that imports it uses it.
func TestImportNames(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"fmt": "fmt", "encoding/json": "json", "gopkg.in/yaml.v3": "yaml", "x/go-redis/v9": "redis", "x/redis-go": "redis", "x/my-pkg": "mypkg", "y/my-pkg": "my_pkg", "x/lib-name": "name", "x/v2": "x",
		"x/v": "v", "x/v2a": "v2a", "x/other": "other", "v3": "v3", "x/b.v1": "b",
	} {
		src := "package a\n\nimport \"" + path + "\"\n\nfunc f() { " + want + ".G() }\n"
		l, _ := languageOf("a.go")
		out, _, _ := emptyBodies(l, []byte(src), nil, everything(src))
		if want := "package a\n\nimport _ \"" + path + "\"\n\nfunc f() {}\n"; string(out) != want {
			t.Errorf("%s: %s", path, out)
		}
	}
}
