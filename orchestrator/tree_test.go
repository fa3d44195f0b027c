package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/branches"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
)

// tree reads everything that was said in a session.
func (r *rig) tree(session string) store.Tree {
	r.t.Helper()
	t, err := r.store.Tree(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	return t
}

// line tells a session's current line: who said what.
func (r *rig) line(session string) string {
	r.t.Helper()
	t := r.tree(session)
	return saidOn(t.Line(t.Leaf))
}

func saidOn(line []centurion.Message) string {
	var said []string
	for _, m := range line {
		word, _, _ := strings.Cut(m.Text(), "\n")
		for _, p := range m.Parts {
			if p.Type == centurion.PartTool {
				word = strings.TrimSpace(word + " →" + p.Tool)
			}
		}
		who := string(m.Origin)
		if m.Role == centurion.RoleAssistant {
			who = "model"
		}
		said = append(said, who+": "+centurion.Clip(word, 40))
	}
	return strings.Join(said, " | ")
}

// talk is a Commander that reads, answers and counts how often it was asked the last question.
func talk() map[string]script {
	return map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if q.Step() == 1 {
			return do(call("ls", args{}))
		}
		return say(fmt.Sprintf("answer %d", q.Number))
	}}
}

// OPAL-30, OPAL-35, C-17: a conversation is taken back to an older message and goes on from there under it: one message has two
// children, the path follows the new one, and nothing of the old one is sent to the model or changed.
func TestRewind(t *testing.T) {
	bubble(t, talk(), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "line", r.line(m.Session), "person: build it | model: →ls | model: answer 2")
		before := r.tree(m.Session)
		fork, old := before.Messages[1].ID, before.Messages[2]
		err := r.store.Update(r.ctx, func(tx *store.Tx) error { // what was still to be done belongs to the old line
			rec, err := tx.Session(m.Session)
			rec.Metadata.Retry, rec.Metadata.Compact = &centurion.Retry{}, true
			return errors.Join(err, tx.PutSession(&rec))
		})
		if err != nil {
			t.Fatal(err)
		}

		got, err := r.host.Branches.Rewind(r.ctx, m.Session, "-1", "")
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "rewound", got, branches.Rewound{Mission: m.ID, Status: centurion.MissionPaused, Session: m.Session, Address: "0/", From: old.ID,
			Leaf: fork, Undone: 1, Mark: "before-rewind-1"})
		equal(t, "line", r.line(m.Session), "person: build it | model: →ls")
		if rec, err := r.store.Session(r.ctx, m.Session); err != nil || rec.Metadata.Retry != nil || rec.Metadata.Compact {
			t.Errorf("it has still to do %+v, %v", rec.Metadata, err)
		}
		now, err := r.store.Mission(r.ctx, m.ID)
		if err != nil || now.Status != centurion.MissionPaused || now.Reason != "rewound" || now.Summary != "" {
			t.Errorf("the mission is %+v, %v", now, err)
		}
		var told []string
		for _, e := range r.events(m.ID)[len(r.events(m.ID))-2:] {
			told = append(told, string(e.Type))
		}
		equal(t, "events", fmt.Sprint(told), "[session.rewound mission.paused]")
		data, err := event.Decode[event.RewoundData](r.events(m.ID, centurion.EventRewound)[0])
		if want := (event.RewoundData{From: old.ID, To: fork, Mark: "before-rewind-1", Undone: 1}); err != nil || data != want {
			t.Errorf("told %+v, %v", data, err)
		}

		r.runs++ // the rewind has ended a run, too
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "line", r.line(m.Session), "person: build it | model: →ls | host: The person continues from this point of … | model: answer 3")
		reqs := r.requests("commander")
		last := reqs[len(reqs)-1]
		for _, x := range last.Messages() {
			if strings.Contains(x.Text, "answer 2") {
				t.Error("the model was sent what stands on another branch")
			}
		}
		after := r.tree(m.Session)
		equal(t, "old branch", bytesOf(t, after.Messages[:3]), bytesOf(t, before.Messages))
		equal(t, "children", fmt.Sprint(after.Messages[3].Prev == fork, after.Messages[2].Prev == fork), "true true")

		// There and back again, by the mark, which is the whole of the old line.
		if got, err = r.host.Branches.Rewind(r.ctx, m.Session, "before-rewind-1", ""); err != nil || got.Leaf != old.ID || got.Mark != "before-rewind-2" {
			t.Fatalf("%+v, %v", got, err)
		}
		equal(t, "line", r.line(m.Session), "person: build it | model: →ls | model: answer 2")
		if got, err = r.host.Branches.Rewind(r.ctx, m.Session, got.Mark, ""); err != nil || got.Mark != "before-rewind-1" || got.Undone != 1 {
			t.Fatalf("a line that has a mark got another one: %+v, %v", got, err)
		}
		has(t, r.line(m.Session), "answer 3")
	})
}

