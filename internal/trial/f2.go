package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"centurion/provider/scripted"
)

const (
	f2Workers = 50
	f2Latency = 20 * time.Millisecond // of every answer
	f2Disk    = 200                   // MB below the state directory, at most
	f2Slack   = 2                     // how many times the goal a busy machine may take
)

// f2 measures missions of fifty workers in the person's own files, in worktrees of layers and, beside them, in worktrees with all files. The
// workers of the first kind write a file and are done; those of the second also run a command, and have a check by which their work is proven.
func f2(ctx context.Context, t *T) {
	t.Binary()
	for _, m := range []struct {
		files  int
		checks bool
		limit  time.Duration // in worktrees of layers; 0: none
		all    bool          // also in worktrees with all files
	}{{100, false, 2 * time.Second, true}, {20_000, false, 5 * time.Second, t.Full}, {100, true, 0, true}} {
		name := fmt.Sprintf("%d files", m.files)
		if m.checks {
			name += " and checks"
		}
		shared, _ := f2Mission(t, m.files, m.checks, "shared", "auto")
		t.Figure(name+", shared", shared)
		layered, disk := f2Mission(t, m.files, m.checks, "worktree", "overlay")
		t.Figure(name+", overlays", layered)
		t.Figure("their MB", disk)
		if m.all {
			took, disk := f2Mission(t, m.files, m.checks, "worktree", "checkout")
			t.Figure(name+", checkouts", took)
			t.Figure("their MB", disk)
		}
		if m.limit > 0 && layered > f2Slack*m.limit {
			t.Failf("a mission of %d writers on %d files takes %s in overlays, more than %s", f2Workers, m.files, layered, f2Slack*m.limit)
		}
		if disk > f2Disk {
			t.Failf("its overlays take %d MB, more than %d", disk, f2Disk)
		}
	}
}

// f2Mission runs a mission, and returns how long its process took and how many MB its state has.
func f2Mission(t *T, files int, checks bool, isolation, workspaces string) (took time.Duration, disk int64) {
	t.Part(fmt.Sprintf("%d-%v-%s-%s", files, checks, isolation, workspaces), func(t *T) {
		s := &squad{workers: f2Workers, latency: f2Latency, git: isolation == "worktree"}
		all := s.files()
		for i := range files - len(all) {
			all[fmt.Sprintf("dir%03d/sub%d/file%05d.txt", i/100, i/10%10, i)] = strings.Repeat(fmt.Sprintln("line", i), 40)
		}
		p := t.Project(all)
		p.put("~/.config/centurion/config.jsonc", fmt.Sprintf(`{"worktree": {"workspaces": %q}}`, workspaces))
		p.gitInit()
		answer := s.answer
		if !checks {
			answer = f2Answer
		}
		p.Serve(scripted.Config{Func: answer, Latency: s.latency, Pace: -1, Chunk: -1})
		c := p.Start(runArgs("--ask", "allow", "--isolation", isolation)...)
		if code := c.Wait(t, waitLimit); code != 0 {
			t.Failf("it ended with %d: %s\n%s", code, c.Stderr(), p.undone(t.ctx))
		}
		took = c.ended.Sub(c.start).Round(time.Millisecond)
		if checks {
			if missing := s.unwritten(p); len(missing) > 0 {
				t.Failf("the mission is complete and %q", missing)
			}
		} else if out, _ := os.ReadDir(filepath.Join(s.place(p), "out")); len(out) != f2Workers {
			t.Failf("the mission is complete and %d files are written, not %d", len(out), f2Workers)
		}
		disk = onDisk(p.State) >> 20
	})
	return took, disk
}

// f2Answer delegates everything at once; a worker writes its file.
func f2Answer(r scripted.Request) scripted.Answer {
	switch {
	case r.Agent() == "commander" && r.Step() == 1:
		var calls []scripted.Call
		for i := range f2Workers {
			calls = append(calls, tool("delegate_task", map[string]any{"agent": "worker", "description": "Write " + item(i), "prompt": "You are on item " + item(i) + "; write it."}))
		}
		return scripted.Answer{Say: "I delegate.", Calls: calls}
	case r.Agent() == "commander":
		return scripted.Answer{Say: "I wait."}
	case r.Step() == 1:
		g := ownItem.FindStringSubmatch(r.First())
		if g == nil {
			return scripted.Answer{Say: "I have no item."}
		}
		return scripted.Answer{Say: "I write.", Calls: []scripted.Call{tool("write", map[string]any{"filePath": "out/T" + g[1] + ".txt", "content": "work\n"})}}
	}
	return scripted.Answer{Say: "It is written."}
}

// onDisk is what the files below a directory hold, in bytes.
func onDisk(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error { // the kernel's own directories cannot be read
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}
