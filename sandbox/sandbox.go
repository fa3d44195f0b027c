// Package sandbox runs child processes for a model or a repository. It owns the start and the end of commands: their environment, their
// time limits, the kept output, the number of parallel commands, and that nothing of them is left behind.
//
// It enforces a process group that is killed as a whole, an allow list for the environment, a limit on output and a time limit. With a
// [Confinement] the kernel also limits what a command reaches, and ends all that it left behind with its workspace. Without one a command
// can do what the person's account can, and leave its process group (setsid). Such a process is found by its environment and ended
// together with the command, or if it holds the command's output. Permission rules decide beforehand whether a command may run at all.
// Processes that survive a killed host are found by a mark in their environment and ended by the next host ([Sweep]). On Windows a job
// object holds a command with all that it starts, and ends with it and with the host.
package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"centurion"
	"centurion/guard"
	"centurion/sandbox/confine"
	"centurion/text"
)

// The defaults of a [Runner].
const (
	DefaultTimeout = 2 * time.Minute // as long as a person would wait without checking
	DefaultMax     = time.Hour       // the longest life of a task, so longer limits have no effect
	DefaultKeep    = 30_000          // bytes; about 7,000 tokens of a model's window
	DefaultGrace   = time.Second     // for a program to clean up after SIGTERM: within 2 s all of it must be gone
)

// Runner runs shell scripts. The zero Runner is ready to use; its fields are read at the first Run and must not change afterwards, nor
// may it be copied then.
type Runner struct {
	Env            []string      // names added to the environment allow list; likely secrets stay excluded
	DefaultTimeout time.Duration // default time limit; 0 means [DefaultTimeout]
	MaxTimeout     time.Duration // maximum time limit; 0 means [DefaultMax]
	Keep           int           // kept bytes of output; 0 means [DefaultKeep]
	Grace          time.Duration // from SIGTERM to SIGKILL; 0 means [DefaultGrace]
	Redact         Redactor      // replaces keys in the output, before any of it is left out; nil replaces nothing
	Slots          int           // parallel commands of the whole host, without background ones and checks; 0 means max(2, CPUs)
	Checks         int           // parallel checks of the whole host: agents' commands neither delay them nor wait for them; 0 means max(2, CPUs)
	Turns          *Turns        // of all runners of the process, whose commands then wait for each other; nil if this is the only one

	// Mark is the value of CENTURION_HOST in the environment of commands and their descendants, by which [Sweep] finds them if this
	// process was killed. No white space; if empty, the variable is not set and they are not found.
	Mark string

	// Confine says how commands are confined; nil means not at all. The caller ends with [Runner.Close].
	Confine *Confinement

	once   sync.Once
	own    Turns
	layers layered

	mu      sync.Mutex         // protects the fields below
	killed  bool               // no command starts any more: see [Runner.Kill]
	running map[string]process // by the id in their environment
	places  map[placeKey]*place
	placed  map[string]*place // of commands that run or start, by id
}

var _ centurion.Runner = (*Runner)(nil)

// Redactor replaces the keys in an output.
type Redactor interface {
	// Writer returns a writer that passes a text on without keys; its Close passes on the rest.
	Writer(to io.Writer) io.WriteCloser
}

// size is how many commands run at once where a person has configured n; 0 is nothing configured.
func size(n int) int { return cmp.Or(n, max(2, runtime.NumCPU())) }

// Turns limit how many commands and how many checks run at once: as many as the runner with the most may run. The zero Turns is ready to
// use.
type Turns struct {
	mu               sync.Mutex // held while they are widened
	commands, checks turns
}

type turns struct {
	*semaphore.Weighted
	size int64
}

// maxTurns is above any limit. What a limit leaves of it is taken from the start and never released.
const maxTurns = 1 << 30

// widen lets as many run as the runner may.
func (t *Turns) widen(r *Runner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q, n := range map[*turns]int64{&t.commands: int64(size(r.Slots)), &t.checks: int64(size(r.Checks))} {
		if q.Weighted == nil {
			q.Weighted = semaphore.NewWeighted(maxTurns)
			q.TryAcquire(maxTurns)
		}
		if n > q.size {
			q.Release(n - q.size)
			q.size = n
		}
	}
}

// of are the turns that a command waits for.
func (t *Turns) of(c centurion.Command) *semaphore.Weighted {
	if c.Check {
		return t.checks.Weighted
	}
	return t.commands.Weighted
}

