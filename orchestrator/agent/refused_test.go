package agent

import (
	"errors"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/recovery"
	"centurion/store"
	"centurion/store/storetest"
)

// What the state refuses is an error of each step that needs it.
func TestRefusedByTheState(t *testing.T) {
	t.Parallel()
	cut := &centurion.Error{Kind: centurion.KindStreamCut, Msg: "cut"}
	in := func(c *Conversation, f func(tx *store.Tx) error) error { return c.m.st.Store.Update(c.m.st.Ctx, f) }
	living := func(c *Conversation) error { _, err := c.children.living(c.m.st.Ctx); return err }
	for name, test := range map[string]struct {
		table string
		write bool
		do    func(c *Conversation) error
	}{
		"the mission of a cost": {"mission", false, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.Spent(tx, centurion.Usage{}) })
		}},
		"a cost of the mission": {"mission", true, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.Spent(tx, centurion.Usage{}) })
		}},
		"the task of a cost": {"task", false, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.Spent(tx, centurion.Usage{}) })
		}},
		"a cost of a task": {"task", true, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.Spent(tx, centurion.Usage{}) })
		}},
		"the task of calls": {"task", false, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { _, _, err := host{c}.begun(tx, 1); return err })
		}},
		"calls of a task": {"task", true, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { _, _, err := host{c}.begun(tx, 1); return err })
		}},
		"calls of a mission": {"mission", true, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { _, _, err := host{c}.begun(tx, 1); return err })
		}},
		"the task of files": {"task", false, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.changed(tx, nil) })
		}},
		"files of a task": {"task", true, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.changed(tx, nil) })
		}},
		"results": {"delivery", false, func(c *Conversation) error {
			return in(c, func(tx *store.Tx) error { return host{c}.Consume(tx, "msg_1", nil) })
		}},
		"messages":            {"delivery", false, func(c *Conversation) error { return c.TakeIn(c.m.st.Ctx) }},
		"living tasks":        {"task", false, living},
		"own tasks":           {"task", false, func(c *Conversation) error { _, err := c.Tasks(c.m.st.Ctx); return err }},
		"delegated tasks":     {"task", false, func(c *Conversation) error { _, err := c.children.await(c.m.st.Ctx); return err }},
		"a wait":              {"session", true, func(c *Conversation) error { return c.failures.pause(c.m.st.Ctx, recovery.Decision{}, cut) }},
		"a wait of a task":    {"task", true, func(c *Conversation) error { return c.failures.pause(c.m.st.Ctx, recovery.Decision{}, cut) }},
		"a wait that is told": {"journal", true, func(c *Conversation) error { return c.failures.pause(c.m.st.Ctx, recovery.Decision{}, cut) }},
		"another model": {"session", true, func(c *Conversation) error {
			return c.failures.fallBack(c.m.st.Ctx, recovery.Decision{Model: "p/next"}, cut)
		}},
		"a model that is told": {"journal", true, func(c *Conversation) error {
			return c.failures.fallBack(c.m.st.Ctx, recovery.Decision{Model: "p/next"}, cut)
		}},
		"a stop":                 {"session", true, func(c *Conversation) error { c.Live.Abort(Aborted("x")); return c.Stands(c.m.st.Ctx) }},
		"a stop that is told":    {"journal", true, func(c *Conversation) error { c.Live.Abort(Aborted("x")); return c.Stands(c.m.st.Ctx) }},
		"the model of a task":    {"task", false, func(c *Conversation) error { _, _, _, err := c.m.ModelOf(c.m.st.Ctx, "tsk_1"); return err }},
		"the model of a session": {"session", false, func(c *Conversation) error { _, _, _, err := c.m.ModelOf(c.m.st.Ctx, "tsk_1"); return err }},
	} {
		c := conversationOf(t, centurion.Mission{}, &centurion.Task{})
		mend, err := storetest.Fail(t.Context(), c.m.st.Store, test.table, test.write)
		if err != nil {
			t.Fatal(err)
		}
		if err := test.do(c); err == nil {
			t.Errorf("%s: no error", name)
		}
		if err := mend(); err != nil {
			t.Fatal(err)
		}
		if err := test.do(conversationOf(t, centurion.Mission{}, &centurion.Task{})); err != nil {
			t.Errorf("%s, when nothing is refused: %v", name, err)
		}
	}
}

// The model of a task's next attempt is that of its session, or what a new session gets: its agent's own, or its parent's.
func TestModelOf(t *testing.T) {
	t.Parallel()
	c := conversationOf(t, centurion.Mission{}, &centurion.Task{Agent: "worker"})
	in(t, c, func(tx *store.Tx) error {
		rec, err := tx.Session("ses_1")
		rec.Metadata.OwnModel, rec.Model = rec.Model, &centurion.SessionModel{Provider: "p", ID: "now"}
		return errors.Join(err, tx.PutSession(&rec), tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_1", Parent: "ses_0", Agent: "worker"}),
			tx.PutTask(&centurion.Task{ID: "tsk_3", Mission: "msn_1", Parent: "ses_0", Agent: "worker", Sub: &centurion.SubAgent{Model: "p/sub"}}),
			tx.PutTask(&centurion.Task{ID: "tsk_4", Mission: "msn_1", Parent: "ses_0", Agent: "nobody"}))
	})
	for task, want := range map[string]string{"tsk_1": "p/now p/own", "tsk_2": "p/own p/own", "tsk_3": "p/sub p/sub", "tsk_4": "error"} {
		ref, own, why, err := c.m.ModelOf(t.Context(), task)
		got := ref.String() + " " + own.String()
		if err != nil {
			got = "error"
		}
		if got != want || why != "" {
			t.Errorf("%s: %s %s, %v", task, got, why, err)
		}
	}
	d, err := event.Decode[event.AbortData](c.fact(centurion.EventSessionAborted, event.AbortData{Reason: "x"}))
	if f := c.fact(centurion.EventSessionAborted, nil); err != nil || d.Reason != "x" || f.Mission != "msn_1" || f.Session != "ses_1" || f.Task != "tsk_1" {
		t.Errorf("%+v, %+v, %v", d, f, err)
	}
}
