package branches

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/mail"
	"centurion/store"
	"centurion/worktree"
)

func assistant(m *centurion.Mission) { m.Options.Profile = agents.ProfileAssistant }

func at(ms int64) []centurion.Landed { return []centurion.Landed{{Time: centurion.MillisTime(ms)}} }

// What cannot be reverted is refused with the next step, and nothing is recorded. It is asked for once the mission rests, and while it is held.
func TestRevertRefused(t *testing.T) {
	t.Parallel()
	landed := func(task centurion.Task) func(*rig) {
		return func(r *rig) {
			task.ID, task.Mission, task.Item = "tsk_1", "msn_1", "T1"
			r.update(func(tx *store.Tx) error { return tx.PutTask(&task) })
		}
	}
	for name, test := range map[string]struct {
		message string
		change  func(*centurion.Mission)
		and     func(*rig)
		want    string
	}{
		"at work":        {"msg_3", nil, func(r *rig) { r.working = true }, "conflict: revert: mission msn_1 is being worked on (wait for its end, or end it first: centurion pause msn_1)"},
		"a command":      {"msg_3", nil, func(r *rig) { r.command = make(chan struct{}) }, "conflict: revert: a command of yours runs in session ses_1 (wait for its end, or end it with: centurion abort ses_1)"},
		"of no line":     {"msg_9", nil, nil, "not_found: revert: session ses_1 has no message msg_9 on its line (see: centurion show --tree ses_1)"},
		"has ended":      {"msg_3", func(m *centurion.Mission) { m.Status = centurion.MissionCompleted }, nil, "conflict: revert: mission msn_1 is completed (go back in it with: centurion rewind ses_1 --to MESSAGE; its work is undone by: centurion undo msn_1)"},
		"was cancelled":  {"msg_3", func(m *centurion.Mission) { assistant(m); m.Status = centurion.MissionCancelled }, nil, "conflict: revert: mission msn_1 is cancelled ("},
		"continues":      {"msg_3", func(m *centurion.Mission) { assistant(m); m.Status = centurion.MissionCompleted }, nil, ""},
		"its goal":       {"msg_2", nil, nil, "conflict: revert: it is the goal of mission msn_1 (open another session; its work is undone by: centurion undo msn_1)"},
		"no goal":        {"msg_1", assistant, nil, ""},
		"merged since":   {"msg_3", func(m *centurion.Mission) { m.Merged = &centurion.Merged{Time: centurion.MillisTime(3001)} }, nil, "conflict: revert: the work of mission msn_1 was merged since (undo that first: centurion undo msn_1)"},
		"merged before":  {"msg_3", func(m *centurion.Mission) { m.Merged = &centurion.Merged{Time: centurion.MillisTime(3000)} }, nil, ""},
		"a task":         {"msg_3", nil, landed(centurion.Task{Landed: at(3001)}), "conflict: revert: T1 has changed files since (undo that first: centurion undo tsk_1)"},
		"it ended later": {"msg_3", nil, landed(centurion.Task{Landed: at(2000), Ended: centurion.MillisTime(3001)}), "conflict: revert: T1 has changed files since ("},
		"nothing landed": {"msg_3", nil, landed(centurion.Task{Ended: centurion.MillisTime(3001)}), ""},
		"earlier":        {"msg_3", nil, landed(centurion.Task{Landed: at(3000), Ended: centurion.MillisTime(3000)}), ""},
		"undone":         {"msg_3", nil, landed(centurion.Task{Landed: at(3001), Undone: centurion.Now()}), ""},
		"on its branch":  {"msg_3", func(m *centurion.Mission) { m.Isolation = centurion.IsolationWorktree }, landed(centurion.Task{Landed: at(3001)}), ""},
		"of its own":     {"msg_3", assistant, landed(centurion.Task{Landed: at(3001)}), ""},
		"unread": {"msg_3", func(m *centurion.Mission) {
			assistant(m)
			m.Status, m.Reason = centurion.MissionPaused, mail.ErrUnread.Msg
		}, nil, ""},
	} {
		m := centurion.Mission{Status: centurion.MissionPaused, Title: "A title"}
		if test.change != nil {
			test.change(&m)
		}
		r := newRig(t, m, centurion.Session{Title: "Build"})
		if test.and != nil {
			test.and(r)
		}
		seq := r.Store.LastSeq()
		got, err := r.Revert(t.Context(), "ses_1", test.message)
		if text := told(err); !strings.HasPrefix(text, test.want) || (test.want == "") != (err == nil) || strings.Join(r.rested, ", ") != "msn_1 ses_1" {
			t.Errorf("%s: %s, want %s; waited for %q", name, text, test.want, r.rested)
		}
		events := strings.Join(r.events("msn_1", seq), "\n")
		if test.want != "" {
			if stands := r.mission().Revert; stands != nil || events != "" || got.Session.ID != "" {
				t.Errorf("%s: it stands: %+v, told %s, returned %+v", name, stands, events, got)
			}
			continue
		}
		r.stands(name, test.message, got, events)
	}
}

