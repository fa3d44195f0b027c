package demo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/host"
	"centurion/provider/scripted"
	"centurion/sandbox"
)

// The times of `centurion demo --kill`.
const (
	comeBack = 10 * time.Second       // a host that reports nothing by then is a failure
	silence  = 20 * time.Second       // so is one that stops reporting
	settle   = 150 * time.Millisecond // anything that soon after a comeback was repaired
)

// The model of `centurion demo --kill` is slower, so that kills hit running work and a person can follow.
const (
	killLatency = 450 * time.Millisecond
	killPace    = 22 * time.Millisecond
)

// killing is one run of `centurion demo --kill`. It starts the host, reads its events, kills it and starts it again. It keeps every
// event and finally compares them with the journal.
type killing struct {
	stage Stage
	self  string // the program
	KillOptions
	random *rand.Rand

	told   []centurion.Event
	torn   int // lines cut off by a kill, and so not reported
	done   int // kills so far
	score  int
	tasks  map[string]centurion.TaskStatus
	open   map[string]string // tool calls in progress: call to tool
	tried  int               // tasks tried again
	lost   int               // calls answered as interrupted
	slow   time.Duration     // the longest comeback
	killed time.Time         // the last kill
	early  bool              // the current events are what a returned host has done right away
	plan   string            // as last shown
	err    error             // why the run ended early
}

// KillOptions are for tests and for tracking down failures.
type KillOptions struct {
	Kills int
	Seed  uint64
	Fast  bool

	Out   io.Writer // for everything but events; nil for nowhere
	Env   []string  // of the hosts
	Color bool
	Show  func(ctx context.Context, events iter.Seq2[centurion.Event, error]) error // draws the events of the mission
}

// Kill runs the demonstration while killing its host. It returns the event that ended the mission, and whether everything requested
// came and nothing was lost or done twice.
func Kill(ctx context.Context, o KillOptions) (ended centurion.Event, ok bool, err error) {
	self, err := host.Executable()
	if err != nil {
		return ended, false, err
	}
	conf := scripted.Config{Latency: killLatency, Pace: killPace}
	if o.Fast {
		conf = scripted.Config{Latency: killLatency / 10, Pace: killPace / 10}
	}
	s, err := NewStage(ctx, o.Out, o.Fast, conf)
	if err != nil {
		return ended, false, err
	}
	k := &killing{stage: s, self: self, KillOptions: o, random: rand.New(rand.NewPCG(o.Seed, 0)),
		tasks: map[string]centurion.TaskStatus{}, open: map[string]string{}}
	k.line("Its host is a process of its own. It is killed with SIGKILL %s while it works (seed %d).\n", times(o.Kills), o.Seed)
	err = o.Show(context.WithoutCancel(ctx), k.events(ctx))
	if err = errors.Join(k.err, err); err == nil {
		ok, err = k.verdict(ctx)
		ended = k.told[len(k.told)-1]
	}
	return ended, ok, errors.Join(err, s.Model.Close())
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return centurion.Count(n, "time")
}

// line prints a line of the demonstration itself, but not in JSON.
func (k *killing) line(format string, a ...any) {
	if k.Out != nil {
		fmt.Fprintf(k.Out, format+"\n", a...)
	}
}

// events yields the events of the hosts, one after the other, while killing them. err says why it ended early.
func (k *killing) events(ctx context.Context) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		for over := false; !over; {
			ch, err := k.start()
			if err != nil {
				k.err = err
				return
			}
			over, err = k.live(ctx, ch, yield)
			ch.end()
			if err != nil {
				if !errors.Is(err, errUnseen) {
					k.err = err
				}
				return
			}
		}
	}
}

// errUnseen ends a run whose events the view no longer takes; the view says why.
var errUnseen = errors.New("the view has ended")

// child is a running host.
type child struct {
	cmd    *exec.Cmd
	lines  chan []byte // closed when it has ended
	stderr bytes.Buffer
	group  guard.Group
}

// start starts a host, which resumes the mission after the last known event.
func (k *killing) start() (*child, error) {
	ch := &child{lines: make(chan []byte, 64)}
	ch.cmd = exec.Command(k.self, "demo", "host", "--dir", k.stage.Dir, "--url", k.stage.URL,
		"--after", strconv.FormatInt(k.seq(), 10), "--parent", strconv.Itoa(os.Getpid()))
	ch.cmd.Env = k.Env
	ch.cmd.Stderr = &ch.stderr
	out, err := ch.cmd.StdoutPipe()
	if err == nil {
		err = ch.cmd.Start()
	}
	if err != nil {
		return nil, &centurion.Error{Op: "start the host", Kind: centurion.KindInternal, Err: err}
	}
	ch.group.Go("read host", func() error {
		defer close(ch.lines)
		for r := bufio.NewReader(out); ; {
			b, err := r.ReadBytes('\n')
			if len(b) > 0 {
				ch.lines <- b
			}
			if err != nil {
				_ = ch.cmd.Wait() // its state tells how it ended
				return nil
			}
		}
	})
	return ch, nil
}

