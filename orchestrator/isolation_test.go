package orchestrator

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/retention"
	"centurion/provider/scripted"
	"centurion/worktree"
)

// gitRig is a project in a real git repository with one commit of files.
func gitRig(t *testing.T, files map[string]string, cast map[string]script) *rig {
	t.Helper()
	r := realRig(t, cast)
	r.initRepo(files)
	home := t.TempDir()
	r.cfg.Worktrees = func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: r.dir, Home: home, Runner: r.cfg.Runner})
	}
	r.cfg.Countdown = 20 * time.Millisecond
	r.restart()
	return r
}

// git runs git as the person would, with nothing of the machine's configuration.
func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Person", "-c", "user.email=person@localhost"}, args...)...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// untouched checks that nothing of the person's own was changed since before.
func (r *rig) untouched(index []byte, head string) {
	r.t.Helper()
	now, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	if err != nil || string(now) != string(index) {
		r.t.Errorf("the person's index was changed (%v)", err)
	}
	equal(r.t, "HEAD", r.git("rev-parse", "HEAD"), head)
	equal(r.t, "branch", r.git("symbolic-ref", "HEAD"), "refs/heads/main")
}

func (r *rig) stands() (index []byte, head string) {
	r.t.Helper()
	index, err := os.ReadFile(filepath.Join(r.dir, ".git", "index"))
	if err != nil {
		r.t.Fatal(err)
	}
	return index, r.git("rev-parse", "HEAD")
}

// wrote returns what a file is on the newest branch of a session that has it, or on the mission's own.
func (r *rig) wrote(mission, file string) string {
	r.t.Helper()
	own := "refs/heads/" + isolation.BranchOf(mission)
	all := strings.Fields(r.git("for-each-ref", "--format=%(refname)", "--sort=-committerdate", "refs/heads/centurion/"+mission+"/"))
	for _, branch := range append(slices.DeleteFunc(all, func(b string) bool { return b == own }), own) {
		cmd := exec.Command("git", "show", branch+":"+file)
		cmd.Dir = r.dir
		if out, err := cmd.Output(); err == nil {
			return string(out)
		}
	}
	return ""
}

func writes(file, text string) scripted.Call {
	return call("write", args{"filePath": file, "content": text})
}

func sh(script string) scripted.Call { return call("bash", args{"command": script}) }

// SAFE, issue «What works» 1: what a worker writes is written in a checkout of its own; the person's files, index and branch
// stay as they are; the base holds what the person has not committed.
func TestWriterHasItsOwnCheckout(t *testing.T) {
	var r *rig
	seen := ""
	r = gitRig(t, map[string]string{"a.txt": "one\n", "dir/ü b.txt": "two\n"}, map[string]script{
		"commander": steps(do(call("read", args{"filePath": "new.txt"})), do(work("", "x")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			switch req.Step() {
			case 1:
				return do(call("read", args{"filePath": "a.txt"}), call("read", args{"filePath": "dir/ü b.txt"}))
			case 2:
				return do(call("write", args{"filePath": filepath.Join(r.dir, "a.txt"), "content": "changed\n"}), writes("made/c.txt", "three\n"))
			case 3:
				return do(sh("pwd; cat a.txt made/c.txt new.txt; git status --porcelain; ls -A"))
			case 4:
				seen = r.tasks(r.missionOf())[0].Checkout.Dir
				return do(call("read", args{"filePath": "made/c.txt"}), call("grep", args{"pattern": "three"}))
			}
			return say("written")
		},
	})
	r.write("new.txt", "not committed\n")
	index, head := r.stands()
	m := r.mission(centurion.MissionOptions{})
	r.untouched(index, head)
	equal(t, "the person's status", r.git("status", "--porcelain"), "?? new.txt")
	equal(t, "the person's file", r.read("a.txt"), "one\n")
	equal(t, "isolation", m.Isolation, "worktree")
	if m.Base == nil || m.Base.Head != head || m.Base.Dirty != 1 || m.Base.Branch != "main" {
		t.Errorf("base: %+v", m.Base)
	}
	equal(t, "branch", m.Branch, "centurion/"+m.ID+"/mission")
	has(t, r.results(m.ID, "read")[0], "not committed")
	out := r.results(m.ID, "bash")[0]
	if seen == "" || strings.HasPrefix(seen, r.dir) {
		t.Errorf("the worker's checkout was %q", seen)
	}
	has(t, out, seen, "changed\nthree\nnot committed\n", " M a.txt", "?? made/")
	if strings.Contains(out, "?? .opencode") || strings.Contains(out, "D .opencode") {
		t.Errorf("git tells of .opencode:\n%s", out)
	}
	has(t, r.results(m.ID, "grep")[0], "made/c.txt")
	equal(t, "a.txt as it was written", r.wrote(m.ID, "a.txt"), "changed\n")
	equal(t, "made/c.txt as it was written", r.wrote(m.ID, "made/c.txt"), "three\n")
	task := r.tasks(m.ID)[0]
	if task.Checkout != nil || m.Checkout != nil {
		t.Errorf("after the end there is a checkout: %+v, %+v", task.Checkout, m.Checkout)
	}
	based := 0
	for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
		if d, err := event.Decode[event.MissionData](e); err == nil && d.Base != nil && d.Base.Commit == m.Base.Commit {
			based++
		}
	}
	if based == 0 {
		t.Error("nobody was told of the base")
	}
}

