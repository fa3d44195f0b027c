package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"centurion"
	"centurion/guard"
)

const (
	// frameRate is the maximum number of frames per second of the live region: frequent enough to be live, rare enough to be calm.
	frameRate = 10
	// freeLines stay above the live region, so that past events scroll by in sight.
	freeLines = 4
	// settleFrames is the number of frames before anything is printed above them: the terminal knows the place of the region only after
	// it was drawn.
	settleFrames = 3
)

// Options are the options of the live view. Events, In and Out are required.
type Options struct {
	Events iter.Seq2[centurion.Event, error] // must end when the context does
	In     io.Reader                         // a terminal; nil takes no keys
	Out    io.Writer                         // a terminal
	Env    []string                          // TERM, NO_COLOR, VISUAL, EDITOR; nil means the process's own

	Width, Height int // of Out if it is not a terminal itself; default 80×24

	Past      *Past            // earlier events; default none
	Answerer  Answerer         // without it asks are shown but cannot be answered
	Writer    Writer           // without it nothing can be written to the Commander
	Aborter   Aborter          // without it the root's answer cannot be stopped
	Interrupt func()           // called for each of the first two Ctrl-C, which are keys instead of signals in raw mode
	Editor    string           // command that edits the plan; default $VISUAL, $EDITOR, vi
	PlanFile  PlanFile         // opened by [e] in the plan dialog
	Plan      PlanReader       // the current items; default those of the ask
	Now       func() time.Time // default time.Now
}

// PlanReader reads the current items of the plan from disk.
type PlanReader func(ctx context.Context) ([]Item, error)

// PlanFile returns the current file of the plan. It may change: another mission of the project may take over its name.
type PlanFile func(ctx context.Context) (path string, err error)

// RunLive draws the view until the event that ends the mission's run, the end of the events, or the end of ctx. Past events stay in the
// terminal's scrollback, with a summary at the end. Errors are those of the events, and KindInternal if the terminal fails; even then
// the events are read to their end.
func RunLive(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Env == nil {
		o.Env = os.Environ()
	}
	m := newLive(ctx, o)
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithEnvironment(o.Env), tea.WithFPS(frameRate),
		tea.WithWindowSize(m.w, m.h), tea.WithoutSignalHandler())
	var g guard.Group
	g.Go("read events", func() error {
		err := m.feed.pump(o.Events)
		p.Send(endMsg{})
		return err
	})
	stop := guard.After(ctx, "stop live view", func() { p.Send(endMsg{}) })
	runErr := guard.Call("draw live view", func() error {
		_, err := p.Run()
		return err
	})
	stop()
	if m.leaving {
		o.Interrupt() // the process may end here
	}
	err := g.Wait()
	if runErr != nil && !errors.Is(runErr, tea.ErrProgramKilled) || runErr != nil && err == nil {
		runErr = &centurion.Error{Op: "draw live view", Kind: centurion.KindInternal, Err: runErr,
			Hint: "run with `--format json` or with the output in a pipe"}
	} else {
		runErr = nil
	}
	return errors.Join(err, runErr)
}

// feed holds events until the next frame.
type feed struct {
	mu     sync.Mutex
	events []centurion.Event
}

// pump fills the feed until the mission's run ends.
func (f *feed) pump(events iter.Seq2[centurion.Event, error]) error {
	for e, err := range UntilEnd(events) {
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.events = append(f.events, e)
		f.mu.Unlock()
	}
	return nil
}

func (f *feed) take() []centurion.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// The messages to the view.
type (
	tickMsg     time.Time
	endMsg      struct{} // there are no further events
	printedMsg  struct{} // the lines above the frame were printed
	answeredMsg struct {
		id  string
		err error
	}
	planMsg struct {
		id    string
		items []Item
		err   error
	}
	planFileMsg struct {
		id   string
		path string
		err  error
	}
	editedMsg struct {
		id  string
		err error
	}
)

