// Package background runs commands beside the turns of a mission's sessions, keeps their output and ends them.
package background

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/sandbox"
	"centurion/store"
	"centurion/text"
	"centurion/tools"
)

const (
	maxBackground = 8      // commands of a mission at once: each is a server, a watcher or a build
	keepEnded     = 16     // ended commands of a mission whose output is kept, so that many short ones do not fill the disk
	lookKeep      = 10_000 // bytes of new output in one look
)

// Commands are the background commands of a mission. They are kept in memory only. After a restart, the store's serial numbers keep ids
// unique, and a session's history has its earlier ids.
type Commands struct {
	st     *state.Mission
	runner centurion.Runner
	live   guard.Group
	dir    string // for their output; removed with the mission

	mu  sync.Mutex // protects all, and the fields of command that say so
	all []*command
}

// New returns the commands of a mission, none yet. Their output is kept below scratch; "" means the system's directory for temporary files.
// The owner calls Close.
func New(st *state.Mission, runner centurion.Runner, scratch string) *Commands {
	return &Commands{st: st, runner: runner, dir: filepath.Join(cmp.Or(scratch, os.TempDir()), "centurion-"+st.ID)}
}

// command is one background command.
type command struct {
	id      string // "" until it has one
	session string
	attempt int // of the session's task
	script  string
	words   string // the description
	begun   time.Time
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when all its processes have ended and all its output is there

	// Protected by Commands.mu.
	spool   *sandbox.Spool // nil when its output was removed
	pid     int
	ended   bool
	res     centurion.CommandResult
	err     error
	cause   error // why it was ended, if it was
	seen    int64 // how much of the output was shown
	shown   bool  // the status of the current request reports its end
	told    bool  // its session knows that it has ended
	dropped bool  // its output was removed before all of it was seen
}

// The causes for killing a background command. A person and the end of the mission have others.
var (
	errKilled   = &centurion.Error{Kind: centurion.KindCancelled, Msg: "its session killed it"}
	errTaskOver = &centurion.Error{Kind: centurion.KindCancelled, Msg: "the work of its task had ended"}
)

// Of returns the commands of one session, as its tools see them.
func (s *Commands) Of(c *agent.Conversation) tools.Background { return ownCommands{s, c} }

type ownCommands struct {
	*Commands
	c *agent.Conversation
}

// Start runs a command beside the session. It lives at most as long as the session's task, or the mission.
func (k ownCommands) Start(ctx context.Context, _ *tools.Call, cmd centurion.Command, words string) (tools.BackgroundCommand, error) {
	none := tools.BackgroundCommand{}
	runner, ok := k.runner.(centurion.BackgroundRunner)
	if !ok {
		return none, &centurion.Error{Kind: centurion.KindPermission, Msg: "nothing here runs commands in the background", Hint: "use bash"}
	}
	owner := k.st.Ctx
	if k.c.Task != nil {
		owner = k.c.Task.Ctx
	}
	life, cancel := context.WithCancelCause(owner)
	b := &command{session: k.c.ID(), attempt: k.c.Attempt, script: cmd.Script, words: words, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	if err := k.add(b); err != nil {
		cancel(nil)
		return none, err
	}
	started, err := make(chan struct{}), k.prepare(ctx, b)
	if err != nil {
		cancel(nil)
		k.remove(b)
		return none, err
	}
	begun := func(pid int) {
		k.mu.Lock()
		b.pid = pid
		k.mu.Unlock()
		close(started)
	}
	k.live.Go("background command "+b.id, func() error {
		defer cancel(nil)
		var res centurion.CommandResult
		err := guard.Call("background command "+b.id, func() (err error) {
			res, err = runner.RunBackground(life, cmd, b.spool, begun)
			return err
		})
		k.end(b, res, err, context.Cause(life))
		return nil
	})
	select {
	case <-started:
	case <-b.done:
		if b.err != nil && b.pid == 0 { // it never began
			k.remove(b)
			return none, b.err
		}
	case <-ctx.Done():
		cancel(context.Cause(ctx))
		<-b.done
		k.remove(b)
		return none, context.Cause(ctx)
	}
	return k.look(b, false), nil
}

// prepare gives a command its id and a place for its output.
func (k ownCommands) prepare(ctx context.Context, b *command) error {
	n := 0
	err := k.st.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if err := k.c.Current(); err != nil {
			return err
		}
		n, err = tx.NextSerial(k.st.ID, "background")
		return err
	})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("bg_%d", n+1)
	spool, err := sandbox.NewSpool(filepath.Join(k.dir, id), 0)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	b.id, b.spool = id, spool
	return nil
}