// Issue «What works» 1: --dirty ignore leaves uncommitted work out.
func TestBaseWithoutUncommittedWork(t *testing.T) {
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
		"commander": steps(do(call("read", args{"filePath": "a.txt"}), call("read", args{"filePath": "new.txt"})), say("read")),
	})
	r.write("a.txt", "edited\n")
	r.write("new.txt", "not committed\n")
	m := r.mission(centurion.MissionOptions{Dirty: "ignore", Level: 1})
	equal(t, "base", m.Base.Commit, r.git("rev-parse", "HEAD"))
	got := r.results(m.ID, "read")
	has(t, got[0], "one")
	has(t, got[1], "does not exist")
	equal(t, "the person's file", r.read("a.txt"), "edited\n")
}

// §8: a script that would write in the person's own directory is refused with a hint; the .opencode of the project is read from
// everywhere, and written by the host's tools only.
func TestScriptsStayInTheCheckout(t *testing.T) {
	var r *rig
	r = gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			switch req.Step() {
			case 1:
				return do(writes("b.txt", "b\n"), sh("echo spoiled > "+filepath.Join(r.dir, "a.txt")), sh("cd "+r.dir+" && touch there"))
			case 2:
				return do(sh("cat "+filepath.Join(r.dir, "a.txt")), sh("cat .opencode/notes.md"), call("read", args{"filePath": ".opencode/notes.md"}),
					call("read", args{"filePath": filepath.Join(r.dir, ".opencode/notes.md")}), writes(".opencode/notes.md", "mine"), writes(".git", "gitdir: elsewhere"))
			}
			return say("done")
		},
	})
	r.write(".opencode/notes.md", "a note\n")
	m := r.mission(centurion.MissionOptions{})
	got := r.results(m.ID, "bash")
	for i, part := range []string{"you work in your own checkout", "you work in your own checkout", "one", "a note"} {
		has(t, got[i], part)
	}
	for _, text := range r.results(m.ID, "read") {
		has(t, text, "a note")
	}
	for i, part := range []string{"b.txt", "update_todo", "leave .git to git commands"} {
		has(t, r.results(m.ID, "write")[i], part)
	}
	equal(t, "the person's file", r.read("a.txt"), "one\n")
	equal(t, "the note", r.read(".opencode/notes.md"), "a note\n")
	if _, err := os.Stat(filepath.Join(r.dir, "there")); err == nil {
		t.Error("a script wrote in the person's directory")
	}
}

