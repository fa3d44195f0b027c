// Package sandbox runs child processes on a model's or a repository's behalf. It owns how a command starts and how it
// ends: what its environment holds, how long it may run, how much of its output is kept, how many run at once, and that
// nothing of it is left behind.
//
// What is in force is a process group that is killed as a whole, an allow list for the environment, a cap on output and
// a time limit. That is all: there is no confinement yet. A command can read and write whatever the person's account
// can, use the network, and leave its process group on purpose (setsid), in which case it is found by its environment and ended
// if the command is, or if it holds the command's output; whether it may run at all is decided before,
// by the permission rules. What survives a host that was killed is found by a mark in its environment and ended by the
// next host ([Sweep]).
package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/guard"
	"centurion/text"
)

// The defaults of a [Runner].
const (
	DefaultTimeout = 2 * time.Minute // what a person would wait for before they look
	DefaultMax     = time.Hour       // the longest a task may live, so nothing longer can end in time
	DefaultKeep    = 30_000          // bytes; about 7,000 tokens of a model's window
	DefaultGrace   = time.Second     // for a program to clean up after SIGTERM: within 2 s all of it must be gone
)

// Runner runs shell scripts. The zero Runner is ready for use; its fields are read at the first Run and must not change
// afterwards. It must not be copied after that.
type Runner struct {
	Env            []string      // names added to the environment allow list; a name that looks like a secret stays out
	DefaultTimeout time.Duration // for commands that name none; 0 means [DefaultTimeout]
	MaxTimeout     time.Duration // longer timeouts are cut to it; 0 means [DefaultMax]
	Keep           int           // bytes of output kept; 0 means [DefaultKeep]
	Grace          time.Duration // from SIGTERM to SIGKILL; 0 means [DefaultGrace]
	Slots          int           // commands of the whole host at once, those in the background aside; 0 means max(2, CPUs)

	// Mark is what the commands and all that they start have as CENTURION_HOST in their environment, so that [Sweep] finds
	// them when this process has been killed. No white space; empty: they have no such variable and nothing finds them.
	Mark string

	once  sync.Once
	slots *semaphore.Weighted

	mu      sync.Mutex           // protects what follows
	killed  bool                 // nothing begins any more: see [Runner.Kill]
	running map[string]*exec.Cmd // by the id that their environment has
}

var _ centurion.Runner = (*Runner)(nil)

func (r *Runner) size() int { return cmp.Or(r.Slots, max(2, runtime.NumCPU())) }

// Run runs one command and returns when every process of its group has ended. It waits for a free slot first; the wait
// is part of neither the timeout nor Duration. The command's standard input is empty. Errors are as
// [centurion.Runner] says.
func (r *Runner) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	none := centurion.CommandResult{ExitCode: -1}
	shell, err := prepare(c)
	if err != nil {
		return none, err
	}
	r.once.Do(func() { r.slots = semaphore.NewWeighted(int64(r.size())) })
	if ctx.Err() != nil || r.slots.Acquire(ctx, 1) != nil {
		return none, causeOf(ctx, runOp)
	}
	defer r.slots.Release(1)
	out := newOutput(cmp.Or(c.Keep, r.Keep, DefaultKeep))
	res, err := r.run(ctx, shell, c, out.readFrom, nil)
	res.Output, res.Bytes = out.result()
	return res, err
}

// prepare finds the shell for a command and looks whether its directory is there.
func prepare(c centurion.Command) (shell string, err error) {
	if info, err := os.Stat(c.Dir); err != nil || !info.IsDir() {
		return "", &centurion.Error{Op: runOp, Kind: centurion.KindNotFound,
			Msg: fmt.Sprintf("%q is not a directory", c.Dir), Hint: "give an existing directory to run in"}
	}
	return findShell()
}

// run runs a command. Its output goes to drain, which returns when the pipe that it is given has come to its end;
// started, if there is one, is called with its process number as soon as it runs.
func (r *Runner) run(ctx context.Context, shell string, c centurion.Command, drain func(io.Reader), started func(pid int)) (centurion.CommandResult, error) {
	id, start := rand.Text(), time.Now()
	cmd, pipe, err := r.begin(shell, c, id)
	if err != nil {
		return centurion.CommandResult{ExitCode: -1}, err
	}
	defer pipe.Close()
	defer r.forget(id)
	if started != nil {
		started(cmd.Process.Pid)
	}
	if c.Begun != nil {
		c.Begun()
	}
	var group guard.Group
	drained := make(chan struct{})
	group.Go("read command output", func() error {
		defer close(drained)
		drain(pipe)
		return nil
	})
	exited := make(chan struct{})
	group.Go("wait for command", func() error {
		defer close(exited)
		_ = cmd.Wait() // how it ended is read from its state
		return nil
	})

	limit := min(cmp.Or(c.Timeout, r.DefaultTimeout, DefaultTimeout), cmp.Or(r.MaxTimeout, DefaultMax))
	timedOut, stopped := await(ctx, exited, limit)
	r.finish(cmd, exited)
	if timedOut || stopped {
		endStrays(strayGrace, id)
	}
	// Whatever still holds the pipe has left the group on purpose: it is not waited for, and does not outlive the pipe.
	select {
	case <-drained:
	case <-time.After(drainTime):
		endStrays(strayGrace, id)
	}
	_ = pipe.SetReadDeadline(time.Now())
	_ = pipe.Close()
	err = group.Wait()

	res := centurion.CommandResult{ExitCode: cmd.ProcessState.ExitCode(), TimedOut: timedOut, Duration: time.Since(start)}
	if timedOut || stopped {
		res.ExitCode = -1
	}
	if stopped {
		return res, errors.Join(causeOf(ctx, runOp), err)
	}
	return res, err
}

