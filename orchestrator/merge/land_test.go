package merge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/verify"
	"centurion/workspace"
	"centurion/worktree"
)

// program answers checks: "has X" passes if there is a file X, "lacks X" if there is none, and "once X" fails at its first run where X is.
type program struct{ runs map[string]int }

func (p *program) Run(_ context.Context, c centurion.Command) (centurion.CommandResult, error) {
	word, name, _ := strings.Cut(strings.TrimSpace(c.Script), " ")
	_, err := os.Stat(filepath.Join(c.Cwd(), name))
	if p.runs[c.Script]++; word == "once" && err != nil {
		p.runs[c.Script] = 0 // it counts where X is
	}
	if word == "empty" {
		return centurion.CommandResult{Output: "testing: warning: no tests to run\n"}, nil
	}
	if ok := word == "true" || word == "has" && err == nil || word == "lacks" && err != nil || word == "once" && (err != nil || p.runs[c.Script] > 1); ok {
		return centurion.CommandResult{Output: "fine\n"}, nil
	}
	return centurion.CommandResult{ExitCode: 1, Output: word + " " + name + ": no\nmore\n"}, nil
}

// ground is the queue of a mission msn_1 whose project is a repository with the file go.txt, and whose branch begins there.
type ground struct {
	ws *workspace.Workspace
	*Queue
	t    *testing.T
	repo *worktree.Repo
	base string
	runs *program
}

func grounded(t *testing.T, text string, rec centurion.Mission) *ground {
	t.Helper()
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "go.txt"), []byte("go\n"), 0o600), os.WriteFile(filepath.Join(dir, "old.txt"), []byte("old\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	git("add", "go.txt", "old.txt")
	git("commit", "-q", "-m", "first")
	repo, err := worktree.Open(t.Context(), worktree.Options{Dir: dir, Home: t.TempDir(), Workspaces: worktree.WorkspacesCheckout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = repo.Close() })
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	s := storetest.Open(t)
	base, err := repo.Snapshot(t.Context(), "refs/centurion/msn_1/base", true)
	if err == nil {
		err = repo.Advance(t.Context(), isolation.BranchOf("msn_1"), "", base.Commit)
	}
	if werr := ws.WriteFile(workspace.TodoPath, []byte(text)); err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	rec.ID, rec.Session, rec.Status, rec.Base, rec.OwnsTodo, rec.Todo = "msn_1", "ses_0", centurion.MissionRunning, &base, true, workspace.TodoPath
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&rec) }); err != nil {
		t.Fatal(err)
	}
	st := state.New(t.Context(), nil, s, rec, nil)
	iso := isolation.New(st, isolation.NewProject(s, ws, func(context.Context) (*worktree.Repo, error) { return repo, nil }, nil), nil)
	ready := make(chan struct{})
	close(ready)
	iso.Ground = &isolation.Ground{Repo: repo, Ready: ready, Base: base}
	p := plan.New(st, nil, nil, ws.Todo(), func([]byte) bool { return false })
	g := &ground{t: t, ws: ws, repo: repo, base: base.Commit, runs: &program{runs: map[string]int{}}}
	prover := NewProver(st, iso, p, approval.New(st, iso, p, approval.Config{Workspace: ws, Rules: func(string) []permission.Level { return nil }}), &verify.Checker{Runner: g.runs}, dir,
		func(ctx context.Context, f func() error) error { return f() }, 1)
	g.Queue = NewQueue(prover, nil, nil, 3)
	t.Cleanup(func() { _ = g.Close(context.WithoutCancel(t.Context())) })
	return g
}

// work is the commit of a task on top of another commit, with these files; a text of "" removes one.
func (g *ground) work(task, item, onto string, files map[string]string) *Work {
	g.t.Helper()
	g.put(centurion.Task{ID: task, Item: item, Title: "Do " + item, Agent: "worker", Session: "ses_" + task, Status: centurion.TaskRunning})
	c, err := g.repo.Take(g.t.Context(), worktree.Want{Branch: isolation.BranchPrefix("msn_1") + task, Commit: onto})
	if err != nil {
		g.t.Fatal(err)
	}
	at, _, err := c.Files(g.t.Context())
	for name, text := range files {
		if text == "" {
			err = errors.Join(err, os.Remove(filepath.Join(at, name)))
			continue
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(at, name), []byte(text), 0o600))
	}
	made, cerr := c.Commit(g.t.Context(), task)
	if _, rerr := c.Release(g.t.Context(), ""); err != nil || cerr != nil || rerr != nil {
		g.t.Fatal(err, cerr, rerr)
	}
	return &Work{Task: &state.Run{ID: task, Item: item, Agent: "worker"}, Agent: "worker", Item: item, Commit: made, More: true}
}