// Issue «What works» 1: nothing is lost: after a restart a task goes on in its checkout, with what it had not committed.
func TestCheckoutSurvivesTheHost(t *testing.T) {
	for _, again := range []string{"the same host", "another host"} {
		t.Run(again, func(t *testing.T) {
			var r *rig
			var stop context.CancelCauseFunc
			where := map[string]bool{}
			r = gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait")),
				"worker": func(req scripted.Request) scripted.Answer {
					switch req.Step() {
					case 1:
						return do(writes("half.txt", "half\n"))
					case 2:
						if stop != nil {
							stop(centurion.ErrHandover)
							stop = nil
							return after(50*time.Millisecond, say("never heard"))
						}
						where[r.tasks(r.missionOf())[0].Checkout.Dir] = true
						return do(sh("pwd; cat half.txt"))
					}
					return say("done")
				},
			})
			m := r.start(centurion.MissionOptions{})
			ctx, end := context.WithCancelCause(r.ctx)
			stop = end
			if _, err := r.host.Run(ctx, m.ID); err != nil {
				t.Fatal(err)
			}
			at := r.tasks(m.ID)[0].Checkout
			if at == nil {
				t.Fatal("the checkout was not recorded")
			}
			if again == "another host" {
				r.restart()
			}
			m = r.run(m.ID)
			out := r.results(m.ID, "bash")
			if len(out) == 0 {
				t.Fatal("the task did not go on")
			}
			has(t, out[0], at.Dir, "half")
			equal(t, "half.txt", r.wrote(m.ID, "half.txt"), "half\n")
		})
	}
}

// A sub-agent works where its parent does.
func TestSubAgentWorksInItsParentsCheckout(t *testing.T) {
	both := func(req scripted.Request) scripted.Answer {
		if strings.Contains(req.First(), "do the part") {
			return steps(do(writes("part.txt", "part\n")), say("the part is done"))(req)
		}
		return steps(do(writes("whole.txt", "whole\n")), do(sub("do the part", nil)), do(sh("cat part.txt whole.txt")), say("done"))(req)
	}
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{"assistant": both, "": both})
	m := r.mission(centurion.MissionOptions{Profile: agents.ProfileAssistant, Isolation: "worktree"})
	has(t, r.results(m.ID, "bash")[0], "part\nwhole")
	if _, err := os.Stat(filepath.Join(r.dir, "part.txt")); err == nil {
		t.Error("it wrote in the person's directory")
	}
}

// Issue «What works» 8: without git, or when a person says so, all write in the project's own directory.
func TestIsolation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts centurion.MissionOptions
		git  bool
		want string // the isolation, or what is wrong
		note string
	}{
		"auto in a repository":      {centurion.MissionOptions{}, true, "worktree", ""},
		"auto without one":          {centurion.MissionOptions{Isolation: "auto"}, false, "shared", "project's own directory"},
		"shared in a repository":    {centurion.MissionOptions{Isolation: "shared"}, true, "shared", ""},
		"worktree without one":      {centurion.MissionOptions{Isolation: "worktree"}, false, "--isolation worktree is not possible here", ""},
		"an assistant":              {centurion.MissionOptions{Profile: agents.ProfileAssistant}, true, "shared", ""},
		"an assistant that is to":   {centurion.MissionOptions{Profile: agents.ProfileAssistant, Isolation: "worktree"}, true, "worktree", ""},
		"a word that nobody knows":  {centurion.MissionOptions{Isolation: "jail"}, true, `there is no isolation "jail"`, ""},
		"auto in a damaged one":     {centurion.MissionOptions{}, true, "shared", "project's own directory"},
		"worktree in a damaged one": {centurion.MissionOptions{Isolation: "worktree"}, true, "--isolation worktree is not possible here", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := gitRig(t, map[string]string{"a.txt": "one\n"}, nil)
			if !test.git {
				if err := os.RemoveAll(filepath.Join(r.dir, ".git")); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(name, "damaged") {
				if err := os.Remove(filepath.Join(r.dir, ".git", "HEAD")); err != nil {
					t.Fatal(err)
				}
			}
			m, err := r.host.Start(r.ctx, "build it", test.opts)
			if err != nil {
				if centurion.KindOf(err) != centurion.KindUsage || centurion.HintOf(err) == "" {
					t.Errorf("the error is %v (%s, hint %q)", err, centurion.KindOf(err), centurion.HintOf(err))
				}
				has(t, err.Error(), test.want)
				return
			}
			equal(t, "isolation", m.Isolation, test.want)
			d, err := event.Decode[event.MissionData](r.events(m.ID, centurion.EventMissionStarted)[0])
			if err != nil || (d.Note == "") != (test.note == "") {
				t.Errorf("the note is %q, %v", d.Note, err)
			}
			has(t, d.Note, test.note)
		})
	}
}

