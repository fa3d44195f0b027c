// Package verify runs acceptance commands and makes receipts of them. It owns the content and the grades of receipts: it reverts the work and checks
// whether the command fails. Permission rules decide whether a command may run, and the caller provides the trees as [Trees].
package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
)

const (
	// DefaultTimeout is the time limit of an acceptance command: enough for a whole test suite on a busy machine. An agent's own commands have a shorter
	// limit.
	DefaultTimeout = 10 * time.Minute
	// keep is how much output a receipt has, in bytes: the tail with the failure and the head with the run's beginning.
	keep = 8 << 10
	// changedFiles begins the error of a run that changed tracked files.
	changedFiles = "it changed tracked files: "
)

// Checker runs acceptance commands. Runner must be set.
type Checker struct {
	Runner  centurion.Runner
	Timeout time.Duration // for one command; 0 means [DefaultTimeout]
	// Network reports whether a command may use the network where commands are confined; nil means none.
	Network func(command string) bool
	// Connect returns what makes the connections of a command without network, nil for none; nil makes none at all.
	Connect func() centurion.Dial
}

// Run runs one acceptance command in dir, an absolute path, and returns its receipt. The command passed if it exited by itself with code 0. A command
// that fails, times out or cannot be started gives a receipt, not an error; there is only an error if ctx ended before the command did, and then
// nothing is proven either way.
func (c *Checker) Run(ctx context.Context, dir, command string) (centurion.Receipt, error) {
	return received(command, func() (centurion.CheckRun, error) {
		return c.once(ctx, centurion.Place{Dir: dir}, command, command, keep)
	})
}

// RunOn is [Checker.Run] on a tree, which it lays first. A command that changes tracked files fails; Error names them. There is also an error if the
// tree could not be laid or examined.
func (c *Checker) RunOn(ctx context.Context, t Trees, tree, command string) (centurion.Receipt, error) {
	return received(command, func() (centurion.CheckRun, error) { return c.runOn(ctx, t, tree, command, command, keep) })
}

// received makes the receipt of a command's run.
func received(command string, run func() (centurion.CheckRun, error)) (centurion.Receipt, error) {
	receipt := newReceipt(command)
	if receipt.Error != "" {
		return receipt.Receipt, nil
	}
	got, err := run()
	receipt.take(got)
	return receipt.Receipt, err
}

// newReceipt starts a receipt; for an empty command it says why that cannot be run.
func newReceipt(command string) draft {
	r := centurion.Receipt{ID: centurion.NewID(centurion.PrefixReceipt), Command: command, ExitCode: -1, Time: centurion.Now()}
	if strings.TrimSpace(command) == "" {
		r.Error = "the command is empty and proves nothing"
	}
	return draft{r}
}

// draft is a receipt under construction.
type draft struct{ centurion.Receipt }

// take copies the result of a run to the receipt itself.
func (r *draft) take(run centurion.CheckRun) {
	r.ExitCode, r.Passed, r.Error = run.ExitCode, run.Passed, run.Error
	r.Output, r.Digest, r.Millis, r.Tree = run.Output, run.Digest, run.Millis, run.Tree
}

// runOn lays a tree, runs the command's script there and checks whether it changed tracked files.
func (c *Checker) runOn(ctx context.Context, t Trees, tree, command, script string, limit int) (centurion.CheckRun, error) {
	at, err := t.Lay(ctx, tree)
	if err != nil {
		return centurion.CheckRun{Tree: tree, ExitCode: -1}, err
	}
	run, err := c.once(ctx, at, command, script, limit)
	run.Tree = tree
	if err != nil {
		return run, err
	}
	changed, err := t.Changed(ctx)
	if err != nil {
		return run, err
	}
	if len(changed) > 0 {
		run.Passed = false
		run.Error = changedFiles + centurion.Names(changed, 5)
	}
	return run, nil
}