func (g *ground) put(t centurion.Task) {
	g.t.Helper()
	t.Mission = "msn_1"
	if err := g.st.Store.Update(g.t.Context(), func(tx *store.Tx) error { return tx.PutTask(&t) }); err != nil {
		g.t.Fatal(err)
	}
}

// land merges work, and returns what was told meanwhile: types with what matters of their data.
func (g *ground) land(l *Work) (told string) {
	g.t.Helper()
	seq := g.st.Store.LastSeq()
	if err := g.Land(g.t.Context(), l); err != nil {
		g.t.Fatal(err)
	}
	events, err := g.st.Store.Events(g.t.Context(), store.EventQuery{Mission: "msn_1", After: seq})
	if err != nil {
		g.t.Fatal(err)
	}
	var out []string
	for _, e := range events {
		var d struct {
			Command, Item, Proof, Branch, Commit string
			Early                                bool
			Files                                []string
		}
		if err := json.Unmarshal(e.Data, &d); err != nil {
			g.t.Fatal(err)
		}
		word := strings.TrimSpace(string(e.Type) + " " + d.Command + " " + d.Item + " " + d.Proof + " " + strings.Join(d.Files, ","))
		if d.Early {
			word += " early"
		}
		if e.Task != "" {
			word = e.Task + " " + word
		}
		if merged := e.Type == centurion.EventMergeDone; merged && (d.Commit != l.There || d.Branch != "centurion/msn_1/mission" || e.Session != "ses_"+e.Task) {
			g.t.Errorf("told %s of %s in %s, by %s", d.Commit, d.Branch, word, e.Session)
		}
		if !strings.HasPrefix(string(e.Type), "task.") {
			out = append(out, strings.Join(strings.Fields(word), " "))
		}
	}
	return strings.Join(out, "; ")
}

func (g *ground) tip() string {
	g.t.Helper()
	tip, err := g.iso.Tip(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return tip
}

// newest is the receipt that was stored last.
func (g *ground) newest() centurion.Receipt {
	g.t.Helper()
	all, err := g.st.Store.Receipts(g.t.Context(), "msn_1")
	if err != nil || len(all) == 0 {
		g.t.Fatal(all, err)
	}
	return all[len(all)-1]
}

// like compares a rejection with what is expected, apart from its tree.
func (g *ground) like(what string, got, want *Rejection) {
	g.t.Helper()
	if (got == nil) != (want == nil) || got != nil && fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", *want) {
		g.t.Errorf("%s:\n%+v, want\n%+v", what, got, want)
	}
}