// live is the view as a bubbletea model.
type live struct {
	ctx    context.Context
	o      Options
	theme  theme
	feed   *feed
	past   *Past
	story  *story // from the past onwards
	dialog *dialog
	line   *line // nil while it is closed
	esc    esc
	unread bool // the last message is not in the Commander's history yet
	notice string
	w, h   int

	toast    fact
	toastEnd time.Time // end of its display

	content  string // the last built frame; bubbletea requests it after every message
	heights  [settleFrames]int
	frames   int
	pending  []string // lines to print above the frame
	printing bool
	retell   bool // print the recent events again: at the start, and after a resize of the terminal
	stopping bool // the first Ctrl-C was pressed
	leaving  bool // the second, too: the view clears its lines and ends, and is reported only then
	ending   bool
	done     bool
}

func newLive(ctx context.Context, o Options) *live {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Past == nil {
		o.Past = NewPast(0, 0, false)
	}
	m := &live{ctx: ctx, o: o, theme: theme{Color(o.Env)}, feed: &feed{}, past: o.Past, story: &o.Past.story,
		w: cmp.Or(o.Width, 80), h: cmp.Or(o.Height, 24), retell: o.Past.lines > 0}
	m.refresh()
	return m
}

func tick() tea.Cmd {
	return tea.Tick(time.Second/frameRate, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// Init starts the frame clock.
func (m *live) Init() tea.Cmd { return tick() }

// View returns the last built frame.
func (m *live) View() tea.View { return tea.NewView(m.content) }

// Update handles a message.
func (m *live) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			if m.frames > 0 && (msg.Width != m.w || msg.Height != m.h) {
				// The terminal has rewrapped the frame's lines: their position is unknown now.
				m.retell, m.frames, cmd = true, 0, tea.ClearScreen
			}
			m.w, m.h = msg.Width, msg.Height
		}
	case tickMsg:
		m.frames++
		cmd = tea.Batch(tick(), m.drain())
	case endMsg:
		m.ending = true
		cmd = m.drain()
	case printedMsg:
		m.printing = false
	case tea.KeyPressMsg:
		cmd = m.key(msg.String(), msg.Text)
	case tea.PasteMsg:
		switch {
		case m.line != nil && !m.line.sent:
			m.line.input.insert(msg.Content)
		case m.dialog != nil && m.dialog.ask.Type == "question":
			m.dialog.input.insert(msg.Content)
		}
	case abortedMsg:
		m.aborted(msg.err)
	case wroteMsg:
		cmd = m.wrote(msg.err)
	case answeredMsg:
		if m.dialog != nil && m.dialog.ask.ID == msg.id && msg.err != nil {
			m.dialog.sent, m.dialog.err = false, errText(msg.err)
		}
	case planMsg:
		m.plan(msg)
	case planFileMsg:
		cmd = m.openEditor(msg)
	case editedMsg:
		cmd = m.edited(msg)
	default:
		return m, nil
	}
	m.refresh()
	return m, tea.Batch(cmd, m.print())
}

func errText(err error) string { return withHint(err.Error(), centurion.HintOf(err)) }

// drain applies the events since the last frame and opens or closes the dialog accordingly.
func (m *live) drain() tea.Cmd {
	for _, e := range m.feed.take() {
		if e.Type == centurion.EventToast {
			m.toast, m.toastEnd = toastFact(e), m.o.Now().Add(toastSpan(e))
			continue
		}
		m.hears(e)
		facts := m.story.apply(e)
		m.past.keep(facts)
		m.pending = append(m.pending, m.lines(facts)...)
	}
	if m.retell {
		m.retell = false
		lines := m.lines(m.past.facts)
		m.pending = lines[max(0, len(lines)-max(1, m.h-m.tallest()-1)):]
	}
	return m.nextDialog()
}

// lines are the lines of facts above the frame.
func (m *live) lines(facts []fact) (lines []string) {
	for _, f := range facts {
		if !f.quiet {
			lines = append(lines, f.lines(m.theme, m.w)...)
		}
	}
	return lines
}

func (m *live) nextDialog() tea.Cmd {
	b := m.story.board
	if len(b.Asks) == 0 || m.ending || m.line != nil {
		m.dialog = nil
		return nil
	}
	a := b.Asks[0]
	if m.dialog != nil && m.dialog.ask.ID == a.ID {
		m.dialog.ask, m.dialog.left = a, len(b.Asks)-1
		return nil
	}
	who := a.Agent
	if t := b.Task(a.Task); t != nil {
		who = strings.TrimSpace(who + " " + t.Name())
	}
	m.dialog = &dialog{ask: a, who: who, left: len(b.Asks) - 1, since: m.o.Now(), level: b.Level}
	if a.Type == "plan" {
		return m.readPlan(a.ID)
	}
	return nil
}

