package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/orchestrator/mail"
)

// run runs a command line in this process, which must not touch a project or a model.
func run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	dir := t.TempDir()
	c := &cli{in: strings.NewReader(""), out: &o, err: &e, env: []string{"HOME=" + dir, "CENTURION_HOME=" + dir}}
	code = c.run(t.Context(), args)
	return code, o.String(), e.String()
}

// Every command has help with an example, and every example is a command line that the program understands.
func TestHelp(t *testing.T) {
	c := &cli{}
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		for _, s := range cmd.Commands() {
			each(s)
		}
		if cmd.Hidden {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		code, out, errs := run(t, append(slices.Clone(path), "--help")...)
		if code != exitComplete || errs != "" {
			t.Errorf("%s --help exits with %d: %s", cmd.CommandPath(), code, errs)
		}
		if cmd.Short == "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%s has no help:\n%s", cmd.CommandPath(), out)
		}
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && cmd.HasParent() {
			t.Errorf("%s has no example of its own: %q", cmd.CommandPath(), cmd.Example)
		}
		for line := range strings.Lines(cmd.Example) {
			_, line, _ = strings.Cut(line, "centurion ")
			if err := understood(c, words(line)); err != nil {
				t.Errorf("the example %q of %s: %v", line, cmd.CommandPath(), err)
			}
		}
	}
	root := c.root()
	root.SetArgs(nil)
	each(root)
}