// Work that its check proves is merged on top of what is there; what is red, or breaks a check of the mission, comes back with what has failed and
// its files on top of the newest state.
func TestLand(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n- verify: `lacks bad`\n- [~] T1 One\n  - verify: `has a`\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	one := g.work("tsk_1", "T1", g.base, map[string]string{"a": "1\n"})
	one.Verify, one.Given = []string{"has a"}, []string{"has a"}
	if got, want := g.land(one), "tsk_1 verify.started has a T1; tsk_1 verify.passed has a T1 proven; verify.started lacks bad; verify.passed lacks bad early; "+
		"verify.started lacks bad; verify.passed lacks bad; tsk_1 merge.done a"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	task, err := g.st.Store.Task(t.Context(), "tsk_1")
	if err != nil || len(task.Landed) != 1 || task.Merging != "" || task.Status != centurion.TaskMerging || g.tip() != one.There || one.Back != nil {
		t.Errorf("%+v, %v, %+v", task, err, one)
	}
	if l := task.Landed[0]; l.Commit != one.There || l.Before != g.base || len(l.Files) != 1 || l.Files[0].Path != "a" || l.Files[0].Status != "added" || l.Files[0].Added != 1 || l.Time.IsZero() {
		t.Errorf("%+v", l)
	}
	if r := g.newest(); r.Mission != "msn_1" || r.Task+r.Item != "" || r.Commit != one.There || r.Tree != one.tree || r.Early || r.Final {
		t.Errorf("%+v", r)
	}
	tip := g.tip()

	red := g.work("tsk_2", "T2", g.base, map[string]string{"b": "2\n"})
	red.Verify, red.Given = []string{"has c"}, []string{"has c"}
	if got, want := g.land(red), "tsk_2 verify.started has c T2; tsk_2 verify.failed has c T2"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	g.like("red", red.Back, &Rejection{Text: "The host ran your acceptance command on your work, put on top of the newest state of the mission, and it failed.\n" + brief.Account(g.newest()) +
		"\nFix the cause, then end your turn; the host runs it again.", Short: "its acceptance command fails: " + brief.Account(g.newest()), Cause: event.ReturnedCheck,
		Command: "has c", Tree: red.tree, Onto: tip})

	bad := g.work("tsk_3", "T3", g.base, map[string]string{"bad": "3\n"})
	if got, want := g.land(bad), "verify.started lacks bad; verify.failed lacks bad"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	g.like("breaks", bad.Back, &Rejection{Text: "Your work breaks a check of the mission that was green before it.\n" + brief.Account(g.newest()) +
		"\nFix the cause, then end your turn; the host tries it again.", Short: "it breaks a check of the mission: " + brief.Account(g.newest()), Cause: event.ReturnedGuard,
		Command: "lacks bad", Tree: bad.tree, Onto: tip})
	if g.runs.runs["lacks bad"] != 4 || red.tree == "" || bad.tree == "" { // what fails is run once more
		t.Errorf("it ran %d times", g.runs.runs["lacks bad"])
	}

	none := &Work{Task: red.Task, Agent: "worker", Item: "T2", Verify: []string{"has c"}, Given: []string{"has c"}}
	g.land(none)
	if none.Back == nil || !strings.HasPrefix(none.Back.Text, "The host ran your acceptance command on the newest state of the mission as it is, since you have changed no file that is not merged, and it failed.\n`has c` ended with exit code 1") || none.Back.Tree != "" || none.Back.Onto != tip {
		t.Errorf("without a change: %+v", none.Back)
	}
	if g.tip() != tip || g.Waiting() != 0 {
		t.Errorf("the branch is at %s, %d wait", g.tip(), g.Waiting())
	}
}

// A check whose failure does not repeat is flaky and breaks nothing; a check that may not run guards nothing.
func TestGuardIsSure(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n- verify: `once a`\n- verify: `lacks a`\n", centurion.Mission{Approved: []string{"once a"}, Options: centurion.MissionOptions{Ask: "deny"}})
	one := g.work("tsk_1", "", g.base, map[string]string{"a": "1\n"})
	if got, want := g.land(one), "verify.started once a; verify.passed once a early; verify.started once a; verify.passed once a flaky; permission.asked; permission.replied; tsk_1 merge.done a"; got != want || one.Back != nil || g.tip() != one.There {
		t.Errorf("told %s, want %s; %+v", got, want, one.Back)
	}
	if r := g.newest(); r.Why != "it failed first (once a: no), then it passed on the same files" {
		t.Errorf("%+v", r)
	}
}

// What a check that passed is worth: a proof, a check that was green before, one that proves nothing, and one that was changed meanwhile. Where it
// is not enough for an agent that says it is stuck, the work comes back with that.
func TestGrades(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{TrustVerify: true}})
	for _, c := range []struct {
		name, item, file string
		change           func(*Work)
		check            string
		proof            centurion.Proof
		why              string
		back             string // how its Short begins; "" for merged work
	}{
		{"proven", "T1", "a", nil, "has a", centurion.ProofProven, "", ""},
		{"with earlier work of it", "T1", "b", nil, "has a", centurion.ProofProven, "", ""},
		{"kept", "T2", "c", func(l *Work) { l.Keeps = true }, "has go.txt", centurion.ProofRegression, "", ""},
		{"not kept", "T3", "d", nil, "has go.txt", centurion.ProofUnproven, "", ""},
		{"changed", "T4", "e", func(l *Work) { l.Given = []string{"has x"} }, "has e", centurion.ProofUnproven, "the command was changed after work on the item had begun; it was `has x`", ""},
		{"stuck", "T5", "f", func(l *Work) { l.Stuck = true }, "has go.txt", centurion.ProofUnproven, "", "its agent says that it is stuck, and its check does not show otherwise: `has go.txt` passed, but is unproven ("},
		{"stuck, and proven", "T6", "g", func(l *Work) { l.Stuck = true }, "has g", centurion.ProofProven, "", ""},
	} {
		l := g.work("tsk_"+c.file, c.item, g.base, map[string]string{c.file: "x\n"})
		l.Verify, l.Given = []string{c.check}, []string{c.check}
		if c.change != nil {
			c.change(l)
		}
		tip := g.tip()
		g.land(l)
		r := g.newest()
		if r.Proof != c.proof || c.why != "" && r.Why != c.why || r.Task != l.Task.ID || r.Item != c.item || r.Commit != l.Next || r.Tree != l.tree || !r.Passed {
			t.Errorf("%s: %+v", c.name, r)
		}
		if short := ""; l.Back != nil {
			if short = l.Back.Short; c.back == "" || !strings.HasPrefix(short, c.back) || l.Back.Tree != l.tree || l.Back.Onto != tip || l.Back.Command != c.check || g.tip() != tip {
				t.Errorf("%s: %+v", c.name, l.Back)
			}
		} else if c.back != "" || g.tip() != l.There {
			t.Errorf("%s: it is merged", c.name)
		}
	}
}