// once runs the script of a command, which is the command itself or a split form, and keeps limit bytes of its output. A pipe fails if any of its
// commands does, see [strictPipes].
func (c *Checker) once(ctx context.Context, at centurion.Place, command, script string, limit int) (centurion.CheckRun, error) {
	timeout := cmp.Or(c.Timeout, DefaultTimeout)
	run := centurion.CheckRun{ExitCode: -1, Time: centurion.Now()}
	want := centurion.Command{Script: script, Dir: at.Dir, Workspace: at.Workspace, Check: true, Network: c.Network != nil && c.Network(command), Timeout: timeout, Keep: limit}
	if c.Connect != nil {
		want.Connect = c.Connect()
	}
	strict := strictPipes(command)
	if strict {
		want.Script = pipefail + drained(script)
	}
	res, err := c.Runner.Run(ctx, want)
	if strict && err == nil && res.ExitCode == brokenPipe && !res.TimedOut {
		want.Script = script // it writes endlessly, and its reader had enough
		res, err = c.Runner.Run(ctx, want)
	}
	run.Output, run.Millis, run.Digest = res.Output, res.Duration.Milliseconds(), digest(res.Output)
	if res.Held != "" {
		run.Output += "\n(" + res.Held + ")\n"
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return run, &centurion.Error{Op: "verify", Kind: centurion.KindOf(context.Cause(ctx)),
			Msg: fmt.Sprintf("%q was stopped before it ended", command), Err: context.Cause(ctx)}
	case err != nil:
		run.Error = err.Error()
	case res.TimedOut:
		run.Error = fmt.Sprintf("timed out after %s", timeout)
	case res.Exceeded != "":
		run.Error = "it used more than " + res.Exceeded
	default:
		run.ExitCode = res.ExitCode
		run.Passed = res.ExitCode == 0
	}
	return run, nil
}

func digest(output string) string {
	sum := sha256.Sum256([]byte(output))
	return hex.EncodeToString(sum[:])
}

// Distinct returns the commands without empty lines and repetitions, in order. Commands are compared without surrounding space, because a receipt is
// for the exact line and a run at the end counts for all items with that line.
func Distinct(commands []string) []string {
	seen := make(map[string]bool, len(commands))
	var out []string
	for _, c := range commands {
		c = strings.TrimSpace(c)
		if c == "" || seen[c] {
			continue
		}
		seen[c] = true
		out = append(out, c)
	}
	return out
}

// WithoutWork is the output of the last run of a check without the work, or with it if there was no such run: its head and its tail, at most limit
// bytes in total.
func WithoutWork(r centurion.Receipt, limit int) string {
	out := r.Output
	for _, run := range slices.Backward(r.Runs) {
		if run.Kind == centurion.RunRed {
			out = run.Output
			break
		}
	}
	if out = strings.TrimSpace(out); len(out) <= limit {
		return out
	}
	return strings.ToValidUTF8(out[:limit/2], "") + "\n[…]\n" + strings.ToValidUTF8(out[len(out)-limit/2:], "")
}

// Trees provides the git trees for a proof and the only checkout where checks run.
type Trees interface {
	// Lay sets the checkout to a tree or commit and returns where the project is in it. What a setup has installed stays, so that dependencies need
	// not be fetched again.
	Lay(ctx context.Context, tree string) (centurion.Place, error)
	// Changed lists tracked files that differ from the last laid tree.
	Changed(ctx context.Context) ([]string, error)
	// Diff lists the changes between two trees or commits.
	Diff(ctx context.Context, from, to string) ([]centurion.FileDiff, error)
	// Read returns a file of a tree. The error has centurion.KindNotFound if there is none.
	Read(ctx context.Context, tree, path string) ([]byte, error)
	// Without makes a tree of `to` with the hunks that out selects reverted to `from`; see the same method of a repository.
	Without(ctx context.Context, from, to string, out func(f centurion.FileDiff, h *centurion.Hunk) bool) (tree, removed string, err error)
	// With makes a tree in which these files have this content; nil removes a file.
	With(ctx context.Context, tree string, files map[string][]byte) (string, error)
}

// Work is the work that a receipt has to prove.
type Work struct {
	Command    string
	Before     string // the tree or commit before the work
	After      string // tree or commit with the work
	Regression bool   // the check must only pass before and after
}
