package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
)

func sameJSON(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g, w) {
		t.Errorf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// What was written is read again, in the transaction and outside, and after a restart.
func TestNouns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	s := openAt(t, path)
	now := centurion.MillisTime(1_700_000_000_123)
	mission := centurion.Mission{ID: "msn_1", Goal: "Grüße <&> \u2028", Status: centurion.MissionRunning, Started: now, Updated: now,
		Options: centurion.MissionOptions{MaxCost: 10}, Usage: centurion.Usage{USD: 0.25}}
	session := centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Address: "0/", System: "you are"}}
	task := centurion.Task{ID: "tsk_1", Mission: "msn_1", Parent: "ses_1", Call: "call_1", Title: "one", Created: now,
		Error: &centurion.TaskError{Kind: centurion.KindStall, Message: "silence"}}
	receipt := centurion.Receipt{ID: "rcp_1", Mission: "msn_1", Command: "go test ./...", Passed: true, Time: now}
	delivery := Delivery{ID: "dlv_1", Mission: "msn_1", Session: "ses_1", Task: "tsk_1", Wake: true, Created: now}
	ask := Ask{ID: "per_1", Type: AskPermission, Mission: "msn_1", Permission: "bash", Patterns: []string{"git push *"}, Created: now, Deadline: now}
	check := func(what string, got any, err error, want any) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		sameJSON(t, what, got, want)
	}
	mustUpdate(t, s, func(tx *Tx) error {
		err := errors.Join(tx.PutMission(&mission), tx.PutSession(&session), tx.PutTask(&task), tx.PutReceipt(&receipt),
			tx.PutDelivery(&delivery), tx.PutAsk(&ask))
		m, e := tx.Mission("msn_1")
		check("mission in tx", m, e, mission)
		se, e := tx.Session("ses_1")
		check("session in tx", se, e, session)
		ta, e := tx.Task("tsk_1")
		check("task in tx", ta, e, task)
		d, e := tx.Delivery("dlv_1")
		check("delivery in tx", d, e, delivery)
		a, e := tx.Ask("per_1")
		check("ask in tx", a, e, ask)
		if _, e := tx.Task("tsk_2"); centurion.KindOf(e) != centurion.KindNotFound {
			t.Errorf("a task that does not exist: %v", e)
		}
		return err
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openAt(t, path)
	ctx := t.Context()
	m, err := s.Mission(ctx, "msn_1")
	check("mission", m, err, mission)
	m, err = s.LatestMission(ctx)
	check("latest mission", m, err, mission)
	ms, err := s.Missions(ctx)
	check("missions", ms, err, []centurion.Mission{mission})
	se, err := s.Session(ctx, "ses_1")
	check("session", se, err, session)
	ses, err := s.Sessions(ctx, "msn_1")
	check("sessions", ses, err, []centurion.Session{session})
	ta, err := s.Task(ctx, "tsk_1")
	check("task", ta, err, task)
	tas, err := s.Tasks(ctx, "msn_1")
	check("tasks", tas, err, []centurion.Task{task})
	rs, err := s.Receipts(ctx, "msn_1")
	check("receipts", rs, err, []centurion.Receipt{receipt})
	ds, err := s.Deliveries(ctx, "msn_1")
	check("deliveries", ds, err, []Delivery{delivery})
	as, err := s.Asks(ctx, "", true)
	check("asks", as, err, []Ask{ask})
	for what, err := range map[string]error{"mission": second(s.Mission(ctx, "x")), "session": second(s.Session(ctx, "x")), "task": second(s.Task(ctx, "x"))} {
		if centurion.KindOf(err) != centurion.KindNotFound || centurion.HintOf(err) == "" {
			t.Errorf("no %s: %v", what, err)
		}
	}
	if tas, err := s.Tasks(ctx, "msn_2"); err != nil || len(tas) != 0 {
		t.Errorf("tasks of another mission: %v, %v", tas, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestNoMission(t *testing.T) {
	t.Parallel()
	_, err := openTemp(t).LatestMission(t.Context())
	if centurion.KindOf(err) != centurion.KindNotFound || err.Error() != "read state: this project has no mission yet" || centurion.HintOf(err) != "start one with `centurion run \"GOAL\"`" {
		t.Errorf("%v, hint %q", err, centurion.HintOf(err))
	}
}

// IKI-57: order is that of the first writing, whatever the ids are and however often a row is written again. A session, which is one
// agent's conversation, has its own messages only.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	put := func(id string, text string) {
		mustUpdate(t, s, func(tx *Tx) error {
			return errors.Join(
				tx.PutMission(&centurion.Mission{ID: "msn_" + id, Goal: text}),
				tx.PutTask(&centurion.Task{ID: "tsk_" + id, Mission: "msn_1", Title: text}),
				tx.PutMessage(&centurion.Message{ID: "msg_" + id, SessionID: "ses_1", Role: centurion.RoleUser, Origin: centurion.OriginParent, Agent: text}),
				tx.PutPart(&centurion.Part{ID: "prt_" + id, SessionID: "ses_1", MessageID: "msg_" + id, Type: centurion.PartText, Text: text}),
				tx.PutPart(&centurion.Part{ID: "prt_y" + id, SessionID: "ses_1", MessageID: "msg_z", Type: centurion.PartStepFinish, Usage: centurion.Usage{Unpriced: true}}),
			)
		})
	}
	for _, id := range []string{"z", "b", "m"} {
		put(id, "first")
	}
	put("z", "second")
	mustUpdate(t, s, func(tx *Tx) error {
		return tx.PutMessage(&centurion.Message{ID: "msg_b", SessionID: "ses_1", Role: centurion.RoleAssistant, Agent: "x", Usage: centurion.Usage{USD: 1, Unpriced: true}})
	})

	missions, err := s.Missions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range missions {
		got = append(got, m.ID+" "+m.Goal)
	}
	if want := []string{"msn_m first", "msn_b first", "msn_z second"}; !slices.Equal(got, want) {
		t.Errorf("missions %v, want %v", got, want)
	}
	messages, err := s.Messages(t.Context(), "ses_1")
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, m := range messages {
		line := []any{m.ID, " ", m.Role, " ", m.Origin, " ", m.Agent, " ", m.Usage.USD, m.Usage.Unpriced}
		for _, p := range m.Parts {
			line = append(line, " ", p.ID, " ", p.Text, p.Usage.Unpriced)
		}
		got = append(got, fmt.Sprint(line...))
	}
	want := []string{
		"msg_z user parent second 0 false prt_z secondfalse prt_yz true prt_yb true prt_ym true",
		"msg_b assistant  x 1 true prt_b firstfalse",
		"msg_m user parent first 0 false prt_m firstfalse",
	}
	if !slices.Equal(got, want) {
		t.Errorf("messages:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if m, err := s.Messages(t.Context(), "ses_2"); err != nil || len(m) != 0 {
		t.Errorf("messages of another session: %v, %v", m, err)
	}
}

// IKI-9, IKI-28: serial numbers are never given twice, also after a restart; an update that failed has not taken any.
func TestNextSerial(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	var got []string
	for range 2 {
		s := openAt(t, path)
		take := func(mission, address string) {
			mustUpdate(t, s, func(tx *Tx) error {
				n, err := tx.NextSerial(mission, address)
				got = append(got, centurion.ChildAddress(address, n))
				return err
			})
		}
		take("msn_1", "0/")
		take("msn_1", "0/")
		take("msn_1", "0/3")
		take("msn_2", "0/")
		failed := errors.New("no")
		if err := s.Update(t.Context(), func(tx *Tx) error {
			return errors.Join(second(tx.NextSerial("msn_1", "0/")), failed)
		}); !errors.Is(err, failed) {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"0/0", "0/1", "0/3/0", "0/0", "0/2", "0/3", "0/3/1", "0/1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestDeliveriesAndAsks(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	now := centurion.Now()
	pending := func(want ...string) {
		t.Helper()
		mustUpdate(t, s, func(tx *Tx) error {
			found, err := tx.PendingDeliveries("ses_1")
			var got []string
			for _, d := range found {
				got = append(got, d.ID)
			}
			if !slices.Equal(got, want) {
				t.Errorf("pending %v, want %v", got, want)
			}
			return err
		})
	}
	pending()
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutDelivery(&Delivery{ID: "dlv_b", Session: "ses_1"}), tx.PutDelivery(&Delivery{ID: "dlv_a", Session: "ses_1"}),
			tx.PutDelivery(&Delivery{ID: "dlv_c", Session: "ses_2"}))
	})
	pending("dlv_b", "dlv_a")
	mustUpdate(t, s, func(tx *Tx) error { return tx.PutDelivery(&Delivery{ID: "dlv_b", Session: "ses_1", Taken: now}) })
	pending("dlv_a")

	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutAsk(&Ask{ID: "per_1", Mission: "msn_1"}), tx.PutAsk(&Ask{ID: "per_2", Mission: "msn_2"}), tx.PutAsk(&Ask{ID: "que_1", Mission: "msn_1"}))
	})
	mustUpdate(t, s, func(tx *Tx) error {
		return tx.PutAsk(&Ask{ID: "per_1", Mission: "msn_1", Answered: now, Answer: "once"})
	})
	for _, c := range []struct {
		mission string
		open    bool
		want    string
	}{{"", true, "per_2 que_1"}, {"", false, "per_1 per_2 que_1"}, {"msn_1", true, "que_1"}, {"msn_1", false, "per_1 que_1"}, {"msn_3", false, ""}} {
		asks, err := s.Asks(t.Context(), c.mission, c.open)
		var got []string
		for _, a := range asks {
			got = append(got, a.ID)
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("asks of %q, open %v: %v, want %s (%v)", c.mission, c.open, got, c.want, err)
		}
	}
}

