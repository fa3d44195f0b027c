package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/provider/scripted"
)

// What commands have left running in the project's own directory ends with the last mission that works there, and not before.
func TestTheProjectIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lengths := []string{"build 1m", "build 2m", "build 5m"}
		r := inRepo(t, nil, map[string]script{"commander": func(req scripted.Request) scripted.Answer {
			if req.Turn > 1 {
				return say("done")
			}
			return do(call("bash", args{"command": lengths[req.Nth-1], "timeout": (9 * time.Minute).Milliseconds()}))
		}})
		var lives []*life
		for _, isolation := range []string{centurion.IsolationShared, centurion.IsolationShared, centurion.IsolationWorktree} {
			lives = append(lives, r.live(r.start(centurion.MissionOptions{Isolation: isolation}).ID))
			time.Sleep(time.Second)
		}
		for i, want := range []int{0, 1, 1} { // the third mission does not work there
			lives[i].wait()
			synctest.Wait()
			if got := r.shell.releases(r.dir); got != want {
				t.Errorf("after mission %d: released %d times: %v", i+1, got, r.shell.released)
			}
		}
	})
}

// What commands have left running in a task's checkout ends when its mission stops, although the checkout stays.
func TestAKeptCheckoutIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := inRepo(t, nil, map[string]script{"commander": steps(do(work("", "x")), say("I wait")), "worker": steps(writeFile("a.txt"), bash("build 1h"))})
		l := r.live(r.start(centurion.MissionOptions{}).ID)
		time.Sleep(time.Minute)
		dir := r.tasks(l.id)[0].Checkout.Dir
		before := r.shell.releases(dir)
		l.cancel(centurion.ErrShutdown)
		l.wait()
		if got := r.shell.releases(dir); before != 0 || got != 1 {
			t.Errorf("released %d times before, %d after: %v", before, got, r.shell.released)
		}
	})
}