// OPAL-30: what a person may name, and what is refused with the next step.
func TestRewindTo(t *testing.T) {
	bubble(t, talk(), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		all := r.tree(m.Session).Messages
		part := all[1].Parts[0].ID
		before := r.store.LastSeq()
		got, err := r.host.Branches.Rewind(r.ctx, m.Session, "", "good")
		if err != nil || got.From != all[2].ID || got.Leaf != all[2].ID || r.store.LastSeq() != before {
			t.Errorf("a mark moved something: %+v, %v", got, err)
		}
		for _, c := range []struct {
			to, mark, want string // the kind of the error and a part of its text and hint, or the index of the message
		}{
			{"good", "", "2"},
			{all[1].ID, "", "1"},
			{"good", "", "2"},
			{all[1].ID[:len(all[1].ID)-3], "", "1"},
			{strings.TrimPrefix(all[0].ID, "msg_"), "", "0"},
			{"good", "again", "2"},
			{"-2", "", "0"},
			{"good", "", "2"},
			{"-0", "", "2"},
			{"-3", "", "usage: -3 goes back before the first message: the line has 3 messages: the first message is " + all[0].ID + ", which is -2"},
			{part, "", "usage: " + part + " is a part of message " + all[1].ID + ": an answer is not cut: name the whole message: " + all[1].ID},
			{"godo", "", "not_found: session " + m.Session + ` has no message and no mark "godo"; the nearest is good: see: centurion show --tree`},
			{all[1].ID[:12] + "zz", "", "not_found: session " + m.Session + " has no message and no mark"},
			{"msg_", "", `usage: "msg_" could be ` + all[0].ID + ", " + all[1].ID + ", " + all[2].ID + ": type more of the id"},
			{"", "", "usage: missing --to: name a message"},
			{"", "-1", `usage: "-1" cannot be the name of a message: it looks like a number`},
			{"", "7", `usage: "7" cannot be the name of a message: it looks like a number`},
			{"", "msg_x", `usage: "msg_x" cannot be the name of a message: it looks like an id`},
			{"", "a b", `usage: "a b" cannot be the name of a message: it may have letters`},
			{"", strings.Repeat("x", 65), "cannot be the name of a message: it is longer than 64 bytes"},
		} {
			before := r.tree(m.Session)
			got, err := r.host.Branches.Rewind(r.ctx, m.Session, c.to, c.mark)
			if err != nil {
				text := fmt.Sprintf("%s: %s: %s", centurion.KindOf(err), strings.TrimPrefix(strings.TrimPrefix(err.Error(), "rewind: "), "find message: "), centurion.HintOf(err))
				has(t, text, c.want)
				equal(t, c.to+": leaf after an error", r.tree(m.Session).Leaf, before.Leaf)
				continue
			}
			if len(c.want) > 1 {
				t.Errorf("%q, %q: was allowed: %+v", c.to, c.mark, got)
				continue
			}
			equal(t, c.to, got.Leaf, all[c.want[0]-'0'].ID)
			equal(t, c.to+": leaf", r.tree(m.Session).Leaf, got.Leaf)
		}
		if _, err := r.host.Branches.Rewind(r.ctx, "ses_none", "-1", ""); centurion.KindOf(err) != centurion.KindNotFound {
			t.Error(err)
		}
	})
}