// Inside a transaction everything is read as the transaction has left it; what is not there is told and ends nothing.
func TestReadInTransaction(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	now := centurion.Now()
	names := func(n int, id func(i int) string) string {
		var out []string
		for i := range n {
			out = append(out, id(i))
		}
		return strings.Join(out, " ")
	}
	mustUpdate(t, s, func(tx *Tx) error {
		if _, err := tx.Tree("ses_none"); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("a session that is not there: %v", err)
		}
		if _, err := tx.Task("tsk_none"); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("a task that is not there: %v", err)
		}
		err := errors.Join(
			tx.PutDelivery(&Delivery{ID: "dlv_b", Mission: "msn_1", Session: "ses_1", Taken: now}), tx.PutDelivery(&Delivery{ID: "dlv_a", Mission: "msn_1", Session: "ses_2"}),
			tx.PutDelivery(&Delivery{ID: "dlv_c", Mission: "msn_2", Session: "ses_1"}),
			tx.PutReceipt(&centurion.Receipt{ID: "rcp_b", Mission: "msn_1", Task: "tsk_1"}), tx.PutReceipt(&centurion.Receipt{ID: "rcp_x", Mission: "msn_1", Task: "tsk_2"}),
			tx.PutReceipt(&centurion.Receipt{ID: "rcp_a", Mission: "msn_1", Task: "tsk_1"}),
			tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Item: "T1", Status: centurion.TaskFailed}),
			tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_1", Item: "T1", Status: centurion.TaskCompleted}),
			tx.PutTask(&centurion.Task{ID: "tsk_3", Mission: "msn_1", Item: "T3", Status: centurion.TaskCompleted, Undone: now}),
			tx.PutTask(&centurion.Task{ID: "tsk_4", Mission: "msn_2", Status: centurion.TaskRunning}),
			tx.PutAsk(&Ask{ID: "per_1", Mission: "msn_1", Answered: now}), tx.PutAsk(&Ask{ID: "per_2", Mission: "msn_1"}),
			tx.PutSession(&centurion.Session{ID: "ses_1"}), tx.PutMessage(&centurion.Message{ID: "msg_1", SessionID: "ses_1"}))
		all, err1 := tx.Deliveries("msn_1")
		taken, err2 := tx.TakenDeliveries("msn_1", "ses_1")
		receipts, err3 := tx.Receipts("msn_1", "tsk_1")
		counts, err4 := tx.TaskCounts("msn_1")
		asks, err5 := tx.Asks("msn_1")
		open, err6 := tx.OpenAsks("msn_1")
		tree, err7 := tx.Tree("ses_1")
		for want, got := range map[string]string{
			"dlv_b dlv_a": names(len(all), func(i int) string { return all[i].ID }), "dlv_b": names(len(taken), func(i int) string { return taken[i].ID }),
			"rcp_b rcp_a": names(len(receipts), func(i int) string { return receipts[i].ID }), "per_1 per_2": names(len(asks), func(i int) string { return asks[i].ID }),
			"per_2": names(len(open), func(i int) string { return open[i].ID }), "msg_1": tree.Leaf,
			"map[completed:1 continued:1 reverted:1]": fmt.Sprint(counts),
		} {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		return errors.Join(err, err1, err2, err3, err4, err5, err6, err7)
	})
}