// Work that does not fit comes back with both sides in its files: what conflicts, what the others wanted there, and what it was to do. What was
// below it is no other's, and files of others that it does not touch are not named.
func TestConflict(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{})
	below := g.work("tsk_0", "T0", g.base, map[string]string{"go.txt": "gone\n"})
	g.land(below)
	first := g.work("tsk_1", "T1", g.tip(), map[string]string{"go.txt": "one\n", "old.txt": "", "else.txt": "x\n", "bin": "\x00one"})
	second := g.work("tsk_2", "T2", g.tip(), map[string]string{"go.txt": "two\n", "old.txt": "new\n", "bin": "\x00two"})
	g.land(first)
	other := g.work("tsk_3", "T3", g.tip(), map[string]string{"other.txt": "x\n"})
	g.land(other)
	for task, said := range map[string]string{"tsk_0": "below", "tsk_1": "I made it one.\nMore.", "tsk_3": "elsewhere"} {
		x, err := g.st.Store.Task(t.Context(), task)
		if err != nil {
			t.Fatal(err)
		}
		x.Result = said
		g.put(x)
	}
	tip := g.tip()
	again, err := g.st.Store.Task(t.Context(), "tsk_2") // what it has merged itself is no other's
	if again.Landed = []centurion.Landed{{Commit: tip, Files: []centurion.FileChange{{Path: "go.txt"}}}}; err != nil {
		t.Fatal(err)
	}
	g.put(again)
	if got, want := g.land(second), "tsk_2 merge.conflict bin,go.txt,old.txt"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	back := second.Back
	if back == nil || back.Tree == "" {
		t.Fatalf("%+v", back)
	}
	g.like("conflict", back, &Rejection{Text: "Your work does not fit to what others have merged since you began. In conflict:\n- bin (binary)\n- go.txt (content)\n- old.txt (modify/delete)\n\n" +
		"What the others wanted there:\n- T1 Do T1 (bin, go.txt, old.txt): I made it one.\nMore.\n\nWhat you were to do: T2 Do T2\n\n" +
		"Both are laid together in your checkout now. In text files the places are marked with <<<<<<<, ======= and >>>>>>>: the first part is what is merged already, the second is yours. " +
		"Edit the files so that both Intents are kept and no marker is left; no git command is needed. Then end your turn; the host integrates it.\nbin cannot be marked: write it anew as it should be.",
		Short: "it conflicts with what others have merged: bin, go.txt, old.txt", Cause: event.ReturnedConflict, Files: []string{"bin", "go.txt", "old.txt"}, Tree: back.Tree, Onto: tip})
	if said, err := g.Intents(t.Context(), second, []string{"nothing.txt"}); err != nil || said != "- work of the mission's own agent\n" {
		t.Errorf("of nobody's file: %q, %v", said, err)
	}
	own := *second
	again.Landed = nil
	g.put(again)
	own.Task = nil
	if said, err := g.Intents(t.Context(), &own, []string{"go.txt"}); err != nil || said != "- T1 Do T1 (go.txt): I made it one.\nMore.\n" {
		t.Errorf("of the mission's own agent's work: %q, %v", said, err)
	}
}

