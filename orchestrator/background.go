package orchestrator

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
	"centurion/sandbox"
	"centurion/store"
	"centurion/tools"
)

const (
	maxBackground = 8      // commands of a mission at once: each is a server, a watcher or a build
	keepEnded     = 16     // ended commands of a mission whose output is kept, so that many short ones do not fill the disk
	lookKeep      = 10_000 // bytes of new output that one look shows
)

// backgrounds are the background commands of a mission. They are gone with the mission object: after a restart the
// store's serial numbers see to it that no id is given twice, and a session's history says which ids it had.
type backgrounds struct {
	mu  sync.Mutex // protects what follows, and what is said to be so in background
	all []*background
}

// background is one background command.
type background struct {
	id      string // "" until it has one
	session string
	attempt int // of the session's task
	script  string
	words   string // the description
	begun   time.Time
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when it has ended with all its processes, and everything it printed has arrived

	// Protected by backgrounds.mu.
	spool   *sandbox.Spool // nil when its output is not kept any more
	pid     int
	ended   bool
	res     centurion.CommandResult
	err     error
	cause   error // why it was ended, if it was
	seen    int64 // how much of the output was shown
	shown   bool  // its end stands in the status of the request that is being made
	told    bool  // its session knows that it has ended
	dropped bool  // its output was thrown away before it was seen as a whole
}

// The causes with which a background command is killed; a person or the end of the mission has others.
var (
	errKilled   = &centurion.Error{Kind: centurion.KindCancelled, Msg: "its session killed it"}
	errTaskOver = &centurion.Error{Kind: centurion.KindCancelled, Msg: "the work of its task had ended"}
)

// backer starts and shows the background commands of one conversation.
type backer struct {
	m *mission
	c *conversation
}

var _ tools.Background = backer{}

// Start runs a command beside the session. It lives at most as long as the session's task, or the mission for the
// Commander.
func (k backer) Start(ctx context.Context, _ *tools.Call, cmd centurion.Command, words string) (tools.BackgroundCommand, error) {
	m, none := k.m, tools.BackgroundCommand{}
	runner, ok := m.h.cfg.Runner.(centurion.BackgroundRunner)
	if !ok {
		return none, &centurion.Error{Kind: centurion.KindPermission, Msg: "nothing here runs commands in the background", Hint: "use bash"}
	}
	life := m.st.Ctx
	if k.c.Task != nil {
		life = k.c.Task.Ctx
	}
	life, cancel := context.WithCancelCause(life)
	b := &background{session: k.c.ID(), attempt: k.c.Attempt, script: cmd.Script, words: words, begun: time.Now(), cancel: cancel, done: make(chan struct{})}
	if err := m.background.add(b); err != nil {
		cancel(nil)
		return none, err
	}
	started, err := make(chan struct{}), m.prepare(ctx, k.c, b)
	if err != nil {
		cancel(nil)
		m.background.remove(b)
		return none, err
	}
	begun := func(pid int) {
		m.background.mu.Lock()
		b.pid = pid
		m.background.mu.Unlock()
		close(started)
	}
	m.tasks.Go("background command "+b.id, func() error {
		defer cancel(nil)
		var res centurion.CommandResult
		err := guard.Call("background command "+b.id, func() (err error) {
			res, err = runner.RunBackground(life, cmd, b.spool, begun)
			return err
		})
		m.background.end(b, res, err, context.Cause(life))
		return nil
	})
	select {
	case <-started:
	case <-b.done:
		if b.err != nil && b.pid == 0 { // it never began
			m.background.remove(b)
			return none, b.err
		}
	case <-ctx.Done():
		cancel(context.Cause(ctx))
		<-b.done
		m.background.remove(b)
		return none, context.Cause(ctx)
	}
	return m.background.look(b, false), nil
}

// prepare gives a command its id and a place for its output.
func (m *mission) prepare(ctx context.Context, c *conversation, b *background) error {
	n := 0
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if err := c.Current(); err != nil {
			return err
		}
		n, err = tx.NextSerial(m.st.ID, "background")
		return err
	})
	if err != nil {
		return err
	}
	id := fmt.Sprintf("bg_%d", n+1)
	spool, err := sandbox.NewSpool(filepath.Join(m.scratch(), id), 0)
	if err != nil {
		return err
	}
	m.background.mu.Lock()
	defer m.background.mu.Unlock()
	b.id, b.spool = id, spool
	return nil
}

// scratch is the directory of what the mission needs only while it runs.
func (m *mission) scratch() string {
	return filepath.Join(cmp.Or(m.h.cfg.Scratch, os.TempDir()), "centurion-"+m.st.ID)
}

// clearBackground throws away what the background commands have left, when none of them runs any more.
func (m *mission) clearBackground() {
	m.background.mu.Lock()
	defer m.background.mu.Unlock()
	for _, b := range m.background.all {
		b.drop()
	}
	_ = os.RemoveAll(m.scratch()) // what stays behind is in nobody's way
}

// lastPrinted is how much of a command that was ended its session's parent is shown, in bytes: the end of what it had printed.
const lastPrinted = 300

// endBackground ends the background commands of a conversation and returns when nothing of them is left. What it returns tells, a line each, of
// those that were still running: their agent may have counted on what they would say.
func (m *mission) endBackground(c *conversation) (lost []string) {
	bg := &m.background
	for _, b := range bg.of(c.ID()) {
		if b.attempt != c.Attempt {
			continue
		}
		bg.mu.Lock()
		ran := !b.ended
		bg.mu.Unlock()
		b.cancel(errTaskOver)
		<-b.done
		if ran {
			lost = append(lost, bg.lostLine(b))
		}
	}
	return lost
}

