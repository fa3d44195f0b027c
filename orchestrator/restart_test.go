package orchestrator

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/store"
	"centurion/workspace"
)

// enduring is a cast that goes by what stands in its history, as a model does, so that it finds its way after a restart.
// Its plan has an item that is checked, two that follow it, one of them delegated by a planner, and a last one.
func enduring() map[string]script {
	seen := func(r scripted.Request) string {
		var b strings.Builder
		for _, m := range r.Messages() {
			b.WriteString(m.Text + "\n")
		}
		return b.String()
	}
	missing := func(text string, ids ...string) (calls []scripted.Call) {
		for _, id := range ids {
			if !strings.Contains(text, id+" \"do "+id+"\" (worker") && !strings.Contains(text, "item "+id+" is being") && !strings.Contains(text, "item "+id+" is done") {
				calls = append(calls, work(id, "make "+id+".txt"))
			}
		}
		return calls
	}
	return map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			text := seen(r)
			if !strings.Contains(text, "4 items:") {
				return after(100*time.Millisecond, do(plans("- [ ] T1 One", "  - verify: `exists T1.txt`", "- [ ] T2 Two", "  - after: T1", "- [ ] T3 Three", "- [ ] T4 Four", "  - after: T2, T3")))
			}
			calls := missing(text, "T1", "T2", "T4")
			switch {
			case strings.Contains(text, "(planner)"):
			case strings.Contains(text, "interrupted by a restart") && !listed(r): // it looks before it does it again
				return do(call("list_tasks", args{}))
			default:
				calls = append(calls, handTo("planner", "", "see to T3"))
			}
			if len(calls) > 0 {
				return after(100*time.Millisecond, do(calls...))
			}
			return say("I wait")
		},
		"planner": func(r scripted.Request) scripted.Answer {
			text := seen(r)
			switch {
			case strings.Contains(r.First(), "look at T3"):
				return after(time.Second, say("made <T3>"))
			case len(missing(text, "T3")) > 0 && !strings.Contains(text, `T3 "do T3" (planner`):
				return after(100*time.Millisecond, do(handTo("planner", "T3", "look at T3")))
			}
			return say("seen to")
		},
		"": func(r scripted.Request) scripted.Answer { return say("") },
		"worker": func(r scripted.Request) scripted.Answer {
			_, id, _ := strings.Cut(r.First(), "make ")
			id = id[:2]
			for _, m := range r.Messages() {
				if m.Role == "tool" && strings.Contains(m.Text, id+".txt") {
					return after(time.Second, say("made <"+id+">"))
				}
			}
			return after(time.Second, do(call("write", args{"filePath": id + ".txt", "content": "x"})))
		},
	}
}

func listed(r scripted.Request) bool {
	return slices.ContainsFunc(r.Messages(), func(m scripted.Message) bool {
		return slices.ContainsFunc(m.Calls, func(c scripted.Call) bool { return c.Name == "list_tasks" })
	})
}

// endured asserts that everything was done once, and told once.
func (r *rig) endured(m centurion.Mission) {
	r.t.Helper()
	r.is(m, centurion.MissionCompleted, "")
	tasks := r.tasks(m.ID)
	equal(r.t, "tasks", len(tasks), 5)
	completed := map[string]int{}
	for _, e := range r.events(m.ID, centurion.EventTaskCompleted) {
		completed[e.Task]++
	}
	for _, task := range tasks {
		equal(r.t, task.Item+" status", task.Status, centurion.TaskCompleted)
		equal(r.t, task.Item+" completed", completed[task.ID], 1)
		equal(r.t, task.Item+" returns", task.Returns, 0)
		if task.Item == "" {
			continue
		}
		equal(r.t, task.Item+" result", task.Result, "made <"+task.Item+">")
		messages, err := r.store.Messages(r.ctx, task.Parent)
		if err != nil {
			r.t.Error(err)
		}
		n := 0
		for _, msg := range messages {
			if msg.Role == centurion.RoleUser {
				n += strings.Count(msg.Text(), "made <"+task.Item+">")
			}
		}
		equal(r.t, task.Item+" told", n, 1)
		has(r.t, r.read(todoMD), "[x] "+task.Item)
	}
	r.checkDeliveries(m.ID)
}

// at runs f when the journal has n rows.
func (r *rig) at(ctx context.Context, n int64, f func()) error {
	for {
		changed := r.store.Changed()
		if r.store.LastSeq() >= n {
			f()
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// journal is how many rows the enduring mission writes when nothing happens to it.
func journal(t *testing.T) (rows int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, enduring())
		r.endured(r.mission(centurion.MissionOptions{}))
		rows = r.store.LastSeq()
	})
	return rows
}

// O3: stopped at any moment, and once more, the mission resumes without being told anything and does nothing twice.
func TestStopAnywhere(t *testing.T) {
	t.Parallel()
	rows := journal(t)
	for n := int64(1); n < rows; n += stride(11) {
		t.Run(fmt.Sprint("at row ", n), func(t *testing.T) {
			bubble(t, enduring(), func(r *rig) {
				m := r.start(centurion.MissionOptions{})
				for _, at := range []int64{n, n + 11} {
					at = max(at, r.store.LastSeq()+1)
					ctx, cancel := context.WithCancelCause(r.ctx)
					var g guard.Group
					g.Go("stop", func() error { return r.at(ctx, at, func() { cancel(centurion.ErrShutdown) }) })
					m = r.runIn(ctx, m.ID)
					cancel(nil)
					g.Wait()
					if m.Status == centurion.MissionCompleted {
						break
					}
					r.is(m, centurion.MissionPaused, "interrupted")
					r.restart()
				}
				if m.Status != centurion.MissionCompleted {
					m = r.run(m.ID)
				}
				r.endured(m)
			})
		})
	}
}

