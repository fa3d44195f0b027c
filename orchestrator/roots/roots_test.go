package roots

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// desk is that of a project without conversations, changed by f. It notes what it asks of others.
func desk(t *testing.T, f func(tx *store.Tx) error) (d *Desk, asked *[]string) {
	t.Helper()
	st := storetest.Open(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	asked = &[]string{}
	note := func(what ...string) { *asked = append(*asked, strings.Join(what, " ")) }
	d = &Desk{Store: st, Workspace: ws, Version: "v1",
		Cast: func(profile string) *agents.Cast {
			if profile == agents.ProfileAssistant {
				return agents.DefaultAssistant()
			}
			return agents.Default()
		},
		Model: func(ref string) (centurion.ModelRef, error) {
			provider, id, ok := strings.Cut(ref, "/")
			switch {
			case ref == "":
				return centurion.ModelRef{Provider: "p", ID: "default"}, nil
			case !ok:
				return centurion.ModelRef{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "no model " + ref}
			}
			return centurion.ModelRef{Provider: provider, ID: id}, nil
		},
		Look: func(context.Context) { note("look") },
		Cancel: func(_ context.Context, mission, reason string) error {
			note("cancel", mission, reason)
			return nil
		},
		Abort: func(_ context.Context, session string) error { note("abort", session); return nil },
	}
	if err := st.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return d, asked
}

// told lists the events of a project: what, of which mission and session, and the agent and title in it.
func (d *Desk) listed(t *testing.T) (out []string) {
	t.Helper()
	all, err := d.Store.Events(t.Context(), store.EventQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		out = append(out, fmt.Sprintf("%s %s %s %s", e.Type, e.Mission, e.Session, e.Data))
	}
	return out
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// isRoot is a mission with its root session; updated is its time.
func rooted(tx *store.Tx, id string, updated int64, change func(*centurion.Mission)) error {
	m := centurion.Mission{ID: "msn_" + id, Session: "ses_" + id, Goal: "Goal " + id, Status: centurion.MissionCompleted, Updated: centurion.MillisTime(updated)}
	if change != nil {
		change(&m)
	}
	rec := centurion.Session{ID: m.Session, Title: "Goal " + id, Agent: "commander", Metadata: centurion.SessionMeta{Mission: m.ID}}
	return errors.Join(tx.PutMission(&m), tx.PutSession(&rec))
}

func nothing(*store.Tx) error { return nil }

// What is opened has the agent and the model that it is to begin with, and a title of one line; what does not exist is refused, and
// nothing is written.
func TestOpen(t *testing.T) {
	d, asked := desk(t, func(tx *store.Tx) error { return rooted(tx, "1", 1, nil) })
	for _, o := range []Opening{{Profile: "team"}, {Agent: "nobody"}, {Model: "wrong"}, {Below: "ses_9"}} {
		if _, err := d.Open(t.Context(), o); err == nil {
			t.Errorf("%+v: opened", o)
		}
	}
	_, err := d.Open(t.Context(), Opening{Profile: "team"})
	same(t, "an unknown profile", err, error(&centurion.Error{Op: "open session", Kind: centurion.KindUsage, Msg: `there is no profile "team"; the profiles are mission and assistant`}))
	same(t, "told when it was refused", d.listed(t), []string(nil))
	before := centurion.Now().Millis()
	rec, err := d.Open(t.Context(), Opening{Title: "  a\n title ", Agent: "planner", Model: "q/m/n", Below: "ses_1"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "told", d.listed(t), []string{"session.opened  " + rec.ID + ` {"agent":"planner","title":"a title"}`})
	same(t, "asked", strings.Join(*asked, ","), strings.Repeat(",look", 6)[1:])
	now, err := d.Store.Session(t.Context(), rec.ID)
	if err != nil || now.Time.Updated < before || now.Time.Created < before {
		t.Errorf("%+v, %v", now.Time, err)
	}
	same(t, "stored", now, rec)
	rec.Time.Updated, rec.Time.Created = 0, 0
	want := centurion.Session{ID: rec.ID, Title: "a title", Directory: d.Workspace.Dir(), ProjectID: "global", Slug: "0", Version: "v1", Agent: "planner",
		Model: &centurion.SessionModel{Provider: "q", ID: "m/n"}, Metadata: centurion.SessionMeta{Address: "0/", Below: "ses_1"}}
	same(t, "opened", rec, want)
	rec, err = d.Open(t.Context(), Opening{Profile: agents.ProfileAssistant})
	if err != nil || rec.Agent != agents.DefaultAssistant().Owner() || *rec.Model != (centurion.SessionModel{Provider: "p", ID: "default"}) || rec.Metadata.Profile != "assistant" || !strings.HasPrefix(rec.Title, Untitled+"20") {
		t.Errorf("of the other profile: %+v, %v", rec, err)
	}
	if rec, err = d.Open(t.Context(), Opening{Title: strings.Repeat("x", 300)}); err != nil || rec.Title != centurion.Clip(strings.Repeat("x", 300), maxTitle) || rec.Agent != "commander" {
		t.Errorf("with a long title: %+v, %v", rec, err)
	}
}

// Before its first message a conversation is changed in all that it begins with; what is not named stays, but for another profile's agent.
func TestChangeOfWhatIsOpened(t *testing.T) {
	d, _ := desk(t, nothing)
	rec, err := d.Open(t.Context(), Opening{Title: "first", Agent: "planner", Model: "q/m"})
	if err != nil {
		t.Fatal(err)
	}
	text := func(s string) *string { return &s }
	at := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name   string
		change Change
		want   string // title, agent, model, profile, archived
	}{
		{"nothing", Change{}, "first planner q/m  0"},
		{"the title", Change{Title: text(" another\tone ")}, "another one planner q/m  0"},
		{"the agent", Change{Agent: text("reviewer")}, "another one reviewer q/m  0"},
		{"the model", Change{Model: text("r/n")}, "another one reviewer r/n  0"},
		{"archived", Change{Archived: at(5)}, "another one reviewer r/n  5"},
		{"the same profile", Change{Profile: text("")}, "another one reviewer r/n  5"},
		{"not archived", Change{Archived: at(-3)}, "another one reviewer r/n  0"},
		{"another profile", Change{Profile: text("assistant")}, "another one " + agents.DefaultAssistant().Owner() + " p/default assistant 0"},
		{"the agent's own model", Change{Model: text("")}, "another one " + agents.DefaultAssistant().Owner() + " p/default assistant 0"},
	} {
		got, err := d.Change(t.Context(), rec.ID, c.change)
		now, serr := d.Store.Session(t.Context(), rec.ID)
		if err != nil || serr != nil {
			t.Fatal(c.name, err, serr)
		}
		same(t, c.name+": stored", now, got)
		same(t, c.name, fmt.Sprint(got.Title, " ", got.Agent, " ", got.Model.Provider+"/"+got.Model.ID, " ", got.Metadata.Profile, " ", got.Time.Archived), c.want)
	}
	if _, err := d.Change(t.Context(), rec.ID, Change{Agent: text("nobody")}); err == nil {
		t.Error("an unknown agent")
	}
	got, err := d.Change(t.Context(), rec.ID, Change{Title: text("  ")})
	if err != nil || !strings.HasPrefix(got.Title, Untitled) {
		t.Errorf("without a title: %q, %v", got.Title, err)
	}
	if all := d.listed(t); len(all) != 11 || all[1] != "session.renamed  "+rec.ID+` {"agent":"planner","title":"first"}` {
		t.Errorf("told %q", all)
	}
}

// A mission's conversation is named and archived in its mission's record; its agent, model and profile are fixed, and a task's session is
// not a person's.
func TestChangeOfAMission(t *testing.T) {
	d, asked := desk(t, func(tx *store.Tx) error {
		task := centurion.Session{ID: "ses_t", ParentID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}
		return errors.Join(rooted(tx, "1", 1, nil), tx.PutSession(&task))
	})
	text := func(s string) *string { return &s }
	at := func(n int64) *int64 { return &n }
	for _, c := range []Change{{Agent: text("planner")}, {Model: text("q/m")}, {Profile: text("assistant")}} {
		_, err := d.Change(t.Context(), "ses_1", c)
		same(t, "fixed", err, error(&centurion.Error{Op: "change session", Kind: centurion.KindConflict,
			Msg:  "its profile is fixed with its first message, and its agent and model change with a message only",
			Hint: "name them in a message, open another session, or copy this one: centurion fork ses_1"}))
	}
	refused := error(&centurion.Error{Op: "change session", Kind: centurion.KindConflict, Msg: "session ses_t belongs to a task of mission msn_1", Hint: "end it with: centurion cancel tsk_1"})
	_, err := d.Change(t.Context(), "ses_t", Change{Title: text("x")})
	same(t, "a task's", err, refused)
	same(t, "a task's, removed", d.Remove(t.Context(), "ses_t"), refused)
	same(t, "asked", strings.Join(*asked, " "), "look look look look")
	if err := d.Remove(t.Context(), "ses_9"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("unknown, removed: %v", err)
	}
	if _, err := d.Change(t.Context(), "ses_9", Change{}); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("unknown: %v", err)
	}
	for _, c := range []struct {
		change   Change
		title    string
		archived int64
	}{{Change{}, "Goal 1", 0}, {Change{Title: text(" a  name ")}, "a name", 0}, {Change{Archived: at(7)}, "a name", 7}, {Change{Archived: at(0)}, "a name", 0}, {Change{Archived: at(-3)}, "a name", 0}} {
		got, err := d.Change(t.Context(), "ses_1", c.change)
		if err != nil || got.Title != c.title || got.Time.Archived != c.archived {
			t.Errorf("%+v: %+v, %v", c.change, got, err)
		}
		listed, err := d.List(t.Context(), Query{})
		if err != nil || len(listed) != 1 || listed[0].Title != c.title || listed[0].Time.Archived != c.archived {
			t.Errorf("%+v: listed %+v, %v", c.change, listed, err)
		}
	}
	if all := d.listed(t); len(all) != 5 || all[1] != `session.renamed msn_1 ses_1 {"agent":"commander","title":"a name"}` {
		t.Errorf("told %q", all)
	}
}

// What is removed goes with all that stands below it, those first; their work is ended before, and their records stay.
func TestRemove(t *testing.T) {
	d, asked := desk(t, func(tx *store.Tx) error {
		task := centurion.Session{ID: "ses_t", ParentID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}
		opened := centurion.Session{ID: "ses_o", Title: "opened", Agent: "commander", Metadata: centurion.SessionMeta{Below: "ses_t"}}
		return errors.Join(rooted(tx, "1", 1, func(m *centurion.Mission) { m.Status = centurion.MissionRunning }), tx.PutSession(&task), tx.PutSession(&opened),
			rooted(tx, "2", 2, func(m *centurion.Mission) { m.Below = "ses_1" }), rooted(tx, "3", 3, nil))
	})
	if err := d.Remove(t.Context(), "ses_1"); err != nil {
		t.Fatal(err)
	}
	slices.Sort((*asked)[:2]) // the two below stand beside each other
	same(t, "asked", *asked, []string{"abort ses_2", "abort ses_o", "abort ses_1", "cancel msn_1 its session was removed"})
	all := d.listed(t)
	if len(all) == 3 {
		slices.Sort(all[:2])
	}
	same(t, "told", all, []string{`session.removed  ses_o {"agent":"commander","title":"opened"}`, `session.removed msn_2 ses_2 {"agent":"commander","title":"Goal 2"}`,
		`session.removed msn_1 ses_1 {"agent":"commander","title":"Goal 1"}`})
	left, err := d.List(t.Context(), Query{All: true})
	if err != nil || len(left) != 1 || left[0].ID != "ses_3" {
		t.Errorf("left %+v, %v", left, err)
	}
	for _, id := range []string{"1", "2"} {
		if m, err := d.Store.Mission(t.Context(), "msn_"+id); err != nil || m.Removed.IsZero() {
			t.Errorf("%+v, %v", m, err)
		}
	}
	broken := errors.New("broken")
	d.Abort = func(context.Context, string) error { return broken }
	if err := d.Remove(t.Context(), "ses_3"); err != broken {
		t.Errorf("when its command does not end: %v", err)
	}
	if left, err := d.List(t.Context(), Query{}); err != nil || len(left) != 1 {
		t.Errorf("then left %+v, %v", left, err)
	}
}

// A list has what was changed last first, of what is asked for, and after it the tasks' sessions.
func TestList(t *testing.T) {
	d, _ := desk(t, func(tx *store.Tx) error {
		task := centurion.Session{ID: "ses_t", ParentID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_2", Task: "tsk_1"}}
		opened := centurion.Session{ID: "ses_o", Title: "Opened", Agent: "commander"}
		opened.Time.Updated = 25
		gone, below := opened, opened
		gone.ID, gone.Metadata.Removed = "ses_g", centurion.MillisTime(1)
		below.ID, below.Metadata.Below, below.Time.Updated = "ses_b", "ses_1", 5
		return errors.Join(rooted(tx, "1", 10, nil), rooted(tx, "2", 20, func(m *centurion.Mission) { m.Title = "Named" }), rooted(tx, "3", 30, func(m *centurion.Mission) { m.Below = "ses_1" }),
			rooted(tx, "4", 40, func(m *centurion.Mission) { m.Removed = centurion.MillisTime(1) }), tx.PutMission(&centurion.Mission{ID: "msn_5", Goal: "Goal 5", Status: centurion.MissionRunning}),
			tx.PutSession(&task), tx.PutSession(&opened), tx.PutSession(&gone), tx.PutSession(&below))
	})
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "ses_o ses_2 ses_1"},
		{Query{All: true}, "ses_3 ses_o ses_2 ses_1 ses_b"},
		{Query{Limit: 2}, "ses_o ses_2"},
		{Query{Limit: 9}, "ses_o ses_2 ses_1"},
		{Query{Since: 20}, "ses_o ses_2"},
		{Query{Before: 20}, "ses_1"},
		{Query{Since: 21, Before: 25}, ""},
		{Query{Search: "gOAL"}, "ses_1"},
		{Query{Search: "named"}, "ses_2"},
		{Query{Search: "OPENED"}, "ses_o"},
		{Query{Tasks: true}, "ses_o ses_2 ses_1 ses_t"},
		{Query{Tasks: true, Search: "goal"}, "ses_1"},
	} {
		all, err := d.List(t.Context(), c.q)
		var got []string
		for _, s := range all {
			got = append(got, s.ID)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, %v; want %s", c.q, got, err, c.want)
		}
	}
	if err := d.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutMission(&centurion.Mission{ID: "msn_6", Session: "ses_6", Goal: "lost", Status: centurion.MissionRunning})
	}); err != nil {
		t.Fatal(err)
	}
	_, err := d.List(t.Context(), Query{Search: "lost"})
	same(t, "a session that is lost", err, error(&centurion.Error{Op: "list sessions", Kind: centurion.KindNotFound, Msg: "there is no session ses_6"}))
}

// A root session is shown with what a person made of it; a task's, and one of another mission, as it is.
func TestShown(t *testing.T) {
	m := centurion.Mission{ID: "msn_1", Title: "name", Updated: centurion.MillisTime(9), Archived: centurion.MillisTime(7), Removed: centurion.MillisTime(8), Below: "ses_b", Options: centurion.MissionOptions{Profile: "p"}}
	rec := centurion.Session{ID: "ses_1", Title: "own", Metadata: centurion.SessionMeta{Mission: "msn_1"}}
	rec.Time.Updated = 5
	want := rec
	want.Title, want.Time.Updated, want.Time.Archived = "name", 9, 7
	want.Metadata.Profile, want.Metadata.Below, want.Metadata.Removed = "p", "ses_b", m.Removed
	same(t, "shown", Shown(rec, m), want)
	rec.Time.Updated, rec.Time.Archived = 50, 3
	got := Shown(rec, centurion.Mission{ID: "msn_1", Updated: centurion.MillisTime(9)})
	same(t, "nothing made of it", got, rec)
	task, other := rec, rec
	task.ParentID, other.Metadata.Mission = "ses_0", "msn_2"
	same(t, "a task's", Shown(task, m), task)
	same(t, "another's", Shown(other, m), other)
}