// begin starts a command in a process group of its own, whose environment has its id. What it prints comes through pipe,
// which is the caller's to close.
func (r *Runner) begin(shell string, c centurion.Command, id string) (cmd *exec.Cmd, pipe *os.File, err error) {
	pipe, w, err := os.Pipe()
	if err != nil {
		return nil, nil, &centurion.Error{Op: runOp, Kind: centurion.KindInternal, Err: err}
	}
	cmd = exec.Command(shell, "-c", c.Script)
	cmd.Dir = c.Dir
	cmd.Env = append(r.environment(c), commandVariable+"="+id)
	cmd.Stdout, cmd.Stderr = w, w // one pipe, so that both streams keep their order; stdin stays nil: the null device
	isolate(cmd)
	err = r.start(cmd, id)
	_ = w.Close()
	if err != nil {
		_ = pipe.Close()
		return nil, nil, err
	}
	return cmd, pipe, nil
}

// await waits until a command has exited, or has to be ended because its time is over or ctx is.
func await(ctx context.Context, exited <-chan struct{}, limit time.Duration) (timedOut, stopped bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		timedOut = true
	case <-ctx.Done():
		stopped = true
	}
	return timedOut, stopped
}

// environment returns what a command gets.
func (r *Runner) environment(c centurion.Command) []string {
	env := append(environment(os.Environ(), r.Env), "PWD="+c.Dir)
	env = append(env, c.Env...)
	if r.Mark != "" { // last, so that nothing else has a say in it
		env = append(env, hostVariable+"="+r.Mark)
	}
	return env
}

// runOp is what an error of Run says that it was doing.
const runOp = "run command"

// drainTime is how long the rest of the output may take to arrive once every process of the group is gone.
const drainTime = 500 * time.Millisecond

// finish ends what is left of the group and waits for the shell itself. Processes that a command left behind get the
// same chance to clean up as a command that is stopped.
func (r *Runner) finish(cmd *exec.Cmd, exited <-chan struct{}) {
	grace := cmp.Or(r.Grace, DefaultGrace)
	if !alive(cmd) && guard.Closed(exited) {
		return
	}
	terminate(cmd)
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond) // nothing announces the end of a group
	defer poll.Stop()
	for waiting := true; waiting && alive(cmd); {
		select {
		case <-deadline.C:
			waiting = false
		case <-poll.C:
		}
	}
	if alive(cmd) || !guard.Closed(exited) {
		kill(cmd)
	}
	<-exited
	for range killPolls { // those that nobody waits for take a moment
		if !alive(cmd) {
			return
		}
		<-poll.C
	}
}

// killPolls is how often it is looked whether a killed group is gone, every 10 ms.
const killPolls = 20

// causeOf says why ctx ended, with the kind of its cause.
func causeOf(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	kind := centurion.KindOf(cause)
	if kind == centurion.KindInternal {
		kind = centurion.KindCancelled // a cause that is no error of ours still is a request to stop
	}
	return &centurion.Error{Op: op, Kind: kind, Msg: "stopped", Err: cause}
}

// Describe says in plain words what is in force and what is not, one line each, for a person.
func (r *Runner) Describe() []string {
	lines := slices.Clone(inForce)
	if r.Mark != "" {
		lines = append(lines, sweepInForce)
	}
	return append(lines,
		fmt.Sprintf("time limit: %s unless a command asks for more, at most %s", text.Took(cmp.Or(r.DefaultTimeout, DefaultTimeout)), text.Took(cmp.Or(r.MaxTimeout, DefaultMax))),
		fmt.Sprintf("output: %d bytes kept, head and tail", cmp.Or(r.Keep, DefaultKeep)),
		fmt.Sprintf("commands at once: %d, and those in the background", r.size()),
		"environment: allow list; names that look like secrets are left out",
		"confinement: none; a command can reach the files and the network that you can")
}