// Run runs one command and returns when every process of its group has ended. It first waits for a free slot; that wait does not count
// towards the timeout or Duration. Errors are those of [centurion.Runner].
func (r *Runner) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	none := centurion.CommandResult{ExitCode: -1}
	shell, err := r.prepare(c)
	if err != nil {
		return none, err
	}
	r.once.Do(func() {
		r.own.widen(r)
		if r.Turns != nil {
			r.Turns.widen(r)
		}
	})
	for _, t := range []*Turns{&r.own, r.Turns} {
		if t == nil {
			continue
		}
		if ctx.Err() != nil || t.of(c).Acquire(ctx, 1) != nil {
			return none, causeOf(ctx, runOp)
		}
		defer t.of(c).Release(1)
	}
	out := newOutput(cmp.Or(c.Keep, r.Keep, DefaultKeep))
	var to io.Writer = out
	if c.Output != nil {
		to = io.MultiWriter(out, c.Output)
	}
	res, err := r.run(ctx, shell, c, to, nil)
	res.Output, _ = out.result()
	res.Held = cmp.Or(res.Held, r.held(c, res.ExitCode, res.Output))
	return res, err
}

// prepare finds the shell for a command and checks that its directory exists.
func (r *Runner) prepare(c centurion.Command) (shell string, err error) {
	_, mounted := r.layers.of(c.Workspace)
	if info, err := os.Stat(c.Cwd()); !mounted && (err != nil || !info.IsDir()) {
		return "", &centurion.Error{Op: runOp, Kind: centurion.KindNotFound,
			Msg: fmt.Sprintf("%q is not a directory", c.Cwd()), Hint: "give an existing directory to run in"}
	}
	return findShell()
}

// run runs a command. Its output goes to out; after an error of out the rest is read and dropped, so that the command does not block.
// started, if not nil, is called with the process id when the command runs.
func (r *Runner) run(ctx context.Context, shell string, c centurion.Command, out io.Writer, started func(pid int)) (centurion.CommandResult, error) {
	id, start := rand.Text(), time.Now()
	var refused refusals
	c.Connect = refused.watch(c.Connect)
	p, host, err := r.begin(shell, c, id)
	if err != nil {
		return centurion.CommandResult{ExitCode: -1}, err
	}
	defer host.close()
	defer p.release()
	defer r.forget(id)
	tellBegun(c, p.pid(), started)
	var group guard.Group
	var size int64
	drained := r.copyStreams(&group, c, host, out, &size)
	code, exited := -1, make(chan struct{})
	group.Go("wait for command", func() error {
		defer close(exited)
		code = p.wait()
		return nil
	})

	timedOut, stopped := await(ctx, exited, r.limit(c))
	r.finish(p, exited)
	if timedOut || stopped {
		endStrays(strayGrace, id)
	}
	// A process that still holds the pipe has left the group: it is not waited for, and does not outlive the pipe.
	select {
	case <-drained:
	case <-time.After(drainTime):
		endStrays(strayGrace, id)
	}
	_, _ = host.out.SetReadDeadline(time.Now()), host.err.SetReadDeadline(time.Now()) // of a nil file it does nothing
	host.close()
	if c.Input != nil {
		_ = c.Input.Close()
	}
	err = group.Wait()

	res := centurion.CommandResult{ExitCode: code, TimedOut: timedOut, Exceeded: p.exceeded(), Bytes: size, Duration: time.Since(start), Held: refused.told()}
	if timedOut || stopped {
		res.ExitCode = -1
	}
	if stopped {
		return res, errors.Join(causeOf(ctx, runOp), err)
	}
	return res, err
}

// copyStreams copies what a command reads and writes until host is closed. The channel is closed when its output has ended, whose size it then
// has stored.
func (r *Runner) copyStreams(group *guard.Group, c centurion.Command, host streams, out io.Writer, size *int64) <-chan struct{} {
	drained := make(chan struct{})
	group.Go("read command output", func() error {
		defer close(drained)
		*size = r.copyOut(out, host.out)
		return nil
	})
	if c.Errors != nil {
		group.Go("read command errors", func() error {
			r.copyOut(c.Errors, host.err)
			return nil
		})
	}
	if c.Input != nil {
		group.Go("write command input", func() error {
			_, _ = io.Copy(host.in, c.Input) // a command need not read all of it
			_ = host.in.Close()
			return nil
		})
	}
	return drained
}

// limit is how long a command may run.
func (r *Runner) limit(c centurion.Command) time.Duration {
	if c.Timeout == centurion.NoTimeout {
		return math.MaxInt64
	}
	return min(cmp.Or(c.Timeout, r.DefaultTimeout, DefaultTimeout), cmp.Or(r.MaxTimeout, DefaultMax))
}

// tellBegun tells those who want to know that a command runs.
func tellBegun(c centurion.Command, pid int, started func(pid int)) {
	if started != nil {
		started(pid)
	}
	if c.Begun != nil {
		c.Begun()
	}
}