// What a row was first written for stays, whatever is written later, and its checksum holds; what has no id or cannot be written is
// refused and leaves nothing.
func TestFixedColumns(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Parent: "ses_1", Call: "c", Title: "old"}), tx.PutSession(&centurion.Session{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1"}}),
			tx.PutTask(&centurion.Task{ID: "tsk_2", Mission: "msn_3", Parent: "ses_3", Call: "e"}), tx.PutSession(&centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_3"}}))
	})
	mustUpdate(t, s, func(tx *Tx) error {
		return errors.Join(tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_2", Parent: "ses_9", Call: "d", Title: "new", Status: centurion.TaskRunning}), tx.PutSession(&centurion.Session{ID: "ses_1", Title: "t", Metadata: centurion.SessionMeta{Mission: "msn_2"}}))
	})
	if n := count(t, s, `SELECT count(*) FROM task WHERE mission = 'msn_1' AND parent = 'ses_1' AND call = 'c' AND status = 'running'`); n != 1 {
		t.Error("the task has moved")
	}
	if tasks, err := s.Tasks(t.Context(), "msn_1"); err != nil || len(tasks) != 1 || tasks[0].Title != "new" {
		t.Errorf("%+v, %v", tasks, err)
	}
	if all, err := s.Sessions(t.Context(), "msn_1"); err != nil || len(all) != 1 || all[0].Title != "t" {
		t.Errorf("the session has moved: %+v, %v", all, err)
	}
	for name, put := range map[string]func(tx *Tx) error{
		"no id": func(tx *Tx) error { return tx.PutMission(&centurion.Mission{}) },
		"cannot be written": func(tx *Tx) error {
			return tx.PutMission(&centurion.Mission{ID: "msn_bad", Started: centurion.Time{Time: time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}})
		},
	} {
		err := s.Update(t.Context(), put)
		if centurion.KindOf(err) != centurion.KindInternal || !strings.HasPrefix(err.Error(), "write state: *centurion.Mission ") || name == "no id" && !strings.Contains(err.Error(), "no id") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if all, err := s.Missions(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d missions, %v", len(all), err)
	}
}

func TestTaskByCall(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		if _, found, err := tx.TaskByCall("ses_1", "call_1"); found || err != nil {
			t.Error(found, err)
		}
		err := errors.Join(tx.PutTask(&centurion.Task{ID: "tsk_1", Parent: "ses_1", Call: "call_1"}),
			tx.PutTask(&centurion.Task{ID: "tsk_2", Parent: "ses_2", Call: "call_1"}),
			tx.PutTask(&centurion.Task{ID: "tsk_0", Parent: "ses_1", Call: "call_1"}))
		if got, found, err := tx.TaskByCall("ses_1", "call_1"); !found || err != nil || got.ID != "tsk_0" {
			t.Error(got.ID, found, err)
		}
		if got, found, err := tx.TaskByCall("ses_2", "call_1"); !found || err != nil || got.ID != "tsk_2" {
			t.Error(got.ID, found, err)
		}
		return err
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	before := centurion.MillisTime(centurion.Now().Millis())
	mustUpdate(t, s, func(tx *Tx) error {
		for i := range 6 {
			e := centurion.Event{Type: centurion.EventTaskQueued, Mission: fmt.Sprint("msn_", i%2), Session: fmt.Sprint("ses_", i%3)}
			if i == 4 {
				e.Type, e.Task, e.Data, e.Time = centurion.EventTaskStarted, "tsk_1", json.RawMessage(`{"a":[1]}`), centurion.MillisTime(5)
			}
			if seq, err := tx.Append(e); err != nil || seq != int64(i+1) {
				return fmt.Errorf("event %d: %d, %w", i, seq, err)
			}
		}
		return nil
	})
	started := []centurion.EventType{centurion.EventTaskStarted, centurion.EventTaskFailed}
	for _, c := range []struct {
		q    EventQuery
		want string
	}{
		{EventQuery{}, "1 2 3 4 5 6"},
		{EventQuery{After: 4}, "5 6"},
		{EventQuery{After: 6}, ""},
		{EventQuery{Limit: 2}, "1 2"},
		{EventQuery{Mission: "msn_1"}, "2 4 6"},
		{EventQuery{Mission: "msn_1", After: 2, Limit: 1}, "4"},
		{EventQuery{Session: "ses_0"}, "1 4"},
		{EventQuery{Mission: "msn_0", Session: "ses_0"}, "1"},
		{EventQuery{Task: "tsk_1"}, "5"},
		{EventQuery{Types: started}, "5"},
		{EventQuery{Types: started, Mission: "msn_1"}, ""},
	} {
		found, err := s.Events(t.Context(), c.q)
		seqs := make([]int64, 0, len(found))
		for _, e := range found {
			seqs = append(seqs, e.Seq)
		}
		got := strings.Trim(fmt.Sprint(seqs), "[]")
		if err != nil || got != c.want {
			t.Errorf("%+v: %s, want %s (%v)", c.q, got, c.want, err)
		}
	}
	found, err := s.Events(t.Context(), EventQuery{After: 3, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	if found[0].Time.Before(before.Time) || string(found[0].Data) != "{}" {
		t.Errorf("defaults: %+v", found[0])
	}
	sameJSON(t, "event", found[1], centurion.Event{Seq: 5, Time: centurion.MillisTime(5), Type: centurion.EventTaskStarted,
		Mission: "msn_0", Session: "ses_1", Task: "tsk_1", Data: json.RawMessage(`{"a":[1]}`)})

	for _, e := range []centurion.Event{{}, {Type: centurion.EventDelta}, {Type: centurion.EventTaskQueued, Data: json.RawMessage(`{`)}} {
		if err := s.Update(t.Context(), func(tx *Tx) error { return second(tx.Append(e)) }); centurion.KindOf(err) != centurion.KindInternal || err.Error() != "write state: event "+string(e.Type)+" cannot be a journal row: it needs the type of a fact and JSON data" {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	s := openTemp(t)
	mustUpdate(t, s, func(tx *Tx) error {
		var err error
		for _, id := range []string{"msn_abc1", "msn_abc2", "msn_abd", "msn_abdx", "msn_q1", "msn_q2", "msn_q3", "msn_q4", "msn_q5", "msn_q6", "msn_z%"} {
			err = errors.Join(err, tx.PutMission(&centurion.Mission{ID: id}))
		}
		return errors.Join(err, tx.PutTask(&centurion.Task{ID: "tsk_1"}), tx.PutSession(&centurion.Session{ID: "ses_1"}))
	})
	for _, c := range []struct {
		typed, want string
		kind        centurion.Kind
		says        string
	}{
		{"msn_abc1", "msn_abc1", "", ""},
		{"abc1", "msn_abc1", "", ""},
		{"msn_abd", "msn_abd", "", ""}, // itself, although it begins another
		{"abdx", "msn_abdx", "", ""},
		{"z", "msn_z%", "", ""},
		{"abc", "", centurion.KindUsage, "msn_abc1, msn_abc2"},
		{"msn_q", "", centurion.KindUsage, "msn_q5, …"},
		{"", "", centurion.KindUsage, ""},
		{"msn_", "", centurion.KindUsage, ""},
		{"abc9", "", centurion.KindNotFound, "msn_abc2 or msn_abd"},
		{"%", "", centurion.KindNotFound, ""},
		{"tsk_1", "", centurion.KindNotFound, ""},
		{"' OR 1", "", centurion.KindNotFound, ""},
	} {
		got, err := s.ResolveMission(t.Context(), c.typed)
		if got != c.want || centurion.KindOf(err) != c.kind {
			t.Errorf("%q: %q, %v", c.typed, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || centurion.HintOf(err) == "") {
			t.Errorf("%q: %v, want it to say %q; hint %q", c.typed, err, c.says, centurion.HintOf(err))
		}
	}
	for typed, want := range map[string]string{"abc": `find mission: "abc" could be msn_abc1, msn_abc2|type more of the id`, "": "find mission: an empty id names nothing|`centurion ps` lists the missions of this project",
		"q":    `find mission: "q" could be msn_q1, msn_q2, msn_q3, msn_q4, msn_q5, …|type more of the id`,
		"abc9": `find mission: no mission "abc9"; the nearest is msn_abc2 or msn_abd|` + "`centurion ps` lists the missions of this project",
		"yy":   `find mission: no mission "yy"|` + "`centurion ps` lists the missions of this project"} {
		if _, err := s.ResolveMission(t.Context(), typed); fmt.Sprint(err)+"|"+centurion.HintOf(err) != want {
			t.Errorf("%q: %v|%s, want %s", typed, err, centurion.HintOf(err), want)
		}
	}
	if _, err := s.ResolveMission(t.Context(), "yy"); err == nil || strings.Contains(err.Error(), "nearest") {
		t.Errorf("an id that is like none: %v", err)
	}
	if got, err := s.ResolveTask(t.Context(), "1"); got != "tsk_1" || err != nil {
		t.Error(got, err)
	}
	if got, err := s.ResolveSession(t.Context(), "ses_1"); got != "ses_1" || err != nil {
		t.Error(got, err)
	}
}
