package branches

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/revert"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
)

// rig has a mission msn_1 with the conversation ses_1: a question, its answer, and another question.
type rig struct {
	*Branches
	t       *testing.T
	working bool
	held    int      // how often Hold was called and not released
	rewound []string // the sessions of which Rewound was told
	rested  []string
	command chan struct{}
}

func newRig(t *testing.T, m centurion.Mission, rec centurion.Session) *rig {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	st := storetest.Open(t)
	r := &rig{t: t}
	r.Branches = &Branches{Store: st, Workspace: ws, Files: &revert.Files{Workspace: ws},
		Hold:    func(string) (bool, func()) { r.held++; return r.working, func() { r.held-- } },
		Command: func(string) <-chan struct{} { return r.command },
		Rewound: func(_ context.Context, session string) error { r.rewound = append(r.rewound, session); return nil },
		Rest:    func(_ context.Context, mission, session string) { r.rested = append(r.rested, mission+" "+session) }}
	m.ID, m.Session, rec.ID = "msn_1", "ses_1", "ses_1"
	rec.Metadata.Mission, rec.Metadata.Address = "msn_1", "0/"
	r.update(func(tx *store.Tx) error {
		err := errors.Join(tx.PutMission(&m), tx.PutSession(&rec))
		for i, role := range []centurion.Role{centurion.RoleUser, centurion.RoleAssistant, centurion.RoleUser} {
			id := fmt.Sprintf("msg_%d", i+1)
			msg := centurion.Message{ID: id, SessionID: "ses_1", Role: role, Origin: centurion.OriginPerson, Time: centurion.MessageTime{Created: int64(1000 * (i + 1))}}
			if role == centurion.RoleAssistant {
				msg.ParentID, msg.Origin = "msg_1", ""
			}
			part := centurion.Part{ID: "prt_" + id, SessionID: "ses_1", MessageID: id, Type: centurion.PartText, Text: id}
			err = errors.Join(err, tx.PutMessage(&msg), tx.PutPart(&part))
		}
		return err
	})
	t.Cleanup(func() {
		if r.held != 0 {
			t.Errorf("the mission is held %d times at the end", r.held)
		}
	})
	return r
}

func (r *rig) update(f func(*store.Tx) error) {
	r.t.Helper()
	if err := r.Store.Update(r.t.Context(), f); err != nil {
		r.t.Fatal(err)
	}
}

// mission is the record of the mission, changed before if there is something to change.
func (r *rig) mission(change ...func(*centurion.Mission)) centurion.Mission {
	r.t.Helper()
	m, err := r.Store.Mission(r.t.Context(), "msn_1")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range change {
		c(&m)
		r.update(func(tx *store.Tx) error { return tx.PutMission(&m) })
	}
	return m
}

func (r *rig) meta(change ...func(*centurion.SessionMeta)) centurion.SessionMeta {
	r.t.Helper()
	rec, err := r.Store.Session(r.t.Context(), "ses_1")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, c := range change {
		c(&rec.Metadata)
		r.update(func(tx *store.Tx) error { return tx.PutSession(&rec) })
	}
	return rec.Metadata
}

// events are those of a mission after a place in the journal: type, whose, and data.
func (r *rig) events(mission string, after int64) []string {
	r.t.Helper()
	all, err := r.Store.Events(r.t.Context(), store.EventQuery{Mission: mission, After: after})
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Type, e.Session, e.Task, e.Data))
	}
	return out
}

// fill sets everything in a value that can be set, so many levels deep: some types hold themselves.
func fill(v reflect.Value, levels int) {
	if levels == 0 {
		return
	}
	levels--
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("1"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), levels)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, levels)
		if value.Kind() != reflect.Interface {
			fill(value, levels)
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), levels)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[centurion.Time]() {
			v.Set(reflect.ValueOf(centurion.MillisTime(5)))
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, levels)
			}
		}
	}
}

