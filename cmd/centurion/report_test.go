package main

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/report"
	"centurion/workspace/todo"
)

// A file is replaced whole: through a link, with the mode that it had, and nothing else is left behind.
func TestReplaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "r.md"), filepath.Join(dir, "link.md")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip("links need a right on Windows:", err)
	}
	if err := replaceFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	info, serr := os.Stat(file)
	if err != nil || serr != nil || string(got) != "new" || info.Mode().Perm() != 0o600 {
		t.Errorf("got %q, %v, %v", got, info.Mode(), err)
	}
	if to, err := os.Readlink(link); err != nil || to != file {
		t.Errorf("the link is %q, %v", to, err)
	}
	if all, _ := os.ReadDir(dir); len(all) != 2 {
		t.Errorf("left behind: %v", all)
	}
	if err := replaceFile(dir, nil); centurion.KindOf(err) != centurion.KindUsage {
		t.Errorf("a directory: %v", err)
	}
}

// A review stands at the items that it covers: with the plan at those that are done, without it at those that were worked on.
func TestReviewsOf(t *testing.T) {
	t.Parallel()
	doc, err := todo.Parse([]byte("# Plan\n- [x] T1 One\n- [ ] T2 Two\n- [x] T3 Look @reviewer\n  - after: T1, T2\n"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(s int64) centurion.Time { return centurion.Time{Time: time.Unix(s, 0)} }
	look := centurion.Task{ID: "tsk_3", Item: "T3", Agent: agents.Reviewer, Status: centurion.TaskCompleted, Result: "PASS", Started: at(9), Ended: at(10)}
	work := func(id, item string) centurion.Task {
		return centurion.Task{ID: id, Item: item, Agent: agents.Worker, Status: centurion.TaskCompleted, Started: at(1), Ended: at(2)}
	}
	whole := look
	whole.Item, whole.Title = "", "look at all"
	one := look
	one.Item, one.Reviews = "T1", true
	unnamed := whole
	unnamed.Title = ""
	for name, c := range map[string]struct {
		doc  *todo.Doc
		by   centurion.Task
		want map[string]string
	}{
		"with the plan":   {doc, look, map[string]string{"T1": "T3", "T3": "T3"}},
		"of everything":   {doc, whole, map[string]string{"T1": "look at all", "T3": "look at all"}},
		"without a title": {doc, unnamed, map[string]string{"T1": "tsk_3", "T3": "tsk_3"}},
		"without a plan":  {nil, one, map[string]string{"T1": "T1"}},
	} {
		d := report.Data{Tasks: []centurion.Task{work("tsk_1", "T1"), work("tsk_2", "T2"), c.by}}
		if c.doc != nil {
			d.Items = planItems(c.doc)
		}
		got := map[string]string{}
		for id, r := range reviewsOf(c.doc, d) {
			if got[id] = r.Name; r.Task != "tsk_3" || r.Item != c.by.Item {
				t.Errorf("%s: %s is reviewed by %+v", name, id, r)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