// begin starts a command in its own process group, with its id in the environment. The caller closes host, the other ends of its streams.
func (r *Runner) begin(shell string, c centurion.Command, id string) (p process, host streams, err error) {
	var own streams
	host.out, own.out, err = os.Pipe()
	if err == nil && c.Input != nil {
		own.in, host.in, err = os.Pipe()
	}
	if err == nil && c.Errors != nil {
		host.err, own.err, err = os.Pipe()
	}
	defer own.close()
	if err != nil {
		err = &centurion.Error{Op: runOp, Kind: centurion.KindInternal, Err: err}
	} else {
		p, err = r.start(shell, c, id, own)
	}
	if err != nil {
		host.close()
	}
	return p, host, err
}

// start starts a command, confined if this runner confines, so that [Runner.Kill] finds it, unless that was called before.
func (r *Runner) start(shell string, c centurion.Command, id string, s streams) (_ process, err error) {
	in, err := r.placeOf(c, id)
	defer func() {
		if err != nil {
			r.forget(id)
		}
	}()
	if err != nil {
		return nil, &centurion.Error{Op: runOp, Kind: centurion.KindInternal, Msg: "commands cannot be confined", Err: err,
			Hint: "see: centurion doctor"}
	}
	if r.stopped() {
		return nil, &centurion.Error{Op: runOp, Kind: centurion.KindInterrupted, Msg: "stopped"}
	}
	env := append(r.environment(c), commandVariable+"="+id)
	p, err := in.start(c, []string{shell, "-c", c.Script}, env, id, s)
	if err != nil {
		return nil, &centurion.Error{Op: runOp, Kind: centurion.KindInternal, Msg: "the shell did not start", Err: err}
	}
	if r.register(p, id) { // it may have begun, and have left its group: it ends like those that Kill found
		kill(p)
		endStrays(0, id)
	}
	return p, nil
}

// await waits until a command has exited, or must be ended because of its time limit or ctx.
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

// environment returns the environment of a command.
func (r *Runner) environment(c centurion.Command) []string {
	env := append(environment(os.Environ(), r.Env), "PWD="+c.Cwd())
	env = append(env, c.Env...)
	if r.Mark != "" { // last, so that nothing else can override it
		env = append(env, hostVariable+"="+r.Mark)
	}
	return env
}

// runOp is the operation in errors of Run.
const runOp = "run command"

// drainTime is how long the rest of the output may take once every process of the group has ended.
const drainTime = 500 * time.Millisecond

// finish ends the rest of the group and waits for the shell itself. Remaining processes get the same chance to clean up as a stopped
// command.
func (r *Runner) finish(p process, exited <-chan struct{}) {
	grace := cmp.Or(r.Grace, DefaultGrace)
	if !alive(p) && guard.Closed(exited) {
		return
	}
	terminate(p)
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	poll := time.NewTicker(10 * time.Millisecond) // the end of a group is not signalled
	defer poll.Stop()
	for waiting := true; waiting && alive(p); {
		select {
		case <-deadline.C:
			waiting = false
		case <-poll.C:
		}
	}
	if alive(p) || !guard.Closed(exited) {
		kill(p)
	}
	<-exited
	for range killPolls { // unreaped ones take a moment
		if !alive(p) {
			return
		}
		<-poll.C
	}
}

// killPolls is the number of checks, every 10 ms, whether a killed group is gone.
const killPolls = 20

// causeOf says why ctx ended, with the kind of its cause.
func causeOf(ctx context.Context, op string) error {
	cause := context.Cause(ctx)
	kind := centurion.KindOf(cause)
	if kind == centurion.KindInternal {
		kind = centurion.KindCancelled // any other cause is a request to stop, too
	}
	return &centurion.Error{Op: op, Kind: kind, Msg: "stopped", Err: cause}
}

// Confinement returns how commands are confined, and what that does not stop.
func (r *Runner) Confinement() centurion.Confinement {
	way := confine.None
	if r.Confine != nil {
		way = r.Confine.Way
	}
	return centurion.Confinement{Way: string(way), Gaps: way.Gaps()}
}

// Describe describes in plain words what is enforced and what is not, one line each.
func (r *Runner) Describe() []string {
	lines := slices.Clone(inForce)
	if r.Mark != "" {
		lines = append(lines, sweepInForce)
	}
	return append(lines,
		fmt.Sprintf("time limit: %s unless a command asks for more, at most %s", text.Took(cmp.Or(r.DefaultTimeout, DefaultTimeout)), text.Took(cmp.Or(r.MaxTimeout, DefaultMax))),
		fmt.Sprintf("output: %d bytes kept, head and tail", cmp.Or(r.Keep, DefaultKeep)),
		fmt.Sprintf("commands at once: %d, checks at once: %d, and commands in the background", size(r.Slots), size(r.Checks)),
		"environment: allow list; names that look like secrets are left out")
}