// kill ends the host as a power cut would: no handler of it runs.
func (ch *child) kill() { _ = ch.cmd.Process.Kill() } // it may have ended

// end kills the host if it still lives, and waits for it.
func (ch *child) end() {
	ch.kill()
	for range ch.lines {
	}
	_ = ch.group.Wait() // it returns nil
}

// seq returns the number of the last known event.
func (k *killing) seq() int64 {
	if len(k.told) == 0 {
		return 0
	}
	return k.told[len(k.told)-1].Seq
}

// live follows one host until it is killed or ends by itself. It returns over when the mission has ended.
func (k *killing) live(ctx context.Context, ch *child, yield func(centurion.Event, error) bool) (over bool, err error) {
	aim := k.aim()
	defer aim.stop()
	first, err := k.greet(ctx, ch, aim)
	if err != nil {
		return false, err
	}
	k.early = k.done > 0
	for _, b := range first {
		if over, err = k.tell(b, aim, yield); err != nil {
			return over, err
		}
	}
	k.early = false
	quiet := time.NewTimer(silence)
	defer quiet.Stop()
	for {
		select {
		case b, ok := <-ch.lines:
			if !ok {
				return over, k.fell(ch, over)
			}
			quiet.Reset(silence)
			end, err := k.tell(b, aim, yield)
			if over = over || end; err != nil {
				return over, err
			}
		case <-aim.fire():
			over, err := k.strike(ch, aim, yield)
			return over, err
		case <-quiet.C:
			return over, &centurion.Error{Op: "demo", Kind: centurion.KindTimeout, Msg: fmt.Sprintf("the host has told nothing for %s", silence),
				Hint: "look at what it had done: " + k.stage.Dir}
		case <-ctx.Done():
			return over, k.interrupted(ch)
		}
	}
}

// greet waits for the first events of a host. After a kill it prints how long the comeback took and what was repaired.
func (k *killing) greet(ctx context.Context, ch *child, aim *aim) (first [][]byte, err error) {
	limit := time.NewTimer(comeBack)
	defer limit.Stop()
	var settled <-chan time.Time
	took := time.Duration(0)
	for {
		select {
		case b, ok := <-ch.lines:
			if !ok {
				return nil, k.fell(ch, false)
			}
			if first = append(first, b); k.done == 0 {
				return first, nil
			}
			if len(first) == 1 {
				took = time.Since(k.killed)
				settled = time.After(settle)
				if aim.how == whileBack {
					settled = time.After(0)
				}
			}
		case <-settled:
			k.back(first, took)
			return first, nil
		case <-limit.C:
			return nil, &centurion.Error{Op: "demo", Kind: centurion.KindTimeout, Msg: fmt.Sprintf("the host did not come back within %s", comeBack),
				Hint: "look at what it had done: " + k.stage.Dir}
		case <-ctx.Done():
			return nil, k.interrupted(ch)
		}
	}
}

// fell says what happened to a host that ended without being killed.
func (k *killing) fell(ch *child, over bool) error {
	_ = ch.group.Wait() // it returns nil
	code := ch.cmd.ProcessState.ExitCode()
	if over && code == 0 {
		return nil
	}
	return &centurion.Error{Op: "demo", Kind: centurion.KindInternal, Msg: fmt.Sprintf("the host ended by itself with %d: %s", code, ch.stderr.String()),
		Hint: "look at what it had done: " + k.stage.Dir}
}

// interrupted ends everything at once: the host and what it has started.
func (k *killing) interrupted(ch *child) error {
	ch.end()
	_, _ = sandbox.Sweep(context.Background(), host.Place{State: k.stage.State}.Mark()) // the person waits only for this process
	return &centurion.Error{Op: "demo", Kind: centurion.KindInterrupted, Msg: "interrupted", Hint: "see it again with: centurion demo --kill"}
}