// same names the fields that a copy has as the original has them, and those that are others; the rest is not copied.
func same(original, copied any) string {
	a, b := reflect.ValueOf(original), reflect.ValueOf(copied)
	var kept, other []string
	for i := range b.NumField() {
		switch name := b.Type().Field(i).Name; {
		case b.Field(i).IsZero():
		case reflect.DeepEqual(b.Field(i).Interface(), a.Field(i).Interface()):
			kept = append(kept, name)
		default:
			other = append(other, name)
		}
	}
	return strings.Join(kept, " ") + "; " + strings.Join(other, " ")
}

// A copy has what its conversation and its mission were given, and nothing of what the original has done, cost or waits for.
func TestWhatIsCopied(t *testing.T) {
	t.Parallel()
	var m centurion.Mission
	fill(reflect.ValueOf(&m).Elem(), 5)
	c := Copy(m, "worker")
	if got, want := same(m, c), "Goal Directory Level LevelFrom Adopted Accepted Approved Isolation Base; ID Options Started Updated"; got != want {
		t.Errorf("of the mission:\n%s, want\n%s", got, want)
	}
	want := m.Options
	want.Agent, want.Request, want.Detached, want.Plan = "worker", "", false, ""
	if !reflect.DeepEqual(c.Options, want) || c.Started.IsZero() || c.Updated != c.Started || centurion.CheckID(centurion.PrefixMission, c.ID) != nil {
		t.Errorf("its options are %+v, it began %v, its id is %s", c.Options, c.Started, c.ID)
	}
	var of centurion.Session
	fill(reflect.ValueOf(&of).Elem(), 5)
	from := centurion.ForkedFrom{Mission: "msn_1", Session: "ses_1", Message: "msg_1"}
	rec, _ := copyOf(of, nil, "msn_2", from)
	if got, want := same(of, rec), "ProjectID Directory Title Agent Model Version; ID Slug Metadata Time"; got != want {
		t.Errorf("of the session:\n%s, want\n%s", got, want)
	}
	if got, want := same(of.Metadata, rec.Metadata), "System AgentFile Roster Offered Skills External Plugged Given Tools OwnModel; Mission Address ForkedFrom"; got != want {
		t.Errorf("of its data:\n%s, want\n%s", got, want)
	}
	if rec.Slug != "0" || rec.Metadata.Address != "0/" || rec.Metadata.Mission != "msn_2" || *rec.Metadata.ForkedFrom != from || rec.Time.Created == of.Time.Created {
		t.Errorf("the session is %+v", rec)
	}
}

// All that refers to a message or a part of the line refers to its copy; what refers to another branch is left out.
func TestCopiedLine(t *testing.T) {
	t.Parallel()
	tree := talked()
	tree.Session.Metadata.Marks = map[string]string{"here": "msg_aa2", "there": "msg_b01"}
	line := tree.Line("msg_ac2")
	line[1].ParentID, line[3].ParentID = "msg_aa1", "msg_ac1"
	line[2].Parts[0].Compaction = &centurion.Compaction{Auto: true, Overflow: true, Tail: "msg_aa2", Clips: map[string]int{"prt_aa2": 7}}
	line[3].Parts[0].Compaction = &centurion.Compaction{}
	before := fmt.Sprintf("%+v", line)
	rec, copied := copyOf(tree.Session, line, "msn_2", centurion.ForkedFrom{})
	if fmt.Sprintf("%+v", line) != before {
		t.Error("the original was changed")
	}
	prev := ""
	for i, m := range copied {
		want := line[i]
		want.ID, want.SessionID, want.Prev, want.Parts = m.ID, rec.ID, prev, m.Parts
		want.ParentID = ""
		if i%2 == 1 {
			want.ParentID = copied[i-1].ID
		}
		p := line[i].Parts[0]
		p.ID, p.SessionID, p.MessageID, p.Compaction = m.Parts[0].ID, rec.ID, m.ID, m.Parts[0].Compaction
		if !reflect.DeepEqual(m, want) || len(m.Parts) != 1 || !reflect.DeepEqual(m.Parts[0], p) {
			t.Errorf("message %d is %+v, want %+v", i, m, want)
		}
		if centurion.CheckID(centurion.PrefixMessage, m.ID) != nil || centurion.CheckID(centurion.PrefixPart, p.ID) != nil {
			t.Errorf("the ids of message %d are %s and %s", i, m.ID, p.ID)
		}
		prev = m.ID
	}
	want := centurion.Compaction{Auto: true, Overflow: true, Tail: copied[1].ID, Clips: map[string]int{copied[1].Parts[0].ID: 7}}
	if got := copied[2].Parts[0].Compaction; !reflect.DeepEqual(*got, want) {
		t.Errorf("the compaction is %+v, want %+v", got, want)
	}
	if got := copied[3].Parts[0].Compaction; !reflect.DeepEqual(*got, centurion.Compaction{}) {
		t.Errorf("one that keeps nothing is %+v", got)
	}
	if marks := rec.Metadata.Marks; !reflect.DeepEqual(marks, map[string]string{"here": copied[1].ID}) {
		t.Errorf("the marks are %v", marks)
	}
}

