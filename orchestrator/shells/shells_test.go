package shells

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/budget"
	"centurion/session"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
)

// runner runs a command that lasts until its context ends, if it is to wait.
type runner struct{ begun chan struct{} }

func (r runner) Run(ctx context.Context, c centurion.Command) (centurion.CommandResult, error) {
	if c.Script == "wait" {
		r.begun <- struct{}{}
		<-ctx.Done()
		return centurion.CommandResult{Output: "half"}, context.Cause(ctx)
	}
	return centurion.CommandResult{Output: "ran " + c.Script}, nil
}

// desk is that of a project with a conversation, a mission's and a task's; it notes what it asks of others.
func desk(t *testing.T) (d *Desk, asked *string) {
	t.Helper()
	st := storetest.Open(t)
	if err := st.Update(t.Context(), func(tx *store.Tx) error {
		return errors.Join(tx.PutMission(&centurion.Mission{ID: "msn_1", Session: "ses_1", Status: centurion.MissionCompleted}),
			tx.PutSession(&centurion.Session{ID: "ses_1", Model: &centurion.SessionModel{Provider: "p", ID: "m"}, Metadata: centurion.SessionMeta{Mission: "msn_1"}}),
			tx.PutSession(&centurion.Session{ID: "ses_o"}),
			tx.PutSession(&centurion.Session{ID: "ses_t", ParentID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}))
	}); err != nil {
		t.Fatal(err)
	}
	asked = new(string)
	d = &Desk{Session: session.Config{Store: st, Call: tools.Call{Runner: runner{make(chan struct{})}}},
		Hold: func(mission string) (bool, func()) {
			*asked += "hold " + mission + ", "
			return false, func() { *asked += "release, " }
		},
		Forget: func(_ context.Context, mission string) error { *asked += "forget " + mission + ", "; return nil },
		Over:   func() { *asked += "over, " }}
	return d, asked
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// A command runs in a conversation that rests, which forgets what is reverted and keeps its mission from beginning for a moment only; it is
// refused where somebody works, with what to do instead.
func TestCommand(t *testing.T) {
	d, asked := desk(t)
	for id, want := range map[string]string{"ses_1": "hold msn_1, forget msn_1, release, over, ", "ses_o": "hold , forget , release, over, "} {
		*asked = ""
		m, err := d.Run(t.Context(), id, "ls")
		if err != nil || len(m.Parts) != 1 || m.Parts[0].State.Status != centurion.ToolCompleted || !strings.Contains(m.Parts[0].State.Output, "ran ls") {
			t.Errorf("%s: %+v, %v", id, m, err)
		}
		same(t, id+": asked", *asked, want)
	}
	*asked = ""
	_, err := d.Run(t.Context(), "ses_1", "")
	same(t, "an empty one", err, error(&centurion.Error{Op: "run command", Kind: centurion.KindUsage, Msg: "the command is empty"}))
	if _, err := d.Run(t.Context(), "ses_9", "ls"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("of no session: %v", err)
	}
	same(t, "asked", *asked, "")
	of := func(op string) error {
		return &centurion.Error{Op: op, Kind: centurion.KindConflict, Msg: "session ses_t is that of a task, whose files are not the project's", Hint: "give the command in the session above, or in a terminal"}
	}
	_, err = d.Run(t.Context(), "ses_t", "ls")
	same(t, "of a task", err, of("run command"))
	same(t, "of a task, a summary", d.Shorten(t.Context(), "ses_t", ""), of("compact"))
	broken := errors.New("broken")
	d.Forget = func(context.Context, string) error { return broken }
	_, err = d.Run(t.Context(), "ses_1", "ls")
	same(t, "when it cannot forget", err, broken)
	d.Hold = func(string) (bool, func()) { return true, func() {} }
	_, err = d.Run(t.Context(), "ses_1", "ls")
	same(t, "of one that works", err, error(&centurion.Error{Op: "run command", Kind: centurion.KindConflict, Msg: "session ses_1 works", Hint: "wait until it rests, or end its turn"}))
	if d.Running("") != nil {
		t.Error("something runs in the end")
	}
}

// A session has one command at a time, which a person can end; others do not see it as theirs.
func TestCommandIsEnded(t *testing.T) {
	d, _ := desk(t)
	var g guard.Group
	var got centurion.Message
	g.Go("command", func() (err error) { got, err = d.Run(t.Context(), "ses_1", "wait"); return err })
	<-d.Session.Call.Runner.(runner).begun
	ended := d.Running("ses_1")
	if ended == nil || d.Running("") != ended || d.Running("ses_o") != nil {
		t.Errorf("running %v, of any %v, of another %v", ended, d.Running(""), d.Running("ses_o"))
	}
	if _, err := d.Run(t.Context(), "ses_1", "ls"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("a second one: %v", err)
	}
	if _, err := d.Run(t.Context(), "ses_o", "ls"); err != nil {
		t.Errorf("one of another session: %v", err)
	}
	if was, err := d.Abort(t.Context(), "ses_o"); was || err != nil {
		t.Errorf("nothing to end: %v, %v", was, err)
	}
	if was, err := d.Abort(t.Context(), "ses_1"); !was || err != nil {
		t.Errorf("ended: %v, %v", was, err)
	}
	select {
	case <-ended:
	default:
		t.Error("it still runs")
	}
	if err := g.Wait(); err != nil || got.Parts[0].State.Output != "half\n(the person has ended it)" {
		t.Errorf("%+v, %v", got, err)
	}
	if d.Running("ses_1") != nil {
		t.Error("it is still said to run")
	}
	d.running["ses_o"] = &shell{func(error) {}, make(chan struct{})} // it does not end
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(centurion.ErrShutdown)
	if was, err := d.Abort(gone, "ses_o"); !was || err != error(centurion.ErrShutdown) {
		t.Errorf("one that does not end: %v, %v", was, err)
	}
}

// A summary is asked of the model that is named, else of the session's own; what it costs is the mission's, within its limits.
func TestSummaryIsPaidFor(t *testing.T) {
	d, _ := desk(t)
	broken := errors.New("broken")
	for ref, want := range map[string]string{"": "p/m", "q/n": "q/n"} {
		got := ""
		d.Model = func(ref string) (agent.Model, error) { got = ref; return agent.Model{}, broken }
		same(t, "without a model", d.Shorten(t.Context(), "ses_1", ref), broken)
		same(t, "asked for", got, want)
	}
	rec, err := d.Session.Store.Mission(t.Context(), "msn_1")
	if err != nil {
		t.Fatal(err)
	}
	rec.Options.MaxTokens = 8000
	b := bill{mission: "msn_1", reserves: budget.New(rec, func(budget.Dim) error { return broken }), price: &centurion.Price{Input: 1, Output: 1}}
	b.reserves.Open("msn_1")
	cover, err := b.reserve(t.Context(), session.Need{Input: 5000, MaxOut: 6000})
	same(t, "covered", cover, session.Cover{MaxOut: 3000})
	same(t, "error", err, nil)
	_, err = b.reserve(t.Context(), session.Need{Input: 9000, MaxOut: 6000})
	same(t, "beyond the limit", err, broken)
	before := centurion.Now().Millis()
	for range 2 {
		if err := d.Session.Store.Update(t.Context(), func(tx *store.Tx) error {
			return b.Spent(tx, centurion.Usage{USD: 0.5, Tokens: centurion.Tokens{Input: 7}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	rec, err = d.Session.Store.Mission(t.Context(), "msn_1")
	if err != nil || rec.Usage.USD != 1 || rec.Usage.Tokens.Input != 14 || rec.Rounds != 2 || rec.Updated.Millis() < before {
		t.Errorf("%+v, %v", rec, err)
	}
}
