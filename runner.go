package centurion

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// HostVariable is the environment variable that names the host of a child process, inherited by its descendants: if the host is killed,
// the next one finds and ends them.
const HostVariable = "CENTURION_HOST"

// Command is a child process to run.
type Command struct {
	Script string // a script for bash, or for sh if there is no bash; on Windows for the sh of git
	Dir    string // the directory of its workspace as commands see it, absolute
	// Workdir is where in Dir the command runs, with slashes; "" is Dir itself.
	Workdir string
	// Workspace is the directory below which a confined command may write, absolute; "" means Dir.
	Workspace string
	// Lend are directories that a confined command can read, and for a time is let write below: see sandbox.Runner.Lend. The first command
	// of a workspace decides.
	Lend    []string
	Network bool          // a confined command may use the network: a person has allowed this command, not only commands in general
	Connect Dial          // makes the connections of a command without network, where commands are confined fully; nil makes none
	Check   bool          // it is confined apart from the workspace's other commands: it sees neither their processes nor their temporary files and caches
	Env     []string      // added to the runner's allow-listed environment, as NAME=value
	Dirs    []string      // where a confined command may write as well, also if that is hidden from others; absolute
	Timeout time.Duration // 0 means the runner's default, [NoTimeout] none; the whole process tree ends with it
	Input   io.ReadCloser // its standard input, closed when the command has ended; nil is an empty one
	Errors  io.Writer     // gets its standard error, without keys, and never fails; nil leaves it in the output
	Begun   func()        // called at its start, after waiting for other commands; its clock starts then; may be nil
	Output  io.Writer     // also gets the output while it comes, without keys, and never fails; may be nil
	Keep    int           // kept bytes of output, half from the head and half from the tail; 0 means the runner's default
}

// Cwd is the working directory of the command, absolute.
func (c Command) Cwd() string { return filepath.Join(c.Dir, filepath.FromSlash(c.Workdir)) }

// NoTimeout is the [Command.Timeout] of a program that serves others until its context ends.
const NoTimeout time.Duration = -1

// Place is where commands run: a directory as they see it, and the name of its workspace.
type Place struct{ Dir, Workspace string }

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

// Layers are the directories that together are a workspace, which its commands see at At. All paths are absolute.
type Layers struct {
	Workspace string   // its name, as in [Command.Workspace]
	At        string   // an existing directory, which its commands cannot see any more
	Lower     []string // never changed, the uppermost first
	Upper     string   // takes what is changed
	Work      string   // a directory for the kernel, on the same file system as Upper
	Binds     []Bind   // what is shown in it
	Check     bool     // all its commands are checks: see [Command.Check]
	// Caches is an existing directory that keeps what its commands write to the person's caches; "" drops that with the workspace. They also
	// see what is in CachesBelow, which was the Caches of another workspace and is not changed any more; "" for none.
	Caches, CachesBelow string
}

// Bind shows a directory at another place.
type Bind struct {
	From  string // absolute
	To    string // an existing directory, absolute
	Write bool   // else it can only be read
}

// Mounter is a [Runner] that shows workspaces made of layers to their commands. [Releaser.Release] ends that.
type Mounter interface {
	Releaser
	// Mountable returns nil if layers below this directory can be mounted, otherwise why not. The first call tries it.
	Mountable(dir string) error
	// Mount makes a workspace of layers. Commands that name it run in it from then on.
	Mount(l Layers) error
	// Files returns the path by which this process reaches the files of a workspace of layers, which is mounted if it is not. It is
	// valid until the workspace is released or its helper ends, and must not be resolved: the links in it lead elsewhere.
	Files(workspace string) (string, error)
}

// BackgroundRunner is a [Runner] that also runs background commands.
type BackgroundRunner interface {
	Runner
	// RunBackground runs a command like Run and returns when it has ended, but without waiting for other commands or blocking them.
	// Output goes to out immediately: Output is empty, Keep is ignored. It calls started, which may be nil, once with the process id
	// when the command runs; without that call the command never began.
	RunBackground(ctx context.Context, c Command, out io.Writer, started func(pid int)) (CommandResult, error)
}
