package centurion

import (
	"context"
	"io"
	"net"
	"strings"
	"time"
)

// HostVariable is the environment variable that names the host of a child process, inherited by its descendants: if the host is killed,
// the next one finds and ends them.
const HostVariable = "CENTURION_HOST"

// Command is a child process to run.
type Command struct {
	Script string // a script for bash, or for sh if there is no bash; on Windows for the sh of git
	Dir    string // working directory, absolute
	// Workspace is the directory below which a confined command may write, absolute; "" means Dir.
	Workspace string
	Network   bool          // a confined command may use the network: a person has allowed this command, not only commands in general
	Connect   Dial          // makes the connections of a command without network, where commands are confined fully; nil makes none
	Check     bool          // it is confined apart from the workspace's other commands: it sees neither their processes nor their temporary files and caches
	Env       []string      // added to the runner's allow-listed environment, as NAME=value
	Timeout   time.Duration // 0 means the runner's default; the whole process tree ends with it
	Begun     func()        // called at its start, after waiting for other commands; its clock starts then; may be nil
	Keep      int           // kept bytes of output, half from the head and half from the tail; 0 means the runner's default
}

// Dial connects to a "host:port" that a command names, or says why not.
type Dial func(ctx context.Context, address string) (net.Conn, error)

// Confinement is how commands are confined, and what that does not stop.
type Confinement struct {
	Way  string   `json:"way"`  // full, files, job or none
	Gaps []string `json:"gaps"` // what it does not stop, in words for a person
}

// String names the way and its gaps.
func (c Confinement) String() string { return c.Way + "; not stopped: " + strings.Join(c.Gaps, ", ") }

// CommandResult is the result of a child process.
type CommandResult struct {
	ExitCode int           // -1 if it was killed or could not be started
	Output   string        // interleaved stdout and stderr, head and tail, with a line about the omission
	Bytes    int64         // total size of the output
	TimedOut bool          // it was killed after Timeout
	Exceeded string        // it was killed because it used more than this, such as "512 processes"; "" if not
	Held     string        // what confinement seems to have kept it from, as advice for a model; "" if nothing, or unconfined
	Duration time.Duration // from start to the end of its last process
}

// Runner runs child processes. The program uses only it to start processes for a model or a repository, so that confinement,
// environment and limits are the same for all of them.
//
// Run returns when the command and every process of its group have ended. A failed command is not an error: see its exit code. Errors
// are KindNotFound (no such directory or shell), KindCancelled and KindInterrupted (ctx ended; the result still has the output so far),
// KindBudget (likewise) and KindInternal. A timeout is a result with TimedOut set, not an error.
type Runner interface {
	Run(ctx context.Context, c Command) (CommandResult, error)
}

// Releaser is a [Runner] that keeps processes for a workspace beside its commands.
type Releaser interface {
	// Release ends everything that runs in a workspace, or below it: the workspace is given up.
	Release(workspace string) error
}

// BackgroundRunner is a [Runner] that also runs background commands.
type BackgroundRunner interface {
	Runner
	// RunBackground runs a command like Run and returns when it has ended, but without waiting for other commands or blocking them.
	// Output goes to out immediately: Output is empty, Keep is ignored. It calls started, which may be nil, once with the process id
	// when the command runs; without that call the command never began.
	RunBackground(ctx context.Context, c Command, out io.Writer, started func(pid int)) (CommandResult, error)
}