// tell takes a line and passes it on. It returns over with the event that ends the mission.
func (k *killing) tell(b []byte, aim *aim, yield func(centurion.Event, error) bool) (over bool, err error) {
	var e centurion.Event
	if !bytes.HasSuffix(b, []byte("\n")) || json.Unmarshal(b, &e) != nil || e.Seq == 0 {
		if aim.fired && !bytes.HasSuffix(b, []byte("\n")) {
			k.torn++ // only complete lines count
			return false, nil
		}
		return false, &centurion.Error{Op: "demo", Kind: centurion.KindInternal, Msg: fmt.Sprintf("the host wrote a line that is no event: %q", centurion.Clip(string(b), 100))}
	}
	k.told = append(k.told, e)
	k.follow(e)
	aim.see(e, k.score)
	if k.Out != nil {
		e = k.shown(e)
	}
	if e.Type != "" && !yield(e, nil) {
		return false, errUnseen
	}
	return e.Type.EndsMission(), nil
}

// shown drops repetitive events: the demonstration has its own line for what a returned host does first, and the plan has been seen.
func (k *killing) shown(e centurion.Event) centurion.Event {
	switch e.Type {
	case centurion.EventMissionResumed:
		return centurion.Event{}
	case centurion.EventTaskUpdated, centurion.EventTaskRetrying, centurion.EventTaskWaiting, centurion.EventTaskQueued:
		if k.early {
			return centurion.Event{}
		}
	case centurion.EventTodoUpdated:
		d, err := event.Decode[event.TodoData](e)
		if err != nil || len(d.Items) == 0 {
			return e
		}
		items := slices.Clone(d.Items)
		for i := range items {
			items[i].Status = ""
		}
		plan := fmt.Sprint(items)
		if plan == k.plan {
			d.Items = nil
			e.Data = event.Data(d)
		}
		k.plan = plan
	}
	return e
}

// follow tracks what the lines about a kill report.
func (k *killing) follow(e centurion.Event) {
	k.score += Score(e)
	switch e.Type {
	case centurion.EventToolStarted, centurion.EventToolCompleted:
		d, _ := event.Decode[event.ToolData](e) // any other event counts as none
		delete(k.open, d.Call)
		if e.Type == centurion.EventToolStarted {
			k.open[d.Call] = d.Tool
		}
		if strings.Contains(d.Error, Interrupted) {
			k.lost++
		}
	default:
		if strings.HasPrefix(string(e.Type), "task.") && e.Type != centurion.EventTaskDelivered && e.Type != centurion.EventTaskFenced {
			d, _ := event.Decode[event.TaskData](e)
			k.tasks[e.Task] = d.Status
			if e.Type == centurion.EventTaskRetrying && d.Status == centurion.TaskRunning {
				k.tried++
			}
		}
	}
}

// strike kills the host, reads what it still wrote, and reports the kill.
func (k *killing) strike(ch *child, aim *aim, yield func(centurion.Event, error) bool) (over bool, err error) {
	aim.fired = true
	k.killed = time.Now()
	ch.kill()
	for b := range ch.lines {
		end, err := k.tell(b, aim, yield)
		if over = over || end; err != nil {
			return over, err
		}
	}
	k.done++
	k.line("%s kill %d of %d · SIGKILL after event %d, %s", k.paint(red, "✗"), k.done, k.Kills, k.seq(), k.atWork())
	return over, nil
}

// atWork describes what a kill hits.
func (k *killing) atWork() string {
	n := 0
	for _, s := range k.tasks {
		if s == centurion.TaskRunning || s == centurion.TaskVerifying {
			n++
		}
	}
	text := "the Commander alone at work"
	if n > 0 {
		text = centurion.Count(n, "agent") + " at work"
	}
	if len(k.open) > 0 {
		text += ", " + centurion.Count(len(k.open), "call") + " under way"
	}
	return text
}

// back reports what a returned host has repaired so far.
func (k *killing) back(first [][]byte, took time.Duration) {
	k.slow = max(k.slow, took)
	tried, lost := 0, 0
	for _, b := range first {
		probe := killing{tasks: map[string]centurion.TaskStatus{}, open: map[string]string{}}
		var e centurion.Event
		if json.Unmarshal(b, &e) == nil {
			probe.follow(e)
		}
		tried, lost = tried+probe.tried, lost+probe.lost
	}
	text := fmt.Sprintf("%s back after %d ms", k.paint(green, "↻"), took.Milliseconds())
	var did []string
	if tried > 0 {
		did = append(did, centurion.Count(tried, "task")+" tried again")
	}
	if lost > 0 {
		did = append(did, centurion.Count(lost, "call")+" answered as interrupted")
	}
	if len(did) > 0 {
		text += " · " + strings.Join(did, ", ")
	}
	k.line("%s", text)
}

// The colours of the two marks.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
)

// paint colours a mark on a terminal.
func (k *killing) paint(colour, s string) string {
	if !k.Color {
		return s
	}
	return colour + s + "\x1b[0m"
}