// stands looks whether a revert from a message on stands, without files, is returned and was told.
func (r *rig) stands(name, message string, got Reverted, events string) {
	r.t.Helper()
	want, stands := &centurion.Revert{Message: message}, r.mission().Revert
	if !reflect.DeepEqual(stands, want) || !reflect.DeepEqual(got.Session.Metadata.Revert, want) || got.Session.Title != "A title" || got.Kept != nil {
		r.t.Errorf("%s: it stands: %+v, returned %+v", name, stands, got)
	}
	if events != "session.renamed ses_1  "+string(event.Data(event.SessionData{Title: "A title"})) {
		r.t.Errorf("%s: told %s", name, events)
	}
}

// Where there is no mission there is nothing to revert, and a task's conversation is not reverted at all. An answer counts as its message, and
// what is reverted already, or not at all, is told no second time.
func TestRevertOfNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, centurion.Mission{Status: centurion.MissionCompleted, Options: centurion.MissionOptions{Profile: agents.ProfileAssistant}}, centurion.Session{})
	for _, rec := range []centurion.Session{{ID: "ses_2"}, {ID: "ses_3", ParentID: "ses_1", Metadata: centurion.SessionMeta{Mission: "msn_1", Task: "tsk_1"}}} {
		r.update(func(tx *store.Tx) error { return tx.PutSession(&rec) })
	}
	for _, step := range []struct {
		session, message, want string
		stands                 string
		told                   int
	}{
		{"ses_9", "", "not_found: ", "", 0},
		{"ses_2", "", "", "", 0},
		{"ses_2", "msg_1", "conflict: revert: session ses_2 has no messages yet (see: centurion show ses_2)", "", 0},
		{"ses_3", "msg_1", "conflict: change session: session ses_3 belongs to a task of mission msn_1 (end it with: centurion cancel tsk_1)", "", 0},
		{"ses_1", "", "", "", 0},
		{"ses_1", "msg_2", "", "msg_1", 1},
		{"ses_1", "msg_1", "", "msg_1", 0},
		{"ses_1", "msg_3", "", "msg_3", 1},
		{"ses_1", "", "", "", 1},
		{"ses_1", "", "", "", 0},
	} {
		seq := r.Store.LastSeq()
		_, err := r.Revert(t.Context(), step.session, step.message)
		stands := ""
		if m := r.mission(); m.Revert != nil {
			stands = m.Revert.Message
		}
		if got := told(err); !strings.HasPrefix(got, step.want) || (step.want == "") != (err == nil) || stands != step.stands || len(r.events("msn_1", seq)) != step.told {
			t.Errorf("%s from %q: %s; it stands %q, told %q", step.session, step.message, got, stands, r.events("msn_1", seq))
		}
	}
}

// A message that goes on after a revert takes what is reverted off the line. What its agent is told depends on whether the files went back.
func TestForget(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		profile, isolation string
		whole              bool
	}{
		"an assistant":     {agents.ProfileAssistant, centurion.IsolationShared, true},
		"in a checkout":    {agents.ProfileAssistant, centurion.IsolationWorktree, false},
		"a mission's work": {"", centurion.IsolationShared, false},
	} {
		r := newRig(t, centurion.Mission{Status: centurion.MissionPaused, Isolation: test.isolation, Options: centurion.MissionOptions{Profile: test.profile}}, centurion.Session{})
		if err := r.Forget(t.Context(), ""); err != nil {
			t.Error(err)
		}
		if err := r.Forget(t.Context(), "msn_1"); err != nil || r.meta().Rewound != nil || len(r.rewound) > 0 {
			t.Errorf("%s: without a revert: %v, %+v", name, err, r.meta().Rewound)
		}
		r.mission(func(m *centurion.Mission) { m.Revert = &centurion.Revert{Message: "msg_3", Kept: []string{"a"}} })
		seq := r.Store.LastSeq()
		if err := r.Forget(t.Context(), "msn_1"); err != nil {
			t.Fatal(err)
		}
		if want := (&centurion.Rewound{Leaf: "msg_2", Last: "msg_3", Whole: test.whole, Kept: []string{"a"}}); !reflect.DeepEqual(r.meta().Rewound, want) {
			t.Errorf("%s: %+v", name, r.meta().Rewound)
		}
		want := "session.rewound ses_1  " + string(event.Data(event.RewoundData{From: "msg_3", To: "msg_2", Mark: "before-rewind-1", Undone: 1}))
		if got := strings.Join(r.events("msn_1", seq), "\n"); got != want || r.mission().Revert != nil || strings.Join(r.rewound, " ") != "ses_1" || r.meta().Marks["before-rewind-1"] != "msg_3" {
			t.Errorf("%s: told %s, %+v", name, got, r.meta())
		}
	}
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.Workspace.Dir(), name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// save records the files as they are.
func (r *rig) save(what string) (tree string) {
	r.t.Helper()
	err := r.Files.Project.WithHistory(r.t.Context(), func(s *worktree.Shadow) (err error) {
		tree, err = s.Save(r.t.Context(), what)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return tree
}

// files looks what a and b are, as "name=text".
func (r *rig) files(want string) {
	r.t.Helper()
	var got []string
	for _, name := range []string{"a", "b"} {
		if b, err := os.ReadFile(filepath.Join(r.Workspace.Dir(), name)); err == nil {
			got = append(got, name+"="+strings.TrimSpace(string(b)))
		}
	}
	if strings.Join(got, " ") != want {
		r.t.Errorf("the files are %q, want %s", got, want)
	}
}

// written looks what a message, or with "" the revert, is told to have changed.
func (r *rig) written(message, want string) {
	r.t.Helper()
	diffs, err := r.Written(r.t.Context(), "ses_1", message)
	var got []string
	for _, d := range diffs {
		got = append(got, d.Path+" "+d.Status)
	}
	if err != nil || strings.Join(got, ", ") != want {
		r.t.Errorf("written in %q: %q, %v, want %s", message, got, err, want)
	}
}

// wrote is a rig in which the turn of msg_3 has written a and b.
func wrote(t *testing.T) (r *rig, wrote []centurion.Landed) {
	t.Helper()
	r = newRig(t, centurion.Mission{Status: centurion.MissionCompleted, Options: centurion.MissionOptions{Profile: agents.ProfileAssistant}}, centurion.Session{})
	home := t.TempDir()
	r.Files.Project = isolation.NewProject(r.Store, r.Workspace, nil, func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: r.Workspace.Dir(), Home: home})
	})
	before := r.save("before")
	r.write("a", "one\n")
	r.write("b", "one\n")
	wrote = []centurion.Landed{{Before: before, Commit: r.save("after"), Files: []centurion.FileChange{{Path: "a"}, {Path: "b"}}}}
	msg, err := r.Store.Message(t.Context(), "ses_1", "msg_3")
	if err != nil {
		t.Fatal(err)
	}
	msg.Wrote = wrote
	r.update(func(tx *store.Tx) error { return tx.PutMessage(&msg) })
	return r, wrote
}

