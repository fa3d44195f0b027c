package orchestrator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/retention"
)

// What a worker or the mission's own agent writes and git ignores is said at once and at the end, and is kept: it would be gone else.
func TestIgnoredWorkIsTold(t *testing.T) {
	r := gitRig(t, map[string]string{".gitignore": "out/\n", "a.txt": "one\n"}, map[string]script{
		"commander": steps(do(writes("out/own.txt", "mine\n"), work("", "x")), say("I wait"), say("done")),
		"worker":    steps(do(writes("out/result.txt", "worth\n"), writes("b.txt", "b\n")), do(call("edit", args{"filePath": "out/result.txt", "oldString": "worth", "newString": "gold"})), say("written")),
	})
	m := r.mission(centurion.MissionOptions{})
	task := r.tasks(m.ID)[0]
	wrote := strings.Join(r.results(m.ID, "write"), "\n")
	has(t, wrote, "git ignores out/own.txt", "git ignores out/result.txt: it stays in your checkout and is not merged")
	if n := strings.Count(wrote+strings.Join(r.results(m.ID, "edit"), ""), "git ignores"); n != 2 {
		t.Errorf("said %d times:\n%s", n, wrote)
	}
	if len(task.Aside) != 1 || len(m.Aside) != 1 {
		t.Fatalf("kept: %+v of the worker, %+v of the commander", task.Aside, m.Aside)
	}
	for file, want := range map[string]string{filepath.Join(task.Aside[0].Dir, "out", "result.txt"): "gold\n", filepath.Join(m.Aside[0].Dir, "out", "own.txt"): "mine\n"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, file, string(b), want)
	}
	has(t, task.Result, "git ignores out/result.txt: not merged, kept in "+task.Aside[0].Dir)
	equal(t, "changed files", fmt.Sprint(task.Files), "[b.txt]")
	var told strings.Builder
	for _, e := range r.events(m.ID, centurion.EventMissionUpdated) {
		if d, err := event.Decode[event.MissionData](e); err == nil {
			told.WriteString(d.Note + "\n")
		}
	}
	has(t, told.String(), "worker: git ignores out/result.txt", "git ignores out/own.txt: not merged, kept in "+m.Aside[0].Dir)
}

// What git ignores goes with the record of its task, once no other names it, and that of the mission's own agent with its mission; what no record
// names stays. A dry run names the same and removes nothing.
func TestIgnoredWorkGoesWithItsTask(t *testing.T) {
	r := gitRig(t, map[string]string{".gitignore": "out/\n", "a.txt": "one\n"}, map[string]script{
		"commander": steps(do(writes("out/own.txt", "mine\n"), work("", "x")), say("I wait"), say("done")),
		"worker":    steps(do(writes("out/result.txt", "worth\n")), say("written")),
	})
	m := r.mission(centurion.MissionOptions{})
	task := r.tasks(m.ID)[0]
	if len(task.Aside) != 1 || len(m.Aside) != 1 {
		t.Fatalf("kept: %+v of the worker, %+v of the commander", task.Aside, m.Aside)
	}
	of, own := task.Aside[0].Dir, m.Aside[0].Dir
	untold := filepath.Join(filepath.Dir(of), "2")
	if err := os.Mkdir(untold, 0o700); err != nil {
		t.Fatal(err)
	}
	there := func() (out []string) {
		for _, d := range []string{of, own, untold} {
			if _, err := os.Stat(d); err == nil {
				out = append(out, d)
			}
		}
		return out
	}
	tidy := func(o retention.TidyOptions) []string {
		rep, err := r.host.Keeper.Tidy(r.ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		return rep.Aside
	}
	all, now := []string{of, own}, time.Duration(0)
	equal(t, "removed before its time", fmt.Sprint(tidy(retention.TidyOptions{}), tidy(retention.TidyOptions{OlderThan: new(time.Hour)})), "[] []")
	equal(t, "would be removed", fmt.Sprint(tidy(retention.TidyOptions{OlderThan: &now, DryRun: true})), fmt.Sprint(all))
	equal(t, "there after a dry run", len(there()), 3)
	equal(t, "removed", fmt.Sprint(tidy(retention.TidyOptions{OlderThan: &now})), fmt.Sprint(all))
	equal(t, "there", fmt.Sprint(there()), fmt.Sprint([]string{untold}))
	if m, err := r.store.Mission(r.ctx, m.ID); err != nil || len(m.Aside) > 0 {
		t.Errorf("the mission names %+v, %v", m.Aside, err)
	}
	equal(t, "removed once more", len(tidy(retention.TidyOptions{OlderThan: &now})), 0)
}
