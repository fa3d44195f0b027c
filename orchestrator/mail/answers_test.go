package mail

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/session"
	"centurion/store"
)

// rewriting is a plugin that answers with parts, or with an error; by is whom it names.
type rewriting struct {
	out string
	by  []string
	err error
	in  *string
}

func (r rewriting) Has(string) bool { return true }

func (r rewriting) Hook(_ context.Context, hook string, input any, _ json.RawMessage) (json.RawMessage, []string, error) {
	b, err := json.Marshal(input)
	*r.in = hook + string(b)
	return json.RawMessage(r.out), r.by, errors.Join(r.err, err)
}

// Plugins change the texts of a command's message, and its files stay. What they leave empty or make too long does not count, and neither
// does what they add besides.
func TestTyped(t *testing.T) {
	t.Parallel()
	file := centurion.File{Path: "a.png", Mime: "image/png"}
	parts := session.Texts("quiet", file)
	typed := &centurion.Typed{Command: "go", Arguments: "now"}
	by := []string{"p", "q"}
	for name, c := range map[string]struct {
		typed *centurion.Typed
		plug  rewriting
		want  string
	}{
		"no command":       {nil, rewriting{out: `{"parts":[{"type":"text","text":"A"}]}`, by: by}, "quiet a.png"},
		"two texts":        {typed, rewriting{out: `{"parts":[{"id":"x","type":"text","text":"A"},{"type":"file"},{"type":"text","text":" "},{"type":"text","text":"B","synthetic":true}]}`, by: by}, "A B* a.png by p q"},
		"changed by none":  {typed, rewriting{out: `{"parts":[{"type":"text","text":"A"}]}`}, "quiet a.png"},
		"refused":          {typed, rewriting{out: `{"parts":[{"type":"text","text":"A"}]}`, by: by, err: errors.New("no")}, "quiet a.png"},
		"nothing left":     {typed, rewriting{out: `{"parts":[{"type":"text","text":" "}]}`, by: by}, "quiet a.png"},
		"as long as it is": {typed, rewriting{out: `{"parts":[{"type":"text","text":"` + strings.Repeat("a", MaxPost) + `"}]}`, by: by}, strings.Repeat("a", MaxPost) + " a.png by p q"},
		"too long":         {typed, rewriting{out: `{"parts":[{"type":"text","text":"b"},{"type":"text","text":"` + strings.Repeat("a", MaxPost) + `"}]}`, by: by}, "quiet a.png"},
	} {
		in := ""
		c.plug.in = &in
		got, who := Typed(t.Context(), c.plug, centurion.Hooked{Session: "ses_1"}, c.typed, parts)
		var all []string
		for _, p := range got {
			switch {
			case p.File != nil:
				all = append(all, p.File.Path)
			case p.ID != "":
				t.Errorf("%s: the plugin gave an id", name)
			case p.Synthetic:
				all = append(all, p.Text+"*")
			default:
				all = append(all, p.Text)
			}
		}
		if len(who) > 0 {
			all = append(append(all, "by"), who...)
		}
		if words := strings.Join(all, " "); words != c.want {
			t.Errorf("%s: %.100s, want %.100s", name, words, c.want)
		}
		if want := `command.execute.before{"sessionID":"ses_1","command":"go","arguments":"now"}`; c.typed != nil && in != want || c.typed == nil && in != "" {
			t.Errorf("%s: it was asked %s", name, in)
		}
	}
}

