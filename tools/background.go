package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"centurion"
	"centurion/text"
)

// Background runs commands in parallel to a session's work. The orchestrator implements it and ends the commands with the task that
// started them. A session sees only its own commands. The methods are safe for concurrent use by several sessions; errors have a hint
// for the model.
type Background interface {
	// Start starts a command and returns as soon as it runs. The error has centurion.KindConflict if too many run.
	Start(ctx context.Context, c *Call, cmd centurion.Command, description string) (BackgroundCommand, error)
	// Look returns a command with its output since the last look.
	Look(ctx context.Context, c *Call, id string) (BackgroundCommand, error)
	// List returns the commands of the session, oldest first, without their output.
	List(ctx context.Context, c *Call) ([]BackgroundCommand, error)
	// Kill ends a command with its child processes and returns it as Look does. A command that has ended stays unchanged.
	Kill(ctx context.Context, c *Call, id string) (BackgroundCommand, error)
}

// BackgroundStatus is the status of a background command.
type BackgroundStatus string

// The states of a background command.
const (
	BackgroundRunning  BackgroundStatus = "running"
	BackgroundExited   BackgroundStatus = "exited"    // by itself, or by a foreign signal with ExitCode -1
	BackgroundKilled   BackgroundStatus = "killed"    // on request, with its task, or for a limit; Reason says which
	BackgroundTimedOut BackgroundStatus = "timed out" // and was killed
	BackgroundFailed   BackgroundStatus = "failed"    // it could not be started; Reason says why
	BackgroundGone     BackgroundStatus = "gone"      // lost with its host: its end is unknown
)

// BackgroundCommand is a background command as shown to its session.
type BackgroundCommand struct {
	ID          string // such as bg_1
	Script      string
	Description string
	Status      BackgroundStatus
	PID         int // of its shell
	ExitCode    int // valid after its exit
	Reason      string
	Runtime     time.Duration // until now, or until its end
	Output      string        // output since the last look, head and tail
	Bytes       int64         // total output
	Held        string        // what confinement seems to have kept it from: see centurion.CommandResult
}

// State describes the command's status: "bg_1 has ended with exit code 0 after 12 s".
func (b BackgroundCommand) State() string {
	after := " after " + text.Took(b.Runtime)
	switch b.Status {
	case BackgroundRunning:
		return fmt.Sprintf("%s has been running for %s", b.ID, text.Took(b.Runtime))
	case BackgroundExited:
		if b.ExitCode < 0 {
			return b.ID + " was ended by a signal" + after
		}
		return fmt.Sprintf("%s has ended with exit code %d%s", b.ID, b.ExitCode, after)
	case BackgroundTimedOut:
		return b.ID + " reached its time limit and was killed" + after
	case BackgroundKilled:
		return b.ID + " was killed" + after + because(b.Reason)
	case BackgroundGone:
		return b.ID + " does not run any more: it ended with the host that started it, or when its mission stopped"
	}
	return b.ID + " failed" + because(b.Reason)
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// looked is the result of a look at a command.
func looked(b BackgroundCommand) Result {
	var said strings.Builder
	fmt.Fprintf(&said, "%s (%s)\n", b.State(), firstLine(b.Script))
	switch out := strings.TrimRight(text.Printed(b.Output), "\n"); {
	case out != "":
		fmt.Fprintf(&said, "new output, of %s in all:\n%s", centurion.Count(int(b.Bytes), "byte"), out)
	case b.Status == BackgroundGone:
		said.WriteString("what it printed is lost; start it again if it is still needed")
	case b.Bytes > 0:
		fmt.Fprintf(&said, "no new output, %s in all", centurion.Count(int(b.Bytes), "byte"))
	default:
		said.WriteString("no output")
	}
	if b.Held != "" {
		said.WriteString("\n(" + b.Held + ")")
	}
	return Result{Output: said.String(), Title: b.State(), Metadata: backgroundMeta(b)}
}

func backgroundMeta(b BackgroundCommand) map[string]any {
	m := map[string]any{"background": b.ID, "status": string(b.Status), "runtime_ms": b.Runtime.Milliseconds(), "bytes": b.Bytes}
	if b.PID > 0 {
		m["pid"] = b.PID
	}
	if b.Status == BackgroundExited {
		m["exit"] = b.ExitCode
	}
	return m
}

func noBackground(op string) (Result, error) {
	return denied(op, "your role does not start background commands", "say in your answer what should be run")
}