// A host that died while files went back is finished by the next one: what somebody has changed meanwhile stays, is named with what was left before,
// and is nothing that the revert moves. A message that was to be reverted instead is planned anew.
func TestRevertDiedOnTheWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		revert  func([]centurion.Landed) centurion.Revert
		files   string
		message string
		kept    string
		moved   string // by the revert that stands
	}{
		"on the way back": {func(l []centurion.Landed) centurion.Revert {
			return centurion.Revert{Message: "msg_3", Files: l, Kept: []string{"c"}, Moving: true}
		}, "b=mine", "msg_3", "c b", "a"},
		"on the way to another": {func([]centurion.Landed) centurion.Revert {
			next := "msg_1"
			return centurion.Revert{Message: "msg_4", Next: &next}
		}, "b=mine", "msg_1", "b", "a"},
	} {
		r, l := wrote(t)
		r.write("b", "mine\n")
		r.mission(func(m *centurion.Mission) { revert := c.revert(l); m.Revert = &revert })
		seq := r.Store.LastSeq()
		if err := r.Repair(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.files(c.files)
		s := r.mission().Revert
		if s == nil || s.Message != c.message || s.Moving || s.Next != nil || strings.Join(s.Kept, " ") != c.kept || len(s.Files) != 1 || strings.Join(centurion.Paths(s.Files[0].Files), " ") != c.moved {
			t.Errorf("%s: it stands: %+v", name, s)
		}
		if got := r.events("msn_1", seq); len(got) != 1 || !strings.HasPrefix(got[0], "session.renamed ses_1") {
			t.Errorf("%s: told %q", name, got)
		}
	}
}

// The files of a turn go back and come again with the revert of its message; what they were is told while it stands, and a host that died in
// between is finished by the next one. What somebody else has changed stays as it is, is named, and is nothing that the revert moves.
func TestRevertFiles(t *testing.T) {
	t.Parallel()
	r, _ := wrote(t)
	r.written("msg_1", "")
	r.written("msg_3", "a added, b added")
	r.written("", "")
	r.write("b", "mine\n")
	got, err := r.Revert(t.Context(), "ses_1", "msg_3")
	if err != nil || strings.Join(got.Kept, " ") != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
	r.files("b=mine")
	r.written("", "a added")
	if s := r.mission().Revert; s.Moving || len(s.Files) != 1 || strings.Join(centurion.Paths(s.Files[0].Files), " ") != "a" || !strings.Contains(s.Patch, "-one") || strings.Join(s.Kept, " ") != "b" {
		t.Errorf("it stands: %+v", s)
	}
	again := ""
	r.mission(func(m *centurion.Mission) { m.Revert.Next = &again }) // it died on the way forward
	if err := r.Repair(t.Context()); err != nil || r.mission().Revert != nil {
		t.Errorf("repaired: %v, %+v", err, r.mission().Revert)
	}
	r.files("a=one b=mine")
	if got, err = r.Revert(t.Context(), "ses_1", "msg_1"); err != nil || strings.Join(got.Kept, " ") != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
	r.write("a", "mine\n")
	if got, err = r.Revert(t.Context(), "ses_1", ""); err != nil || strings.Join(got.Kept, " ") != "a" {
		t.Errorf("brought back: %+v, %v", got, err)
	}
	r.files("a=mine b=mine")
}