// A message that a command made is stored as plugins want it, whether it waits or is a note, and the journal says who changed it.
func TestTypedIsStored(t *testing.T) {
	t.Parallel()
	st := team(t)
	in := ""
	d := New(st, nil, func(string) *agent.Sessions { return nil })
	typed := &centurion.Typed{Command: "go"}
	for _, c := range []struct {
		name, to string
		parts    []centurion.Part
		typed    *centurion.Typed
		hooks    centurion.Hooks
		note     bool
		want     string // the texts that are stored
		told     string
	}{
		{"a", "ses_2", nil, typed, nil, false, "", ""},
		{"b", "ses_2", nil, nil, rewriting{in: &in}, false, "", ""},
		{"c", "tsk_8", nil, typed, rewriting{in: &in}, false, "", ""},
		{"d", "ses_2", nil, typed, rewriting{out: `{"parts":[{"type":"text","text":"D"}]}`, by: []string{"p", "q"}, in: &in}, false, "D", `ses_2{"hook":"command.execute.before","by":"plugin p, q"}`},
		{"e", "ses_0", nil, typed, rewriting{out: `{"parts":[{"type":"text","text":"E"}]}`, by: []string{"p"}, in: &in}, true, "E", `ses_0{"hook":"command.execute.before","by":"plugin p"}`},
		{"f", "ses_2", session.Texts("mine"), typed, rewriting{out: `{}`, in: &in}, false, "mine", ""},
	} {
		d.Hooks, in = c.hooks, ""
		before, err := st.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventPluginActed}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Send(t.Context(), Post{ID: "del_" + c.name, To: c.to, Text: c.name, Typed: c.typed, Parts: c.parts, NoReply: c.note}); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var parts []centurion.Part
		all, err := st.Deliveries(t.Context(), "msn_1")
		if n := len(all); n > 0 && all[n-1].ID == "del_"+c.name {
			parts = all[n-1].Parts
		}
		if messages, merr := st.Messages(t.Context(), c.to); c.note && merr == nil {
			parts = messages[len(messages)-1].Parts
		}
		after, eerr := st.Events(t.Context(), store.EventQuery{Types: []centurion.EventType{centurion.EventPluginActed}})
		var told strings.Builder
		for _, e := range after[len(before):] {
			told.WriteString(e.Session + string(e.Data))
		}
		if got := (&centurion.Message{Parts: parts}).Text(); errors.Join(err, eerr) != nil || got != c.want || told.String() != c.told {
			t.Errorf("%s: stored %q, told %s; %v", c.name, got, told.String(), err)
		}
		if asked := c.typed != nil && c.hooks != nil && c.to != "tsk_8"; asked != (in != "") || asked && !strings.Contains(in, `"sessionID":"`+c.to+`","agent":"worker","mission":"msn_1"`) {
			t.Errorf("%s: the plugin was asked %q", c.name, in)
		}
	}
}

// talk puts messages into a session: texts of a person begin with >, others are answers, cut ones end with … and failed ones with !.
func talk(t *testing.T, st *store.Store, session string, said ...string) {
	t.Helper()
	alter(t, st, nil, func(tx *store.Tx) error {
		var all error
		for i, text := range said {
			id := session + "_" + string(rune('a'+i))
			m := centurion.Message{ID: "msg_" + id, SessionID: session, Role: centurion.RoleAssistant, Finish: centurion.FinishStop, Usage: centurion.Usage{USD: 1}}
			switch {
			case text[0] == '>':
				m.Role, m.Finish, m.Usage = centurion.RoleUser, "", centurion.Usage{}
			case strings.HasSuffix(text, "…"):
				m.Finish = centurion.FinishToolCalls
			}
			all = errors.Join(all, tx.PutMessage(&m), tx.PutPart(&centurion.Part{ID: "prt_" + id, SessionID: session, MessageID: m.ID, Type: centurion.PartText, Text: text}))
		}
		return all
	})
}

// short is a reply in few words.
func short(r Reply) string {
	failed := ""
	if r.Error != nil {
		failed = " " + string(r.Error.Kind) + ": " + r.Error.Message + " | " + r.Error.Hint
	}
	return strings.Join([]string{r.ID, r.Mission, r.Session, r.Text, r.Finish, r.Message, centurion.Count(int(r.Usage.USD), "answer")}, ", ") + failed
}