// OPAL-30: nobody takes a conversation back while its mission is worked on, nor that of a task that has ended; both say what
// works instead. A mark can be set at any time.
func TestRewindRefused(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(work("", "piece")), say("I wait")), "worker": minutes(3, "done")}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		var busy, named error
		r.model.Requests()
		g := make(chan struct{})
		go func() { // guarded by the bubble: it ends before the test does
			defer close(g)
			for len(r.tasks(m.ID)) == 0 || r.tasks(m.ID)[0].Session == "" {
				waitFor(r.ctx)
			}
			_, busy = r.host.Branches.Rewind(r.ctx, m.Session, "-1", "")
			_, named = r.host.Branches.Rewind(r.ctx, m.Session, "", "here")
		}()
		r.run(m.ID)
		<-g
		if centurion.KindOf(busy) != centurion.KindConflict || named != nil {
			t.Errorf("while it runs: %v, %v", busy, named)
		}
		has(t, centurion.HintOf(busy), "centurion pause "+m.ID, "centurion fork "+m.Session)

		worker := r.tasks(m.ID)[0].Session
		before := r.tree(worker)
		_, err := r.host.Branches.Rewind(r.ctx, worker, "-1", "")
		if centurion.KindOf(err) != centurion.KindConflict || r.tree(worker).Leaf != before.Leaf {
			t.Errorf("of a task that has ended: %v", err)
		}
		has(t, fmt.Sprint(err), "0/0 is the conversation of a task that is completed")
		has(t, centurion.HintOf(err), "centurion fork "+worker)
		if f, err := r.host.Branches.Fork(r.ctx, worker, "-1"); err != nil || f.Agent != "worker" {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

// OPAL-30, OPAL-29: a fork is a mission of its own that shares nothing with the original, costs nothing by itself, and both go on.
func TestFork(t *testing.T) {
	bubble(t, map[string]script{"commander": func(q scripted.Request) scripted.Answer {
		if q.Step() == 1 {
			return do(plans("- [x] T1 Look", "- [x] T2 Think"))
		}
		return say(fmt.Sprintf("answer %d", q.Number))
	}}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxCost: 5, Request: "once"})
		plan := r.read(todoMD)
		original := r.tree(m.Session)
		f, err := r.host.Branches.Fork(r.ctx, m.Session, "-1")
		if err != nil {
			t.Fatal(err)
		}
		n, err := r.store.Mission(r.ctx, f.Mission)
		if err != nil || n.ID == m.ID || n.Goal != m.Goal || n.Status != centurion.MissionPaused || n.Reason != "forked from "+m.Session ||
			n.Options.MaxCost != 5 || n.Options.Request != "" || n.Usage.Tokens.Total() != 0 || n.Usage.USD != 0 || n.Rounds != 0 {
			t.Errorf("the fork is %+v, %v", n, err)
		}
		equal(t, "plan", r.read(f.Todo), plan)
		if f.Todo == todoMD || f.Todo != n.Todo {
			t.Errorf("its plan is %s, %s", f.Todo, n.Todo)
		}
		copied := r.tree(f.Session)
		equal(t, "line", r.line(f.Session), "person: build it | model: →update_todo")
		rec := copied.Session
		if rec.Metadata.Address != "0/" || rec.Metadata.Mission != n.ID || rec.Cost != 0 || rec.Tokens.Total() != 0 || n.Session != rec.ID ||
			rec.Metadata.System != original.Session.Metadata.System || *rec.Metadata.ForkedFrom != (centurion.ForkedFrom{Mission: m.ID, Session: m.Session, Message: original.Messages[1].ID}) {
			t.Errorf("its session is %+v", rec)
		}
		shared := map[string]bool{m.ID: true, m.Session: true}
		for _, x := range original.Messages {
			shared[x.ID] = true
			for _, p := range x.Parts {
				shared[p.ID] = true
			}
		}
		for _, x := range copied.Messages {
			for _, p := range x.Parts {
				if shared[p.ID] || shared[p.MessageID] || p.SessionID != f.Session {
					t.Errorf("a part is shared: %+v", p)
				}
			}
			if shared[x.ID] || shared[x.Prev] || shared[x.ParentID] || x.SessionID != f.Session {
				t.Errorf("a message is shared: %+v", x)
			}
		}
		equal(t, "forks told", r.count(f.Mission, centurion.EventForked), 1)

		r.is(r.run(f.Mission), centurion.MissionCompleted, "")
		has(t, r.line(f.Session), "→update_todo | host: This conversation is a copy", "model: answer")
		equal(t, "the original", bytesOf(t, r.tree(m.Session).Messages), bytesOf(t, original.Messages))
		if n, err = r.store.Mission(r.ctx, f.Mission); err != nil || n.Usage.Tokens.Total() == 0 || n.Usage.Tokens.Total() >= m.Usage.Tokens.Total()*2 {
			t.Errorf("it has cost %+v, the original %+v, %v", n.Usage, m.Usage, err)
		}
		// The original goes on, too, and writes its own plan.
		if _, err := r.host.Branches.Rewind(r.ctx, m.Session, "-1", ""); err != nil {
			t.Fatal(err)
		}
		if r.is(runOnce(r, m.ID), centurion.MissionCompleted, ""); r.read(f.Todo) != plan {
			t.Error("the fork's plan was changed")
		}
	})
}

