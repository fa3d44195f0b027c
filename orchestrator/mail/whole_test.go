package mail

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
	"centurion/store"
)

// whole is a result as JSON, or a whole error as its sender sees it.
func whole(got any, err error) string {
	if err != nil {
		return string(centurion.KindOf(err)) + ": " + err.Error() + " | " + centurion.HintOf(err)
	}
	b, _ := json.Marshal(got)
	return string(b)
}

// alter changes the mission, a session or a task of a team.
func alter(t *testing.T, st *store.Store, mission func(*centurion.Mission), others ...func(tx *store.Tx) error) {
	t.Helper()
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		m, err := tx.Mission("msn_1")
		if mission != nil {
			mission(&m)
		}
		err = errors.Join(err, tx.PutMission(&m))
		for _, f := range others {
			err = errors.Join(err, f(tx))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// working are the sessions of a mission that is being worked on.
func working(t *testing.T) *agent.Sessions {
	ctx, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	return agent.New(state.New(ctx, end, nil, centurion.Mission{}, nil), nil, nil, nil, nil, agent.Config{}, agent.Above{})
}

// What a sender is told: where a message was stored, or why it was not and what would help.
func TestWhatASenderIsTold(t *testing.T) {
	t.Parallel()
	const reads = `,"agent":"worker"`
	ended := func(m *centurion.Mission) { m.Status = centurion.MissionCancelled }
	alone := func(m *centurion.Mission) { m.Options.Profile = agents.ProfileAssistant }
	st := team(t)
	alter(t, st, nil, func(tx *store.Tx) error {
		return tx.PutDelivery(&store.Delivery{ID: "del_0", Mission: "msn_1", Session: "ses_0", Text: "another"})
	})
	for name, c := range map[string]struct {
		post    Post
		mission func(*centurion.Mission)
		busy    bool
		want    string
	}{
		"to the mission's own agent": {Post{To: "msn_1", Text: "x"}, nil, false, `{"id":"del_1","mission":"msn_1","status":"paused","session":"ses_0","address":"0/"` + reads + `,"working":false}`},
		"to one at work":             {Post{To: "ses_2", Text: "x"}, nil, true, `{"id":"del_1","mission":"msn_1","status":"paused","session":"ses_2","address":"0/2"` + reads + `,"task":"tsk_2","state":"queued","working":true}`},
		"to a task without a session": {Post{Mission: "msn_1", To: "T7", Text: "x"}, nil, false,
			`{"id":"del_1","mission":"msn_1","status":"paused","agent":"","task":"tsk_8","state":"queued","working":false}`},
		"empty": {Post{To: "msn_1", Text: " \n"}, nil, false, `usage: send: the message is empty | say what the agent should know: centurion send 0/ "use PostgreSQL"`},
		"too long": {Post{To: "msn_1", Text: strings.Repeat("a", MaxPost+1)}, nil, false,
			`usage: send: the message is longer than 256 KB | put the details into a file of the project and name it in the message`},
		"to a task that has ended": {Post{To: "ses_1", Text: "x"}, nil, false,
			`conflict: send: 0/1 (worker) has ended: its task is completed | write to the Commander: centurion send 0/ --mission msn_1 "TEXT"`},
		"to a mission that has ended":  {Post{To: "msn_1", Text: "x"}, ended, false, `conflict: send: mission msn_1 is cancelled: nobody reads what is written to it | start another one: centurion run "GOAL"`},
		"a note to a mission that has": {Post{To: "msn_1", Text: "x", NoReply: true}, ended, false, `conflict: send: mission msn_1 is cancelled: nobody reads what is written to it | start another one: centurion run "GOAL"`},
		"an id that another has": {Post{ID: "del_0", To: "msn_1", Text: "x"}, nil, false,
			`usage: send: another message has the id del_0 | give each message an id of its own, or none`},
		"an agent for a task that has not begun": {Post{To: "tsk_8", Text: "x", Agent: "worker"}, nil, false, "conflict: send: the task has not begun, and takes no agent and no model | leave them out"},
		"another agent": {Post{To: "msn_1", Text: "x", Agent: "planner"}, nil, false,
			"conflict: send: this session is one of worker, and not of planner | begin another session with that agent, or copy this one: centurion fork ses_0"},
		"another agent for a task": {Post{To: "ses_2", Text: "x", Agent: "planner"}, alone, false,
			"conflict: send: this session is one of worker, and not of planner | begin another session with that agent, or copy this one: centurion fork ses_2"},
		"another agent for a note": {Post{To: "msn_1", Text: "x", Agent: "planner", NoReply: true}, alone, false,
			"conflict: send: this session is one of worker, and not of planner | begin another session with that agent, or copy this one: centurion fork ses_0"},
		"another model for a task": {Post{To: "ses_2", Text: "x", Model: "p/m3"}, nil, false, "conflict: send: the model cannot change: a task keeps its own | leave the model as it is"},
		"its own agent and model": {Post{To: "ses_2", Text: "x", Agent: "WORKER", Model: "p/m2"}, nil, false,
			`{"id":"del_1","mission":"msn_1","status":"paused","session":"ses_2","address":"0/2"` + reads + `,"task":"tsk_2","state":"queued","working":false}`},
		"words behind the word": {Post{To: "msn_1", Text: "/compact now"}, nil, false, "usage: send: /compact takes no text behind it | send /compact alone, and what the agent should know in a message of its own"},
		"the word to nobody":    {Post{Mission: "msn_1", To: "0/22", Text: " /compact "}, nil, false, `not_found: compact: mission msn_1 has no agent "0/22"; you can write to 0/ (worker), 0/2 (worker), 0/3 (worker), 0/4 (worker), 0/5 (worker), 0/6 (worker), 1 other | did you mean "0/2"?`},
		"to nobody near":        {Post{Mission: "msn_1", To: "somebody", Text: "x"}, nil, false, `not_found: send: mission msn_1 has no agent "somebody"; you can write to 0/ (worker), 0/2 (worker), 0/3 (worker), 0/4 (worker), 0/5 (worker), 0/6 (worker), 1 other | see: centurion tasks msn_1`},
		"the word to one without a conversation": {Post{To: "tsk_8", Text: "/compact"}, nil, false,
			"conflict: compact session: task tsk_8 has no conversation yet | it begins with a short one; see: centurion tasks msn_1"},
		"the word to a task that has ended": {Post{To: "ses_1", Text: "/compact"}, nil, false,
			`conflict: compact: 0/1 (worker) has ended: its task is completed | write to the Commander: centurion send 0/ --mission msn_1 "TEXT"`},
		"the word to a short one": {Post{To: "ses_2", Text: "/compact"}, nil, true,
			`{"id":"del_1","mission":"msn_1","status":"paused","session":"ses_2","address":"0/2"` + reads + `,"task":"tsk_2","state":"queued","working":true,"compact":true,"short":true}`},
		"the word of an agent": {Post{To: "ses_2", Text: "/compact", Origin: centurion.OriginParent}, nil, false,
			`{"id":"del_1","mission":"msn_1","status":"paused","session":"ses_2","address":"0/2"` + reads + `,"task":"tsk_2","state":"queued","working":false}`},
	} {
		alter(t, st, func(m *centurion.Mission) { // as the case before found it
			m.Status, m.Options.Profile = centurion.MissionPaused, ""
			if c.mission != nil {
				c.mission(m)
			}
		})
		var busy *agent.Sessions
		if c.busy {
			busy = working(t)
		}
		d := New(st, nil, func(string) *agent.Sessions { return busy })
		c.post.ID = cmp.Or(c.post.ID, "del "+name)
		if got := strings.ReplaceAll(whole(d.Send(t.Context(), c.post)), "del "+name, "del_1"); got != c.want {
			t.Errorf("%s:\n%s; want\n%s", name, got, c.want)
		}
	}
}

// A message is stored with all that its sender gave, and the journal tells all but the parts. The same id with the same text is the same message.
func TestStoredWhole(t *testing.T) {
	t.Parallel()
	st := team(t)
	pdf := centurion.File{Mime: centurion.MimePDF, Path: "a.pdf", Data: []byte("%PDF-1.4\n")}
	model := func(string) (agent.Model, error) { return agent.Model{Media: centurion.Media{PDF: true}}, nil }
	d := New(st, model, func(string) *agent.Sessions { return working(t) })
	p := Post{ID: "del_1", To: "ses_2", Text: strings.Repeat("é", 2000) + "end", Files: []centurion.File{pdf}, Parts: []centurion.Part{{Type: centurion.PartText, Text: "more"}, {Type: centurion.PartFile, File: &pdf}},
		Queue: true, Origin: centurion.OriginParent, Agent: "worker", Rest: true}
	for range 2 {
		if _, err := d.Send(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	all, err := st.Deliveries(t.Context(), "msn_1")
	if err != nil || len(all) != 1 || all[0].Created.IsZero() {
		t.Fatalf("%+v, %v", all, err)
	}
	want := store.Delivery{ID: "del_1", Mission: "msn_1", Session: "ses_2", Wake: true, Created: all[0].Created, Text: p.Text, Origin: p.Origin, Queue: true, Rest: true, Files: p.Files, Parts: p.Parts}
	if got, want := whole(all[0], nil), whole(want, nil); got != want {
		t.Errorf("stored\n%s; want\n%s", got, want)
	}
	told, err := st.Events(t.Context(), store.EventQuery{Mission: "msn_1"})
	if err != nil || len(told) != 1 || told[0].Type != centurion.EventMessageQueued || told[0].Session != "ses_2" || told[0].Task != "tsk_2" {
		t.Fatalf("%+v, %v", told, err)
	}
	const head, tail = `{"id":"del_1","address":"0/2","origin":"parent","queue":true,"text":"éé`, `é…","files":["PDF a.pdf","PDF a.pdf"]}`
	if got := string(told[0].Data); !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
		t.Errorf("told …%s", got[len(got)-100:])
	}
	p.Text = "another"
	if _, err := d.Send(t.Context(), p); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("another message of this id: %v", err)
	}
}

// A message that wants no answer is in its conversation at once, unless that is at work; what is reverted of it is forgotten before.
func TestNote(t *testing.T) {
	t.Parallel()
	st := team(t)
	alter(t, st, nil, func(tx *store.Tx) error {
		return tx.PutSession(&centurion.Session{ID: "ses_new", Agent: "worker"}) // opened, without a mission
	})
	var busy *agent.Sessions
	var did []string
	d := New(st, nil, func(string) *agent.Sessions { return busy })
	d.Hold = func(mission string) (bool, func()) {
		did = append(did, "hold "+mission)
		return busy != nil, func() { did = append(did, "release") }
	}
	d.Forget = func(_ context.Context, mission string) error { did = append(did, "forget "+mission); return nil }
	for _, c := range []struct {
		name, to string
		status   centurion.MissionStatus
		profile  string
		busy     *agent.Sessions
		said     string // in the conversation
		waits    int    // for it
		did      string
	}{
		{"at rest", "ses_0", centurion.MissionPaused, "", nil, "at rest", 0, "hold msn_1 forget msn_1 release"},
		{"at work", "ses_0", centurion.MissionRunning, "", working(t), "", 1, "hold msn_1 release"},
		{"interrupted", "ses_0", centurion.MissionRunning, "", nil, "interrupted", 0, "hold msn_1 forget msn_1 release"},
		{"being stopped", "ses_0", centurion.MissionPaused, "", working(t), "being stopped", 0, "hold msn_1 release"},
		{"no session yet", "tsk_8", centurion.MissionPaused, "", nil, "", 1, "hold msn_1 forget msn_1 release"},
		{"a complete run", "ses_0", centurion.MissionCompleted, agents.ProfileAssistant, nil, "a complete run", 0, "hold msn_1 forget msn_1 release"},
		{"opened", "ses_new", centurion.MissionPaused, "", nil, "opened", 0, "hold  forget  release"},
	} {
		busy, did = c.busy, nil
		alter(t, st, func(m *centurion.Mission) { m.Status, m.Options.Profile = c.status, c.profile })
		waited, err := st.Deliveries(t.Context(), "msn_1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := d.Send(t.Context(), Post{ID: "msg_" + c.name, To: c.to, Text: c.name, NoReply: true})
		if err != nil || got.ID != "msg_"+c.name || got.Working != (c.busy != nil) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		messages, err := st.Messages(t.Context(), c.to)
		said := ""
		if n := len(messages); err == nil && n > 0 && messages[n-1].ID == "msg_"+c.name && messages[n-1].Origin == centurion.OriginPerson {
			said = messages[n-1].Text()
		}
		now, derr := st.Deliveries(t.Context(), "msn_1")
		m, merr := st.Mission(t.Context(), "msn_1")
		if errors.Join(err, derr, merr) != nil || said != c.said || len(now)-len(waited) != c.waits || strings.Join(did, " ") != c.did || m.Status != c.status {
			t.Errorf("%s: said %q, %d more wait, did %q, the mission is %s; %v, %v", c.name, said, len(now)-len(waited), did, m.Status, err, derr)
		}
		if _, err := d.Send(t.Context(), Post{ID: "msg_" + c.name, To: c.to, Text: "again", NoReply: true}); centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("%s: its id is taken twice: %v", c.name, err)
		}
	}
	no := errors.New("no")
	d.Forget = func(context.Context, string) error { return no }
	busy = nil
	if _, err := d.Send(t.Context(), Post{To: "ses_0", Text: "x", NoReply: true}); !errors.Is(err, no) {
		t.Errorf("it was stored although the rest could not be forgotten: %v", err)
	}
}

// In the profile assistant a message may name another agent, which brings its own model unless the message names one. What the session has
// already is no change.
func TestAnotherAgent(t *testing.T) {
	t.Parallel()
	st := team(t)
	alter(t, st, func(m *centurion.Mission) { m.Options.Profile = agents.ProfileAssistant }, func(tx *store.Tx) error {
		s, err := tx.Session("ses_0")
		s.Model = &centurion.SessionModel{Provider: "p", ID: "m0"}
		return errors.Join(err, tx.PutSession(&s))
	})
	d := New(st, func(ref string) (agent.Model, error) {
		provider, id, _ := strings.Cut(ref, "/")
		return agent.Model{Ref: centurion.ModelRef{Provider: provider, ID: id}}, nil
	}, func(string) *agent.Sessions { return working(t) })
	d.Agent = func(profile, name string) (agents.Agent, error) {
		if profile != agents.ProfileAssistant || name == "nobody" {
			return agents.Agent{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "unknown"}
		}
		a := agents.Agent{Name: strings.ToUpper(name)}
		if name == "own" {
			a.Model = "q/own"
		}
		return a, nil
	}
	for _, c := range []struct{ agent, model, want string }{
		{"own", "", "OWN q/own"}, {"own", "q/mine", "OWN q/mine"}, {"other", "", "OTHER "}, {"other", "q/mine", "OTHER q/mine"},
		{"Worker", "", "worker "}, {"", "q/mine", " q/mine"}, {"worker", "p/m0", "worker p/m0"}, {"", "", " "}, {"nobody", "", "usage: unknown | "},
	} {
		p := Post{ID: "del_" + c.agent + c.model, To: "ses_0", Text: "x", Agent: c.agent, Model: c.model}
		got := whole(d.Send(t.Context(), p))
		if all, err := st.Deliveries(t.Context(), "msn_1"); err == nil && len(all) > 0 && all[len(all)-1].ID == p.ID {
			got = all[len(all)-1].Agent + " " + all[len(all)-1].Model
		}
		if got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.agent, c.model, got, c.want)
		}
	}
}

