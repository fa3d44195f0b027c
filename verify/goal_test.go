package verify

import (
	"slices"
	"strings"
	"testing"
)

// Which words in backticks of a goal are checks that it names.
func TestInGoal(t *testing.T) {
	here := func(program string) bool {
		return strings.HasPrefix(program, "./") && program != "./config.go" || slices.Contains([]string{"go", "npm", "make", "python3", "pytest",
			"cargo", "sh", "rm", "ls", "test", "grep", "git", "curl"}, program)
	}
	for _, tt := range []struct {
		goal string
		want string // joined by " | "
	}{
		{"Build the forth, so that `go test ./...` passes.", "go test ./..."},
		{"Fix the bug: `go test ./...` fails.", "go test ./..."},
		{"Make `npm test` green", "npm test"},
		{"Go on until `make` succeeds", "make"},
		{"Add limits. Check with `sh check.sh`.", "sh check.sh"},
		{"Add limits. Verify: `grep -q limit docs/limits.md`", "grep -q limit docs/limits.md"},
		{"Add limits. Done when `./check.sh` exits 0.", "./check.sh"},
		{"Both `go vet ./...` and `go test ./...` must pass", "go vet ./... | go test ./..."},
		{"`go build ./...`, `go vet ./...` and `python3 -m pytest -q` have to pass", "go build ./... | go vet ./... | python3 -m pytest -q"},
		{"Without changing the API, make `go test ./...` pass.", "go test ./..."},
		{"Run `cargo test` at the end, and `cargo test` again", "cargo test"},
		{"Let `cd sub && go test ./...` pass", "cd sub && go test ./..."},
		{"so that ` go test ./... ` passes", "go test ./..."},
		{"The tests (``go test ./...``) should pass", "go test ./..."},

		// What is no command.
		{"Read `config.go` and make `ParseLimits` pass", ""},
		{"Make the `test` target pass", ""},
		{"Make `test` pass", ""},
		{"Make `./config.go` pass", ""},
		{"so that `frobnicate --all` passes", ""},
		{"so that `go test ./... (` passes", ""},
		{"so that `$CHECK all` passes", ""},
		{"so that `` passes", ""},
		{"so that go test ./... passes", ""},
		{"An example:\n```\n`go test ./...` passes\n```\n", ""},
		{"so that `go test ./...` passes\n", "go test ./..."},
		// What is a command, and no check.
		{"do not run `rm -rf x`", ""},
		{"Clean up with `rm -rf x`", ""},
		{"The server is started by `go run .`", ""},
		{"List what `git log --oneline` prints", ""},
		{"Add a command like `python3 app.py --serve`", ""},
		// What is not wanted to be run, or is only asked about.
		{"Don't run `go test ./...`.", ""},
		{"Never ever run `go test ./...`, it takes hours", ""},
		{"Build it without running `go test ./...`", ""},
		{"Build it. Do not run `go test ./...`. Make `npm test` pass.", "npm test"},
		{"Why does `go test ./...` fail?", ""},
		{"Find out why `go test ./...` is slow", ""},
		{"Explain what `go test ./...` does", ""},
		{"Tell me whether `go test ./...` passes", ""},
		{"Does `go test ./...` pass?", ""},
		{"Document `go test ./...` in README.md", ""},
		{"Use `make check` instead of `go test ./...`", "make check"},
		{"Replace `npm test` with `make test` in the workflow", ""},
	} {
		if got := strings.Join(InGoal(tt.goal, here), " | "); got != tt.want {
			t.Errorf("%q names %q, want %q", tt.goal, got, tt.want)
		}
	}
}
