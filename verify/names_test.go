package verify

import (
	"strings"
	"testing"

	"centurion"
)

// What a changed file is, by its name alone: a test, a declaration of dependencies, or text for people.
func TestFilesByName(t *testing.T) {
	t.Parallel()
	documents := func(name string) bool {
		return changes{diff: []centurion.FileDiff{{FileChange: centurion.FileChange{Path: name, Status: "modified"}}}}.documents()
	}
	for what, c := range map[string]struct {
		is      func(string) bool
		yes, no string
	}{
		"manifest": {manifestFile, "go.mod go.sum go.work go.work.sum package.json package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml pnpm-workspace.yaml bun.lock bun.lockb deno.json deno.lock Cargo.toml Cargo.lock pyproject.toml setup.py " +
			"setup.cfg requirements.txt requirements-dev.txt Pipfile Pipfile.lock poetry.lock uv.lock Gemfile Gemfile.lock composer.json composer.lock mix.exs mix.lock pom.xml build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle.lockfile " +
			"CMakeLists.txt Makefile makefile GNUmakefile meson.build Package.swift Package.resolved packages.lock.json pubspec.yaml pubspec.lock rebar.config BUILD.bazel MODULE.bazel build.zig build.zig.zon a/b/go.mod " +
			"tsconfig.json jsconfig.json tsconfig.build.json tsconfig-base.json vite.config.ts babel.config.js .babelrc .babelrc.json .swcrc a.csproj a.fsproj a.vbproj a.sln a.gemspec",
			"go.mod.txt mod xpackage.json package.jsonx tsconfig.ts vite.config a.cs go.mod/x Makefile.am"},
		"test": {testFile, "test/a tests/a __tests__/a testdata/a fixtures/a __fixtures__/a __snapshots__/a snapshots/a golden/a spec/a specs/a e2e/a androidTest/a testFixtures/a testing/a __mocks__/a mocks/a Tests/a UnitTests/a cypress/a x/test/y/a My.Tests/a AppTests/a.swift " +
			"a_test.go a_test.py a_test.zig test_a.py test_a.zig tests.py test.js conftest.py test-a.mjs a.test.ts a-spec.jsx a_e2e.js a.cy.ts a.test-d.ts jest.setup.js vitest-global.ts setupTests.js a_spec.rb spec_helper.rb rails_helper.rb a_unittest.cc a_tests.rs " +
			"TestA.java ATest.kt ATests.cs ATestCase.php AIT.java ASpec.scala a.bats a.t a.snap a.golden a.approved.txt a.feature pytest.ini tox.ini phpunit.xml phpunit.xml.dist .rspec .mocharc.json jest.config.js vitest.workspace.ts .coveragerc nextest.toml",
			"a.go contest/a attest.py test.go latest/x a_testing.go Testa.java x.test.go.bak testdata"},
		"document": {documents, "a.md a.markdown a.rst a.adoc a.txt a.org a.tex A.MD README LICENSE CHANGELOG NOTICE AUTHORS COPYING docs/README", "a.go READMEs a.html readme a.md.go"},
	} {
		for name := range strings.FieldsSeq(c.yes) {
			if !c.is(name) {
				t.Errorf("%s is no %s", name, what)
			}
		}
		for name := range strings.FieldsSeq(c.no) {
			if c.is(name) {
				t.Errorf("%s is a %s", name, what)
			}
		}
	}
}

func TestCommandsThatOnlyPass(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"true": true, ":": true, "exit 0": true, "exit": true, "exit 1": false, "echo hi": true, "printf x": true, "true; exit 0": true, "true && ./x": false, "./x || true": true, "./x || :": true, "./x; exit 0": true, "./x || echo no": true,
		"./x || exit 1": false, "set -e; ./x; true": false, "trap y EXIT; ./x; true": false, "exec ./x; true": false, "echo $(./x)": false, "echo `./x`": false, "echo a > b": false, "/bin/true": true, "echo 'a; b'": true, "echo \"a | b\"": true, "true\ntrue": true,
		"true & true": true, "(true)": true, "./x": false, "": true, "exit 0 && ./x": false, "./x || echo a | b": false,
	} {
		if got := CanOnlyPass(command); got != want {
			t.Errorf("%q can only pass: %t", command, got)
		}
	}
	for command, want := range map[string]string{`a "b 'c" 'd "e'  f`: `a|b 'c|d "e|f`, "a\tb;c|d&(e)\nf": "a|b|;|c|||d|;|;|e|;|;|f", `a"b"c`: "abc", `''`: "", "": ""} {
		if got := strings.Join(words(command), "|"); got != want {
			t.Errorf("%q: %s, want %s", command, got, want)
		}
	}
}

// The part of a sentence before and after a command of a goal, with every other command as an X.
func TestAround(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"a @ b": "a |b", "One. Two? a; b @ c. d": "b |c.", "`x` and @, `y z`! more": "X and |, X!", "v1.2 @ v3.4": "v1.2 |v3.4", "@": "|", "a!@;": "|;", "a. @  b. ": "|b.",
	} {
		from := strings.Index(line, "@")
		if before, after := around(line, from, from+1); before+"|"+after != want {
			t.Errorf("%q: %q|%q, want %q", line, before, after, want)
		}
	}
}
