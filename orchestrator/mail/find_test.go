package mail

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
)

// team is a store with a mission, its own session, and eight tasks. The first has ended, the last has no session, and the second and third
// are of one item.
func team(t *testing.T) *store.Store {
	t.Helper()
	st := storetest.Open(t)
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		m := centurion.Mission{ID: "msn_1", Session: "ses_0", Status: centurion.MissionPaused}
		put := func(id, task, address string, model *centurion.SessionModel) error {
			return tx.PutSession(&centurion.Session{ID: id, Agent: "worker", Model: model, Metadata: centurion.SessionMeta{Mission: m.ID, Task: task, Address: address}})
		}
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		if err := put(m.Session, "", "0/", nil); err != nil {
			return err
		}
		for i := 1; i <= 8; i++ {
			task := centurion.Task{ID: fmt.Sprint("tsk_", i), Mission: m.ID, Parent: m.Session, Number: i, Status: centurion.TaskQueued, Item: fmt.Sprint("T", max(2, i-1))}
			if i == 1 {
				task.Status = centurion.TaskCompleted
			}
			if i < 8 {
				task.Session = fmt.Sprint("ses_", i)
				if err := put(task.Session, task.ID, fmt.Sprint("0/", i), &centurion.SessionModel{Provider: "p", ID: fmt.Sprint("m", i)}); err != nil {
					return err
				}
			}
			if err := tx.PutTask(&task); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// An agent is named by any whole id, and in a mission also by its address or by the item of its newest task.
func TestFind(t *testing.T) {
	t.Parallel()
	st := team(t)
	for name, test := range map[string]struct {
		mission, to, want string
	}{
		"mission":               {"", "msn_1", "msn_1 ses_0 "},
		"its session":           {"", "ses_0", "msn_1 ses_0 "},
		"session":               {"", "ses_2", "msn_1 ses_2 tsk_2"},
		"task":                  {"", "tsk_2", "msn_1 ses_2 tsk_2"},
		"task without session":  {"", "tsk_8", "msn_1  tsk_8"},
		"address":               {"msn_1", "0/2", "msn_1 ses_2 tsk_2"},
		"the owner's address":   {"msn_1", "0", "msn_1 ses_0 "},
		"newest of an item":     {"msn_1", "T2", "msn_1 ses_3 tsk_3"},
		"item in other letters": {"msn_1", "t7", "msn_1  tsk_8"},
		"item without mission":  {"", "T2", ""},
		"unknown":               {"msn_1", "0/9", ""},
	} {
		got, err := Find(t.Context(), st, test.mission, test.to)
		if test.want == "" {
			if centurion.KindOf(err) != centurion.KindNotFound {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if have := got.Mission + " " + got.Session + " " + got.Task; have != test.want || err != nil {
			t.Errorf("%s: %q, want %q: %v", name, have, test.want, err)
		}
	}
	_, err := Find(t.Context(), st, "msn_1", "0/22")
	const names = "you can write to 0/ (worker), 0/2 (worker), 0/3 (worker), 0/4 (worker), 0/5 (worker), 0/6 (worker), 1 other"
	if err == nil || !strings.Contains(err.Error(), names) || !strings.Contains(centurion.HintOf(err), `"0/2"`) {
		t.Errorf("%v; %s", err, centurion.HintOf(err))
	}
}

// A file is refused that the session's model does not take. While the model is not known, none is.
func TestFilesForASession(t *testing.T) {
	t.Parallel()
	st := team(t)
	d := New(st, func(ref string) (agent.Model, error) {
		return agent.Model{Media: centurion.Media{PDF: ref == "p/m2"}}, nil
	}, func(string) *agent.Sessions { return nil })
	pdf := centurion.File{Mime: centurion.MimePDF, Path: "a.pdf", Data: []byte("%PDF-1.4\n")}
	fake := pdf
	fake.Data = []byte("text")
	for name, test := range map[string]struct {
		to   string
		file centurion.File
		kind centurion.Kind
	}{
		"taken":          {"ses_2", pdf, ""},
		"not taken":      {"ses_3", pdf, centurion.KindUsage},
		"no model yet":   {"msn_1", pdf, ""},
		"no session yet": {"tsk_8", pdf, ""},
		"another type":   {"ses_2", fake, centurion.KindUsage},
	} {
		_, err := d.Send(t.Context(), Post{To: test.to, Text: "look", Files: []centurion.File{test.file}})
		if centurion.KindOf(err) != test.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message to the mission's own agent may give it another model: at once while nobody works on the mission, else when the message is read.
// A refused one is not stored.
func TestAnotherModel(t *testing.T) {
	t.Parallel()
	st := team(t)
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		root, err := tx.Session("ses_0")
		root.Model = &centurion.SessionModel{Provider: "p", ID: "m0"}
		return errors.Join(err, tx.PutSession(&root))
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	busy := agent.New(state.New(ctx, end, nil, centurion.Mission{}, nil), nil, nil, nil, nil, agent.Config{}, agent.Above{})
	var working *agent.Sessions
	d := New(st, func(ref string) (agent.Model, error) {
		if ref != "q/m" {
			return agent.Model{}, &centurion.Error{Kind: centurion.KindUsage}
		}
		return agent.Model{}, nil
	}, func(string) *agent.Sessions { return working })
	for _, test := range []struct {
		name, to, model string
		working         *agent.Sessions
		kind            centurion.Kind
		stored          int
		own             string
	}{
		{"unknown", "msn_1", "q/n", nil, centurion.KindUsage, 0, "p/m0"},
		{"of a task", "tsk_2", "q/m", nil, centurion.KindConflict, 0, "p/m0"},
		{"of one without a session", "tsk_8", "q/m", nil, centurion.KindConflict, 0, "p/m0"},
		{"at work", "msn_1", "q/m", busy, "", 1, "p/m0"},
		{"at rest", "msn_1", "q/m", nil, "", 2, "q/m"},
	} {
		working = test.working
		if _, err := d.Send(t.Context(), Post{To: test.to, Text: test.name, Model: test.model}); centurion.KindOf(err) != test.kind {
			t.Errorf("%s: %v", test.name, err)
		}
		s, err := st.Session(t.Context(), "ses_0")
		if err != nil {
			t.Fatal(err)
		}
		all, err := st.Deliveries(t.Context(), "msn_1")
		if err != nil || len(all) != test.stored || s.Own().String() != test.own || test.stored > 0 && all[len(all)-1].Model != "q/m" {
			t.Errorf("%s: %+v, model %v: %v", test.name, all, s.Model, err)
		}
	}
}
