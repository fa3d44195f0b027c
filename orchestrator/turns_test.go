package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/orchestrator/branches"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/revert"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/worktree"
)

// talker is an assistant that writes what it is told: "write FILE TEXT", or "sh SCRIPT" with a command, and answers anything else.
func talker(t *testing.T) *rig {
	r := realRig(t, family(func(q scripted.Request) scripted.Answer {
		last := q.Messages()[len(q.Messages())-1]
		word, rest, _ := strings.Cut(last.Text, " ")
		switch name, text, _ := strings.Cut(rest, " "); {
		case last.Role != "user":
			return say("done")
		case word == "write":
			return do(writes(name, text+"\n"))
		case word == "sh":
			return do(sh(rest))
		}
		return say("answer to " + last.Text)
	}, nil))
	r.model.AllowRewinds()
	home := t.TempDir()
	r.cfg.Shadow = func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: r.dir, Home: home})
	}
	r.restart()
	return r
}

// talk is a mission that was told these things, one after the other.
func (r *rig) talk(texts ...string) centurion.Mission {
	r.t.Helper()
	m, err := r.host.Start(r.ctx, texts[0], assistant())
	if err != nil {
		r.t.Fatal(err)
	}
	m = r.run(m.ID)
	for _, text := range texts[1:] {
		m = r.say(m, text)
	}
	return m
}

func (r *rig) say(m centurion.Mission, text string) centurion.Mission {
	r.t.Helper()
	if _, err := r.host.Mail.Send(r.ctx, mail.Post{To: m.Session, Text: text}); err != nil {
		r.t.Fatal(err)
	}
	r.runs++ // the word has an end of its own
	return r.run(m.ID)
}

// users are the messages of its person, on the line of a mission.
func (r *rig) users(m centurion.Mission) (ids []string) {
	r.t.Helper()
	all, err := r.store.Messages(r.ctx, m.Session)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, msg := range all {
		if msg.Role == centurion.RoleUser {
			ids = append(ids, msg.ID)
		}
	}
	return ids
}

func (r *rig) revert(m centurion.Mission, message string) branches.Reverted {
	r.t.Helper()
	got, err := r.host.Branches.Revert(r.ctx, m.Session, message)
	if err != nil {
		r.t.Fatal(err)
	}
	if standing := got.Session.Metadata.Revert; (standing != nil) != (message != "") || standing != nil && (standing.Message != message || standing.Moving || standing.Next != nil) {
		r.t.Fatalf("reverted from %q: %+v", message, standing)
	}
	return got
}