// Close waits for the end of all commands and removes their output. Call it when the mission's context has ended. An error means that a
// goroutine has crashed.
func (s *Commands) Close() error {
	err := s.live.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		b.drop()
	}
	_ = os.RemoveAll(s.dir) // leftovers do no harm
	return err
}

// Len is the number of commands, running or ended.
func (s *Commands) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// lastPrinted is how many bytes from the end of its output describe a command that the host has ended.
const lastPrinted = 300

// End ends the commands of a session's attempt and waits for their processes. It describes those that still ran, a line each, because their
// agent may have relied on them.
func (s *Commands) End(c *agent.Conversation) (lost []string) {
	for _, b := range s.of(c.ID()) {
		if b.attempt != c.Attempt {
			continue
		}
		s.mu.Lock()
		ran := !b.ended
		s.mu.Unlock()
		b.cancel(errTaskOver)
		<-b.done
		if ran {
			lost = append(lost, s.lostLine(b))
		}
	}
	return lost
}

// lostLine describes a command that ended together with the work of its task.
func (s *Commands) lostLine(b *command) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("its background command %s \"%s\", which was still running when its turn ended", b.id, centurion.Clip(b.script, 200))
	if b.spool == nil {
		return line
	}
	last, _ := b.spool.Since(max(0, b.spool.Total()-lastPrinted), 2*lastPrinted)
	if last = strings.Join(strings.Fields(last), " "); last == "" {
		return line + "; it had printed nothing"
	}
	return line + "; it had printed last: " + last
}

// TellLost writes to the journal which background commands of an agent, such as "worker 0/3", ended together with the work of its task.
func (s *Commands) TellLost(ctx context.Context, who string, lost []string) error {
	if len(lost) == 0 {
		return nil
	}
	return s.st.Tell(ctx, func(d *event.MissionData) {
		d.Note = strings.TrimSpace(who) + ": the host ended " + strings.Join(lost, "; ")
	})
}

// WithLost adds the lost background commands to a task's result. They come first, because its agent may say that they run, and readers may
// see only the first lines. The verdict of a review stays the first word.
func WithLost(agent, text string, lost []string) string {
	if len(lost) == 0 {
		return text
	}
	notes := make([]string, len(lost))
	for i, l := range lost {
		notes[i] = "(The host ended " + l + ")"
	}
	parts := []string{strings.Join(notes, "\n"), strings.TrimSpace(text)}
	if agent == agents.Reviewer {
		slices.Reverse(parts)
	}
	return strings.Join(parts, "\n\n")
}

// Look shows a command of the session.
func (k ownCommands) Look(ctx context.Context, call *tools.Call, id string) (tools.BackgroundCommand, error) {
	b, gone, err := k.find(ctx, call, id)
	if err != nil || b == nil {
		return gone, err
	}
	return k.look(b, true), nil
}

// List shows all commands of the session.
func (k ownCommands) List(context.Context, *tools.Call) ([]tools.BackgroundCommand, error) {
	var out []tools.BackgroundCommand
	for _, b := range k.of(k.c.ID()) {
		out = append(out, k.look(b, false))
	}
	return out, nil
}

// Kill ends a command of the session.
func (k ownCommands) Kill(ctx context.Context, call *tools.Call, id string) (tools.BackgroundCommand, error) {
	b, gone, err := k.find(ctx, call, id)
	if err != nil || b == nil {
		return gone, err
	}
	b.cancel(errKilled)
	select {
	case <-b.done:
	case <-ctx.Done():
		return gone, context.Cause(ctx)
	}
	return k.look(b, true), nil
}

// find returns a command of the session. A command from before the mission's last stop is returned as gone.
func (k ownCommands) find(ctx context.Context, call *tools.Call, id string) (*command, tools.BackgroundCommand, error) {
	none := tools.BackgroundCommand{}
	own := k.of(k.c.ID())
	var ids []string
	for _, b := range own {
		if strings.EqualFold(b.id, id) {
			return b, none, nil
		}
		ids = append(ids, b.id)
	}
	history, err := k.st.Store.Messages(ctx, k.c.ID())
	if err != nil {
		return nil, none, err
	}
	for _, msg := range history {
		for _, p := range msg.Parts {
			if p.Tool != "run_background" || p.State == nil {
				continue
			}
			if was, _ := p.State.Metadata["background"].(string); was != "" && strings.EqualFold(was, id) {
				var in struct{ Command string }
				_ = json.Unmarshal(p.State.Input, &in) // it was valid when it ran
				return nil, tools.BackgroundCommand{ID: was, Script: in.Command, Status: tools.BackgroundGone}, nil
			}
		}
	}
	e := &centurion.Error{Kind: centurion.KindNotFound, Msg: "you have no background command " + id, Hint: "you have started none"}
	if len(ids) > 0 {
		e.Hint = "yours are " + strings.Join(ids, ", ")
	}
	return nil, none, e
}