// OPAL-30, IKI-31: a copy has the marks of the line that was copied and no other, and what its session was given; nobody waits for it on
// a terminal. Going forward again leaves nothing behind that needs a mark, and what the left line waited for is forgotten.
func TestForkKeepsMarks(t *testing.T) {
	bubble(t, talk(), func(r *rig) {
		m := r.mission(centurion.MissionOptions{Detached: true})
		all := r.tree(m.Session).Messages
		mark := func(to, name string) branches.Rewound {
			got, err := r.host.Branches.Rewind(r.ctx, m.Session, to, name)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		mark("-1", "end")
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			rec, err := tx.Session(m.Session)
			if err != nil {
				return err
			}
			rec.Metadata.Skills, rec.Metadata.Retry, rec.Metadata.Compact = "- digging", &centurion.Retry{Attempts: 2}, true
			return tx.PutSession(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
		mark("", "middle")
		f, err := r.host.Branches.Fork(r.ctx, m.Session, "middle")
		if err != nil {
			t.Fatal(err)
		}
		copied := r.tree(f.Session)
		equal(t, "marks", fmt.Sprint(copied.Session.Metadata.Marks), fmt.Sprint(map[string]string{"middle": copied.Messages[1].ID}))
		equal(t, "skills", copied.Session.Metadata.Skills, "- digging")
		if n, err := r.store.Mission(r.ctx, f.Mission); err != nil || n.Options.Detached {
			t.Errorf("%+v, %v", n.Options, err)
		}

		if meta := r.tree(m.Session).Session.Metadata; meta.Retry == nil || !meta.Compact {
			t.Errorf("a mark has changed %+v", meta)
		}
		if got := mark("end", ""); got.Leaf != all[2].ID || got.Undone != 0 || got.Mark != "" {
			t.Errorf("forward: %+v", got)
		}
		if meta := r.tree(m.Session).Session.Metadata; meta.Retry != nil || meta.Compact {
			t.Errorf("what the line that was left waited for is kept: %+v", meta)
		}
	})
}

// runOnce runs a mission that was begun before others of the rig were.
func runOnce(r *rig, id string) centurion.Mission {
	m, err := r.host.Run(r.ctx, id)
	if err != nil {
		r.t.Error(err)
	}
	return m
}

// OPAL-29, R3: a fork that is cut off half way leaves nothing: it is one transaction.
func TestForkAllOrNothing(t *testing.T) {
	bubble(t, talk(), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		before := r.store.LastSeq()
		broken := errors.New("broken")
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			if _, err := branches.Write(tx, branches.Copy(m, "commander"), m.Session, ""); err != nil {
				return err
			}
			return broken
		})
		all, lerr := r.store.Missions(r.ctx)
		if !errors.Is(err, broken) || lerr != nil || len(all) != 1 || r.store.LastSeq() != before {
			t.Errorf("%v: %d missions, %d events more, %v", err, len(all), r.store.LastSeq()-before, lerr)
		}
	})
}

