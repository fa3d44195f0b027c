package tools

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"centurion"
	"centurion/permission"
)

// runner gives back what it is told to and records what it was given.
type runner struct {
	result centurion.CommandResult
	err    error
	given  centurion.Command
	runs   int
}

func (r *runner) Run(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
	r.given = c
	r.runs++
	return r.result, r.err
}

func TestBash(t *testing.T) {
	tests := []struct {
		name   string
		in     args
		result centurion.CommandResult
		want   string
	}{
		{"well", args{"command": "x"}, centurion.CommandResult{Output: "a\nb\n"}, "a\nb"},
		{"nothing printed", args{"command": "x"}, centurion.CommandResult{}, "(no output)"},
		{"failed", args{"command": "x"}, centurion.CommandResult{Output: "no\n", ExitCode: 2}, "no\nexit code 2"},
		{"no UTF-8", args{"command": "x"}, centurion.CommandResult{Output: "\xff\xfe!\n"}, "\uFFFD!"},
		{"timed out", args{"command": "x", "timeout": 1500}, centurion.CommandResult{Output: "a\n", ExitCode: -1, TimedOut: true},
			"a\ntimed out after 1.5s and was killed with everything it had started. Give a longer timeout (at most 600000 ms), " +
				"or a command that ends by itself; servers and watchers do not."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			run := &runner{result: tt.result}
			b.Runner = run
			r := b.must("bash", tt.in)
			want(t, "output", r.Output, tt.want)
			want(t, "exit", r.Metadata["exit"], any(tt.result.ExitCode))
		})
	}
}

func TestBashCommand(t *testing.T) {
	b := newBench(t)
	b.put("mit Leer zeichen/f", "x")
	run := &runner{}
	b.Runner = run
	b.must("bash", args{"command": "make test"})
	want(t, "command", run.given.Script, "make test")
	want(t, "directory", run.given.Cwd(), b.dir)
	want(t, "timeout", run.given.Timeout, 2*time.Minute)
	want(t, "kept", run.given.Keep, bashKeep)
	a := b.gate.asked[0]
	want(t, "permission", a.Permission, "bash")
	want(t, "script", a.Script, "make test")
	wantList(t, "patterns", a.Patterns, "make test")

	r := b.must("bash", args{"command": "ls", "workdir": "mit Leer zeichen", "timeout": "600000", "description": "list it"})
	want(t, "directory", run.given.Cwd(), filepath.Join(b.dir, "mit Leer zeichen"))
	want(t, "timeout", run.given.Timeout, 10*time.Minute)
	b.refused("bash", args{"command": "ls", "timeout": 600_001}, centurion.KindUsage, "at most 600000")
	want(t, "title", r.Title, "list it")

	runs := run.runs
	b.refused("bash", args{"command": "ls", "workdir": ".."}, centurion.KindPermission, "outside the project")
	b.refused("bash", args{"command": "ls", "workdir": "/"}, centurion.KindPermission, "outside the project")
	b.refused("bash", args{"command": "ls", "workdir": "nowhere"}, centurion.KindNotFound, "nowhere does not exist")
	b.refused("bash", args{"command": "ls", "workdir": "mit Leer zeichen/f"}, centurion.KindUsage, "not a directory")
	b.gate.rules = []permission.Rule{{Permission: "bash", Pattern: "git push *", Action: permission.Deny}}
	b.refused("bash", args{"command": "make && git push origin"}, centurion.KindPermission, "git push")
	want(t, "runs", run.runs, runs)

	run.err = &centurion.Error{Kind: centurion.KindCancelled, Msg: "cancelled"}
	b.gate.rules = nil
	b.refused("bash", args{"command": "make"}, centurion.KindCancelled)
	b.Runner = nil
	b.refused("bash", args{"command": "make"}, centurion.KindPermission, "no shell", "say in your answer which command should be run")
}
