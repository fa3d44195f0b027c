// Package verify runs acceptance commands and makes receipts of them. It owns what a receipt says; whether a command may
// run is the permission rules' business, and what a receipt proves is its caller's.
package verify

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"centurion"
)

const (
	// DefaultTimeout is how long an acceptance command may run: a whole test suite on a busy machine, not an agent's
	// passing command, whose limit is shorter.
	DefaultTimeout = 10 * time.Minute
	// keep is how much output a receipt holds, in bytes: the tail that says what failed and the head that says what ran.
	keep = 8 << 10
)

// Checker runs acceptance commands. Runner must be set.
type Checker struct {
	Runner  centurion.Runner
	Timeout time.Duration // for one command; 0 means [DefaultTimeout]
}

// Run runs one acceptance command in dir, an absolute path, and returns its receipt. The command passed if it ended by
// itself with exit code 0. A command that fails, times out or cannot be started is a receipt that says so, not an
// error; the error is only set if ctx ended before the command did, and then nothing is proven either way.
func (c *Checker) Run(ctx context.Context, dir, command string) (centurion.Receipt, error) {
	timeout := cmp.Or(c.Timeout, DefaultTimeout)
	receipt := centurion.Receipt{ID: centurion.NewID(centurion.PrefixReceipt), Command: command, ExitCode: -1, Time: centurion.Now()}
	if strings.TrimSpace(command) == "" {
		receipt.Error = "the command is empty and proves nothing"
		return receipt, nil
	}
	res, err := c.Runner.Run(ctx, centurion.Command{Script: command, Dir: dir, Timeout: timeout, Keep: keep})
	receipt.Output, receipt.Millis = res.Output, res.Duration.Milliseconds()
	switch {
	case err != nil && ctx.Err() != nil:
		return receipt, &centurion.Error{Op: "verify", Kind: centurion.KindOf(context.Cause(ctx)),
			Msg: fmt.Sprintf("%q was stopped before it ended", command), Err: context.Cause(ctx)}
	case err != nil:
		receipt.Error = err.Error()
	case res.TimedOut:
		receipt.Error = fmt.Sprintf("timed out after %s", timeout)
	default:
		receipt.ExitCode = res.ExitCode
		receipt.Passed = res.ExitCode == 0
	}
	return receipt, nil
}

// Distinct returns the commands without empty lines and repetitions, in their first order. Commands are compared
// without the space around them, because a receipt binds the exact line and a run at the end counts for all items
// that name it.
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
