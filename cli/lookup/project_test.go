package lookup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/orchestrator/approval"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
)

// project is an API with these rows: missions newest first, all others oldest first.
type project struct {
	server.API
	missions []server.Mission
	tasks    []server.Task
	sessions []centurion.Session
	messages []server.Message
	asks     []store.Ask
	undo     func(id string, q takeover.UndoRequest) (takeover.UndoReport, error)
}

func one[T any](all []T, id string, is func(T) string) (v T, err error) {
	for _, v := range all {
		if is(v) == id {
			return v, nil
		}
	}
	return v, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no " + id}
}

func (p project) Missions(context.Context) ([]server.Mission, error) { return p.missions, nil }

func (p project) Mission(_ context.Context, id string) (server.Mission, error) {
	if id == "" && len(p.missions) > 0 {
		return p.missions[0], nil
	}
	return one(p.missions, id, func(m server.Mission) string { return m.ID })
}

func (p project) Tasks(context.Context, string) ([]server.Task, error) { return p.tasks, nil }

func (p project) Task(_ context.Context, id string) (server.Task, error) {
	return one(p.tasks, id, func(t server.Task) string { return t.ID })
}

func (p project) Sessions(context.Context, string) ([]centurion.Session, error) {
	return p.sessions, nil
}

func (p project) Session(_ context.Context, id string) (centurion.Session, error) {
	return one(p.sessions, id, func(s centurion.Session) string { return s.ID })
}

func (p project) Messages(context.Context, string) ([]server.Message, error) { return p.messages, nil }

func (p project) Receipts(context.Context, string) ([]centurion.Receipt, error) { return nil, nil }

func (p project) Asks(context.Context) ([]store.Ask, error) { return p.asks, nil }

func (p project) Undo(_ context.Context, id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
	return p.undo(id, q)
}

func mission(id string, s centurion.MissionStatus, reason string) server.Mission {
	return server.Mission{ID: id, Status: s, Reason: reason, Session: "ses_" + id}
}

// Of several tasks of an item the newest is meant that has changed something, of a session its task or its mission.
func TestWork(t *testing.T) {
	landed := []centurion.Landed{{Commit: "c1"}}
	api := project{missions: []server.Mission{mission("msn_1", centurion.MissionRunning, "")},
		tasks: []server.Task{{ID: "tsk_1", Name: "T2", Item: "T2", Landed: landed}, {ID: "tsk_2", Name: "T2", Item: "T2", Checkout: &centurion.Checkout{}},
			{ID: "tsk_3", Name: "T2", Item: "T2"}, {ID: "tsk_4", Name: "T3", Item: "T3"}},
		sessions: []centurion.Session{{ID: "ses_1", Metadata: centurion.SessionMeta{Address: "0/", Mission: "msn_1"}},
			{ID: "ses_2", Metadata: centurion.SessionMeta{Address: "0/1", Mission: "msn_1", Task: "tsk_1"}}}}
	for typed, want := range map[string]string{"t2": "tsk_2", "T3": "tsk_4", "": "msn_1", "tsk_1": "tsk_1", "0/": "msn_1", "0/1": "tsk_1"} {
		if id, err := Work(t.Context(), api, typed); id != want || err != nil {
			t.Errorf("%q is %s, %v; want %s", typed, id, err, want)
		}
	}
}