// A message is answered by the turn that read it: all answers until the next message of a person that comes after an end, and no other.
func TestAnsweredBefore(t *testing.T) {
	t.Parallel()
	st := team(t)
	talk(t, st, "ses_2", ">first", "looking…", ">more", "done", "extra", ">second", "working…")
	now := centurion.Now()
	put := func(d store.Delivery) func(tx *store.Tx) error {
		d.Mission, d.Session, d.Origin = "msn_1", "ses_2", centurion.OriginPerson
		return func(tx *store.Tx) error { return tx.PutDelivery(&d) }
	}
	alter(t, st, nil, put(store.Delivery{ID: "one", Taken: now, Message: "msg_ses_2_a"}), put(store.Delivery{ID: "more", Taken: now, Message: "msg_ses_2_c"}),
		put(store.Delivery{ID: "two", Taken: now, Message: "msg_ses_2_f"}), put(store.Delivery{ID: "rest", Rest: true, Taken: now, Message: "msg_ses_2_a"}),
		put(store.Delivery{ID: "lost", Taken: now, Message: "msg_gone"}), put(store.Delivery{ID: "queued", Queue: true}))
	d := New(st, nil, func(string) *agent.Sessions { return nil })
	look := func(want map[string]string) {
		t.Helper()
		for id, want := range want {
			r, found, err := d.answeredBefore(t.Context(), "msn_1", id)
			got := ""
			if found {
				got = short(r)
			}
			if got != want || err != nil {
				t.Errorf("%s: %q, want %q; %v", id, got, want, err)
			}
		}
	}
	const first = ", msn_1, ses_2, extra, stop, msg_ses_2_e, "
	look(map[string]string{"one": "one" + first + "3 answers", "more": "more" + first + "2 answers", "two": "", "rest": "rest" + first + "3 answers", "lost": "", "queued": "", "unknown": ""})
	alter(t, st, nil, put(store.Delivery{ID: "unread"})) // then the session does not rest
	look(map[string]string{"one": "one" + first + "3 answers", "rest": ""})
}

// Each waiter is told the outcome of the turn that has read its message; who waits until the session rests is told the last answer, unless more
// was written meanwhile. After an abort also those get an answer whose messages are not read, which then want none any more.
func TestAnswered(t *testing.T) {
	t.Parallel()
	failed := &centurion.Error{Kind: centurion.KindNetwork, Msg: "the line is dead", Hint: "try again"}
	out := session.Outcome{Text: "said", Finish: centurion.FinishLength}
	const after = ", msn_1, ses_2, "
	for name, c := range map[string]struct {
		cause  error
		unread bool
		want   map[string]string // by message; "" waits on
	}{
		"well":              {nil, false, map[string]string{"read": "read" + after + "said, length, msg_ses_2_b, 1 answer", "rest": "rest" + after + "said, length, msg_ses_2_d, 1 answer", "queued": "", "other": "", "gone": ""}},
		"with more to read": {nil, true, map[string]string{"read": "read" + after + "said, length, msg_ses_2_b, 1 answer", "rest": "", "queued": "", "other": ""}},
		"badly": {failed, true, map[string]string{
			"read":   "read" + after + "one, stop, msg_ses_2_b, 1 answer network: the line is dead | try again; network: prompt: the turn did not end well: the line is dead | try again",
			"rest":   "rest" + after + "two, stop, msg_ses_2_d, 1 answer network: the line is dead | try again; network: prompt: the turn did not end well: the line is dead | try again",
			"queued": "", "late": "", "other": ""}},
	} {
		st := team(t)
		talk(t, st, "ses_2", ">first", "one", ">second", "two")
		put := func(d store.Delivery) func(tx *store.Tx) error {
			d.Mission, d.Origin = "msn_1", centurion.OriginPerson
			return func(tx *store.Tx) error { return tx.PutDelivery(&d) }
		}
		now := centurion.Now()
		all := []func(tx *store.Tx) error{put(store.Delivery{ID: "read", Session: "ses_2", Taken: now, Message: "msg_ses_2_a"}), put(store.Delivery{ID: "rest", Session: "ses_2", Rest: true, Taken: now, Message: "msg_ses_2_a"}),
			put(store.Delivery{ID: "queued", Session: "ses_2", Queue: true}), put(store.Delivery{ID: "other", Session: "ses_3", Taken: now, Message: "msg_x"})}
		if c.unread {
			all = append(all, put(store.Delivery{ID: "late", Session: "ses_2", Rest: true}))
		}
		alter(t, st, nil, all...)
		d := New(st, nil, func(string) *agent.Sessions { return nil })
		waiting := map[string]*waiter{}
		for id := range c.want {
			waiting[id] = d.join("msn_1", id)
		}
		ctx, gone := context.WithCancel(t.Context())
		gone() // the turn has ended all the same
		d.Answered(ctx, "msn_1", "ses_2", out, c.cause)
		for id, want := range c.want {
			got, w := "", waiting[id]
			select {
			case <-w.answered:
				if got = short(w.reply); w.err != nil {
					got += "; " + whole(nil, w.err)
				}
			default:
			}
			if got != want {
				t.Errorf("%s, %s: %s, want %s", name, id, got, want)
			}
		}
	}
}

