package branches

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/state"
	"centurion/store"
)

// A rewind moves the leaf, names the place that is left, forgets what was still to be done there, and tells all that. Only the conversation of a
// mission's own agent, of one that has ended, pauses the mission, with its plan at a place of its own.
func TestRewind(t *testing.T) {
	t.Parallel()
	moved := func(to string, undone int, mark string) string {
		return "session.rewound ses_1  " + string(event.Data(event.RewoundData{From: "msg_3", To: to, Mark: mark, Undone: undone}))
	}
	for name, test := range map[string]struct {
		to, mark string
		status   centurion.MissionStatus
		session  string // of the mission; "" for this one
		want     Rewound
		events   []string // the beginnings of those
		marks    string
	}{
		"ended":           {"-1", "", centurion.MissionCompleted, "", Rewound{Status: centurion.MissionPaused, Leaf: "msg_2", Undone: 1, Mark: "before-rewind-2"}, []string{moved("msg_2", 1, "before-rewind-2"), "mission.paused ses_1  {"}, "before-rewind-1:msg_1 before-rewind-2:msg_3"},
		"failed":          {"-2", "", centurion.MissionFailed, "", Rewound{Status: centurion.MissionPaused, Leaf: "msg_1", Undone: 2, Mark: "before-rewind-2"}, []string{moved("msg_1", 2, "before-rewind-2"), "mission.paused ses_1  {"}, "before-rewind-1:msg_1 before-rewind-2:msg_3"},
		"paused":          {"-1", "here", centurion.MissionPaused, "", Rewound{Status: centurion.MissionPaused, Leaf: "msg_2", Undone: 1, Mark: "here"}, []string{moved("msg_2", 1, "here")}, "before-rewind-1:msg_1 here:msg_3"},
		"another session": {"-1", "", centurion.MissionCompleted, "ses_0", Rewound{Status: centurion.MissionCompleted, Leaf: "msg_2", Undone: 1, Mark: "before-rewind-2"}, []string{moved("msg_2", 1, "before-rewind-2")}, "before-rewind-1:msg_1 before-rewind-2:msg_3"},
		"only a mark":     {"", "here", centurion.MissionCompleted, "", Rewound{Status: centurion.MissionCompleted, Leaf: "msg_3", Mark: "here"}, nil, "before-rewind-1:msg_1 here:msg_3"},
		"nowhere":         {"-0", "", centurion.MissionCompleted, "", Rewound{Status: centurion.MissionCompleted, Leaf: "msg_3"}, nil, "before-rewind-1:msg_1"},
	} {
		r := newRig(t, centurion.Mission{Status: test.status, Reason: "because", Summary: "done", Todo: ".opencode/archive/todo.md"}, centurion.Session{})
		r.meta(func(m *centurion.SessionMeta) {
			m.Retry, m.Compact, m.Marks = &centurion.Retry{Attempts: 1}, true, map[string]string{"before-rewind-1": "msg_1"}
		})
		r.mission(func(m *centurion.Mission) {
			m.Revert = &centurion.Revert{Message: "msg_3"}
			if test.session != "" {
				m.Session = test.session
			}
		})
		seq := r.Store.LastSeq()
		got, err := r.Rewind(t.Context(), "ses_1", test.to, test.mark)
		test.want.Mission, test.want.Session, test.want.Address, test.want.From = "msn_1", "ses_1", "0/", "msg_3"
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, test.want)
		}
		if events := r.events("msn_1", seq); !slices.EqualFunc(events, test.events, strings.HasPrefix) {
			t.Errorf("%s: told %q, want %q", name, events, test.events)
		}
		meta, left := r.meta(), got.Leaf != got.From
		var marks []string
		for _, m := range slices.Sorted(maps.Keys(meta.Marks)) {
			marks = append(marks, m+":"+meta.Marks[m])
		}
		want := &centurion.Rewound{Leaf: got.Leaf, Last: "msg_3"}
		if !left {
			want = nil
		}
		if strings.Join(marks, " ") != test.marks || (meta.Retry == nil) != left || meta.Compact == left || !reflect.DeepEqual(meta.Rewound, want) || (len(r.rewound) == 1) != left {
			t.Errorf("%s: %+v, marks %q, told of %q", name, meta, marks, r.rewound)
		}
		m := r.mission()
		if stands := m.Revert != nil; stands == (left && test.session == "") {
			t.Errorf("%s: the revert stands: %v", name, stands)
		}
		if paused := len(test.events) == 2; paused && (m.Reason != state.Rewound || m.Summary != "" || m.Todo != ".opencode/todo-msn_1.md") || !paused && (m.Reason != "because" || m.Summary != "done") || m.Status != got.Status {
			t.Errorf("%s: the mission is %s, %q, %q, its plan at %s", name, m.Status, m.Reason, m.Summary, m.Todo)
		}
	}
}