// OPAL-29: a fork that cannot be recorded leaves no copy of the plan behind.
func TestForkLeavesNoPlan(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [x] T1 One")), say("done"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		other, err := store.Open(r.ctx, r.store.Path())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.store.Own(r.ctx), other.Own(r.ctx), other.Close()); err != nil { // from now on its updates are refused
			t.Fatal(err)
		}
		before := filesIn(t, filepath.Join(r.dir, ".opencode"))
		has(t, before, "todo.md")
		if _, err := r.host.Branches.Fork(r.ctx, m.Session, ""); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("the fork: %v", err)
		}
		equal(t, "files", filesIn(t, filepath.Join(r.dir, ".opencode")), before)
		if err := r.store.Own(r.ctx); err != nil {
			t.Fatal(err)
		}
		f, err := r.host.Branches.Fork(r.ctx, m.Session, "")
		if err != nil {
			t.Fatal(err)
		}
		has(t, r.read(f.Todo), "T1 One")
	})
}

// filesIn names what lies in a directory.
func filesIn(t testing.TB, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// What a person has approved of a plan goes with the plan: a copy without one has to ask again.
func TestForkWithoutPlan(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(plans("- [x] T1 Look")), say("done"))}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		err := r.store.Update(r.ctx, func(tx *store.Tx) error {
			rec, err := tx.Mission(m.ID)
			if err != nil {
				return err
			}
			rec.Accepted, rec.Approved = true, []string{"make check"}
			return tx.PutMission(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, with := range []bool{true, false} {
			if !with {
				if err := os.Remove(filepath.Join(r.dir, todoMD)); err != nil {
					t.Fatal(err)
				}
			}
			f, err := r.host.Branches.Fork(r.ctx, m.Session, "")
			if err != nil {
				t.Fatal(err)
			}
			if n, err := r.store.Mission(r.ctx, f.Mission); err != nil || n.Accepted != with || (len(n.Approved) == 1) != with {
				t.Errorf("with a plan %v: accepted %v, approved %q, %v", with, n.Accepted, n.Approved, err)
			}
		}
	})
}

// OPAL-30: a conversation may be copied while it is worked on: a call that has no result then is answered as interrupted in the
// copy, and the original never notices.
func TestForkWhileItRuns(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(call("bash", args{"command": "build 10s", "description": "Build"})), say("built"))}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		var f branches.Forked
		var err error
		g := make(chan struct{})
		go func() {
			defer close(g)
			for r.shell.times("build 10s") == 0 {
				waitFor(r.ctx)
			}
			f, err = r.host.Branches.Fork(r.ctx, m.Session, "")
		}()
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		<-g
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "the original", r.line(m.Session), "person: build it | model: →bash | model: built")
		r.is(runOnce(r, f.Mission), centurion.MissionCompleted, "")
		equal(t, "results", strings.Contains(fmt.Sprint(r.results(f.Mission, "bash")), "interrupted by a restart"), true)
		equal(t, "builds", r.shell.times("build 10s"), 1)
		if valid := session.History(r.tree(f.Session).Messages); len(valid) < 4 {
			t.Errorf("the copy has %d messages", len(valid))
		}
	})
}

// C-17, R3: a mission that is over can be brought back by a rewind and by nothing else.
func TestPauseOver(t *testing.T) {
	bubble(t, talk(), func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		if err := r.host.Control.Pause(r.ctx, m.ID, ""); centurion.KindOf(err) != centurion.KindConflict {
			t.Errorf("pause: %v", err)
		}
		r.is(runOnce(r, m.ID), centurion.MissionCompleted, "")
	})
}

// bytesOf is what is stored of messages.
func bytesOf(t testing.TB, all []centurion.Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range all {
		data, err := json.Marshal([]any{m, m.Parts, m.Origin, m.Prev})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return b.String()
}

// waitFor lets the faked clock move on.
func waitFor(ctx context.Context) {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
}