// The same for a process that is killed: what its state file and its project hold at that moment is all that is left.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	rows := journal(t)
	for n := int64(3); n < rows; n += stride(11) {
		t.Run(fmt.Sprint("at row ", n), func(t *testing.T) {
			bubble(t, enduring(), func(r *rig) {
				left := t.TempDir()
				if err := os.Mkdir(filepath.Join(left, "project"), 0o755); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(r.ctx)
				var g guard.Group
				g.Go("kill", func() error {
					return r.at(ctx, n, func() {
						r.snapshot(left)
						cancel(centurion.ErrShutdown)
					})
				})
				m := r.runIn(ctx, r.start(centurion.MissionOptions{}).ID)
				cancel(nil)
				g.Wait()
				if err := r.store.Close(); err != nil {
					t.Error(err)
				}
				if err := r.ws.Close(); err != nil {
					t.Error(err)
				}
				// Another process finds what is left.
				r.dir = filepath.Join(left, "project")
				var err error
				if r.ws, err = workspace.Open(r.dir); err != nil {
					t.Fatal(err)
				}
				if r.store, err = store.Open(r.ctx, filepath.Join(left, "centurion.db")); err != nil {
					t.Fatal(err)
				}
				r.cfg.Store, r.cfg.Workspace = r.store, r.ws
				r.model.AllowRewinds()
				r.restart()
				r.runs = 0
				r.endured(r.run(m.ID))
			})
		})
	}
}

// stride is the step between the moments that are tried: every one takes minutes.
func stride(n int64) int64 {
	if os.Getenv("CENTURION_TEST_EVERYWHERE") != "" {
		return 1
	}
	return n
}

// snapshot copies the state file and the project as they stand.
func (r *rig) snapshot(to string) {
	db, err := sql.Open("sqlite", "file:"+r.store.Path()+"?mode=ro")
	if err == nil {
		_, err = db.ExecContext(context.Background(), "VACUUM INTO ?", filepath.Join(to, "centurion.db"))
		_ = db.Close()
	}
	if err != nil {
		r.t.Error(err)
	}
	for _, name := range []string{todoMD, "T1.txt", "T2.txt", "T3.txt", "T4.txt"} {
		b, err := os.ReadFile(filepath.Join(r.dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		copied := filepath.Join(to, "project", name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(copied), 0o755), os.WriteFile(copied, b, 0o644))
		if err != nil {
			r.t.Error(err)
		}
	}
}

// What a cut-off attempt had changed and how often its check had sent it back is not forgotten by a restart.
func TestRestartForgetsNothing(t *testing.T) {
	bubble(t, map[string]script{
		"commander": func(r scripted.Request) scripted.Answer {
			return steps(do(plans("- [ ] T1 One", "  - verify: `exists no.txt`")), do(work("T1", "x")), say("I wait"), say("I wait"), do(mark("T1", "cancelled")))(r)
		},
		"worker": func(r scripted.Request) scripted.Answer {
			if r.Step() == 1 {
				return writeFile("a.txt")
			}
			return after(time.Minute, say("made"))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxDuration: 150_000}) // two checks have failed
		r.is(m, centurion.MissionPaused, "")
		equal(t, "returns", r.task(m.ID, "T1").Returns, 2)
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxDuration: 3_600_000}); err != nil {
			t.Fatal(err)
		}
		r.restart()
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		one := r.task(m.ID, "T1")
		equal(t, "returns", one.Returns, 3)
		equal(t, "runs of the check", r.shell.times("exists no.txt"), 4)
		equal(t, "files", strings.Join(one.Files, " "), "a.txt")
		equal(t, "attempt", one.Attempt, 2)
	})
}

// A mission that is run when the host is about to go stays as it was.
func TestRunInAnEndedContext(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		over, cancel := context.WithCancelCause(r.ctx)
		cancel(centurion.ErrShutdown)
		m := r.runIn(over, r.start(centurion.MissionOptions{}).ID)
		r.is(m, centurion.MissionPaused, "interrupted")
		m, err := r.host.Run(over, m.ID)
		if err != nil {
			t.Error(err)
		}
		r.check(m)
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
	})
}

// A session whose turn had ended before the restart is not asked again.
func TestRestartDoesNotAskAgain(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `build 5m`")), do(work("T1", "x")), say("I wait")),
		"worker":    steps(say("made")),
	}, func(r *rig) {
		ctx, cancel := context.WithCancelCause(r.ctx)
		time.AfterFunc(time.Minute, func() { cancel(centurion.ErrShutdown) })
		m := r.runIn(ctx, r.start(centurion.MissionOptions{}).ID)
		r.is(m, centurion.MissionPaused, "")
		r.restart()
		m = r.run(m.ID)
		r.is(m, centurion.MissionCompleted, "")
		equal(t, "requests of the worker", len(r.requests("worker")), 1)
		equal(t, "result", r.task(m.ID, "T1").Result, "made")
	})
}