// Who goes back to where they were needs no new name for it; the way forward leaves nothing behind.
func TestRewindForward(t *testing.T) {
	t.Parallel()
	r := newRig(t, centurion.Mission{Status: centurion.MissionPaused}, centurion.Session{})
	for _, step := range []struct {
		to   string
		want Rewound
	}{
		{"-2", Rewound{From: "msg_3", Leaf: "msg_1", Undone: 2, Mark: "before-rewind-1"}},
		{"before-rewind-1", Rewound{From: "msg_1", Leaf: "msg_3"}},
		{"-1", Rewound{From: "msg_3", Leaf: "msg_2", Undone: 1, Mark: "before-rewind-1"}},
	} {
		got, err := r.Rewind(t.Context(), "ses_1", step.to, "")
		step.want.Mission, step.want.Status, step.want.Session, step.want.Address = "msn_1", centurion.MissionPaused, "ses_1", "0/"
		if err != nil || got != step.want {
			t.Errorf("to %s: %+v, %v", step.to, got, err)
		}
	}
}

// What cannot be rewound is refused with the next step, and stays as it is; a mark is given at any time.
func TestRewindRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		session, to, mark string
		change            func(r *rig)
		want              string
	}{
		"at work": {"ses_1", "-1", "", func(r *rig) { r.working = true },
			"conflict: rewind: mission msn_1 is being worked on (stop it first: centurion pause msn_1; or copy the conversation: centurion fork ses_1)"},
		"a mark at work": {"ses_1", "", "x", func(r *rig) { r.working = true }, ""},
		"a command": {"ses_1", "-1", "", func(r *rig) { r.command = make(chan struct{}) },
			"conflict: rewind: a command of yours runs in session ses_1 (wait for its end, or end it with: centurion abort ses_1)"},
		"a mark while a command runs": {"ses_1", "", "x", func(r *rig) { r.command = make(chan struct{}) }, ""},
		"a bad mark":                  {"ses_1", "-1", "7", nil, `usage: rewind: "7" cannot be the name of a message: it looks like a number of messages (choose a word such as before-the-refactoring)`},
		"nothing named":               {"ses_1", "", "", nil, "usage: rewind: missing --to"},
		"nothing said":                {"ses_2", "-1", "", nil, "conflict: rewind: session ses_2 has no messages yet (see: centurion show ses_2)"},
		"no session":                  {"ses_9", "-1", "", nil, "not_found: "},
		"a task that has ended": {"ses_1", "-1", "", func(r *rig) { r.task(centurion.TaskFailed) },
			"conflict: rewind: 0/ is the conversation of a task that is failed: its result was delivered, and no one would read another one (copy it into a mission of its own: centurion fork ses_1 --at MESSAGE)"},
		"a mark in it":            {"ses_1", "", "x", func(r *rig) { r.task(centurion.TaskFailed) }, ""},
		"a task that has not":     {"ses_1", "-1", "", func(r *rig) { r.task(centurion.TaskWaiting) }, ""},
		"a message of nobody's":   {"ses_1", "nobody", "", nil, "not_found: find message: session ses_1 has no message and no mark \"nobody\" (see: centurion show --tree ses_1)"},
		"farther than there is":   {"ses_1", "-3", "", nil, "usage: find message: -3 goes back before the first message: the line has 3 messages (the first message is msg_1, which is -2)"},
		"as far as there is":      {"ses_1", "-2", "", nil, ""},
		"a mark that was refused": {"ses_1", "nobody", "x", nil, "not_found: "},
	} {
		r := newRig(t, centurion.Mission{Status: centurion.MissionPaused}, centurion.Session{})
		r.update(func(tx *store.Tx) error {
			return tx.PutSession(&centurion.Session{ID: "ses_2", Metadata: centurion.SessionMeta{Mission: "msn_1"}})
		})
		if test.change != nil {
			test.change(r)
		}
		before := r.Store.LastSeq()
		_, err := r.Rewind(t.Context(), test.session, test.to, test.mark)
		if got := told(err); !strings.HasPrefix(got, test.want) || (test.want == "") != (err == nil) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if meta := r.meta(); test.want != "" && (meta.Rewound != nil || len(meta.Marks) > 0 || r.Store.LastSeq() != before || len(r.rewound) > 0) {
			t.Errorf("%s: something was done: %+v", name, meta)
		}
	}
}

