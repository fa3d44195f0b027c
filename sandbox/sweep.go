package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"centurion"
)

// hostVariable is the mark's name. Unlike a process group or a session it survives double forks, new sessions and detached terminals.
const hostVariable = centurion.HostVariable

// The times of [Sweep]. A restarted host waits for it, so the grace is shorter than for a stopped command.
const (
	sweepGrace = time.Second     // from the first SIGTERM to SIGKILL
	sweepLimit = 3 * time.Second // for everything
	sweepPoll  = 10 * time.Millisecond
)

// maxCommand limits the command line in a [Process], in bytes: enough to recognise it.
const maxCommand = 200

// Process is a process ended by [Sweep].
type Process struct {
	PID     int
	Command string // its arguments separated by spaces, up to 200 bytes, unsanitised: clean it before display
}

// Sweep ends the processes left by a dead host: every process of this user that was started with [Runner.Mark] in its environment,
// however far it has moved from its parents, except this process and its ancestors. All get SIGTERM, the rest after a second SIGKILL,
// until two scans find none: processes forked meanwhile are found by the next scan. It takes at most 3 s, or as long as three rounds of
// SIGKILL take, and two scans if there is nothing to end. Call it before the first Run with the same mark, whose commands it would also
// end.
//
// On Linux it reads /proc. It misses processes that have cleared their environment, run as another user, or are not visible to this
// process. On other Unix systems it uses ps, which shows less. On Windows there is nothing to end.
//
// Errors are KindUsage (a mark that is empty or has white space), KindInternal (the processes cannot be listed, or some did not end in
// time) and the kind of ctx's cause; the processes ended before are returned, too.
func Sweep(ctx context.Context, mark string) (ended []Process, err error) {
	if mark == "" || strings.ContainsFunc(mark, func(r rune) bool { return r == 0 || unicode.IsSpace(r) }) {
		return nil, &centurion.Error{Op: "end processes", Kind: centurion.KindUsage, Msg: fmt.Sprintf("the mark %q is empty or has white space", mark),
			Hint: "give the mark that the host's commands were started with"}
	}
	s := sweep{mark: hostVariable + "=" + mark, found: map[int]*swept{}}
	start, c := time.Now(), chase{grace: sweepGrace, limit: sweepLimit}
	poll := time.NewTicker(sweepPoll)
	defer poll.Stop()
	for {
		sig := c.signal(time.Since(start))
		left, err := s.round(ctx, sig)
		switch {
		case ctx.Err() != nil:
			return s.ended(left), causeOf(ctx, "end processes")
		case err != nil:
			return s.ended(left), &centurion.Error{Op: "end processes", Kind: centurion.KindInternal, Msg: "the processes cannot be listed", Err: err}
		case c.again(time.Since(start), sig, len(left)):
		case len(left) == 0:
			return s.ended(nil), nil
		default:
			return s.ended(left), s.stuck(left)
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

// sweep is one call of [Sweep].
type sweep struct {
	mark  string // as it appears in an environment
	found map[int]*swept
}

type swept struct {
	Process
	sent os.Signal // the last signal sent
	err  error     // the result of that signal
}

// round scans once and sends the current signal, once, to each found process. It returns those processes.
func (s *sweep) round(ctx context.Context, sig os.Signal) (left []Process, err error) {
	if left, err = scan(ctx, s.mark); err != nil {
		return left, err
	}
	for _, p := range left {
		f := s.found[p.PID]
		if f == nil {
			f = &swept{Process: p}
			s.found[p.PID] = f
		}
		if f.sent == sig {
			continue
		}
		f.sent, f.err = sig, signalMarked(p.PID, s.mark, sig)
	}
	return left, nil
}

// ended lists the found processes that are gone, by pid.
func (s *sweep) ended(left []Process) []Process {
	var out []Process
	for _, pid := range slices.Sorted(maps.Keys(s.found)) {
		if !slices.ContainsFunc(left, func(p Process) bool { return p.PID == pid }) {
			out = append(out, s.found[pid].Process)
		}
	}
	return out
}

// stuck is the error for processes that did not end.
func (s *sweep) stuck(left []Process) error {
	p := left[0]
	var reason error
	if f := s.found[p.PID]; f != nil {
		reason = f.err
	}
	return &centurion.Error{Op: "end processes", Kind: centurion.KindInternal, Err: reason,
		Msg:  fmt.Sprintf("%d of a host that has died still run, among them process %d (%s)", len(left), p.PID, p.Command),
		Hint: fmt.Sprintf("end them yourself: kill -9 %d", p.PID)}
}

// signalMarked sends a signal to a process if it is still the found one: pids are reused.
func signalMarked(pid int, mark string, sig os.Signal) error {
	p, err := os.FindProcess(pid) // holds on to the process, where the system can
	if err != nil {
		return err
	}
	defer p.Release()
	if !marked(pid, mark) {
		return nil
	}
	if err := p.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// commandLine joins the arguments of a process to one line of at most maxCommand bytes.
func commandLine(args string) string {
	args = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(args, "\x00", " "), "\uFFFD"))
	return cmp.Or(centurion.Clip(args, maxCommand), "?")
}
