package centurion

import (
	"context"
	"io"
	"time"
)

// HostVariable names in the environment of a child, and of all that it starts, the host that it belongs to: when the host is
// killed, the next one finds and ends what it has left.
const HostVariable = "CENTURION_HOST"

// Command is a child process to run.
type Command struct {
	Script  string        // a script for bash, or for sh where there is no bash; on Windows for the sh that comes with git
	Dir     string        // working directory, absolute
	Env     []string      // added to the runner's allow-listed environment, as NAME=value
	Timeout time.Duration // 0 means the runner's default; the whole process tree ends with it
	Begun   func()        // called when it runs, after a wait for other commands: until then no clock runs for it; may be nil
	Keep    int           // bytes of output kept, half from the head and half from the tail; 0 means the runner's default
}

// CommandResult is how a child process ended.
type CommandResult struct {
	ExitCode int           // -1 if it was killed or could not be started
	Output   string        // stdout and stderr as they came, head and tail, with a line that tells what was left out
	Bytes    int64         // how much it printed in all
	TimedOut bool          // it was killed because Timeout passed
	Duration time.Duration // from start to the end of its last process
}

// Runner runs child processes. It is the only way any part of the program starts one on a model's or a repository's
// behalf, so that confinement, environment and limits are the same for all of them.
//
// Run returns when the command and every process of its group have ended. A command that fails is not an error: its
// exit code says so. Errors are KindNotFound (no such directory or shell), KindCancelled and KindInterrupted (ctx ended;
// the result still holds the output so far), KindBudget (likewise) and KindInternal. A timeout is a result with TimedOut set, not an error.
type Runner interface {
	Run(ctx context.Context, c Command) (CommandResult, error)
}

// BackgroundRunner is a [Runner] that also runs commands which go on beside everything else.
type BackgroundRunner interface {
	Runner
	// RunBackground runs a command as Run does and returns when it has ended, but waits for no other command and keeps
	// none waiting. What it prints goes to out as it comes: Output is empty, Keep is not looked at. It calls started, which
	// may be nil, once with the process number as soon as the command runs; without that call the command never began.
	RunBackground(ctx context.Context, c Command, out io.Writer, started func(pid int)) (CommandResult, error)
}