// add adds a command if there is room for it, and removes the output of the oldest ended ones.
func (s *Commands) add(b *command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var running []string
	ended := 0
	for _, o := range slices.Backward(s.all) {
		if !o.ended {
			running = append(running, cmp.Or(o.id, "one that is about to start"))
		} else if ended++; ended > keepEnded {
			o.drop()
		}
	}
	if len(running) >= maxBackground {
		slices.Reverse(running)
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%d background commands of this mission run already (%s)",
			len(running), strings.Join(running, ", ")), Hint: "end one of yours with check_background and the action kill, or use bash"}
	}
	s.all = append(s.all, b)
	return nil
}

// Forget removes the ended commands of a session that will not be resumed.
func (s *Commands) Forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(b *command) bool {
		gone := b.session == session && b.ended
		if gone {
			b.drop()
		}
		return gone
	})
}

// remove forgets a command that never ran.
func (s *Commands) remove(b *command) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o *command) bool { return o == b })
	b.drop()
}

// end records how a command ended.
func (s *Commands) end(b *command, res centurion.CommandResult, err, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.spool.End()
	b.ended, b.res, b.err, b.cause = true, res, err, cause
	close(b.done)
}

// of returns the commands of a session, oldest first.
func (s *Commands) of(session string) []*command {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*command
	for _, b := range s.all {
		if b.session == session && b.id != "" {
			out = append(out, b)
		}
	}
	return out
}

// look returns the state of a command. With output it also takes the new output, and the session knows of its end.
func (s *Commands) look(b *command, output bool) tools.BackgroundCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := tools.BackgroundCommand{ID: b.id, Script: b.script, Description: b.words, Status: tools.BackgroundRunning, PID: b.pid,
		Runtime: time.Since(b.begun)}
	if b.ended {
		out.Runtime, out.ExitCode, out.Bytes = b.res.Duration, b.res.ExitCode, b.res.Bytes
		out.Status, out.Reason = b.outcome()
		out.Held = b.res.Held
	}
	if b.spool != nil {
		out.Bytes = b.spool.Total()
		if output {
			out.Output, b.seen = b.spool.Since(b.seen, lookKeep)
		}
	} else if output && b.dropped {
		out.Output = "… what it printed is not kept any more …"
	}
	b.told = b.told || output && b.ended
	return out
}

// outcome says how a command has ended.
func (b *command) outcome() (status tools.BackgroundStatus, reason string) {
	switch {
	case b.res.Exceeded != "":
		return tools.BackgroundKilled, tools.UsedTooMuch(b.res.Exceeded)
	case b.res.TimedOut:
		return tools.BackgroundTimedOut, ""
	case b.err == nil:
		return tools.BackgroundExited, ""
	case b.cause == nil:
		return tools.BackgroundFailed, b.err.Error()
	case b.cause == errKilled:
		return tools.BackgroundKilled, ""
	}
	if e, ok := errors.AsType[*centurion.Error](b.cause); ok {
		return tools.BackgroundKilled, e.Msg
	}
	return tools.BackgroundKilled, b.cause.Error()
}

// drop removes the output.
func (b *command) drop() {
	if b.spool == nil {
		return
	}
	b.dropped = b.seen < b.spool.Total()
	_ = b.spool.Remove() // the directory is removed with the mission
	b.spool = nil
}

// News lists the commands of a session whose end it does not know of yet, a line each.
func (s *Commands) News(session string) string {
	var lines []string
	for _, b := range s.of(session) {
		s.mu.Lock()
		fresh := b.ended && !b.told
		b.shown = fresh
		s.mu.Unlock()
		if fresh {
			end := s.look(b, false)
			lines = append(lines, end.State()+text.When(end.Held != "", " ("+end.Held+")"))
		}
	}
	return strings.Join(lines, "\n")
}

// Heard marks the news as known, because the model has answered the request with them. Until then, each request repeats them.
func (s *Commands) Heard(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		b.told = b.told || b.session == session && b.shown
	}
}