// A fork is a paused mission with a copy of the line, and its journal tells how it came to be.
func TestFork(t *testing.T) {
	t.Parallel()
	r := newRig(t, centurion.Mission{Goal: "build it", Status: centurion.MissionCompleted}, centurion.Session{Agent: "commander", Title: "Build"})
	f, err := r.Fork(t.Context(), "ses_1", "-1")
	from := centurion.ForkedFrom{Mission: "msn_1", Session: "ses_1", Message: "msg_2"}
	if want := (Forked{Mission: f.Mission, Session: f.Session, Agent: "commander", Todo: ".opencode/todo-" + f.Mission + ".md", Messages: 2, From: from}); err != nil || f != want {
		t.Fatalf("%+v, %v, want %+v", f, err, want)
	}
	m, err := r.Store.Mission(t.Context(), f.Mission)
	if err != nil || m.Session != f.Session || m.Status != centurion.MissionPaused || m.Reason != "forked from ses_1" || m.Todo != f.Todo || m.Goal != "build it" {
		t.Errorf("%+v, %v", m, err)
	}
	tree, err := r.Store.Tree(t.Context(), f.Session)
	if err != nil || len(tree.Messages) != 2 || tree.Messages[0].Parts[0].Text != "msg_1" || tree.Messages[1].Parts[0].Text != "msg_2" || tree.Leaf != tree.Messages[1].ID {
		t.Errorf("%+v, %v", tree, err)
	}
	events := r.events(f.Mission, 0)
	if len(events) != 4 {
		t.Fatalf("%q", events)
	}
	for i, want := range []string{
		string(centurion.EventMissionStarted) + " " + f.Session + `  {"goal":"build it","status":"planning","agent":"commander",`,
		string(centurion.EventSessionCreated) + " " + f.Session + `  {"address":"0/","agent":"commander","attempt":0,"title":"Build"}`,
		string(centurion.EventForked) + " " + f.Session + "  " + string(event.Data(event.ForkedData{Mission: "msn_1", Session: "ses_1", Message: "msg_2", Messages: 2})),
		string(centurion.EventMissionPaused) + " " + f.Session + "  {",
	} {
		if !strings.HasPrefix(events[i], want) {
			t.Errorf("told %s, want %s", events[i], want)
		}
	}
	for of, want := range map[string]string{"ses_9": "not_found", "ses_2": "conflict: fork: session ses_2 has no messages yet (see: centurion show ses_2)"} {
		r.update(func(tx *store.Tx) error {
			return tx.PutSession(&centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_1"}})
		})
		if f, err := r.Fork(t.Context(), of, ""); !strings.HasPrefix(told(err), want) || f != (Forked{}) {
			t.Errorf("a fork of %s: %+v, %s", of, f, told(err))
		}
	}
	if f, err := r.Fork(t.Context(), "ses_1", "nowhere"); centurion.KindOf(err) != centurion.KindNotFound || f != (Forked{}) {
		t.Errorf("a fork at no message: %+v, %v", f, err)
	}
	if all, err := r.Store.Missions(t.Context()); err != nil || len(all) != 2 {
		t.Errorf("%d missions, %v", len(all), err)
	}
}
