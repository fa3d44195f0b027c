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
	"time"

	"centurion"
	"centurion/worktree"
)

// Issue «What works» 6: without git, too, there is a tree before the first write of each task and after its last, with the files
// that it has changed itself.
func TestTreesAroundTheWork(t *testing.T) {
	r := realRig(t, map[string]script{
		"commander": steps(do(writes("own.txt", "own\n")), do(barePlan("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - after: T1"), work("T1", "x"), work("T2", "y")), say("I wait")),
		"worker":    steps(do(sh("echo $$ > shell-$$.txt"), writes("made.txt", "new\n")), do(sh("rm -f gone.txt; ls")), say("done")),
	})
	home := t.TempDir()
	r.cfg.Countdown = 1
	r.cfg.Shadow = func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: r.dir, Home: home})
	}
	r.restart()
	r.write("gone.txt", "here\n")
	m := r.mission(centurion.MissionOptions{})
	for item, n := range map[string]int{"T1": 3, "T2": 1} { // also what a command has made or removed
		if files := r.task(m.ID, item).Files; len(files) != n {
			t.Errorf("%s: %d files are told: %v", item, len(files), files)
		}
	}
	first, second := r.task(m.ID, "T1").Landed, r.task(m.ID, "T2").Landed
	if len(first) != 1 || len(second) != 1 || len(m.Wrote) != 1 {
		t.Fatalf("trees: %+v, %+v, %+v", first, second, m.Wrote)
	}
	names := func(l centurion.Landed) (out []string) {
		for _, f := range l.Files {
			if len(f.Path) > 6 && f.Path[:6] == "shell-" {
				f.Path = "shell"
			}
			out = append(out, f.Status+" "+f.Path)
		}
		return out
	}
	equal(t, "files of the first", fmt.Sprint(names(first[0])), "[deleted gone.txt added made.txt added shell]")
	equal(t, "files of the second", fmt.Sprint(names(second[0])), "[added shell]")
	equal(t, "files of the Commander", fmt.Sprint(names(m.Wrote[0])), "[added own.txt]")

	s, err := worktree.OpenShadow(r.ctx, worktree.Options{Dir: r.dir, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range first[0].Files {
		paths = append(paths, f.Path)
	}
	back, changed, err := s.Restore(r.ctx, first[0].Before, first[0].Commit, false, paths...)
	if err != nil || len(changed) > 0 || len(back) != len(paths) {
		t.Fatalf("restored %v, changed %v, %v", back, changed, err)
	}
	equal(t, "gone.txt", r.read("gone.txt"), "here\n")
	equal(t, "own.txt", r.read("own.txt"), "own\n")
	if slices.ContainsFunc(back, func(f centurion.FileChange) bool { return f.Path == "own.txt" }) {
		t.Error("somebody else's file was brought back, too")
	}
}

// What a command has changed until a person ends it is recorded, too: it can be undone like the rest.
func TestTreeAfterAnEndedCommand(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(call("bash", args{"command": "build 9m"})), say("again"))}, func(r *rig) {
		home := t.TempDir()
		r.cfg.Shadow = func(ctx context.Context) (*worktree.Shadow, error) {
			return worktree.OpenShadow(ctx, worktree.Options{Dir: r.dir, Home: home})
		}
		r.restart()
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		r.write("half.txt", "half\n") // as the command does
		if err := r.host.Control.Abort(r.ctx, m.Session, "enough"); err != nil {
			t.Error(err)
		}
		m = l.settled()
		if len(m.Wrote) != 1 || len(m.Wrote[0].Files) != 1 || m.Wrote[0].Files[0].Path != "half.txt" {
			t.Errorf("recorded: %+v", m.Wrote)
		}
	})
}

// That the history cannot be kept is told, and keeps nobody from working.
func TestWorkWithoutHistory(t *testing.T) {
	bubble(t, map[string]script{"commander": steps(do(writes("a.txt", "a\n")), say("done"))}, func(r *rig) {
		r.cfg.Shadow = func(context.Context) (*worktree.Shadow, error) {
			return nil, &centurion.Error{Kind: centurion.KindNotFound, Msg: "there is no git"}
		}
		r.restart()
		m := r.mission(centurion.MissionOptions{})
		equal(t, "a.txt", r.read("a.txt"), "a\n")
		notes := 0
		for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
			if strings.Contains(string(e.Data), "undo will not bring files back: there is no git") {
				notes++
			}
		}
		equal(t, "times that it was told", notes, 1)
	})
}

// Files that the history passes over are named, each once.
func TestFilesWithoutHistory(t *testing.T) {
	r := realRig(t, map[string]script{"commander": steps(do(writes("a.txt", "a\n")), do(writes("b.txt", "b\n")), say("done"))})
	home := t.TempDir()
	r.cfg.Shadow = func(ctx context.Context) (*worktree.Shadow, error) {
		return worktree.OpenShadow(ctx, worktree.Options{Dir: r.dir, Home: home})
	}
	r.restart()
	f, err := os.Create(filepath.Join(r.dir, "data.bin"))
	if err == nil {
		err = errors.Join(f.Truncate(worktree.MaxShadow+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	m := r.mission(centurion.MissionOptions{})
	var notes []string
	for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
		if strings.Contains(string(e.Data), "undo will not bring back") {
			notes = append(notes, string(e.Data))
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "undo will not bring back data.bin: larger than 50 MB") {
		t.Errorf("told of what the history passes over: %q", notes)
	}
}
