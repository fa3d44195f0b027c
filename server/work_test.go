package server_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
	"centurion/workspace"
)

// bench is a hosting process that notes what it should work on.
type bench struct {
	mu       sync.Mutex // protects what follows
	launched []string
	kept     map[string]int
	change   chan struct{}
	begin    func(id string) // what a launched mission does then; nil is nothing
}

func newBench() *bench { return &bench{kept: map[string]int{}, change: make(chan struct{}, 8)} }

func (b *bench) Launch(id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.launched = append(b.launched, id)
	if b.begin != nil {
		b.begin(id)
	}
	return nil
}

func (b *bench) Keep(id string) func() {
	add := func(n int) {
		b.mu.Lock()
		b.kept[id] += n
		b.mu.Unlock()
		b.change <- struct{}{}
	}
	add(1)
	return func() { add(-1) }
}

func (b *bench) keeps(id string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept[id]
}

// hosting returns a project whose process can start missions.
func hosting(t *testing.T) (*project, *bench) {
	p := newProject(t)
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	b := newBench()
	p.local.Work = b
	p.local.Host = orchestrator.New(orchestrator.Config{Store: p.store, Workspace: ws, Model: func(string) (orchestrator.Model, error) {
		return orchestrator.Model{Ref: centurion.ModelRef{Provider: "custom", ID: "m"}}, nil
	}})
	return p, b
}

// Issue «What works» 6: a client starts, resumes and pauses missions in the hosting process. A request that is repeated,
// because its answer was lost, starts no second mission.
func TestDrive(t *testing.T) {
	p, b := hosting(t)
	c := connect(t, p.local)
	ctx := t.Context()
	m, err := c.Start(ctx, "a new goal", centurion.MissionOptions{Model: "custom/m", Request: "r1", Detached: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Start(ctx, "a new goal", centurion.MissionOptions{Model: "custom/m", Request: "r1", Detached: true})
	if err != nil || again.ID != m.ID {
		t.Errorf("the same request started %s and then %s, %v", m.ID, again.ID, err)
	}
	got, err := p.local.Mission(ctx, m.ID)
	if err != nil || got.Goal != "a new goal" || !got.Options.Detached || got.Status != centurion.MissionPlanning {
		t.Errorf("it was recorded as %+v, %v", got, err)
	}
	if !slices.Contains(b.launched, m.ID) {
		t.Errorf("%s was not launched: %v", m.ID, b.launched)
	}

	if _, err := c.Resume(ctx, p.mission.ID, centurion.MissionOptions{MaxCost: 9}); err != nil {
		t.Fatal(err)
	}
	if got, err := p.local.Mission(ctx, p.mission.ID); err != nil || got.MaxCost != 9 || b.launched[len(b.launched)-1] != p.mission.ID {
		t.Errorf("resumed with %v, %v; launched %v", got.MaxCost, err, b.launched)
	}

	if err := c.Pause(ctx, m.ID, "later"); err != nil {
		t.Fatal(err)
	}
	if got, err := p.local.Mission(ctx, m.ID); err != nil || got.Status != centurion.MissionPaused || got.Reason != "later" {
		t.Errorf("it is %s (%s), %v", got.Status, got.Reason, err)
	}
	if err := c.Pause(ctx, m.ID, "again"); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("what has stopped is paused again: %v", err)
	}
}

// A mission that was resumed is seen at work by whoever looks next, also where it takes a while to begin.
func TestResumedIsAtWork(t *testing.T) {
	p, b := hosting(t)
	p.mission.Status = centurion.MissionPaused
	put := func() error {
		return p.store.Update(context.Background(), func(tx *store.Tx) error { return tx.PutMission(&p.mission) })
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	began := make(chan error, 1)
	b.begin = func(id string) {
		p.local.Host.Mail.Expect(id)
		p.mission.Status = centurion.MissionRunning
		time.AfterFunc(50*time.Millisecond, func() { began <- put() })
	}
	m, err := connect(t, p.local).Resume(t.Context(), p.mission.ID, centurion.MissionOptions{})
	if err != nil || m.Status != centurion.MissionRunning {
		t.Errorf("it is %s, %v", m.Status, err)
	}
	if err := <-began; err != nil {
		t.Error(err)
	}
}

// A reader that keeps a mission is known as long as it reads.
func TestKeep(t *testing.T) {
	p, b := hosting(t)
	c := connect(t, p.local)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range c.Events(ctx, server.EventQuery{Mission: p.mission.ID, Follow: true, Keep: true}) {
		<-b.change
		if n := b.keeps(p.mission.ID); n != 1 {
			t.Errorf("%d readers keep it", n)
		}
		leave()
		break
	}
	<-b.change
	if n := b.keeps(p.mission.ID); n != 0 {
		t.Errorf("%d readers keep it after the only one has left", n)
	}
}

// I6: where nobody hosts, nothing is told to be running.
func TestInterrupted(t *testing.T) {
	p := newProject(t)
	if err := p.store.Update(t.Context(), func(tx *store.Tx) error {
		p.mission.Status, p.mission.Reason, p.task.Status = centurion.MissionRunning, "", centurion.TaskVerifying
		if err := tx.PutTask(&p.task); err != nil {
			return err
		}
		return tx.PutMission(&p.mission)
	}); err != nil {
		t.Fatal(err)
	}
	reader := &server.Local{Store: p.store}
	m, err := reader.Mission(t.Context(), p.mission.ID)
	if err != nil || m.Status != centurion.MissionPaused || m.Reason == "" || m.Tasks["queued"] != 1 || m.Tasks["verifying"] != 0 {
		t.Errorf("the mission is told as %s (%s) with %v, %v", m.Status, m.Reason, m.Tasks, err)
	}
	all, err := reader.Missions(t.Context())
	if err != nil || all[0].Status != centurion.MissionPaused {
		t.Errorf("the list says %+v, %v", all, err)
	}
	if task, err := reader.Task(t.Context(), p.task.ID); err != nil || task.Status != centurion.TaskQueued || task.Reason == "" {
		t.Errorf("the task is told as %s (%s), %v", task.Status, task.Reason, err)
	}
	if m, err := p.local.Mission(t.Context(), p.mission.ID); err != nil || m.Status != centurion.MissionRunning {
		t.Errorf("its host tells it as %s, %v", m.Status, err)
	}
}

// A mission that waits on a full disk is told as paused, with the reason: nothing can be recorded then.
func TestWaitsForSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := hosting(t)
		p.mission.Status, p.mission.Reason = centurion.MissionRunning, ""
		if err := p.store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&p.mission) }); err != nil {
			t.Fatal(err)
		}
		told := func(status centurion.MissionStatus, reason string) {
			t.Helper()
			m, err := p.local.Mission(t.Context(), p.mission.ID)
			all, lerr := p.local.Missions(t.Context())
			if err != nil || lerr != nil || m.Status != status || m.Reason != reason || all[0].Status != status || all[0].Reason != reason {
				t.Errorf("it is %s (%s), in the list %s (%s); %v, %v", m.Status, m.Reason, all[0].Status, all[0].Reason, err, lerr)
			}
		}
		ctx, free := context.WithCancel(t.Context())
		defer free()
		var g guard.Group
		g.Go("wait for space", func() error {
			p.local.Host.Space.Await(ctx, p.mission.ID, errors.New("no space"))
			return nil
		})
		synctest.Wait()
		told(centurion.MissionPaused, "waiting for space: no space")
		free()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		told(centurion.MissionRunning, "")
	})
}