// words splits an example as a shell would, up to its first operator or note.
func words(line string) []string {
	line, _, _ = strings.Cut(line, "   ")
	for _, end := range []string{" && ", " > ", " | ", ")"} {
		line, _, _ = strings.Cut(line, end)
	}
	var out []string
	for i, part := range strings.Split(strings.TrimSpace(line), `"`) {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// understood reports what is wrong with a command line before anything is done.
func understood(c *cli, args []string) error {
	cmd, rest, err := c.root().Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// Every flag of run in the contract is there, and is described.
func TestRunFlags(t *testing.T) {
	for _, name := range []string{"run", "resume"} {
		cmd, _, err := (&cli{}).root().Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"dir", "model", "agent", "format", "isolation", "max-workers", "max-per-agent", "max-cost", "max-tokens",
			"max-duration", "max-rounds", "max-tool-calls", "ask", "yes", "dirty", "level", "profile", "sandbox", "detach", "merge", "require-proof"} {
			if f := cmd.Flag(flag); f == nil || f.Usage == "" {
				t.Errorf("%s has no --%s", name, flag)
			}
		}
	}
}

// Every command of the contract is there or says with what it comes.
func TestCommands(t *testing.T) {
	for name := range strings.FieldsSeq(`run demo resume ps show tasks logs pause cancel asks answer approve deny send inbox fork rewind
		diff merge path undo report serve attach auth service trust agents models commands plugin mcp acp doctor gc completion version`) {
		cmd, _, err := (&cli{}).root().Find([]string{name})
		if err != nil || cmd.Name() != name {
			t.Errorf("there is no command %s: %v", name, err)
		}
	}
}

// The lines of a reason are told in one, with nothing behind the end of a sentence; a question that is open comes before the resume.
func TestOneLine(t *testing.T) {
	equal := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	equal(oneLine("All is fine.\n\nits agent waits\nand waits:\n- no"), "All is fine. its agent waits; and waits: - no")
	equal(oneLine("\n"), "")
	equal(answerFirst("worker asks: so? (centurion answer que_1 TEXT)"), "centurion answer que_1 TEXT, then ")
	equal(answerFirst("worker asks 2 questions: a · b (centurion asks)"), "centurion asks, then ")
	equal(answerFirst("There was no progress in 5 rounds."), "")
}

// Contract «Exit codes».
func TestExitCodes(t *testing.T) {
	for _, tt := range []struct {
		status centurion.MissionStatus
		reason string
		want   int
	}{
		{centurion.MissionCompleted, "", 0}, {centurion.MissionFailed, "x", 1}, {centurion.MissionPaused, "budget reached", 3},
		{centurion.MissionPaused, "planned", 0}, {centurion.MissionPaused, "interrupted", 130}, {centurion.MissionBlocked, "x", 4},
		{centurion.MissionCancelled, "x", 5}, {centurion.MissionRunning, "", 1},
	} {
		if got := missionExit(tt.status, tt.reason); got != tt.want {
			t.Errorf("a mission that is %s (%s) exits with %d, not %d", tt.status, tt.reason, got, tt.want)
		}
	}
	for _, tt := range []struct {
		err  error
		want int
	}{
		{&centurion.Error{Kind: centurion.KindUsage}, 2}, {&centurion.Error{Kind: centurion.KindConfig}, 2},
		{&centurion.Error{Kind: centurion.KindNotFound}, 2}, {&centurion.Error{Kind: centurion.KindConflict}, 2},
		{&centurion.Error{Kind: centurion.KindBudget}, 3}, {&centurion.Error{Kind: centurion.KindDisk}, 3},
		{centurion.ErrCancelled, 5}, {centurion.ErrShutdown, 130}, {context.Canceled, 130}, {errors.New("x"), 1},
		{&centurion.Error{Kind: centurion.KindNetwork}, 1}, {&centurion.Error{Op: "o", Err: fmt.Errorf("w: %w", centurion.ErrShutdown)}, 130},
	} {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("%v exits with %d, not %d", tt.err, got, tt.want)
		}
	}
}

// A failure is one line that says what and why, and one that says what to do next, whatever its text holds.
func TestFail(t *testing.T) {
	for _, err := range []error{
		errors.New("plain"),
		errors.Join(&centurion.Error{Op: "a", Msg: "one", Hint: "do\nthis"}, errors.New("two")),
		&centurion.Error{Kind: centurion.KindUsage, Msg: "with\x1b[31m colour\r\nand lines"},
	} {
		var e strings.Builder
		(&cli{err: &e}).fail(err)
		lines := strings.Split(strings.TrimSuffix(e.String(), "\n"), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "centurion: ") || !strings.HasPrefix(lines[1], "next: ") ||
			strings.ContainsAny(e.String(), "\x1b\r") || len(lines[1]) < 8 {
			t.Errorf("%q is told as %q", err, e.String())
		}
	}
}

// ORCH-103: what a goal begins with.
func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		goal, rest string
		plan, bad  bool
	}{
		{goal: "a goal", rest: "a goal"},
		{goal: "/task a goal", rest: "a goal"},
		{goal: "/plan a\n goal", rest: "a\n goal", plan: true},
		{goal: "/plan\nof several\nlines", rest: "of several\nlines", plan: true},
		{goal: "/usr/bin/x is broken", rest: "/usr/bin/x is broken"},
		{goal: "a /plan", rest: "a /plan"},
		{goal: "/task", bad: true},
		{goal: "/", bad: true},
		{goal: "/plans a goal", bad: true},
	} {
		c := &cli{env: []string{"HOME=" + t.TempDir()}}
		st, err := (&runner{c, &runFlags{dir: t.TempDir()}}).readRequest(t.Context(), tt.goal, c.configured)
		if (err != nil) != tt.bad || st != (request{goal: tt.rest, planOnly: tt.plan}) {
			t.Errorf("%q is %+v, %v", tt.goal, st, err)
		}
		if tt.bad && (exitCode(err) != exitUsage || centurion.HintOf(err) == "") {
			t.Errorf("%q: %v exits with %d, hint %q", tt.goal, err, exitCode(err), centurion.HintOf(err))
		}
	}
}

// A text that is too long is not cut to what is allowed: it reaches the check that refuses it.
func TestReadMessageIsNotCut(t *testing.T) {
	c := &cli{in: strings.NewReader(strings.Repeat("x", mail.MaxPost+5))}
	if text, err := c.readMessage([]string{"-"}); err != nil || len(text) <= mail.MaxPost {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