func (m *live) readPlan(id string) tea.Cmd {
	if m.o.Plan == nil {
		return nil
	}
	return func() tea.Msg {
		items, err := m.o.Plan(m.ctx)
		return planMsg{id, items, err}
	}
}

func (m *live) plan(msg planMsg) {
	if m.dialog == nil || m.dialog.ask.ID != msg.id {
		return
	}
	if msg.err != nil {
		m.dialog.err = errText(msg.err)
		return
	}
	m.dialog.items, m.dialog.read, m.dialog.err = msg.items, true, ""
	m.dialog.offset, m.dialog.whole = 0, false
}

// key handles a key press.
func (m *live) key(name, text string) tea.Cmd {
	switch name {
	case "ctrl+c":
		switch {
		case m.o.Interrupt == nil:
		case m.stopping:
			m.leaving = true
		default:
			m.stopping = true
			m.o.Interrupt()
		}
		m.notice = "stopping; the mission can be resumed (ctrl-c again: at once)"
		return nil
	case "ctrl+z":
		return tea.Suspend
	}
	switch {
	case m.line != nil:
		return m.lineKey(name, text)
	case m.dialog == nil && name == "esc":
		return m.escKey()
	case m.dialog == nil:
		m.esc.armed = time.Time{}
		if name == "m" && m.o.Writer != nil && !m.ending {
			m.line = &line{}
		}
		return nil
	}
	switch act, reply := m.dialog.key(name, text, m.o.Now()); act {
	case answer:
		return m.answer(reply)
	case edit:
		return m.edit()
	}
	return nil
}

func (m *live) answer(reply string) tea.Cmd {
	d := m.dialog
	if m.o.Answerer == nil {
		d.err = "it cannot be answered here: use `" + askCommand(d.ask) + "`"
		return nil
	}
	d.sent, d.err = true, ""
	id := d.ask.ID
	return func() tea.Msg {
		err := guard.Call("answer", func() error { return m.o.Answerer.Answer(m.ctx, id, reply) })
		return answeredMsg{id, err}
	}
}

// edit looks up the file of the plan in order to open it.
func (m *live) edit() tea.Cmd {
	id := m.dialog.ask.ID
	if m.o.PlanFile == nil {
		m.dialog.err = "there is no file to edit"
		return nil
	}
	return func() tea.Msg {
		path, err := m.o.PlanFile(m.ctx)
		return planFileMsg{id, path, err}
	}
}

// openEditor opens the plan in the person's editor, which owns the terminal until it ends.
func (m *live) openEditor(msg planFileMsg) tea.Cmd {
	id := msg.id
	if m.dialog == nil || m.dialog.ask.ID != id {
		return nil
	}
	if msg.err != nil {
		m.dialog.err = errText(msg.err)
		return nil
	}
	cmd := editor(m.ctx, cmp.Or(m.o.Editor, lookup(m.o.Env, "VISUAL"), lookup(m.o.Env, "EDITOR")), msg.path)
	cmd.Env = m.o.Env
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return editedMsg{id, err} })
}

// editor is the command of the person's editor. Except on Windows it is a line for the shell, as for git, so that it can contain
// arguments and quotes.
func editor(ctx context.Context, line, path string) *exec.Cmd {
	if runtime.GOOS != "windows" {
		return exec.CommandContext(ctx, "sh", "-c", cmp.Or(line, "vi")+` "$1"`, "sh", path)
	}
	args := strings.Fields(cmp.Or(line, "notepad"))
	return exec.CommandContext(ctx, args[0], append(args[1:], path)...)
}

func (m *live) edited(msg editedMsg) tea.Cmd {
	if m.dialog == nil || m.dialog.ask.ID != msg.id {
		return nil
	}
	m.dialog.since = m.o.Now() // late keys for the editor must not decide anything
	if msg.err != nil {
		m.dialog.err = fmt.Sprintf("the editor failed: %s", errText(msg.err))
		return nil
	}
	return m.readPlan(msg.id)
}
