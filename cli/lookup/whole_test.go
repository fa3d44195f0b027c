package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/approval"
	"centurion/server"
	"centurion/store"
	"centurion/takeover"
	"centurion/tui"
)

// failing is a project whose n-th answer is an error.
type failing struct {
	project
	calls, n int
}

var errLost = errors.New("connection lost")

func fails[T any](f *failing, v T, err error) (T, error) {
	if f.calls++; f.calls == f.n {
		var none T
		return none, errLost
	}
	return v, err
}

func (f *failing) Missions(ctx context.Context) ([]server.Mission, error) {
	v, err := f.project.Missions(ctx)
	return fails(f, v, err)
}

func (f *failing) Mission(ctx context.Context, id string) (server.Mission, error) {
	v, err := f.project.Mission(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Tasks(ctx context.Context, id string) ([]server.Task, error) {
	v, err := f.project.Tasks(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Task(ctx context.Context, id string) (server.Task, error) {
	v, err := f.project.Task(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Sessions(ctx context.Context, id string) ([]centurion.Session, error) {
	v, err := f.project.Sessions(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Session(ctx context.Context, id string) (centurion.Session, error) {
	v, err := f.project.Session(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Messages(ctx context.Context, id string) ([]server.Message, error) {
	v, err := f.project.Messages(ctx, id)
	return fails(f, v, err)
}

func (f *failing) Receipts(context.Context, string) ([]centurion.Receipt, error) {
	return fails(f, []centurion.Receipt{{ID: "rcp_1", Task: "tsk_1", Mission: "msn_1"}}, nil)
}

func (f *failing) Asks(ctx context.Context) ([]store.Ask, error) {
	v, err := f.project.Asks(ctx)
	return fails(f, v, err)
}

// small is a project with one of everything.
func small() project {
	m := mission("msn_1", centurion.MissionRunning, "")
	m.Isolation, m.Directory, m.Branch = "worktree", "/p", "centurion/msn_1"
	tokens := centurion.Tokens{Input: 1, Output: 20}
	return project{missions: []server.Mission{m},
		tasks: []server.Task{{ID: "tsk_1", Name: "T2", Item: "T2", Mission: "msn_1", Session: "ses_2", Status: centurion.TaskRunning},
			{ID: "tsk_2", Name: "w7", Mission: "msn_1", Status: centurion.TaskQueued}},
		sessions: []centurion.Session{{ID: "ses_msn_1", Agent: "commander", Metadata: centurion.SessionMeta{Address: "0/", Mission: "msn_1"}},
			{ID: "ses_2", Agent: "worker", Tokens: tokens, Metadata: centurion.SessionMeta{Address: "0/1", Mission: "msn_1", Task: "tsk_1", AgentFile: "w.md", System: "You work.", Given: []centurion.Given{{Path: "context.md"}}}}},
		messages: []server.Message{{Info: centurion.Message{ID: "msg_1", Role: "user"}, Origin: centurion.OriginPerson, Prev: "msg_0", Parts: []centurion.Part{{Type: centurion.PartText, Text: "Go."}}}},
		undo:     func(string, takeover.UndoRequest) (takeover.UndoReport, error) { return takeover.UndoReport{}, nil }}
}

// Whatever cannot be read is the error of who asked for it: nothing is found in half of the rows.
func TestLostConnection(t *testing.T) {
	ctx := t.Context()
	gather := func(id string) func(server.API) error {
		return func(a server.API) error { _, _, err := Gather(ctx, a, id); return err }
	}
	by := func(find func(context.Context, server.API, string) (string, error), typed string) func(server.API) error {
		return func(a server.API) error { _, err := find(ctx, a, typed); return err }
	}
	for name, find := range map[string]func(server.API) error{
		"a task": gather("tsk_1"), "a session": gather("ses_2"), "a mission": gather("msn_1"),
		"an item": by(ID, "T2"), "an address": by(ID, "0/1"), "the latest": by(IDOrLatest, ""), "a living task": by(Living, "tsk_1"), "a living mission": by(Living, "msn_1"),
		"work": by(Work, ""), "work of a session": by(Work, "0/1"), "the talk of a mission": by(Conversation, "msn_1"), "the talk of an item": by(Conversation, "T2"), "a talk": by(Conversation, "ses_2"),
		"the session of an item": func(a server.API) error { _, _, err := Session(ctx, a, "T2"); return err },
		"the session of all":     func(a server.API) error { _, _, err := Session(ctx, a, ""); return err },
		"the events of one":      func(a server.API) error { _, err := Events(ctx, a, "0/1"); return err },
		"a pause":                func(a server.API) error { _, err := ToPause(ctx, a, ""); return err },
		"a named pause":          func(a server.API) error { _, err := ToPause(ctx, a, "msn_1"); return err },
		"a place":                func(a server.API) error { _, err := Checkout(ctx, a, "tsk_1"); return err },
		"what waits":             func(a server.API) error { _, err := Waiting(ctx, a); return err },
		"an undo":                func(a server.API) error { _, _, err := Undoable(ctx, a, takeover.UndoRequest{}); return err },
		"a redo":                 func(a server.API) error { _, _, err := Redoable(ctx, a, takeover.UndoRequest{}); return err },
		"no question":            func(a server.API) error { return keep(RefuseMission(ctx, a, "msn_1")) },
	} {
		whole := &failing{project: small()}
		_ = find(whole)
		for n := 1; n <= whole.calls; n++ {
			if err := find(&failing{project: small(), n: n}); !errors.Is(err, errLost) {
				t.Errorf("%s, call %d: %v", name, n, err)
			}
		}
		if whole.calls == 0 {
			t.Errorf("%s asks for nothing", name)
		}
	}
	api := &failing{project: small(), n: 1}
	api.asks = []store.Ask{{ID: "a", Mission: "msn_1", Task: "tsk_1"}}
	if got := Asking(ctx, api, api.missions[0]); got != nil {
		t.Errorf("who asks cannot be read, and is %v", got)
	}
	if a, ok := Ask(ctx, &failing{project: api.project, n: 1}, "a"); ok {
		t.Errorf("an ask that cannot be read: %+v", a)
	}
}

// keep drops the usual answer of RefuseMission.
func keep(err error) error {
	if centurion.KindOf(err) == centurion.KindUsage {
		return nil
	}
	return err
}

// What a script reads of a task, a session and a mission is all that there is.
func TestGatherWhole(t *testing.T) {
	encoded := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	p := small()
	api := &failing{project: p}
	task, session, hash := encoded(p.tasks[0]), encoded(p.sessions[1]), tui.PromptHash("You work.")
	given := `"given":{"agent":"worker","agent_file":"w.md","system":"You work.","system_sha256":"` + hash + `","files":` + encoded(p.sessions[1].Metadata.Given) + `,"first":"Go."}`
	messages := `"messages":` + encoded(p.messages) + "}"
	none := encoded(p.tasks[1])
	own, total := centurion.SpentBy("ses_2", p.missions[0].Noun(), p.sessions, Tasks(p.tasks))
	for id, want := range map[string]string{
		"tsk_1": task[:len(task)-1] + "," + given + "," + messages,
		"tsk_2": none[:len(none)-1] + `,"messages":[]}`,
		"ses_2": session[:len(session)-1] + `,"own":` + encoded(own) + `,"total":` + encoded(total) + `,"counters":{"messages":1,"prompt_tokens":1,"completion_tokens":20},` + given + "," + messages,
		"msn_1": strings.TrimSuffix(encoded(p.missions[0]), "}") + `,"board":` + encoded(p.tasks) + `,"receipts":` + encoded([]centurion.Receipt{{ID: "rcp_1", Task: "tsk_1", Mission: "msn_1"}}) + `,"sessions":` + encoded(p.sessions) + "}",
	} {
		shown, object, err := Gather(t.Context(), api, id)
		if got := encoded(object); err != nil || got != want {
			t.Errorf("%s: %v\n%s, want\n%s", id, err, got, want)
		}
		kind, _, _ := strings.Cut(id, "_")
		if (shown.Task != nil) != (kind == "tsk") || (shown.Session != nil) != (kind == "ses" || id == "tsk_1") || (shown.Mission != nil) != (kind == "msn") {
			t.Errorf("%s shows %+v", id, shown)
		}
		if kind == "msn" && (len(shown.Tasks) != 2 || len(shown.Receipts) != 1 || len(shown.Sessions) != 2) || kind == "ses" && len(shown.Messages) != 1 || kind == "ses" && encoded(shown.Own) != encoded(own) {
			t.Errorf("%s shows %+v", id, shown)
		}
	}
	if m := Messages(p.messages); len(m) != 1 || m[0].ID != "msg_1" || m[0].Prev != "msg_0" || m[0].Origin != centurion.OriginPerson || len(m[0].Parts) != 1 {
		t.Errorf("%+v", m)
	}
	if g := givenTo(centurion.Session{}, nil); g.First != "" || encoded(g.Files) != "[]" {
		t.Errorf("of an empty session: %+v", g)
	}
}

// saidOf is an error with what it is about and its hint.
func saidOf(_ any, err error) string {
	return fmt.Sprintf("%v | %s | %s", err, centurion.KindOf(err), centurion.HintOf(err))
}

// What cannot be found or done is said with its name and the next step.
func TestRefusalsWhole(t *testing.T) {
	ctx, api := t.Context(), small()
	api.asks = []store.Ask{{ID: "que_1", Type: store.AskQuestion, Text: strings.Repeat("x", 90), Options: []string{"red"}}}
	ended := mission("msn_2", centurion.MissionCompleted, "")
	ended.Isolation, ended.Branch = "worktree", "centurion/msn_2"
	api.missions = append(api.missions, ended)
	const ids = " | ids begin with msn_, tsk_ or ses_; see: centurion ps, centurion tasks"
	for i, c := range [][2]string{
		{saidOf(ID(ctx, api, "zzzzzz")), `find: "zzzzzz" is not the id of a mission, task or session, nor an item or an address of mission msn_1 | usage` + ids},
		{saidOf(ID(ctx, api, "0/11")), `find: "0/11" is not the id of a mission, task or session, nor an item or an address of mission msn_1 | usage | did you mean "0/1"? See also: centurion tasks`},
		{saidOf(ID(ctx, project{}, "T2")), `find: "T2" is not the id of a mission, task or session | usage` + ids},
		{saidOf(IDOrLatest(ctx, project{}, "")), "there is no  | not_found | "},
		{saidOf(Conversation(ctx, api, "x_1")), `"x_1" is not the id of a mission, task or session | usage` + ids},
		{saidOf(Conversation(ctx, api, "tsk_2")), "tsk_2 has no conversation yet: it is queued | conflict | see: centurion show tsk_2"},
		{saidOf(Conversation(ctx, api, "msg_1")), "msg_1 is a message, not a session | usage | name its session, and the message with --at or --to; see: centurion show --tree 0/"},
		{saidOf(Living(ctx, api, "msn_2")), "msn_2 is completed already | conflict | see: centurion show msn_2"},
		{saidOf(ToPause(ctx, api, "msn_2")), "pause: mission msn_2 is completed already | conflict | see: centurion show msn_2"},
		{saidOf(Checkout(ctx, api, "msn_2")), "path: msn_2 is completed: its checkout is given back, and what was merged is on the branch centurion/msn_2 | conflict | look at it with: git log centurion/msn_2; what was not merged: git branch --list 'centurion/msn_2/*'"},
		{saidOf(Checkout(ctx, api, "tsk_1")), "path: tsk_1 has written nothing yet and has no checkout | conflict | it gets one when it first writes; until then it reads the branch centurion/msn_1"},
		{saidOf(nil, RefuseMission(ctx, api, "msn_2")), "answer: msn_2 is a mission, not a question | usage | see what waits with: centurion asks"},
		{saidOf(nil, RefuseQuestion(ctx, api, "que_1")), "que_1 asks no permission, but: " + centurion.Clip(api.asks[0].Text, 80) + " | usage | answer it with: centurion answer que_1 TEXT"},
		{saidOf(nil, RefuseQuestion(ctx, api, "per_1")), "<nil> |  | "},
		{saidOf(Choice(api.asks[0], "2")), "answer que_1: " + approval.NoChoice([]string{"red"}, "2").Error() + " | usage | see them with: centurion asks; or answer in words of your own"},
	} {
		if c[0] != c[1] {
			t.Errorf("%d: got\n%s\nwant\n%s", i, c[0], c[1])
		}
	}
	if _, object, err := Gather(ctx, api, "x_1"); object != nil || saidOf(nil, err) != `show: "x_1" is not the id of a mission, task or session | usage`+ids {
		t.Errorf("%v", err)
	}
}

// A unique beginning of an id is enough; what a person does not answer is told as that; an item is its last work that was merged.
func TestFoundWhole(t *testing.T) {
	ctx, api := t.Context(), small()
	api.asks = []store.Ask{{ID: "que_11", Type: store.AskQuestion}, {ID: "que_1", Type: store.AskPlan}, {ID: "per_12", Type: store.AskPermission}}
	for id, want := range map[string]string{"per": "per_12", "que_1": "que_1", "que": "", "que_12": "", "xque_1": ""} {
		if a, ok := Ask(ctx, api, id); ok != (want != "") || ok && a.ID != want {
			t.Errorf("%q: %q, %t", id, a.ID, ok)
		}
	}
	for id, want := range map[string]string{"que_11": event.NoAnswer + " later", "per_12": approval.Refusal("later"), "zzz": approval.Refusal("later")} {
		if got := Refusal(ctx, api, id, "later"); got != want {
			t.Errorf("%s is refused with %q, want %q", id, got, want)
		}
	}
	api.tasks = []server.Task{{ID: "tsk_1", Item: "T2", Landed: []centurion.Landed{{Commit: "c"}}}, {ID: "tsk_2", Item: "T2"}}
	for typed, want := range map[string]string{"T2": "tsk_1", "tsk_2": "tsk_2"} {
		if id, err := Work(ctx, api, typed); id != want || err != nil {
			t.Errorf("the work of %s is %s, %v", typed, id, err)
		}
	}
	stale := api.sessions[1]
	stale.Tokens = centurion.Tokens{}
	if s, err := account(ctx, &failing{project: api}, stale); err != nil || s.Session.Tokens != api.sessions[1].Tokens {
		t.Errorf("a session that was read before its mission: %+v, %v", s.Session, err)
	}
}

// A blocked mission is listed with its conversation, and its reason as it stands where that names no question.
func TestBlockedWhole(t *testing.T) {
	m := mission("msn_1", centurion.MissionBlocked, "a asks 2 questions: x ("+approval.AsksHint+")")
	api := project{missions: []server.Mission{m}, asks: []store.Ask{{ID: "per_1", Type: store.AskPermission, Mission: "msn_1"}}}
	got, err := Waiting(t.Context(), api)
	want := store.Ask{ID: "msn_1", Type: BlockedMission, Mission: "msn_1", Session: "ses_msn_1", Title: "a asks 2 questions: x (answered; continue with: centurion resume msn_1)"}
	if err != nil || len(got) != 2 || fmt.Sprint(got[1]) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, reason := range []string{"no (centurion answer que_1", "no que_1 TEXT)"} {
		if m.Reason = reason; stillNeeds(m, nil) != reason {
			t.Errorf("%q is told as %q", reason, stillNeeds(m, nil))
		}
	}
	for status, read := range map[centurion.MissionStatus]bool{centurion.MissionRunning: true, centurion.MissionBlocked: false, centurion.MissionCompleted: false} {
		if IsRead(t.Context(), project{missions: []server.Mission{mission("msn_1", status, "")}}, "msn_1") != read {
			t.Errorf("an answer to a %s mission is read: %t", status, !read)
		}
	}
	if IsRead(t.Context(), &server.Local{}, "msn_1") {
		t.Error("without a host nobody reads an answer")
	}
}

// Of several missions none of which can be undone the first one's error is the cause; a single one's own error says all.
func TestNothingToUndoWhole(t *testing.T) {
	conflict := func(id string) error { return &centurion.Error{Kind: centurion.KindConflict, Msg: id + " has nothing"} }
	api := project{undo: func(id string, _ takeover.UndoRequest) (takeover.UndoReport, error) {
		return takeover.UndoReport{}, conflict(id)
	}}
	undo := func() string {
		_, _, err := Undoable(t.Context(), api, takeover.UndoRequest{})
		return saidOf(nil, err)
	}
	redo := func() string {
		_, _, err := Redoable(t.Context(), api, takeover.UndoRequest{})
		return saidOf(nil, err)
	}
	for n, want := range [][2]string{
		{"no mission here has changes to revert | conflict | see: centurion ps", "no mission here has a reverted change | conflict | see: centurion ps"},
		{"msn_0 has nothing | conflict | ", "msn_0 has nothing | conflict | "},
		{"no mission here has changes to revert: msn_0 has nothing | conflict | see: centurion ps", "no mission here has a reverted change: msn_0 has nothing | conflict | see: centurion ps"},
	} {
		if api.missions = api.missions[:0]; n > 0 {
			for i := range n {
				api.missions = append(api.missions, mission(fmt.Sprint("msn_", i), centurion.MissionCompleted, ""))
			}
		}
		if undo() != want[0] || redo() != want[1] {
			t.Errorf("%d missions:\n%s\n%s, want\n%s", n, undo(), redo(), want)
		}
	}
}