// Issue «What works» 1: what makes a checkout usable runs in it before its session writes; a project's own commands go by the
// rules. A lock file without any is pointed out once.
func TestCheckoutIsSetUp(t *testing.T) {
	cast := map[string]script{"commander": steps(do(work("", "x"), work("", "y")), say("I wait")), "worker": steps(do(sh("touch x; cat ready"), sh("echo > y")), say("done"))}
	notes := func(r *rig, m centurion.Mission) (all string) {
		for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
			if d, err := event.Decode[event.MissionData](e); err == nil && d.Note != "" {
				all += d.Note + "\n"
			}
		}
		return all
	}
	t.Run("configured", func(t *testing.T) {
		r := gitRig(t, map[string]string{"package-lock.json": "{}", ".gitignore": "ready\n"}, cast)
		m := r.mission(centurion.MissionOptions{Setup: []string{"echo set up > ready"}})
		has(t, r.results(m.ID, "bash")[0], "set up")
		equal(t, "notes", notes(r, m), "each fresh checkout is set up with: echo set up > ready\n")
	})
	t.Run("refused", func(t *testing.T) {
		r := gitRig(t, map[string]string{"a": "a"}, cast)
		r.asksForShell()
		m := r.mission(centurion.MissionOptions{Setup: []string{"echo set up > ready"}, Ask: "deny"})
		has(t, r.results(m.ID, "bash")[0], "may not run")
	})
	t.Run("none", func(t *testing.T) {
		r := gitRig(t, map[string]string{"package-lock.json": "{}"}, cast)
		m := r.mission(centurion.MissionOptions{})
		equal(t, "lines about it", strings.Count(notes(r, m), "package-lock.json"), 1)
	})
}