// Files to which work adds all markers are named, and nothing is merged; what had them before, or has only some, is none of them.
func TestLeftMarkers(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{})
	const markers = "<<<<<<< a\n1\n=======\n2\n>>>>>>> b\n"
	l := g.work("tsk_1", "T1", g.base, map[string]string{"a": markers, "b": "=======\n", "c": "x\n" + markers})
	back, err := g.leftMarkers(t.Context(), l.Commit)
	if err != nil {
		t.Fatal(err)
	}
	g.like("markers", back, &Rejection{Text: "There are still conflict markers (<<<<<<<, =======, >>>>>>>) in: a, c. Replace each of them with what both sides come to together, then end your turn.",
		Short: "it leaves conflict markers in a, c", Cause: event.ReturnedMarkers, Files: []string{"a", "c"}})
	same := g.work("tsk_2", "T2", l.Commit.ID, map[string]string{"a": markers + "more\n"})
	for _, c := range []worktree.Commit{{}, same.Commit} {
		if back, err := g.leftMarkers(t.Context(), c); err != nil || back != nil {
			t.Errorf("of %s: %+v, %v", c.ID, back, err)
		}
	}
}

// Of work that goes back it is recorded how often and why, and its session hears how often that may still happen; a word about something that may
// be meant, or a call's error, does not count.
func TestReturned(t *testing.T) {
	t.Parallel()
	g := grounded(t, "# P\n", centurion.Mission{Options: centurion.MissionOptions{Ask: "ask"}})
	files := slices.Repeat([]string{"a"}, centurion.MaxRejectionFiles+1)
	for name, c := range map[string]struct {
		back  Rejection
		n     int
		task  bool
		added string
	}{
		"a check":   {Rejection{Text: "red", Short: "it is red", Cause: event.ReturnedCheck, Command: "make", Files: files}, 2, true, "\n\n(Returned 2 of 3; after that your work is not merged and a person is asked.)"},
		"a notice":  {Rejection{Text: "ask", Short: "it asks", Cause: event.ReturnedQuestion, Notice: true}, 1, true, ""},
		"a call":    {Rejection{Text: "no", Short: "it may not", Cause: event.ReturnedCheck}, 0, true, ""},
		"hollow":    {Rejection{Text: "no", Short: "it tests nothing", Cause: event.ReturnedHollow}, 1, true, ""},
		"the agent": {Rejection{Text: "no", Short: strings.Repeat("long ", 1000), Cause: event.ReturnedGuard, Command: "make"}, 1, false, ""},
	} {
		task := centurion.Task{ID: "tsk_1", Item: "T1", Session: "ses_1", Status: centurion.TaskVerifying, Returns: 1, CameBack: 4}
		g.put(task)
		a := &Author{Seat: &isolation.Seat{}, Agent: agents.Agent{Name: "worker"}, Session: "ses_1"}
		if c.task {
			a.Task = &state.Run{ID: "tsk_1"}
		}
		var said []string
		a.Say = func(_ context.Context, origin centurion.Origin, text string) error {
			said = append(said, string(origin)+" "+text)
			return nil
		}
		seq, back := g.st.Store.LastSeq(), c.back
		err := g.Return(t.Context(), a, &back, c.n)
		if want := string(centurion.OriginHost) + " " + c.back.Text + c.added; err != nil || strings.Join(said, "; ") != want {
			t.Errorf("%s: said %q, %v, want %q", name, said, err, want)
		}
		events, err := g.st.Store.Events(t.Context(), store.EventQuery{Mission: "msn_1", After: seq, Types: []centurion.EventType{centurion.EventTaskReturned}})
		if err != nil || len(events) != 1 {
			t.Fatalf("%s: %+v, %v", name, events, err)
		}
		want := event.Data(event.ReturnData{Cause: c.back.Cause, Reason: centurion.Clip(c.back.Short, 2000), Files: c.back.Files, Command: c.back.Command, Returns: c.n})
		if e := events[0]; string(e.Data) != string(want) || e.Session != "ses_1" || (e.Task == "tsk_1") != c.task {
			t.Errorf("%s: told %+v: %s, want %s", name, e, e.Data, want)
		}
		now, err := g.st.Store.Task(t.Context(), "tsk_1")
		if err != nil {
			t.Fatal(err)
		}
		if !c.task {
			if now.Returns != 1 || now.CameBack != 4 || now.Status != centurion.TaskVerifying {
				t.Errorf("%s: %+v", name, now)
			}
			continue
		}
		r := now.Rejections
		if now.Status != centurion.TaskRunning || now.Returns != c.n || now.CameBack != 5 || len(r) != 1 || r[0].Cause != c.back.Cause || r[0].Command != c.back.Command || len(r[0].Files) != min(len(c.back.Files), centurion.MaxRejectionFiles) {
			t.Errorf("%s: %+v", name, now)
		}
	}
}
