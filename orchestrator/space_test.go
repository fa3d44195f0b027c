package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider"
	"centurion/provider/scripted"
	"centurion/session"
)

// cramped is a project on a disk that can be made full: the sessions of one role fail as they do when nothing can be
// stored, and a probe of the project fails as long as .opencode is no directory.
type cramped struct {
	session.Model
	r    *rig
	who  string
	fill atomic.Bool // the role's next request finds the disk full

	mu   sync.Mutex // protects told
	told []centurion.Event
}

var errFull = &centurion.Error{Op: "write state", Kind: centurion.KindDisk, Msg: "the disk is full", Hint: "make space"}

func (c *cramped) Stream(ctx context.Context, req provider.Request) iter.Seq2[provider.Delta, error] {
	line, _, _ := strings.Cut(req.System, "\n")
	if !strings.Contains(strings.ToLower(line[:min(30, len(line))]), c.who) || !c.fill.CompareAndSwap(true, false) {
		return c.Model.Stream(ctx, req)
	}
	return func(yield func(provider.Delta, error) bool) {
		c.full()
		yield(provider.Delta{}, errFull)
	}
}

func (c *cramped) path(name string) string { return filepath.Join(c.r.dir, name) }

func (c *cramped) full() {
	if err := os.Rename(c.path(".opencode"), c.path(".away")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.r.t.Error(err)
	}
	if err := os.WriteFile(c.path(".opencode"), nil, 0o600); err != nil {
		c.r.t.Error(err)
	}
}

func (c *cramped) empty() {
	err := os.Remove(c.path(".opencode"))
	if merr := os.Rename(c.path(".away"), c.path(".opencode")); !errors.Is(merr, fs.ErrNotExist) {
		err = errors.Join(err, merr)
	}
	if err != nil {
		c.r.t.Error(err)
	}
}

// publish keeps what is told to those who watch.
func (c *cramped) publish(e centurion.Event) {
	if e.Type != centurion.EventMissionUpdated {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, e)
}

func (c *cramped) published() []centurion.Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// inCramped runs a test on such a project.
func inCramped(t *testing.T, who string, wait time.Duration, f func(r *rig, c *cramped)) {
	t.Helper()
	bubble(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait")),
		"worker":    minutes(2, "made"),
	}, func(r *rig) {
		c := &cramped{Model: provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http}), r: r, who: who}
		r.cfg.Model = func(string) (Model, error) { return Model{Client: c, Ref: ref}, nil }
		r.cfg.Publish, r.cfg.DiskWait = c.publish, wait
		r.restart()
		f(r, c)
	})
}

// fills fills the disk in the middle of a mission and looks how that is told.
func (c *cramped) fills(m centurion.Mission) *life {
	r, t := c.r, c.r.t
	t.Helper()
	if c.who == "commander" { // its next request comes after the task's end
		time.AfterFunc(90*time.Second, func() { c.fill.Store(true) })
	} else {
		time.AfterFunc(30*time.Second, func() { c.fill.Store(true) })
	}
	l := r.live(m.ID)
	for range 200 {
		time.Sleep(time.Second)
		synctest.Wait()
		if r.host.Space.Reason(m.ID) != "" {
			break
		}
	}
	has(t, r.host.Space.Reason(m.ID), "waiting for space: ", errFull.Msg)
	equal(t, "running", strings.Join(r.host.Running(), " "), m.ID)
	for _, e := range r.events(m.ID) {
		if e.Type.EndsMission() {
			t.Errorf("told: %s", e.Type)
		}
	}
	told := c.published()
	if len(told) != 1 {
		t.Fatalf("told to those who watch: %+v", told)
	}
	var d event.MissionData
	if err := json.Unmarshal(told[0].Data, &d); err != nil {
		t.Error(err)
	}
	equal(t, "status that is told", d.Status, centurion.MissionPaused)
	has(t, d.Reason, "waiting for space: ", errFull.Msg)
	equal(t, "mission that is told", told[0].Mission, m.ID)
	if told[0].Seq != 0 || told[0].After == 0 {
		t.Errorf("what cannot be stored is told as if it were: %+v", told[0])
	}
	return l
}