// What ended while nobody worked on its mission is given back by gc, and its work is on a branch.
func TestTidyGivesCheckoutsBack(t *testing.T) {
	var r *rig
	var stop context.CancelCauseFunc
	r = gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			if req.Step() == 1 {
				return do(writes("half.txt", "half\n"))
			}
			stop(centurion.ErrHandover)
			return after(50*time.Millisecond, say("never heard"))
		},
	})
	m := r.start(centurion.MissionOptions{})
	ctx, end := context.WithCancelCause(r.ctx)
	stop = end
	if _, err := r.host.Run(ctx, m.ID); err != nil {
		t.Fatal(err)
	}
	r.restart()
	if err := r.host.Control.Pause(r.ctx, m.ID, "until tomorrow"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Keeper.Tidy(r.ctx, retention.TidyOptions{}); err != nil {
		t.Fatal(err)
	}
	if at := r.tasks(m.ID)[0].Checkout; at == nil {
		t.Error("a mission that goes on has lost its checkout")
	} else if b, err := os.ReadFile(filepath.Join(at.Dir, "half.txt")); err != nil || string(b) != "half\n" || r.git("-C", at.Dir, "branch", "--show-current") != at.Branch {
		t.Errorf("a mission that goes on has lost its work: %q, %v", b, err)
	}
	if err := r.host.Control.Cancel(r.ctx, m.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.host.Keeper.Tidy(r.ctx, retention.TidyOptions{}); err != nil {
		t.Fatal(err)
	}
	if at := r.tasks(m.ID)[0].Checkout; at != nil {
		t.Errorf("it still has %+v", at)
	}
	equal(t, "half.txt", r.wrote(m.ID, "half.txt"), "half\n")
}

// Many write at once, each in a checkout of its own.
func TestWritersAtOnce(t *testing.T) {
	const n = 8
	r := gitRig(t, map[string]string{"same.txt": "one\n"}, map[string]script{
		"commander": steps(many(n), say("I wait")),
		"worker":    steps(do(call("read", args{"filePath": "same.txt"})), do(sh("echo $$ > mine; sleep 0.05; ls; cat mine")), say("done")),
	})
	m := r.mission(centurion.MissionOptions{})
	for _, out := range r.results(m.ID, "bash") {
		has(t, out, "mine\n")
	}
	equal(t, "the person's status", r.git("status", "--porcelain"), "")
}

// A claim that was widened is kept in the task, told of, and holds against others and across a restart.
func TestClaimsWiden(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "the first part"), work("T2", "the second part")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			if strings.Contains(req.First(), "the first part") {
				return steps(do(writes("a.txt", "a"), writes("more/x.txt", "x")), do(call("bash", args{"command": "sleep 10s"})), say("done"))(req)
			}
			return steps(do(call("bash", args{"command": "sleep 5s"})), do(writes("more/x.txt", "y"), writes("other.txt", "o")), say("done"))(req)
		},
	}, func(r *rig) {
		var g guard.Group
		m := r.start(centurion.MissionOptions{})
		<-r.inBackground(&g, m.ID)
		_ = g.Wait()
		equal(t, "claims of T1", fmt.Sprint(r.task(m.ID, "T1").Claims), "[more/x.txt]")
		equal(t, "claims of T2", fmt.Sprint(r.task(m.ID, "T2").Claims), "[other.txt]")
		has(t, strings.Join(r.results(m.ID, "write"), "\n"), "more/x.txt belongs to item T1, which another agent is working on")
		told := false
		for _, e := range r.events(m.ID, centurion.EventTaskUpdated) {
			d, err := event.Decode[event.TaskData](e)
			told = told || err == nil && len(d.Claims) == 1
		}
		if !told {
			t.Error("nobody was told of the wider claim")
		}
		heard := false
		for _, q := range r.requests("worker") {
			heard = heard || strings.Contains(q.Last(), "T1 (do T1) is being worked on by another agent: a.txt; outside its files: more/x.txt")
		}
		if !heard {
			t.Error("the other worker was not told who works on what")
		}
	})
}

// A copy of a mission begins where the original's work stands, on a branch of its own.
func TestForkBeginsWhereTheOriginalStands(t *testing.T) {
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{"commander": func(req scripted.Request) scripted.Answer {
		if req.Step() == 1 {
			return do(writes("b.txt", "two\n"))
		}
		return say("done")
	}})
	m := r.mission(centurion.MissionOptions{Level: 1})
	if _, err := r.repository().Tip(r.ctx, m.Branch); err != nil {
		t.Fatal(err)
	}
	tip := r.git("commit-tree", "-p", m.Base.Commit, "-m", "merged", m.Base.Commit+"^{tree}")
	r.git("update-ref", "refs/heads/"+m.Branch, tip)
	f, err := r.host.Branches.Fork(r.ctx, m.Session, "")
	if err != nil {
		t.Fatal(err)
	}
	copied := r.run(f.Mission)
	equal(t, "isolation", copied.Isolation, "worktree")
	equal(t, "branch", copied.Branch, "centurion/"+copied.ID+"/mission")
	equal(t, "base", copied.Base.Commit, m.Base.Commit)
	equal(t, "tip", r.git("rev-parse", "refs/heads/"+copied.Branch), tip)
}

