package merge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/claims"
	"centurion/orchestrator/frozen"
	"centurion/orchestrator/plan"
	"centurion/sandbox"
	"centurion/session"
	"centurion/store"
	"centurion/workspace"
	"centurion/worktree"
)

// judging is the ground with all that judges an ended turn.
func judging(t *testing.T, text string, rec centurion.Mission) *ground {
	t.Helper()
	g := grounded(t, text, rec)
	g.claims, g.frozen = &claims.Registry{}, frozen.New(g.st, g.plan)
	return g
}

// told are the notices of the mission.
func (g *ground) told() (notes []string) {
	g.t.Helper()
	events, err := g.st.Store.Events(g.t.Context(), store.EventQuery{Mission: "msn_1", Types: []centurion.EventType{centurion.EventMissionUpdated}})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, e := range events {
		d, err := event.Decode[event.MissionData](e)
		if err != nil {
			g.t.Fatal(err)
		}
		notes = append(notes, d.Note)
	}
	return notes
}

// What a task has done in the project's own directory is judged by its item's checks there: each as the plan has it now, or as it was handed out
// while its line cannot be read. Where they pass, that does not show that an agent is wrong which says that it is stuck.
func TestAcceptShared(t *testing.T) {
	t.Parallel()
	const failed = "has none"
	g := judging(t, "# P\n- [~] T1 One\n  - verify: `has go.txt`\n- [~] T2 Two\n  - verify: `has go.txt`\n  - verify: `has none`\n  - verify: `lacks none`\n- [~] T3 Three\n- [!?] T4 Four\n",
		centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	g.iso.Ground = nil
	for name, c := range map[string]struct {
		item, said string
		reviews    bool
		ran        string // the command that ran last
		back       func(r centurion.Receipt) *Rejection
		err        error
	}{
		"passes":   {item: "T1", said: "Done.", ran: "has go.txt"},
		"no item":  {said: "Done."},
		"a review": {item: "T1", said: "I looked.", reviews: true},
		"no check": {item: "T3", said: "Done."},
		"fails": {item: "T2", said: "Done.", ran: failed, back: func(r centurion.Receipt) *Rejection {
			return &Rejection{Text: "The host ran your acceptance command and it failed.\n" + brief.Account(r) + "\nFix the cause, then end your turn; the host runs it again.",
				Short: brief.Account(r), Cause: event.ReturnedCheck, Command: failed}
		}},
		"cannot be read": {item: "T4", said: "Done.", ran: "lacks go.txt", back: func(r centurion.Receipt) *Rejection {
			return &Rejection{Text: "The host ran your acceptance command and it failed.\n" + brief.Account(r) + "\nFix the cause, then end your turn; the host runs it again.",
				Short: brief.Account(r), Cause: event.ReturnedCheck, Command: "lacks go.txt"}
		}},
		"stuck, and passes": {item: "T1", said: "STUCK: no.", ran: "has go.txt", back: func(centurion.Receipt) *Rejection {
			return StuckAnyway("that its checks pass does not show otherwise: without isolation nothing tells whether they passed before")
		}},
		"stuck, and fails": {item: "T2", said: "STUCK: no.", ran: failed, back: func(r centurion.Receipt) *Rejection {
			return StuckAnyway("its acceptance command fails: " + brief.Account(r))
		}},
		"is removed": {item: "T9", said: "Done.", err: plan.Removed("T9")},
	} {
		g.runs.runs = map[string]int{}
		g.put(centurion.Task{ID: "tsk_1", Item: c.item, Session: "ses_1", Status: centurion.TaskRunning, Reviews: c.reviews, Verify: []string{"lacks go.txt"}})
		back, err := g.Accept(t.Context(), author("tsk_1", c.item, "worker", "write"), &session.Outcome{Text: c.said, Files: []string{"a"}}, 1)
		if (err == nil) != (c.err == nil) || err != nil && err.Error() != c.err.Error() {
			t.Errorf("%s: %v", name, err)
		}
		var r centurion.Receipt
		if len(g.runs.runs) > 0 {
			r = g.newest()
		}
		if r.Command != c.ran || c.ran != "" && (r.Item != c.item || r.Task != "tsk_1" || r.Why != "no isolation: that it is green is all that was looked at") || g.runs.runs["lacks none"] > 0 {
			t.Errorf("%s: ran %+v", name, r)
		}
		var want *Rejection
		if c.back != nil {
			want = c.back(r)
		}
		g.like(name, back, want)
		task, terr := g.st.Store.Task(t.Context(), "tsk_1")
		if verified := task.Status == centurion.TaskVerifying; terr != nil || verified != (c.ran != "") {
			t.Errorf("%s: the task is %s, %v", name, task.Status, terr)
		}
	}
}

// A check that somebody has written into the plan's file counts for its item if a person says so, whatever other items' checks became; otherwise the
// one that was handed out is put back.
func TestForeignChecks(t *testing.T) {
	t.Parallel()
	const was = "# P\n- [~] T1 One\n  - verify: `has go.txt`\n- [~] T2 Two\n  - verify: `has old.txt`\n"
	for answer, want := range map[string]string{"once": "lacks a", "reject": "has go.txt"} {
		g := judging(t, was, centurion.Mission{Options: centurion.MissionOptions{Ask: "ask"}})
		one := centurion.Task{ID: "tsk_1", Mission: "msn_1", Item: "T1", Frozen: &centurion.Frozen{Verify: []string{"has go.txt"}}}
		two := centurion.Task{ID: "tsk_2", Mission: "msn_1", Item: "T2", Frozen: &centurion.Frozen{Verify: []string{"has old.txt"}}}
		g.put(one)
		g.put(two)
		g.frozen.Know(one, two)
		text := strings.NewReplacer("has go.txt", "lacks a", "has old.txt", "lacks b").Replace(was)
		if err := g.ws.WriteFile(workspace.TodoPath, []byte(text)); err != nil {
			t.Fatal(err)
		}
		var asked []store.Ask
		var answering guard.Group
		answering.Go("answer", func() (err error) {
			for err == nil && len(asked) == 0 {
				changed := g.st.Change()
				if asked, err = g.st.Store.Asks(t.Context(), "msn_1", true); err == nil && len(asked) == 0 {
					err = g.st.Await(t.Context(), changed, 0)
				}
			}
			return errors.Join(err, approval.Answer(t.Context(), g.st.Store, asked[0].ID, answer, sandbox.Peer{}, func(string) *approval.Approvals { return g.may }))
		})
		if err := errors.Join(g.askForeignChecks(t.Context(), author("tsk_1", "T1", "worker")), answering.Wait()); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || asked[0].Task != "tsk_1" || asked[0].Title != "use the check of todo.md: lacks a" || asked[0].Text != frozen.Word([]centurion.Exchange{{Item: "T1", From: []string{"has go.txt"}, To: []string{"lacks a"}}}) {
			t.Errorf("asked %+v", asked)
		}
		it, ok := g.plan.ItemNow("T1")
		other, _ := g.plan.ItemNow("T2")
		if !ok || strings.Join(it.Verify, " ") != want || strings.Join(other.Verify, " ") != "has old.txt" {
			t.Errorf("%s: %q counts, and of the other %q", answer, it.Verify, other.Verify)
		}
		const note = "the person changed what has to be proven: item T1: `has go.txt` became `lacks a`"
		if slices.Contains(g.told(), note) != (answer == "once") {
			t.Errorf("%s: told %q", answer, g.told())
		}
	}
}

// An agent's changes of proofs are told and kept with its task, and the new commands of done items run at once.
func TestChecksExchanged(t *testing.T) {
	t.Parallel()
	g := judging(t, "# P\n- [x] T1 One\n- [ ] T2 Two\n", centurion.Mission{Approved: []string{"has go.txt", "has none", "true"}, Options: centurion.MissionOptions{Ask: "deny"}})
	g.put(centurion.Task{ID: "tsk_1", Item: "T9", Agent: "reviewer", Exchanged: []centurion.Exchange{{Item: "T0"}}})
	changed := []centurion.Exchange{{Item: "T2", From: []string{"a"}, To: []string{"lacks x"}}, {Item: "T1", From: []string{"a", "b"}, To: []string{"has go.txt", "has none", "has secret", "has go.txt"}}, {From: []string{"c"}, To: []string{"true"}}}
	notes, err := g.ChecksExchanged(t.Context(), author("tsk_1", "T9", "reviewer"), changed)
	all, rerr := g.st.Store.Receipts(t.Context(), "msn_1")
	if err != nil || rerr != nil || len(all) != 2 {
		t.Fatal(all, err, rerr)
	}
	want := []string{"T1: " + brief.Passed(all[0]), "T1: " + brief.Account(all[1]), "T1: the acceptance command `has secret` may not run: "}
	if len(notes) != 3 || notes[0] != want[0] || notes[1] != want[1] || !strings.HasPrefix(notes[2], want[2]) || all[0].Command != "has go.txt" || all[1].Command != "has none" || all[0].Item != "T1" {
		t.Errorf("%q, want %q", notes, want)
	}
	const word = "the reviewer changed what has to be proven: item T2: `a` became `lacks x`; item T1: `a`, `b` became `has go.txt`, `has none`, `has secret`, `has go.txt`; the mission's own checks: `c` became `true`"
	if told := g.told(); len(told) != 1 || told[0] != word {
		t.Errorf("told %q, want %q", told, word)
	}
	if task, err := g.st.Store.Task(t.Context(), "tsk_1"); err != nil || len(task.Exchanged) != 4 || task.Exchanged[0].Item != "T0" || task.Exchanged[3].To[0] != "true" {
		t.Errorf("%+v, %v", task.Exchanged, err)
	}
	g.iso.Ground = nil
	if notes, err := g.ChecksExchanged(t.Context(), author("", "", "commander"), changed[1:2]); err != nil || len(notes) > 0 || len(g.told()) != 2 {
		t.Errorf("in one directory: %q, %v", notes, err)
	}
	if notes, err := g.ChecksExchanged(t.Context(), author("", "", "commander"), nil); err != nil || len(notes) > 0 || len(g.told()) != 2 {
		t.Errorf("of nothing: %q, %v", notes, err)
	}
}

// Whoever is cancelled while it waits for its turn is out of the line; if another landing has taken it along, it waits for that, and its merge counts.
func TestLandCancelled(t *testing.T) {
	t.Parallel()
	g, enough := grounded(t, "# P\n", centurion.Mission{}), errors.New("enough")
	work := g.work("tsk_1", "T1", g.base, map[string]string{"a": "1\n"})
	for name, c := range map[string]struct {
		taken  bool
		decide func(l *Work)
		merged bool
	}{
		"it only waits":         {false, func(*Work) {}, false},
		"it is merged":          {true, func(l *Work) { l.end(nil, nil) }, true},
		"it goes back":          {true, func(l *Work) { l.end(&Rejection{}, nil) }, false},
		"it fails":              {true, func(l *Work) { l.end(nil, errors.New("no")) }, false},
		"it is not decided yet": {true, func(*Work) {}, false},
	} {
		release, err := g.Hold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		g.put(centurion.Task{ID: "tsk_1", Item: "T1", Status: centurion.TaskRunning})
		l := &Work{Task: work.Task, Commit: work.Commit}
		var landing guard.Group
		landing.Go("land", func() error { return g.Land(ctx, l) })
		for g.Waiting() == 0 {
			if err := guard.Sleep(t.Context(), 1e6); err != nil {
				t.Fatal(err)
			}
		}
		if c.taken {
			g.mu.Lock()
			l.taken = true
			g.mu.Unlock()
		}
		cancel(enough)
		for g.Waiting() > 0 {
			if err := guard.Sleep(t.Context(), 1e6); err != nil {
				t.Fatal(err)
			}
		}
		if c.taken {
			c.decide(l) // who holds the turn decides
			release()
			release = func() {}
		}
		err = landing.Wait()
		release()
		if c.merged != (err == nil) || !c.merged && !errors.Is(err, enough) {
			t.Errorf("%s: %v", name, err)
		}
		task, err := g.st.Store.Task(t.Context(), "tsk_1")
		if again, herr := g.Hold(t.Context()); err != nil || herr != nil || g.tip() != g.base || task.Status != centurion.TaskVerifying {
			t.Errorf("%s: %v, %v, the task is %s", name, err, herr, task.Status)
		} else {
			again()
		}
	}
}

// What passed ahead is as good as what passes at its turn.
func TestPassesAhead(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{})
	green := func(p centurion.Proof, missed bool) centurion.Receipt {
		return centurion.Receipt{Passed: true, Proof: p, TestsMissWork: missed}
	}
	for name, c := range map[string]struct {
		l    Work
		r    centurion.Receipt
		want bool
	}{
		"red":               {Work{}, centurion.Receipt{Proof: centurion.ProofProven}, false},
		"proven":            {Work{Stuck: true, Mends: true}, green(centurion.ProofProven, true), true},
		"unproven":          {Work{}, green(centurion.ProofUnproven, false), true},
		"unproven, stuck":   {Work{Stuck: true}, green(centurion.ProofUnproven, false), false},
		"hollow":            {Work{Mends: true}, green(centurion.ProofUnproven, true), false},
		"hollow, told":      {Work{}, green(centurion.ProofUnproven, true), true},
		"unproven, to mend": {Work{Mends: true}, green(centurion.ProofUnproven, false), true},
	} {
		l := c.l
		l.Verify, l.Item, l.Agent, l.Keeps, l.Race = []string{"a", "a", "b"}, "T1", "worker", true, "r"
		g.enter(t.Context(), &l)
		if got := l.ahead.Passes(c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		a := l.ahead
		if !slices.Equal(a.Commands, []string{"a", "b"}) || !a.Empty || !a.Keeps || a.Item != "T1" || a.Race != "r" || a.Agent != "worker" {
			t.Errorf("%s: %+v", name, a)
		}
		g.quit(&l)
		g.bench.Leave(a)
	}
	l := Work{Item: "T1", Checks: "T1/2", Commit: worktree.Commit{ID: "c"}}
	g.enter(t.Context(), &l)
	if l.ahead.Empty || l.ahead.Item != "T1/2" || l.ahead.Keeps {
		t.Errorf("of a try: %+v", l.ahead)
	}
	g.bench.Leave(l.ahead)
}
