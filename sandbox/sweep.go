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

// hostVariable is the mark's name. Unlike a process group or a session it is inherited by what forks twice, leaves its session
// or ignores its terminal.
const hostVariable = centurion.HostVariable

// The times of [Sweep]. A host that comes back after it was killed waits for it, so it gets less than the grace of a
// command that is stopped.
const (
	sweepGrace = time.Second     // from the first SIGTERM to SIGKILL
	sweepLimit = 3 * time.Second // for all of it
	sweepPoll  = 10 * time.Millisecond
)

// maxCommand is how many bytes of a command line a [Process] tells: enough to recognise it.
const maxCommand = 200

// Process is a process that [Sweep] ended.
type Process struct {
	PID     int
	Command string // its arguments with spaces between them, up to 200 bytes, as it set them: clean it before showing it
}

// Sweep ends the processes that a dead host left behind: every process of this user that was started with the mark of
// [Runner.Mark] in its environment, however far it has gone away from its parents. This process and its ancestors are
// spared. All of them get SIGTERM, what is left after a second gets SIGKILL, until two scans find none: a process that
// forks meanwhile is found by the next scan. It takes at most 3 s, or as long as three rounds of SIGKILL take, and two scans if there is nothing to end. Call it before
// the first Run with the same mark, whose commands it would end too.
//
// Linux looks into /proc. It does not find processes that have cleared their environment, run as somebody else, or live
// where this process cannot see them. Other Unix systems are asked through ps, which tells less. Windows ends nothing.
//
// Errors are KindUsage (a mark that is empty or has white space), KindInternal (the processes cannot be listed, or some
// did not end in time) and the kind of ctx's cause; what had ended until then is returned with them.
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
	mark  string // as it stands in an environment
	found map[int]*swept
}

type swept struct {
	Process
	sent os.Signal // the last signal it got
	err  error     // what became of that signal
}

// round scans once and sends each process that it finds the signal whose time it is, once. It returns what it found.
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

// ended lists what was found and is not left, by number.
func (s *sweep) ended(left []Process) []Process {
	var out []Process
	for _, pid := range slices.Sorted(maps.Keys(s.found)) {
		if !slices.ContainsFunc(left, func(p Process) bool { return p.PID == pid }) {
			out = append(out, s.found[pid].Process)
		}
	}
	return out
}

// stuck tells what would not end.
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

// signalMarked sends a signal to a process if it is still the one that was found: numbers are given away again.
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

// commandLine makes the arguments of a process one line of at most maxCommand bytes.
func commandLine(args string) string {
	args = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(args, "\x00", " "), "\uFFFD"))
	return cmp.Or(centurion.Clip(args, maxCommand), "?")
}