// top is the project as "name=text", without what the program keeps there.
func (r *rig) top() string {
	r.t.Helper()
	var all []string
	entries, err := os.ReadDir(r.dir)
	for _, e := range entries {
		if !e.IsDir() {
			all = append(all, e.Name()+"="+strings.TrimSpace(r.read(e.Name())))
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// Issue "Real OpenCode clients", revert: files and messages go back together, to any message and forward again; all that stands until the
// next message, which takes the messages off the line.
func TestRevertTurns(t *testing.T) {
	r := talker(t)
	m := r.talk("write a one", "sh echo two > a; echo two > b", "only words", "sh rm b; echo three > c")
	users := r.users(m)
	whole := r.top()
	equal(t, "at first", whole, "a=two c=three")
	for _, step := range []struct {
		to   int // of users; -1 for nothing
		want string
	}{{3, "a=two b=two"}, {2, "a=two b=two"}, {1, "a=one"}, {0, ""}, {1, "a=one"}, {1, "a=one"}, {-1, whole}, {-1, whole}, {0, ""}, {-1, whole}} {
		message := ""
		if step.to >= 0 {
			message = users[step.to]
		}
		got := r.revert(m, message)
		if r.top() != step.want || len(got.Kept) > 0 {
			t.Fatalf("reverted from %d: %q, want %q; kept %v", step.to, r.top(), step.want, got.Kept)
		}
		if standing := got.Session.Metadata.Revert; step.to == 1 && !strings.Contains(standing.Patch, "-three") {
			t.Errorf("the patch of the revert: %q", standing.Patch)
		}
	}
	all, err := r.store.Messages(r.ctx, m.Session)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.host.Branches.Revert(r.ctx, m.Session, all[2].ID); err != nil || got.Session.Metadata.Revert.Message != users[0] { // an answer counts as its message
		t.Errorf("reverted from an answer: %+v, %v", got.Session.Metadata.Revert, err)
	}
	r.revert(m, users[1])
	m = r.say(m, "instead")
	equal(t, "the line", r.userText(m.Session), "write a one\n\ninstead\n\n")
	equal(t, "files", r.top(), "a=one")
	if m.Revert != nil {
		t.Errorf("a revert stands: %+v", m.Revert)
	}
	r.revert(m, r.users(m)[0]) // nothing is left of the line then
	m = r.say(m, "anew")
	equal(t, "the line", r.userText(m.Session), "anew\n\n")
	equal(t, "files", r.top(), "")
	r.is(m, centurion.MissionCompleted, "")
}

// What a person has changed since stays as it is, and that is told, also to the agent that goes on.
func TestRevertKeepsOthersWork(t *testing.T) {
	r := talker(t)
	m := r.talk("write a one", "sh echo two > b; echo two > c", "sh echo three > a; mkdir -p d; echo x > d/e")
	r.write("b", "mine\n")
	r.write("mine", "mine\n")
	got := r.revert(m, r.users(m)[1])
	equal(t, "files", r.top(), "a=one b=mine mine=mine")
	equal(t, "kept", strings.Join(got.Kept, " "), "b")
	if _, err := os.Stat(filepath.Join(r.dir, "d")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty directory is left: %v", err)
	}
	r.write("a", "mine, too\n")
	got = r.revert(m, "")
	equal(t, "files, brought back", r.top(), "a=mine, too b=mine c=two mine=mine")
	equal(t, "kept", strings.Join(got.Kept, " "), "a")
	r.revert(m, r.users(m)[2])
	m = r.say(m, "go on")
	has(t, r.userText(m.Session), "was reverted, but not in a: someone else", "go on")
}

// A host that has died in the middle of a revert leaves the files to the next one.
func TestRevertAfterCrash(t *testing.T) {
	r := talker(t)
	m := r.talk("write a one", "sh echo two > a; echo two > b", "sh echo three > b")
	users := r.users(m)
	files := &revert.Files{Project: r.host.Project, Workspace: r.ws}
	messages, err := r.store.Messages(r.ctx, m.Session)
	if err != nil {
		t.Fatal(err)
	}
	from := slices.IndexFunc(messages, func(msg centurion.Message) bool { return msg.ID == users[1] })
	begun, err := files.Plan(r.ctx, messages[from:])
	if err != nil {
		t.Fatal(err)
	}
	died := func(left *centurion.Revert, do func()) string {
		r.update(func(tx *store.Tx) error {
			m, err := tx.Mission(m.ID)
			m.Revert = left
			return errors.Join(err, tx.PutMission(&m))
		})
		do()
		r.restart()
		if err := r.host.Branches.Repair(r.ctx); err != nil {
			t.Fatal(err)
		}
		return r.top()
	}
	nothing := ""
	back := begun
	back.Moving, back.Next = false, &nothing
	onward := begun
	onward.Moving, onward.Next = false, &users[2]
	for _, step := range []struct {
		what string
		left *centurion.Revert
		do   func()
		want string
	}{
		{"recorded, and no file moved", &begun, func() {}, "a=one"},
		{"half of the way back", &back, func() {}, "a=two b=three"},
		{"a file was being replaced", &begun, func() { r.remove("a") }, "a=one"},
		{"and again", &back, func() { r.remove("a") }, "a=two b=three"},
		{"on the way to another message", &begun, func() {}, "a=one"},
		{"where only one has to go back", &onward, func() {}, "a=two b=two"},
	} {
		if got := died(step.left, step.do); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
	r.revert(m, "")
	equal(t, "all", r.top(), "a=two b=three")
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, name)); err != nil {
		r.t.Fatal(err)
	}
}

// What cannot be reverted is refused with the next step, and nothing moves.
func TestRevertRefused(t *testing.T) {
	r := talker(t)
	m := r.talk("write a one", "more")
	users := r.users(m)
	set := func(change func(m *centurion.Mission)) {
		r.update(func(tx *store.Tx) error {
			m, err := tx.Mission(m.ID)
			change(&m)
			return errors.Join(err, tx.PutMission(&m))
		})
	}
	asked := func(what, message string, kind centurion.Kind, says string) {
		t.Helper()
		_, err := r.host.Branches.Revert(r.ctx, m.Session, message)
		if centurion.KindOf(err) != kind || !strings.Contains(err.Error()+centurion.HintOf(err), says) {
			t.Errorf("%s: %v (%s), want %s: %s", what, err, centurion.HintOf(err), kind, says)
		}
	}
	commands := r.host.Branches.Command
	r.host.Branches.Command = func(string) <-chan struct{} { return make(chan struct{}) }
	asked("while a command of the person runs", users[0], centurion.KindConflict, "centurion abort "+m.Session)
	if _, err := r.host.Branches.Rewind(r.ctx, m.Session, "-1", ""); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("rewound while a command runs: %v", err)
	}
	r.host.Branches.Command = commands
	asked("a message of nobody's", "msg_000000000001AAAAAAAAAAAAAA", centurion.KindNotFound, "show --tree")
	set(func(m *centurion.Mission) { m.Merged = &centurion.Merged{Time: centurion.Now()} })
	asked("merged work", users[0], centurion.KindConflict, "centurion undo "+m.ID)
	set(func(m *centurion.Mission) { m.Merged, m.Options.Profile = nil, "mission" })
	asked("a complete mission", users[1], centurion.KindConflict, "centurion rewind")
	set(func(m *centurion.Mission) { m.Status = centurion.MissionPaused })
	asked("its goal", users[0], centurion.KindConflict, "open another session")
	task := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: m.ID, Item: "T1", Status: centurion.TaskCompleted, Ended: centurion.Now(), Landed: []centurion.Landed{{Before: "x"}}}
	r.update(func(tx *store.Tx) error { return tx.PutTask(&task) })
	asked("work of a task", users[1], centurion.KindConflict, "centurion undo "+task.ID)
	equal(t, "files", r.top(), "a=one")
}

// What a person runs or notes while a revert stands continues the conversation that is left, as a prompt does.
func TestRevertedBeforeCommandOrNote(t *testing.T) {
	for what, does := range map[string]func(r *rig, m centurion.Mission) error{
		"a command": func(r *rig, m centurion.Mission) error {
			_, err := r.host.Shell.Run(r.ctx, m.Session, "echo known")
			return err
		},
		"a note": func(r *rig, m centurion.Mission) error {
			_, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: m.Session, Text: "known", NoReply: true})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := talker(t)
			m := r.talk("write a one", "write a two")
			r.revert(m, r.users(m)[1])
			if err := does(r, m); err != nil {
				t.Fatal(err)
			}
			r.say(m, "and now")
			sent := r.requests("assistant")
			last := fmt.Sprint(sent[len(sent)-1].Messages())
			if !strings.Contains(last, "known") || strings.Contains(last, "write a two") || !strings.Contains(last, "write a one") {
				t.Errorf("the model gets %s", last)
			}
			equal(t, "files", r.top(), "a=one")
		})
	}
}