// task makes the session that of a task.
func (r *rig) task(status centurion.TaskStatus) {
	r.t.Helper()
	r.meta(func(m *centurion.SessionMeta) { m.Task = "tsk_1" })
	r.update(func(tx *store.Tx) error {
		return tx.PutTask(&centurion.Task{ID: "tsk_1", Mission: "msn_1", Status: status})
	})
}

// What a conversation is told that goes on elsewhere: after a rewind until it has gone on, and that it is a copy in its first run.
func TestWord(t *testing.T) {
	t.Parallel()
	const all = "The person continues from this point of the conversation; later messages no longer count. "
	many := strings.Repeat("a-long-name.go ", 100)
	for name, test := range map[string]struct {
		rewound *centurion.Rewound
		forked  bool
		runs    int
		want    string
		noted   bool
	}{
		"nothing":              {want: "", runs: 1},
		"a rewind":             {&centurion.Rewound{Leaf: "msg_2", Last: "msg_3"}, false, 1, all + "Files, the todo list and tasks were not reverted: look at their current state before you continue.", true},
		"a revert":             {&centurion.Rewound{Leaf: "msg_2", Last: "msg_3", Whole: true}, false, 1, "", true},
		"some files":           {&centurion.Rewound{Leaf: "msg_2", Last: "msg_3", Whole: true, Kept: []string{"a", "b"}}, false, 1, all + "What you changed in files since then was reverted, but not in a, b: someone else has changed that, too.", true},
		"many files":           {&centurion.Rewound{Leaf: "msg_2", Last: "msg_3", Whole: true, Kept: []string{many}}, false, 1, all + "What you changed in files since then was reverted, but not in " + centurion.Clip(many, 1000) + ": someone else has changed that, too.", true},
		"it has gone on":       {&centurion.Rewound{Leaf: "msg_1", Last: "msg_2"}, false, 1, "", false},
		"a copy":               {nil, true, 1, "This conversation is a copy and continues in a mission of its own. Tasks and background commands that were started above belong to mission msn_0; the project may have changed since.", false},
		"a copy, later":        {nil, true, 2, "", false},
		"a copy, and a rewind": {&centurion.Rewound{Leaf: "msg_2", Last: "msg_3", Whole: true}, true, 1, "", true},
	} {
		r := newRig(t, centurion.Mission{Status: centurion.MissionRunning, Runs: test.runs}, centurion.Session{})
		r.meta(func(m *centurion.SessionMeta) {
			if m.Rewound = test.rewound; test.forked {
				m.ForkedFrom = &centurion.ForkedFrom{Mission: "msn_0", Session: "ses_0", Message: "msg_0"}
			}
		})
		rec, err := r.Store.Session(t.Context(), "ses_1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Word(t.Context(), rec)
		if err != nil || got != test.want || (fmt.Sprint(r.rewound) == "[ses_1]") != test.noted {
			t.Errorf("%s: %q, %v, want %q; noted %q", name, got, err, test.want, r.rewound)
		}
	}
}
