package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/provider/scripted"
)

// A wider claim holds against others also when another host goes on.
func TestWiderClaimsOutliveTheHost(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "the first part"), work("T2", "the second part")), say("I wait")),
		"worker": func(req scripted.Request) scripted.Answer {
			if strings.Contains(req.First(), "the first part") {
				if req.Step() == 1 {
					return do(writes("more.txt", "x"))
				}
				return after(5*time.Minute, say("done"))
			}
			if req.Step() == 1 {
				return after(time.Minute, do(writes("more.txt", "y")))
			}
			return say("done")
		},
	}, func(r *rig) {
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(30 * time.Second)
		l.goAway(byKill)
		l = r.live(m.ID)
		l.settled()
		has(t, strings.Join(r.results(m.ID, "write"), "\n"), "more.txt belongs to item T1")
		equal(t, "more.txt", r.read("more.txt"), "x")
	})
}

// The mission's own checks are frozen, too, once there is work.
func TestOwnChecksAreFrozen(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- verify: `lacks go.txt stop`", "- [ ] T1 One", "  - verify: `exists a.txt`")), do(work("T1", makeA)), say("I wait"),
			do(plans("- verify: `true`", "- [x] T1 One", "  - verify: `exists a.txt`")), complete()),
		"worker": steps(do(writes("a.txt", "a\n"))),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	has(t, r.results(m.ID, "update_todo")[1], "not changed once work on them has begun", "the mission's own checks: `lacks go.txt stop` became `true`")
	has(t, r.read(todoMD), "lacks go.txt stop")
}

// Words end nothing where a review is missing: the mission is sent back to ask for one, and at last a person is called.
func TestReviewIsAskedForAtTheEnd(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `true`")), do(work("T1", makeA)), say("I wait"), say("all is done")),
		"worker":    steps(do(writes("a.txt", "a\n"))),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionBlocked, "a review is missing")
	told := 0
	for _, q := range r.requests("commander") {
		if strings.Contains(q.Last(), "Every item is done, but not every one is proven:\n- item T1 (One): unproven") {
			told++
		}
	}
	equal(t, "times that it was told", told, 3)
}

// The mission's own agent, which has a checkout, sees what others have merged since.
func TestCommanderCatchesUp(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "  - verify: `exists a.txt`")), do(writes("own.txt", "own\n")), do(work("T1", makeA)), say("I wait"),
			do(call("read", args{"filePath": "a.txt"})), complete()),
		"worker": steps(do(call("read", args{"filePath": "own.txt"})), do(writes("a.txt", "made\n"))),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	all := strings.Join(r.results(m.ID, "read"), "\n")
	has(t, all, "own")
	has(t, all, "made")
}

// A checkout with work that is not merged yet is not moved to what others have merged.
func TestUnmergedWorkStaysInItsCheckout(t *testing.T) {
	t.Parallel()
	r, m := idle(t, map[string]string{"base.txt": "base\n"})
	seat, err := m.iso.Seat(r.ctx, "ses_x", "")
	if err != nil {
		t.Fatal(err)
	}
	ws, leave, err := seat.Where.Write(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	own := filepath.Join(ws.Dir(), "own.txt")
	if err := os.WriteFile(own, []byte("own\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := seat.Checkout().Commit(r.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	if err := m.iso.Ground.Repo.Advance(r.ctx, m.iso.Branch(), m.iso.Ground.Base.Commit, r.work(m, map[string]string{"a.txt": "a\n"}).ID); err != nil {
		t.Fatal(err)
	}
	if err := m.iso.CatchUp(r.ctx, &seat); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(own); string(b) != "own\n" {
		t.Errorf("own.txt is %q, %v", b, err)
	}
}

// A reader that waits for others gets the newest state as soon as they have left, not only when its patience ends.
func TestReaderIsServedWhenOthersLeave(t *testing.T) {
	faked(func(t *testing.T) {
		r, m := idle(t, map[string]string{"base.txt": "base\n"})
		_, leave, err := m.iso.PlaceOf("ses_x", "x").Read(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.iso.Ground.Repo.Advance(r.ctx, m.iso.Branch(), m.iso.Ground.Base.Commit, r.work(m, map[string]string{"a.txt": "a\n"}).ID); err != nil {
			t.Fatal(err)
		}
		var g guard.Group
		began := time.Now()
		g.Go("read", func() error {
			ws, leave, err := m.iso.PlaceOf("ses_y", "y").Read(r.ctx)
			if err != nil {
				return err
			}
			defer leave()
			_, err = os.Stat(filepath.Join(ws.Dir(), "a.txt"))
			return err
		})
		synctest.Wait()
		leave()
		if err := g.Wait(); err != nil || time.Since(began) > 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})(t)
}

// A mission's own agent that is not to write merges nothing, whatever its commands have changed.
func TestOwnReaderMergesNothing(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{"reviewer": steps(do(sh("put sneaky.txt x")), say("PASS"))})
	m := r.mission(centurion.MissionOptions{Agent: "reviewer"})
	equal(t, "merges", r.count(m.ID, centurion.EventMergeDone), 0)
	equal(t, "sneaky.txt", r.branchHas(m.ID, "sneaky.txt"), "")
	equal(t, "as it stayed", r.wrote(m.ID, "sneaky.txt"), "x")
}

// A call that only reads leaves the files that all readers share: once work is merged, the next one finds it, however many came before.
func TestReadersFindWhatIsMerged(t *testing.T) {
	t.Parallel()
	read := func(file string) scripted.Answer { return do(call("read", args{"filePath": file})) }
	r := inRepo(t, map[string]string{"base.txt": "base\n"}, map[string]script{
		"commander": steps(read("base.txt"), do(call("grep", args{"pattern": "base"})), do(work("", "x")), say("I wait"), read("made.txt"), say("well")),
		"worker":    steps(do(writes("made.txt", "by the worker\n")), say("done")),
	})
	m := r.mission(centurion.MissionOptions{})
	r.is(m, centurion.MissionCompleted, "")
	got := r.results(m.ID, "read")
	if len(got) != 2 {
		t.Fatalf("%q", got)
	}
	has(t, got[0], "base")
	has(t, got[1], "by the worker")
}

// What a command has changed in its task's checkout until a person ends it belongs to the task, too, and others are told.
func TestEndedCommandsFilesAreHeld(t *testing.T) {
	faked(func(t *testing.T) {
		r := inRepo(t, map[string]string{"go.txt": "go\n"}, map[string]script{
			"commander": steps(do(work("", "x")), say("I wait")),
			"worker":    steps(do(sh("build 9m")), say("done")),
		})
		m := r.start(centurion.MissionOptions{})
		l := r.live(m.ID)
		time.Sleep(time.Second)
		task := r.tasks(m.ID)[0]
		if err := os.WriteFile(filepath.Join(task.Checkout.Dir, "half.txt"), []byte("half\n"), 0o644); err != nil { // as the command does
			t.Fatal(err)
		}
		if err := r.host.Control.Abort(r.ctx, task.ID, "enough"); err != nil {
			t.Error(err)
		}
		r.is(l.settled(), centurion.MissionCompleted, "")
		equal(t, "held", strings.Join(r.tasks(m.ID)[0].Claims, " "), "half.txt")
	})(t)
}