// After an abort only those messages want no answer any more whose senders wait until the session rests; a queued one still gets its turn.
func TestAbortLeavesQueuedMessages(t *testing.T) {
	t.Parallel()
	st := team(t)
	put := func(d store.Delivery) func(tx *store.Tx) error {
		d.Mission, d.Session, d.Origin = "msn_1", "ses_2", centurion.OriginPerson
		return func(tx *store.Tx) error { return tx.PutDelivery(&d) }
	}
	alter(t, st, nil, put(store.Delivery{ID: "queued", Queue: true}), put(store.Delivery{ID: "rest", Rest: true}))
	New(st, nil, func(string) *agent.Sessions { return nil }).Answered(t.Context(), "msn_1", "ses_2", session.Outcome{}, agent.Aborted("enough"))
	all, err := st.PendingDeliveries(t.Context(), "ses_2")
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, x := range all {
		if x.NoReply != (x.ID == "rest") {
			t.Errorf("%s wants no reply: %t", x.ID, x.NoReply)
		}
	}
}

// A message is the one that was sent before only in its own mission: another one with its id and its words is refused, not taken for stored.
func TestIDOfAnotherMission(t *testing.T) {
	t.Parallel()
	st := team(t)
	alter(t, st, nil, func(tx *store.Tx) error {
		return tx.PutDelivery(&store.Delivery{ID: "one", Mission: "msn_9", Session: "ses_9", Origin: centurion.OriginPerson, Text: "x"})
	})
	d := New(st, nil, func(string) *agent.Sessions { return nil })
	if got, err := d.Send(t.Context(), Post{ID: "one", To: "ses_2", Text: "x"}); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("%+v, %v", got, err)
	}
}

// A message that names a model holds its mission while it is stored: a conversation that began meanwhile would go on with the old one. A waiter
// has one answer, the first.
func TestModelHoldsTheMission(t *testing.T) {
	t.Parallel()
	d, held, released := New(team(t), nil, func(string) *agent.Sessions { return nil }), "", 0
	d.Hold = func(mission string) (bool, func()) { held += mission; return false, func() { released++ } }
	if _, err := d.Send(t.Context(), Post{To: "ses_0", Text: "x", Model: "p/other"}); err != nil || held != "msn_1" || released != 1 {
		t.Errorf("held %q, released %d times, %v", held, released, err)
	}
	w := d.join("msn_1", "one")
	d.answer(w, Reply{Text: "first"}, nil)
	d.answer(w, Reply{Text: "second"}, nil)
	if <-w.answered; w.reply.Text != "first" {
		t.Errorf("it is told %q", w.reply.Text)
	}
}

