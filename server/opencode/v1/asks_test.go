package v1

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/server"
	"centurion/store"
)

// A choice is answered with the word that the host knows; anything else is what the person wrote, and nothing is an answer, too.
func TestSpoken(t *testing.T) {
	plan, allow := store.Ask{Type: store.AskPlan}, store.Ask{Type: store.AskPermission}
	question := store.Ask{Type: store.AskQuestion, Options: []string{"A", "B"}}
	for _, c := range []struct {
		name  string
		ask   store.Ask
		given [][]string
		want  string
	}{
		{"a plan is run", plan, [][]string{{"Run it"}}, "run"},
		{"a plan is left", plan, [][]string{{"Not now"}}, "quit"},
		{"allowed", allow, [][]string{{"Allow once"}}, "once"},
		{"always", allow, [][]string{{"Always allow"}}, "always"},
		{"refused", allow, [][]string{{"Reject"}}, "reject"},
		{"a choice", question, [][]string{{"B"}}, "B"},
		{"of their own", question, [][]string{{"C"}}, "C"},
		{"more than one", question, [][]string{{"A"}, {"B"}}, "A, B"},
		{"a choice and more", plan, [][]string{{"Run it", "but later"}}, "Run it, but later"},
		{"nothing", question, [][]string{{}}, event.NoAnswer},
		{"no list", question, nil, event.NoAnswer},
	} {
		if got := spoken(c.ask, c.given); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// answered notes what was answered instead of handing it on.
type answered struct {
	server.API
	said *[]string
}

func (a answered) Answer(_ context.Context, id, answer string) error {
	*a.said = append(*a.said, id+" "+answer)
	return nil
}

// Each ask has the dialog that shows all of it, and each way to answer reaches the host with the word that it understands.
func TestAskRoutes(t *testing.T) {
	x := newRig(t)
	var said []string
	api := x.project.API()
	x.answers(answered{api, &said})
	call := store.Ask{ID: "per_call", Type: store.AskPermission, Message: "msg_1", Call: "c1", Permission: "bash", Patterns: []string{"rm x"}}
	check := store.Ask{ID: "per_check", Type: store.AskPermission, Permission: "bash", Patterns: []string{"make"}}
	plan := store.Ask{ID: "per_plan", Type: store.AskPlan, Text: "the plan"}
	question := store.Ask{ID: "que_1", Type: store.AskQuestion, Text: "which?", Options: []string{"A", "B"}}
	for _, a := range []store.Ask{call, check, plan, question} {
		a.Mission, a.Session = x.mission.ID, x.root.ID
		x.fact(centurion.EventPermissionAsked, a.Session, "", event.AskData{ID: a.ID, Type: a.Type}, func(tx *store.Tx) error { return tx.PutAsk(&a) })
	}
	ids := func(path string) (ids []string) {
		var list []struct{ ID string }
		if status, body := x.ask("GET", path, ""); status != 200 || json.Unmarshal([]byte(body), &list) != nil {
			t.Errorf("%s: %d %s", path, status, body)
		}
		for _, a := range list {
			ids = append(ids, a.ID)
		}
		slices.Sort(ids)
		return ids
	}
	if got := ids("/permission"); !slices.Equal(got, []string{"per_call"}) {
		t.Errorf("permissions: %s", got)
	}
	if got := ids("/question"); !slices.Equal(got, []string{"que_1", "que_check", "que_plan"}) {
		t.Errorf("questions: %s", got)
	}
	for _, c := range []struct {
		path, body, want string
		status           int
	}{
		{"/permission/per_call/reply", `{"reply":"once"}`, "per_call once", 200},
		{"/permission/per_call/reply", `{"reply":"reject","message":"use trash"}`, "per_call use trash", 200},
		{"/permission/per_call/reply", `{"reply":"reject"}`, "per_call reject", 200},
		{"/permission/per_check/reply", `{"reply":"once"}`, "", 404},
		{"/session/" + x.root.ID + "/permissions/per_call", `{"response":"always"}`, "per_call always", 200},
		{"/session/" + x.root.ID + "/permissions/per_call", `{"response":"maybe"}`, "", 400},
		{"/question/que_check/reply", `{"answers":[["Allow once"]]}`, "per_check once", 200},
		{"/question/que_plan/reply", `{"answers":[["Run it"]]}`, "per_plan run", 200},
		{"/question/que_1/reply", `{"answers":[["B"]]}`, "que_1 B", 200},
		{"/question/que_1/reply", `{"answers":3}`, "", 400},
		{"/question/que_call/reply", `{"answers":[["Allow once"]]}`, "", 404},
		{"/question/que_check/reject", ``, "per_check reject", 200},
		{"/question/que_plan/reject", ``, "per_plan quit", 200},
		{"/question/que_1/reject", ``, "que_1 " + event.NoAnswer, 200},
		{"/question/que_2/reject", ``, "", 404},
	} {
		said = nil
		status, body := x.ask("POST", c.path, c.body)
		if got := strings.Join(said, ", "); got != c.want || status != c.status {
			t.Errorf("%s %s: answered %q with %d %s", c.path, c.body, got, status, body)
		}
	}
}

// ending is a host that cannot end a session.
type ending struct {
	server.API
	err error
}

func (e ending) Abort(context.Context, string, string) error { return e.err }

// An abort where nothing runs is none; any other failure is told.
func TestAbortOfNothing(t *testing.T) {
	x := newRig(t)
	api := x.project.API()
	_, body := x.ask("POST", "/session", `{"agent":"assistant"}`)
	var fresh struct{ ID string }
	if err := json.Unmarshal([]byte(body), &fresh); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		session string
		kind    centurion.Kind
		status  int
	}{
		{x.root.ID, "", 200}, {x.root.ID, centurion.KindConflict, 200}, {x.root.ID, centurion.KindState, 500}, {fresh.ID, centurion.KindNotFound, 200},
	} {
		e := ending{API: api}
		if c.kind != "" {
			e.err = &centurion.Error{Kind: c.kind, Msg: "no"}
		}
		x.answers(e)
		if status, body := x.ask("POST", "/session/"+c.session+"/abort", ""); status != c.status {
			t.Errorf("%s: %d %s", c.kind, status, body)
		}
	}
}