// What has ended cannot be cancelled, and what does not run cannot be paused; a mission that the next host would resume can.
func TestLivingAndToPause(t *testing.T) {
	done, paused := mission("msn_1", centurion.MissionCompleted, ""), mission("msn_2", centurion.MissionPaused, "budget")
	interrupted, running := mission("msn_3", centurion.MissionPaused, server.Interrupted), mission("msn_4", centurion.MissionRunning, "")
	api := project{missions: []server.Mission{done, paused, interrupted, running},
		tasks: []server.Task{{ID: "tsk_1", Status: centurion.TaskFailed}, {ID: "tsk_2", Status: centurion.TaskQueued}}}
	for id, living := range map[string]bool{"msn_1": false, "msn_2": true, "msn_4": true, "tsk_1": false, "tsk_2": true} {
		full, err := Living(t.Context(), api, id)
		if living && (full != id || err != nil) || !living && (full != "" || centurion.KindOf(err) != centurion.KindConflict) {
			t.Errorf("%s: %q, %v", id, full, err)
		}
	}
	for _, c := range []struct {
		missions []server.Mission
		id, want string
		hint     string
	}{
		{[]server.Mission{done, interrupted, running}, "", "msn_4", ""},
		{[]server.Mission{done, interrupted, paused}, "", "msn_3", ""},
		{[]server.Mission{interrupted}, "msn_3", "msn_3", ""},
		{[]server.Mission{done}, "", "", "centurion show msn_1"},
		{[]server.Mission{paused}, "msn_2", "", "centurion resume msn_2"},
	} {
		m, err := ToPause(t.Context(), project{missions: c.missions}, c.id)
		if c.want != "" && (m.ID != c.want || err != nil) || c.want == "" && (centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(centurion.HintOf(err), c.hint)) {
			t.Errorf("%v %q: %s, %v (%s)", c.missions, c.id, m.ID, err, centurion.HintOf(err))
		}
	}
}

// An ask is found by a unique beginning of its id. What a blocked mission waits for stands in the list once: as its questions, or as
// the mission with what it still needs.
func TestAsksOfAPerson(t *testing.T) {
	que := store.Ask{ID: "que_11", Type: store.AskQuestion, Mission: "msn_1", Text: "which?"}
	per := store.Ask{ID: "que_12", Type: store.AskPermission, Mission: "msn_2"}
	api := project{asks: []store.Ask{que, per}}
	for id, want := range map[string]string{"que_11": "que_11", "que_12": "que_12", "que_1": "", "": "", "que_2": ""} {
		if a, ok := Ask(t.Context(), api, id); ok != (want != "") || ok && a.ID != want {
			t.Errorf("%q: %s, %v", id, a.ID, ok)
		}
	}
	if a, ok := Ask(t.Context(), project{asks: []store.Ask{que}}, ""); ok {
		t.Errorf("without an id the only one is meant: %s", a.ID)
	}
	waits := "worker asks: which? (centurion answer que_11 TEXT)"
	for reason, want := range map[string]string{
		waits: "que_11, que_12",
		"worker asks: how? (centurion answer que_9 TEXT)": "que_11, que_12, msn_1: worker asks: how? (answered; continue with: centurion resume msn_1)",
		"no progress": "que_11, que_12, msn_1: no progress",
		"a asks 2 questions: x · y (" + approval.AsksHint + ")": "que_11, que_12",
	} {
		api.missions = []server.Mission{mission("msn_1", centurion.MissionBlocked, reason), mission("msn_2", centurion.MissionRunning, "")}
		all, err := Waiting(t.Context(), api)
		var got []string
		for _, a := range all {
			got = append(got, strings.TrimSuffix(a.ID+": "+a.Title, ": "))
		}
		if strings.Join(got, ", ") != want || err != nil {
			t.Errorf("%s:\n%s, %v; want\n%s", reason, got, err, want)
		}
	}
	api.missions = []server.Mission{mission("msn_1", centurion.MissionBlocked, "a asks 2 questions: x · y ("+approval.AsksHint+")")}
	api.asks = []store.Ask{{ID: "que_3", Type: store.AskQuestion, Mission: "msn_2"}} // of another one: its own are answered
	if all, err := Waiting(t.Context(), api); err != nil || len(all) != 2 || !strings.Contains(all[1].Title, "answered; continue with: centurion resume msn_1") {
		t.Errorf("%+v, %v", all, err)
	}
	api.asks = []store.Ask{que, per}
	if got := stillNeeds(mission("msn_1", centurion.MissionBlocked, waits), []store.Ask{que}); got != waits {
		t.Errorf("an open question is told as %q", got)
	}
	if Refusal(t.Context(), api, "que_12", "") != "reject" || !strings.Contains(Refusal(t.Context(), api, "que_11", "later"), "later") || RefuseQuestion(t.Context(), api, "que_12") != nil || RefuseQuestion(t.Context(), api, "que_11") == nil {
		t.Error("a question and a permission are refused alike")
	}
}