// A snapshot that cannot be taken stops the mission, with the reason.
func TestNoBase(t *testing.T) {
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{"commander": steps(do(call("read", args{"filePath": "a.txt"})), say("done"))})
	r.git("checkout", "-q", "-b", "other")
	r.write("a.txt", "other\n")
	r.git("commit", "-q", "-a", "-m", "other")
	r.git("checkout", "-q", "main")
	r.write("a.txt", "mine\n")
	r.git("commit", "-q", "-a", "-m", "mine")
	cmd := exec.Command("git", "-c", "user.name=P", "-c", "user.email=p@localhost", "merge", "-q", "other")
	cmd.Dir = r.dir
	_ = cmd.Run() // it conflicts
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionFailed, "merge")
}

// Inside a git directory, and in a bare repository, agents would write among git's own files: a mission begins there only if the person says
// that they are to share the directory. Nothing is left there.
func TestNothingBeginsInsideOfGit(t *testing.T) {
	for _, profile := range []string{"", agents.ProfileAssistant} {
		t.Run(profile, func(t *testing.T) {
			r := realRig(t, nil)
			home := t.TempDir()
			if out, err := exec.Command("git", "init", "-q", "--bare", r.dir).CombinedOutput(); err != nil {
				t.Fatalf("%s %v", out, err)
			}
			r.cfg.Worktrees = func(ctx context.Context) (*worktree.Repo, error) {
				return worktree.Open(ctx, worktree.Options{Dir: r.dir, Home: home, Runner: r.cfg.Runner})
			}
			r.restart()
			_, err := r.host.Start(r.ctx, "build it", centurion.MissionOptions{Profile: profile})
			equal(t, "kind", centurion.KindOf(err), centurion.KindUsage)
			has(t, fmt.Sprint(err), "is a bare repository")
			has(t, centurion.HintOf(err), "go to a clone", "--isolation shared")
			if _, err := os.Stat(filepath.Join(r.dir, ".opencode")); err == nil {
				t.Error(".opencode was made")
			}
			if _, err := r.host.Start(r.ctx, "build it", centurion.MissionOptions{Profile: profile, Isolation: centurion.IsolationShared}); err != nil {
				t.Errorf("with --isolation shared: %v", err)
			}
		})
	}
}

// A file of a git submodule is refused before it is written, with what works; the rest of the project is not.
func TestSubmoduleIsRefusedBeforeTheWrite(t *testing.T) {
	r := gitRig(t, map[string]string{"a.txt": "one\n"}, map[string]script{
		"commander": steps(do(work("", "x")), say("done")),
		"worker": steps(do(writes("vendor/lib/new.txt", "inside\n")), do(call("edit", args{"filePath": "vendor/lib/lib.txt", "oldString": "lib", "newString": "mine"})),
			do(writes("vendor/library.txt", "beside\n")), say("done")),
	})
	lib := filepath.Join(t.TempDir(), "lib")
	r.git("init", "-q", "-b", "main", lib)
	if err := os.WriteFile(filepath.Join(lib, "lib.txt"), []byte("lib\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.git("-C", lib, "add", "-A")
	r.git("-C", lib, "commit", "-qm", "lib")
	r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "vendor/lib")
	r.git("commit", "-qm", "submodule")
	m := r.mission(centurion.MissionOptions{})
	has(t, r.results(m.ID, "write")[0], "vendor/lib/new.txt belongs to the git submodule vendor/lib", "change files outside vendor/lib")
	has(t, r.results(m.ID, "edit")[0], "vendor/lib/lib.txt belongs to the git submodule vendor/lib")
	equal(t, "beside the submodule", r.wrote(m.ID, "vendor/library.txt"), "beside\n")
	equal(t, "in the submodule", r.git("-C", "vendor/lib", "status", "--porcelain"), "")
}
