package background

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
)

// runner runs commands that print their script, and end as that says.
type runner struct {
	centurion.Runner
	inLine func() // called when a command stands in line
}

func (r runner) RunBackground(ctx context.Context, c centurion.Command, out io.Writer, begun func(pid int)) (centurion.CommandResult, error) {
	_, _ = out.Write([]byte(c.Script))
	switch c.Script {
	case "refused":
		return centurion.CommandResult{}, errors.New("refused")
	case "stands in line":
		r.inLine()
		<-ctx.Done()
		return centurion.CommandResult{}, context.Cause(ctx)
	}
	begun(42)
	if c.Script == "serve" {
		<-ctx.Done()
		return centurion.CommandResult{Duration: time.Second, ExitCode: -1}, context.Cause(ctx)
	}
	return centurion.CommandResult{Duration: time.Minute, ExitCode: 3, Bytes: 5, Held: "held"}, nil
}

// commands are those of a mission on which somebody works.
func commands(t *testing.T) (*Commands, tools.Background) {
	t.Helper()
	st := storetest.Open(t)
	rec := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionRunning}
	if err := st.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&rec) }); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	s := New(state.New(ctx, end, st, rec, agents.Default()), runner{}, t.TempDir())
	t.Cleanup(func() {
		end(centurion.ErrShutdown)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); err == nil {
			t.Error("what they printed is left behind")
		}
	})
	return s, s.Of(&agent.Conversation{Attempt: 1})
}