// lostLine tells of a command that was ended because the work of its task had.
func (s *backgrounds) lostLine(b *background) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := fmt.Sprintf("its background command %s «%s», which was still running when its turn ended", b.id, centurion.Clip(b.script, 200))
	if b.spool == nil {
		return line
	}
	last, _ := b.spool.Since(max(0, b.spool.Total()-lastPrinted), 2*lastPrinted)
	if last = strings.Join(strings.Fields(last), " "); last == "" {
		return line + "; it had printed nothing"
	}
	return line + "; it had printed last: " + last
}

// tellLost keeps in the journal which background commands ended with the work of their task.
func (m *mission) tellLost(ctx context.Context, c *conversation, lost []string) error {
	if len(lost) == 0 {
		return nil
	}
	rec := c.Sess.Record()
	return m.st.Tell(ctx, func(d *event.MissionData) {
		d.Note = strings.TrimSpace(rec.Agent+" "+rec.Metadata.Address) + ": the host ended " + strings.Join(lost, "; ")
	})
}

// withLost adds to a task's result what of its background commands was lost: in front, as its agent may say that they run, and whoever
// is handed the result may read no more than its first lines. The verdict of a review stays the first word.
func withLost(agent, text string, lost []string) string {
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
func (k backer) Look(ctx context.Context, call *tools.Call, id string) (tools.BackgroundCommand, error) {
	b, gone, err := k.find(ctx, call, id)
	if err != nil || b == nil {
		return gone, err
	}
	return k.m.background.look(b, true), nil
}

// List shows all commands of the session.
func (k backer) List(context.Context, *tools.Call) ([]tools.BackgroundCommand, error) {
	var out []tools.BackgroundCommand
	for _, b := range k.m.background.of(k.c.ID()) {
		out = append(out, k.m.background.look(b, false))
	}
	return out, nil
}

// Kill ends a command of the session.
func (k backer) Kill(ctx context.Context, call *tools.Call, id string) (tools.BackgroundCommand, error) {
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
	return k.m.background.look(b, true), nil
}

// find returns a command of the session. One that the session has started under another host, or before the mission
// stopped, is returned as gone.
func (k backer) find(ctx context.Context, call *tools.Call, id string) (*background, tools.BackgroundCommand, error) {
	none := tools.BackgroundCommand{}
	own := k.m.background.of(k.c.ID())
	var ids []string
	for _, b := range own {
		if strings.EqualFold(b.id, id) {
			return b, none, nil
		}
		ids = append(ids, b.id)
	}
	history, err := k.m.h.cfg.Store.Messages(ctx, k.c.ID())
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
				_ = json.Unmarshal(p.State.Input, &in) // it has run: it could be read
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

// add takes a command in if there is room for it, and lets go of the output of the oldest ones that have ended.
func (s *backgrounds) add(b *background) error {
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

// forget lets go of the commands of a session that is not resumed any more.
func (s *backgrounds) forget(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(b *background) bool {
		gone := b.session == session && b.ended
		if gone {
			b.drop()
		}
		return gone
	})
}

// remove forgets a command that never ran.
func (s *backgrounds) remove(b *background) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(o *background) bool { return o == b })
	b.drop()
}

// end records how a command ended.
func (s *backgrounds) end(b *background, res centurion.CommandResult, err, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.spool.End()
	b.ended, b.res, b.err, b.cause = true, res, err, cause
	close(b.done)
}

// of returns the commands of a session, oldest first.
func (s *backgrounds) of(session string) []*background {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*background
	for _, b := range s.all {
		if b.session == session && b.id != "" {
			out = append(out, b)
		}
	}
	return out
}

// look returns a command as it stands; with output it also takes what is new of that, and the session knows then.
func (s *backgrounds) look(b *background, output bool) tools.BackgroundCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := tools.BackgroundCommand{ID: b.id, Script: b.script, Description: b.words, Status: tools.BackgroundRunning, PID: b.pid,
		Runtime: time.Since(b.begun)}
	if b.ended {
		out.Runtime, out.ExitCode, out.Bytes = b.res.Duration, b.res.ExitCode, b.res.Bytes
		out.Status, out.Reason = b.outcome()
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

// outcome says how a command that has ended did so.
func (b *background) outcome() (status tools.BackgroundStatus, reason string) {
	switch {
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

// drop lets go of the output.
func (b *background) drop() {
	if b.spool == nil {
		return
	}
	b.dropped = b.seen < b.spool.Total()
	_ = b.spool.Remove() // it lies in a directory that is removed with the mission
	b.spool = nil
}

// news tells which commands of a session have ended since it was told, a line each.
func (s *backgrounds) news(session string) string {
	var lines []string
	for _, b := range s.of(session) {
		s.mu.Lock()
		fresh := b.ended && !b.told
		b.shown = fresh
		s.mu.Unlock()
		if fresh {
			lines = append(lines, s.look(b, false).State())
		}
	}
	return strings.Join(lines, "\n")
}

// heard says that the session's request with the news was answered: until then each request has them.
func (s *backgrounds) heard(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.all {
		b.told = b.told || b.session == session && b.shown
	}
}