// TRIAL R4: a full disk does not end a mission: it waits, says so, and goes on by itself when there is space again.
func TestFullDiskIsWaitedFor(t *testing.T) {
	for _, who := range []string{"commander", "worker"} {
		for name, test := range map[string]struct{ wait, full time.Duration }{
			"for a while": {0, 20 * time.Second}, "for ever": {-1, 10 * time.Hour},
		} {
			t.Run(who+" "+name, func(t *testing.T) {
				inCramped(t, who, test.wait, func(r *rig, c *cramped) {
					m := r.start(centurion.MissionOptions{})
					l := c.fills(m)
					seq, asked := r.store.LastSeq(), len(r.model.Requests())
					time.Sleep(test.full)
					synctest.Wait()
					equal(t, "rows while the disk is full", r.store.LastSeq(), seq)
					equal(t, "requests while the disk is full", len(r.model.Requests()), asked)
					c.empty()
					began := time.Now()
					for r.host.Space.Reason(m.ID) != "" && time.Since(began) < time.Minute {
						time.Sleep(100 * time.Millisecond)
						synctest.Wait()
					}
					if took := time.Since(began); took > 5*time.Second+time.Second {
						t.Errorf("it went on %s after there was space", took)
					}
					m = l.settled()
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "suspended", r.host.Space.Reason(m.ID), "")
					one := r.task(m.ID, "")
					equal(t, "result", one.Result, "made")
					equal(t, "told", r.told(m.Session, "made"), 1)
					equal(t, "returns", one.Returns, 0)
				})
			})
		}
	}
}

// TRIAL R4: without space a mission stops in the end, paused and with the disk's error, and can be resumed.
func TestFullDiskForTooLong(t *testing.T) {
	for _, who := range []string{"commander", "worker"} {
		for _, wait := range []time.Duration{0, 10 * time.Minute} {
			t.Run(who+" "+wait.String(), func(t *testing.T) {
				inCramped(t, who, wait, func(r *rig, c *cramped) {
					m := r.start(centurion.MissionOptions{})
					l := c.fills(m)
					began := time.Now()
					m = l.settled()
					r.is(m, centurion.MissionPaused, errFull.Msg)
					has(t, m.Reason, errFull.Hint)
					if wait == 0 {
						wait = DefaultDiskWait
					}
					if took := time.Since(began); took > wait || took < wait-5*time.Second {
						t.Errorf("it stopped after %s, want %s", took, wait)
					}
					equal(t, "suspended", r.host.Space.Reason(m.ID), "")
					if one := r.task(m.ID, ""); who == "worker" && one.Status != centurion.TaskQueued {
						t.Errorf("the task is %s", one.Status)
					}
					c.empty()
					r.restart()
					m = r.run(m.ID)
					r.is(m, centurion.MissionCompleted, "")
					equal(t, "result", r.task(m.ID, "").Result, "made")
				})
			})
		}
	}
}

// TRIAL R4: who stops a mission that waits for space is obeyed at once, and as he said.
func TestStoppedWhileTheDiskIsFull(t *testing.T) {
	for _, who := range []string{"commander", "worker"} {
		for name, test := range map[string]struct {
			stop   func(r *rig, l *life) error
			status centurion.MissionStatus
			reason string
		}{
			"pause":    {func(r *rig, l *life) error { return r.host.Control.Pause(r.ctx, l.id, "for lunch") }, centurion.MissionPaused, "for lunch"},
			"cancel":   {func(r *rig, l *life) error { return r.host.Control.Cancel(r.ctx, l.id, "no use") }, centurion.MissionCancelled, "no use"},
			"shutdown": {func(_ *rig, l *life) error { l.cancel(centurion.ErrShutdown); return nil }, centurion.MissionPaused, "interrupted"},
			"handover": {func(_ *rig, l *life) error { l.cancel(centurion.ErrHandover); return nil }, centurion.MissionPlanning, ""},
		} {
			t.Run(who+" "+name, func(t *testing.T) {
				inCramped(t, who, -1, func(r *rig, c *cramped) {
					m := r.start(centurion.MissionOptions{})
					l := c.fills(m)
					began := time.Now()
					if err := test.stop(r, l); err != nil {
						t.Error(err)
					}
					m = l.wait()
					equal(t, "it took", time.Since(began), 0)
					equal(t, "suspended", r.host.Space.Reason(m.ID), "")
					equal(t, "running", len(r.host.Running()), 0)
					c.empty()
					if test.status == centurion.MissionPlanning {
						if !m.Status.Alive() {
							t.Errorf("what was handed over is %s (%s)", m.Status, m.Reason)
						}
						return
					}
					r.runs++
					r.is(m, test.status, test.reason)
					r.check(m)
				})
			})
		}
	}
}