// Who still waits when a mission has stopped is told how, and what would help.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	st := team(t)
	cause := errors.New("the cause")
	for status, want := range map[centurion.MissionStatus]string{
		centurion.MissionPaused:    "interrupted: prompt: mission msn_1 is paused before the message was answered: why: the cause | the message is kept; go on with: centurion resume msn_1",
		centurion.MissionCancelled: "conflict: prompt: mission msn_1 is cancelled before the message was answered: why: the cause | see: centurion show msn_1",
		centurion.MissionRunning:   "network: prompt: another host goes on with mission msn_1: the cause | ask it again, under the same id",
	} {
		d := New(st, nil, func(string) *agent.Sessions { return nil })
		early, late, unsent := d.join("msn_1", "early"), d.join("msn_1", "late"), d.join("msn_1", "unsent")
		early.sent = true
		d.Expect("msn_1")
		d.Verdict("msn_1")
		late.sent = true
		if d.Closed(t.Context(), centurion.Mission{ID: "msn_1", Status: status, Reason: "why"}, "msn_1", cause) || d.Attended("msn_1") {
			t.Errorf("%s: it goes on", status)
		}
		for _, w := range []*waiter{early, late} {
			select {
			case <-w.answered:
			default:
				t.Fatalf("%s: it still waits", status)
			}
			if got := whole(nil, w.err); got != want || w.over != (w == late) {
				t.Errorf("%s: over %t, %s; want %s", status, w.over, got, want)
			}
		}
		if left := d.of("msn_1"); len(left) != 1 || left[0] != unsent {
			t.Errorf("%s: %d wait, and not the one whose message is not stored", status, len(left))
		}
	}
}

// A prompt to a mission that nobody works on is refused with how it stands and what would help.
func TestUnattended(t *testing.T) {
	t.Parallel()
	st := team(t)
	d := New(st, nil, func(string) *agent.Sessions { return nil })
	const rest = ` | go on with it: centurion resume msn_1; or leave the message without waiting for its answer`
	for status, want := range map[centurion.MissionStatus]string{
		centurion.MissionPaused:    "conflict: prompt: nobody would answer: mission msn_1 is paused" + rest,
		centurion.MissionRunning:   "conflict: prompt: nobody would answer: mission msn_1 is interrupted" + rest,
		centurion.MissionCompleted: `conflict: send: mission msn_1 is completed: nobody reads what is written to it | start another one: centurion run "GOAL"`,
	} {
		alter(t, st, func(m *centurion.Mission) { m.Status = status })
		_, err := d.Prompt(t.Context(), Post{To: "msn_1", Text: "x"}, nil)
		if got := whole(nil, err); got != want {
			t.Errorf("%s:\n%s, want\n%s", status, got, want)
		}
	}
	if all, err := st.Deliveries(t.Context(), "msn_1"); len(all) > 0 || err != nil {
		t.Errorf("%d messages are stored: %v", len(all), err)
	}
}

// What a person wants to be shorter is recorded for the next request, unless there is none any more.
func TestCompact(t *testing.T) {
	t.Parallel()
	st := team(t)
	d := New(st, nil, func(string) *agent.Sessions { return nil })
	for _, c := range []struct {
		session, profile string
		status           centurion.MissionStatus
		want             string
	}{
		{"ses_2", "", centurion.MissionPaused, "null"},
		{"ses_3", "", centurion.MissionCompleted, "conflict: compact session: its mission msn_1 is completed | only the sessions of a mission that goes on can be shortened; see: centurion ps"},
		{"ses_4", agents.ProfileAssistant, centurion.MissionCompleted, "conflict: compact session: its mission msn_1 is completed | only the sessions of a mission that goes on can be shortened; see: centurion ps"},
		{"ses_0", agents.ProfileAssistant, centurion.MissionCompleted, "null"},
	} {
		alter(t, st, func(m *centurion.Mission) { m.Status, m.Options.Profile = c.status, c.profile })
		got := whole(nil, d.Compact(t.Context(), c.session))
		rec, err := st.Session(t.Context(), c.session)
		if got != c.want || err != nil || rec.Metadata.Compact != (c.want == "null") {
			t.Errorf("%s: %s; recorded %t, %v", c.session, got, rec.Metadata.Compact, err)
		}
	}
	if err := d.Compact(t.Context(), "ses_9"); centurion.KindOf(err) != centurion.KindNotFound {
		t.Errorf("an unknown one: %v", err)
	}
}