// timeless is a command without the time that it runs.
func timeless(c tools.BackgroundCommand) tools.BackgroundCommand {
	if c.Status == tools.BackgroundRunning {
		c.Runtime = 0
	}
	return c
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// A command is shown whole, from its start to its end; its end is news until it was heard or looked at, and one that never began is gone.
func TestCommandsOfASession(t *testing.T) {
	t.Parallel()
	s, own := commands(t)
	ctx := t.Context()
	start := func(ctx context.Context, script string) (tools.BackgroundCommand, error) {
		return own.Start(ctx, nil, centurion.Command{Script: script}, "words")
	}
	if _, err := start(ctx, "refused"); err == nil || err.Error() != "refused" || s.Len() != 0 {
		t.Errorf("one that was refused: %v, of %d", err, s.Len())
	}
	soon, cancel := context.WithCancelCause(ctx)
	s.runner = runner{inLine: func() { cancel(centurion.ErrShutdown) }}
	if _, err := start(soon, "stands in line"); err != error(centurion.ErrShutdown) || s.Len() != 0 {
		t.Errorf("one whose call ended: %v, of %d", err, s.Len())
	}
	got, err := start(ctx, "serve")
	serves := tools.BackgroundCommand{ID: "bg_3", Script: "serve", Description: "words", Status: tools.BackgroundRunning, PID: 42, Bytes: 5}
	if same(t, "started", timeless(got), serves); err != nil {
		t.Fatal(err)
	}
	if _, err = start(ctx, "check"); err != nil {
		t.Fatal(err)
	}
	<-s.all[1].done
	checked := tools.BackgroundCommand{ID: "bg_4", Script: "check", Description: "words", Status: tools.BackgroundExited, PID: 42, ExitCode: 3, Runtime: time.Minute, Bytes: 5, Held: "held"}
	all, err := own.List(ctx, nil)
	if err != nil || len(all) != 2 {
		t.Fatalf("listed %+v, %v", all, err)
	}
	all[0] = timeless(all[0])
	same(t, "listed", all, []tools.BackgroundCommand{serves, checked})
	const news = "bg_4 has ended with exit code 3 after 1m (held)"
	same(t, "news", s.News(""), news)
	same(t, "news, before an answer", s.News(""), news)
	s.Heard("ses_9")
	same(t, "news, when another has answered", s.News(""), news)
	s.Heard("")
	same(t, "news, when it was heard", s.News(""), "")
	checked.Output = "check"
	got, err = own.Look(ctx, nil, "BG_4")
	if same(t, "looked at", got, checked); err != nil {
		t.Error(err)
	}
	got, err = own.Kill(ctx, nil, "bg_3")
	serves.Status, serves.Output, serves.ExitCode, serves.Runtime = tools.BackgroundKilled, "serve", -1, time.Second
	if same(t, "killed", got, serves); err != nil {
		t.Error(err)
	}
	same(t, "news of what it has ended itself", s.News(""), "")
	for _, f := range []func(context.Context, *tools.Call, string) (tools.BackgroundCommand, error){own.Look, own.Kill} {
		_, err = f(ctx, nil, "bg_9")
		same(t, "unknown", err, error(&centurion.Error{Kind: centurion.KindNotFound, Msg: "you have no background command bg_9", Hint: "yours are bg_3, bg_4"}))
	}
	s.Forget("ses_9")
	same(t, "left when another is forgotten", s.Len(), 2)
	if _, err = start(ctx, "serve"); err != nil {
		t.Fatal(err)
	}
	s.Forget("")
	same(t, "left when it is forgotten", s.Len(), 1)
}

// A call that was let in before its task ended starts nothing after that: nobody would end the command.
func TestStartAfterTheEndOfItsTask(t *testing.T) {
	t.Parallel()
	s, _ := commands(t)
	task := &state.Run{ID: "tsk_1", Name: "T1", Ctx: t.Context(), Done: make(chan struct{})}
	close(task.Done)
	got, err := s.Of(&agent.Conversation{Attempt: 1, Task: task}).Start(t.Context(), nil, centurion.Command{Script: "serve"}, "")
	same(t, "started", got, tools.BackgroundCommand{})
	if same(t, "kept", s.Len(), 0); !errors.Is(err, state.ErrSuperseded) {
		t.Error(err)
	}
}

// The mission has room for so many at once, and says which they are; those that its host ends are described by what they printed last.
func TestCommandsAreEnded(t *testing.T) {
	t.Parallel()
	s, own := commands(t)
	_, err := own.Look(t.Context(), nil, "bg_1")
	same(t, "without any", err, error(&centurion.Error{Kind: centurion.KindNotFound, Msg: "you have no background command bg_1", Hint: "you have started none"}))
	var ids, want []string
	for i := range maxBackground {
		if _, err := own.Start(t.Context(), nil, centurion.Command{Script: "serve"}, ""); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprintf("bg_%d", i+1))
		last := "; it had printed last: serve"
		if i == 1 {
			_, _ = s.all[i].spool.Write([]byte(strings.Repeat(" 12345678\n", 60)))
			last = "; it had printed last: " + strings.TrimSpace(strings.Repeat("12345678 ", 30))
		}
		want = append(want, "its background command "+ids[i]+` "serve", which was still running when its turn ended`+last)
	}
	_, err = own.Start(t.Context(), nil, centurion.Command{Script: "serve"}, "")
	same(t, "one too many", err, error(&centurion.Error{Kind: centurion.KindConflict, Msg: "8 background commands of this mission run already (" + strings.Join(ids, ", ") + ")",
		Hint: "end one of yours with check_background and the action kill, or use bash"}))
	same(t, "ended", s.End(&agent.Conversation{Attempt: 1}), want)
	for i, id := range ids {
		want[i] = id + " was killed after 1s: the work of its task had ended"
	}
	same(t, "news", s.News(""), strings.Join(want, "\n"))
	same(t, "ended before", s.End(&agent.Conversation{Attempt: 1}), []string(nil))
	got, err := own.Look(t.Context(), nil, "bg_1")
	if err != nil || got.Status != tools.BackgroundKilled || got.Reason != "the work of its task had ended" {
		t.Errorf("%+v, %v", got, err)
	}
	before := s.st.Store.LastSeq()
	if err := errors.Join(s.TellLost(t.Context(), "worker 0/3 ", nil), s.TellLost(t.Context(), "worker 0/3 ", []string{"one", "two"})); err != nil {
		t.Error(err)
	}
	all, err := s.st.Store.Events(t.Context(), store.EventQuery{})
	if err != nil || s.st.Store.LastSeq() != before+1 || !strings.Contains(string(all[len(all)-1].Data), `"note":"worker 0/3: the host ended one; two"`) {
		t.Errorf("told %s, %v", all[len(all)-1].Data, err)
	}
}

// How a command ended is its limit, its time, itself, its session, or who else ended it.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for i, c := range []struct {
		b      command
		status tools.BackgroundStatus
		reason string
	}{
		{command{res: centurion.CommandResult{Exceeded: "1 GB", TimedOut: true}, err: broken}, tools.BackgroundKilled, tools.UsedTooMuch("1 GB")},
		{command{res: centurion.CommandResult{TimedOut: true}, err: broken}, tools.BackgroundTimedOut, ""},
		{command{cause: broken}, tools.BackgroundExited, ""},
		{command{err: broken}, tools.BackgroundFailed, "broken"},
		{command{err: broken, cause: errKilled}, tools.BackgroundKilled, ""},
		{command{err: broken, cause: errTaskOver}, tools.BackgroundKilled, "the work of its task had ended"},
		{command{err: broken, cause: errors.New("another")}, tools.BackgroundKilled, "another"},
	} {
		if status, reason := c.b.outcome(); status != c.status || reason != c.reason {
			t.Errorf("number %d: %s, %q", i, status, reason)
		}
	}
}