// What a task and a session were, also where the session was removed; the newest summary counts.
func TestGather(t *testing.T) {
	api := project{missions: []server.Mission{mission("msn_1", centurion.MissionRunning, "")}, tasks: []server.Task{{ID: "tsk_1", Session: "ses_1", Mission: "msn_1"}, {ID: "tsk_2", Session: "ses_9"}},
		sessions: []centurion.Session{{ID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1"}}}}
	for i, summary := range []bool{false, true, false, true, false} {
		api.messages = append(api.messages, server.Message{Info: centurion.Message{ID: fmt.Sprint("msg_", i), Summary: summary}})
	}
	if s, _, err := Gather(t.Context(), api, "tsk_1"); err != nil || s.Session == nil || len(s.Messages) != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _, err := Gather(t.Context(), api, "tsk_2"); err != nil || s.Session != nil || s.Task.ID != "tsk_2" {
		t.Errorf("with a session that was removed: %+v, %v", s, err)
	}
	used := centurion.Session{Tokens: centurion.Tokens{Input: 1, Output: 20, Reasoning: 300, Cache: centurion.CacheUsage{Read: 4000, Write: 50000}}}
	if c := countersOf(used, api.messages); c != (counters{Messages: 5, PromptTokens: 54001, CompletionTokens: 320, SummaryMessage: "msg_3"}) {
		t.Errorf("%+v", c)
	}
	api.asks = []store.Ask{{ID: "a", Mission: "msn_1", Task: "tsk_1"}, {ID: "b", Mission: "msn_2", Task: "tsk_2"}, {ID: "c", Mission: "msn_1"}}
	for status, want := range map[centurion.MissionStatus]int{centurion.MissionRunning: 1, centurion.MissionPaused: 0} {
		if got := Asking(t.Context(), api, mission("msn_1", status, "")); len(got) != want || want == 1 && !got["tsk_1"] {
			t.Errorf("%s: %v ask", status, got)
		}
	}
}

// Missions are only looked at, not undone, to find the one that is meant. A running one is not passed over for an older one; the
// redo is that of the latest undo.
func TestUndoLooks(t *testing.T) {
	at := func(sec int64) centurion.Time { return centurion.Time{Time: time.Unix(sec, 0)} }
	conflict := &centurion.Error{Kind: centurion.KindConflict, Msg: "nothing here"}
	all := []server.Mission{mission("msn_3", centurion.MissionRunning, ""), mission("msn_2", centurion.MissionCompleted, ""), mission("msn_1", centurion.MissionCompleted, "")}
	for i := range all {
		all[i].Started = at(int64(10 - i))
	}
	look := func(fails ...string) project {
		return project{missions: slices.Clone(all), undo: func(id string, q takeover.UndoRequest) (takeover.UndoReport, error) {
			if !q.DryRun {
				t.Error(id + " is undone")
			}
			if slices.Contains(fails, id) {
				return takeover.UndoReport{}, conflict
			}
			return takeover.UndoReport{Mission: id, Undone: at(map[string]int64{"msn_3": 1, "msn_2": 3, "msn_1": 2}[id])}, nil
		}}
	}
	for want, fails := range map[string][]string{"msn_3": {"msn_3"}, "msn_2 of those that have ended": {"msn_1"}} {
		api := look(fails...)
		if strings.Contains(want, "ended") {
			api.missions = api.missions[1:]
		}
		m, _, err := Undoable(t.Context(), api, takeover.UndoRequest{})
		if id, _, _ := strings.Cut(want, " "); m.ID != id || (err != nil) != (id == "msn_3") {
			t.Errorf("%s: %s, %v", want, m.ID, err)
		}
	}
	shared := look() // what is written in the person's own files reached them when it was written
	shared.missions = shared.missions[1:]
	shared.missions[0].Merged, shared.missions[1].Isolation, shared.missions[1].Updated = &centurion.Merged{Time: at(20)}, centurion.IsolationShared, at(30)
	if m, _, err := Undoable(t.Context(), shared, takeover.UndoRequest{}); m.ID != "msn_1" || err != nil {
		t.Errorf("of a merge and later shared work: %s, %v", m.ID, err)
	}
	if m, r, err := Redoable(t.Context(), look(), takeover.UndoRequest{}); m.ID != "msn_2" || r.Mission != "msn_2" || err != nil {
		t.Errorf("redo of %s, %v", m.ID, err)
	}
	if _, _, err := Redoable(t.Context(), look("msn_1", "msn_2", "msn_3"), takeover.UndoRequest{}); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("nothing to redo: %v", err)
	}
}

// Names lead to ids; one that is unknown is told with the nearest.
func TestNames(t *testing.T) {
	m := mission("msn_1", centurion.MissionRunning, "")
	m.Isolation, m.Directory, m.Branch = "worktree", "/p", "centurion/msn_1"
	api := project{missions: []server.Mission{m}, tasks: []server.Task{{ID: "tsk_1", Name: "T2", Item: "T2", Mission: "msn_1", Session: "ses_2", Status: centurion.TaskRunning},
		{ID: "tsk_2", Name: "T3", Item: "T3", Mission: "msn_1", Status: centurion.TaskQueued}},
		sessions: []centurion.Session{{ID: "ses_msn_1", Metadata: centurion.SessionMeta{Address: "0/", Mission: "msn_1"}}, {ID: "ses_2", Metadata: centurion.SessionMeta{Address: "0/1", Mission: "msn_1", Task: "tsk_1"}}}}
	conflict, usage := centurion.KindConflict, centurion.KindUsage
	for typed, want := range map[string]struct {
		id, session string
		kind        centurion.Kind // of the error of its session
		events      server.EventQuery
	}{
		"":      {"msn_1", "", usage, server.EventQuery{Mission: "msn_1"}},
		"msn_1": {"msn_1", "ses_msn_1", "", server.EventQuery{Mission: "msn_1"}},
		"t2":    {"tsk_1", "ses_2", "", server.EventQuery{Mission: "msn_1", Task: "tsk_1"}},
		"T3":    {"tsk_2", "", conflict, server.EventQuery{Mission: "msn_1", Task: "tsk_2"}},
		"0/1/":  {"ses_2", "ses_2", "", server.EventQuery{Mission: "msn_1", Session: "ses_2"}},
	} {
		if id, err := IDOrLatest(t.Context(), api, typed); id != want.id || err != nil {
			t.Errorf("%q is %s, %v", typed, id, err)
		}
		if s, err := Conversation(t.Context(), api, typed); s != want.session || centurion.KindOf(err) != want.kind {
			t.Errorf("the session of %q is %s, %v", typed, s, err)
		}
		if q, err := Events(t.Context(), api, typed); q != want.events || err != nil {
			t.Errorf("the events of %q are %+v, %v", typed, q, err)
		}
	}
	for typed, session := range map[string]string{"": "ses_msn_1", "T2": "ses_2", "0/1": "ses_2"} {
		if m, s, err := Session(t.Context(), api, typed); m != "msn_1" || s != session || err != nil {
			t.Errorf("%q: %s of %s, %v", typed, s, m, err)
		}
	}
	if _, err := ID(t.Context(), api, "T22"); centurion.KindOf(err) != usage || !strings.Contains(centurion.HintOf(err), `"T2"`) {
		t.Errorf("a misspelt name: %v (%s)", err, centurion.HintOf(err))
	}
	if id, err := ID(t.Context(), api, "0"); centurion.KindOf(err) != usage {
		t.Errorf("a number is taken for the address of %s: %v", id, err)
	}
	if _, err := ID(t.Context(), project{}, "T2"); centurion.KindOf(err) != usage {
		t.Errorf("in a project without missions: %v", err)
	}
	if _, err := Conversation(t.Context(), api, "msg_1"); centurion.KindOf(err) != usage || !strings.Contains(err.Error(), "message") {
		t.Errorf("a message: %v", err)
	}
}

// Where a task works is its checkout, the project where all share it, and nowhere before it writes or after its end.
func TestCheckout(t *testing.T) {
	own := &centurion.Checkout{Dir: "/c", Branch: "b", Start: "s"}
	for name, c := range map[string]struct {
		isolation string
		status    centurion.TaskStatus
		checkout  *centurion.Checkout
		dir, says string
	}{
		"its own":           {"worktree", centurion.TaskRunning, own, "/c", ""},
		"shared":            {"shared", centurion.TaskRunning, nil, "/p", ""},
		"not written yet":   {"worktree", centurion.TaskRunning, nil, "", "has written nothing yet"},
		"ended":             {"worktree", centurion.TaskCompleted, nil, "", "is completed: its checkout is given back"},
		"ended and blocked": {"worktree", centurion.TaskBlocked, own, "/c", ""},
	} {
		m := mission("msn_1", centurion.MissionRunning, "")
		m.Isolation, m.Directory = c.isolation, "/p"
		at, err := Checkout(t.Context(), project{missions: []server.Mission{m}, tasks: []server.Task{{ID: "tsk_1", Mission: "msn_1", Status: c.status, Checkout: c.checkout}}}, "tsk_1")
		if at.Dir != c.dir || c.says == "" && err != nil || c.says != "" && (centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %+v, %v", name, at, err)
		}
	}
	m := mission("msn_1", centurion.MissionCancelled, "")
	m.Isolation = "worktree"
	if at, err := Checkout(t.Context(), project{missions: []server.Mission{m}}, "msn_1"); centurion.KindOf(err) != centurion.KindConflict || !strings.Contains(err.Error(), "is cancelled") {
		t.Errorf("an ended mission: %+v, %v", at, err)
	}
	m = mission("msn_1", centurion.MissionRunning, "")
	m.Isolation, m.Checkout = "worktree", &centurion.Checkout{Dir: "/c", Branch: "b", Start: "s", Overlay: true}
	if at, err := Checkout(t.Context(), project{missions: []server.Mission{m}}, "msn_1"); err != nil || at != (Location{ID: "msn_1", Dir: "/c", Branch: "b", Start: "s", Overlay: true}) {
		t.Errorf("nothing is at its place yet: %+v, %v", at, err)
	}
}

// An answer to a mission, and a number that no choice has, are refused with what to do instead.
func TestAnswersThatAreNone(t *testing.T) {
	api := project{missions: []server.Mission{mission("msn_1", centurion.MissionBlocked, ""), mission("msn_2", centurion.MissionCompleted, "")}}
	for id, hint := range map[string]string{"msn_1": `centurion send msn_1 "TEXT", then: centurion resume msn_1`, "msn_2": "see what waits with: centurion asks"} {
		if err := RefuseMission(t.Context(), api, id); centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(centurion.HintOf(err), hint) {
			t.Errorf("%s: %v (%s)", id, err, centurion.HintOf(err))
		}
	}
	if err := RefuseMission(t.Context(), api, "que_1"); err != nil {
		t.Errorf("a question: %v", err)
	}
	a := store.Ask{ID: "que_1", Options: []string{"red", "blue"}}
	for answer, want := range map[string]string{"2": "blue", "RED": "red", "green": "green", "3": ""} {
		if got, err := Choice(a, answer); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", answer, got, err)
		}
	}
}

// Where looking for an undo or a redo fails, that is told and not that there is nothing.
func TestUndoLooksThatFail(t *testing.T) {
	api := project{missions: []server.Mission{mission("msn_2", centurion.MissionCompleted, ""), mission("msn_1", centurion.MissionCompleted, "")},
		undo: func(string, takeover.UndoRequest) (takeover.UndoReport, error) {
			return takeover.UndoReport{}, &centurion.Error{Kind: centurion.KindDisk, Msg: "no space"}
		}}
	if _, _, err := Undoable(t.Context(), api, takeover.UndoRequest{}); centurion.KindOf(err) != centurion.KindDisk {
		t.Errorf("undo: %v", err)
	}
	if _, _, err := Redoable(t.Context(), api, takeover.UndoRequest{}); centurion.KindOf(err) != centurion.KindDisk {
		t.Errorf("redo: %v", err)
	}
	if err := noneToUndo("nothing", nil); centurion.KindOf(err) != centurion.KindConflict || centurion.HintOf(err) == "" {
		t.Errorf("in a project without missions: %v", err)
	}
}

// What a session was given first is the text of its first message, without what else is in it.
func TestGivenFirst(t *testing.T) {
	first := server.Message{Parts: []centurion.Part{{Type: centurion.PartText, Text: "Do "}, {Type: centurion.PartReasoning, Text: "hm"}, {Type: centurion.PartText, Text: "it."}}}
	later := server.Message{Parts: []centurion.Part{{Type: centurion.PartText, Text: "More."}}}
	if got := givenTo(centurion.Session{}, []server.Message{first, later}); got.First != "Do it." || got.Files == nil {
		t.Errorf("%+v", got)
	}
}