// A run of the assistant goes on with each message after it was complete, but not after it was cancelled or has failed. One that was paused
// goes on for who waits for an answer.
func TestContinues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile        string
		status         centurion.MissionStatus
		reason         string
		continues, goe bool
	}{
		{agents.ProfileAssistant, centurion.MissionCompleted, "", true, true},
		{agents.ProfileAssistant, centurion.MissionPaused, ErrUnread.Msg, true, true},
		{agents.ProfileAssistant, centurion.MissionPaused, "stopped", false, true},
		{agents.ProfileAssistant, centurion.MissionRunning, ErrUnread.Msg, false, false},
		{agents.ProfileAssistant, centurion.MissionCancelled, "", false, false},
		{agents.ProfileAssistant, centurion.MissionFailed, "", false, false},
		{"", centurion.MissionCompleted, "", false, false},
		{"", centurion.MissionPaused, ErrUnread.Msg, false, false},
	} {
		m := centurion.Mission{Status: c.status, Reason: c.reason, Options: centurion.MissionOptions{Profile: c.profile}}
		if Continues(m) != c.continues || GoesOn(m) != c.goe {
			t.Errorf("%+v: %t, %t", c, Continues(m), GoesOn(m))
		}
	}
}

// A mission cannot be complete while its Commander has not read a person's message that wants an answer.
func TestUnread(t *testing.T) {
	t.Parallel()
	st := team(t)
	for i, c := range []struct {
		store.Delivery
		unread bool
	}{
		{store.Delivery{Session: "ses_0", Task: "tsk_1", Origin: centurion.OriginPerson}, false},
		{store.Delivery{Session: "ses_0", Origin: centurion.OriginPerson, NoReply: true}, false},
		{store.Delivery{Session: "ses_0", Origin: centurion.OriginParent}, false},
		{store.Delivery{Session: "ses_2", Origin: centurion.OriginPerson}, false},
		{store.Delivery{Session: "ses_0", Origin: centurion.OriginPerson, Taken: centurion.Now()}, false},
		{store.Delivery{Session: "ses_0", Origin: centurion.OriginPerson, Queue: true}, true},
	} {
		c.ID, c.Mission = string(rune('a'+i)), "msn_1"
		var all error
		alter(t, st, nil, func(tx *store.Tx) error {
			err := tx.PutDelivery(&c.Delivery)
			all = AllRead(tx, "ses_0")
			return err
		})
		if has := HasUnread(t.Context(), st, "ses_0"); has != c.unread || errors.Is(all, ErrUnread) != c.unread {
			t.Errorf("%+v: %t, %v", c.Delivery, has, all)
		}
	}
}

// Whether a message's agent fits is not known of a session that cannot be read, and the message is refused.
func TestAgentOfAnUnreadableSession(t *testing.T) {
	t.Parallel()
	d := New(team(t), nil, func(string) *agent.Sessions { return nil })
	for _, to := range []Receiver{{Mission: "msn_1", Session: "ses_none"}, {Mission: "msn_none", Session: "ses_0"}} {
		if name, model, err := d.checkAgent(t.Context(), to, Post{Agent: "x"}); centurion.KindOf(err) != centurion.KindNotFound {
			t.Errorf("%+v: %q, %q, %v", to, name, model, err)
		}
	}
}
