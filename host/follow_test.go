package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/config"
	"centurion/sandbox"
	"centurion/server"
	"centurion/store"
)

// follow reads events to their end and returns their numbers and what was noted.
func (f *faulty) follow(t *testing.T, follow bool) (seen []int64, noted string) {
	t.Helper()
	conn := connectTo(t, f)
	for e, err := range conn.Place.Events(t.Context(), conn.API(), server.EventQuery{Mission: "msn_1", Follow: follow}, func(s string) { noted += s }) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Seq)
	}
	return seen, noted
}

// Who follows a mission gives up on a host that sends nothing, not on one that breaks off and goes on.
func TestFollowersGiveUp(t *testing.T) {
	upTo := func(last int64) func(q server.EventQuery) []centurion.Event {
		return func(q server.EventQuery) (events []centurion.Event) {
			if q.After < last {
				events = append(events, centurion.Event{Seq: q.After + 1, Mission: "msn_1", Type: centurion.EventTaskQueued})
			}
			return events
		}
	}
	f := &faulty{path: "/events", left: 100, events: upTo(0)}
	seen, noted := f.follow(t, true)
	if len(seen) > 0 || noted != "its host does not answer; see: centurion ps" || len(f.bodies) != 4 {
		t.Errorf("a silent host: %v, %q after %d requests", seen, noted, len(f.bodies))
	}
	f = &faulty{path: "/events", left: 6, events: upTo(6)}
	if seen, noted = f.follow(t, false); !slices.Equal(seen, []int64{1, 2, 3, 4, 5, 6}) || noted != "" {
		t.Errorf("a host that breaks off: %v, %q", seen, noted)
	}
}

// Following ends with the run of the mission, and misses nothing that happens while its end is found out.
func TestFollowingEndsWithTheRun(t *testing.T) {
	ends := []centurion.Event{{Seq: 1, Type: centurion.EventTaskQueued}, {Seq: 2, Type: centurion.EventMissionCompleted}, {Seq: 3, Type: centurion.EventTaskQueued}}
	f := &faulty{says: server.Mission{Status: centurion.MissionRunning}}
	f.events = func(q server.EventQuery) []centurion.Event {
		if !q.Follow {
			return nil
		}
		return ends
	}
	if seen, noted := f.follow(t, true); !slices.Equal(seen, []int64{1, 2}) || noted != "" {
		t.Errorf("a run that ends: %v, %q", seen, noted)
	}
	f = &faulty{says: server.Mission{Status: centurion.MissionCompleted}}
	f.events = func(q server.EventQuery) []centurion.Event { return ends[q.After:min(q.After+2, 3)] }
	if seen, noted := f.follow(t, true); !slices.Equal(seen, []int64{1, 2, 3}) || noted != "" {
		t.Errorf("a run that had just ended: %v, %q", seen, noted)
	}
}

// Who follows a mission without a host is told that it was interrupted, but not of one that has stopped.
func TestFollowingWithoutAHost(t *testing.T) {
	for status, want := range map[centurion.MissionStatus]string{
		centurion.MissionRunning:   "the process that ran it is gone; continue with: centurion resume msn_1",
		centurion.MissionCompleted: "",
	} {
		x := newProject(t, nil)
		v, stale := x.visit()
		err := stale.Update(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Append(centurion.Event{Type: centurion.EventMissionStarted, Mission: "msn_1"})
			return errors.Join(err, tx.PutMission(&centurion.Mission{ID: "msn_1", Status: status, Directory: x.Dir}))
		})
		if err != nil {
			t.Fatal(err)
		}
		var seen int
		for _, err := range x.Place.Events(t.Context(), v.API, server.EventQuery{Mission: "msn_1", Follow: true}, x.note) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
		}
		if seen != 1 || x.noted() != want {
			t.Errorf("%s: %d events, %q", status, seen, x.noted())
		}
	}
}

// A mission is read although its host breaks off, and what is only read ends where it ends.
func TestReadingOutlivesABreak(t *testing.T) {
	f := &faulty{path: "/mission", left: 2, early: true, says: server.Mission{ID: "msn_1"}}
	conn := connectTo(t, f)
	if m, err := conn.Place.Mission(t.Context(), "msn_1"); err != nil || m.ID != "msn_1" || len(f.bodies) != 3 {
		t.Errorf("%+v, %v after %d requests", m, err, len(f.bodies))
	}
	f = &faulty{path: "/events", events: func(server.EventQuery) []centurion.Event {
		return []centurion.Event{{Seq: 1, Type: centurion.EventTaskQueued}}
	}}
	conn = connectTo(t, f)
	for e, err := range conn.Events(t.Context(), server.EventQuery{Mission: "msn_1"}) {
		if err != nil || e.Seq != 1 || len(f.bodies) != 1 {
			t.Fatalf("event %d, %v in request %d", e.Seq, err, len(f.bodies))
		}
	}
}

// Who follows a mission of this process is told of an end that could not be recorded.
func TestUnrecordedEndIsTold(t *testing.T) {
	x := newProject(t, nil)
	h := x.mustOwn(Options{})
	defer h.Close()
	full := &centurion.Error{Kind: centurion.KindDisk, Msg: "the disk is full"}
	done := make(chan struct{})
	close(done)
	h.mu.Lock()
	h.all["msn_1"] = &run{end: func(error) {}, done: done, err: full}
	h.mu.Unlock()
	conn := &Connection{Place: x.Place, host: h}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var got error
	for _, err := range conn.Events(ctx, server.EventQuery{Mission: "msn_1", Follow: true}) {
		got = err
	}
	if got != full {
		t.Errorf("it ends with %v", got)
	}
}

// A new host says which missions go on in it, and leaves the one to its caller that this resumes itself.
func TestTakingOverIsTold(t *testing.T) {
	x, h, m, release := waitingMission(t)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	cfg := x.config()
	conn := &Connection{Place: x.Place, Workspace: x.ws, Config: cfg, Models: NewModels(cfg, config.Resolved{}), Note: x.note, Except: m.ID}
	if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil {
		t.Fatal(err)
	}
	if living, _ := conn.Host().running(); len(living) > 0 || x.noted() != "" {
		t.Errorf("it runs %v and says %q", living, x.noted())
	}
	if err := conn.Host().Close(); err != nil {
		t.Error(err)
	}
	conn = &Connection{Place: x.Place, Workspace: x.ws, Config: cfg, Models: NewModels(cfg, config.Resolved{}), Note: x.note}
	if err := conn.ConnectOrOwn(t.Context(), FirstTimeout); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(x.noted(), "mission "+m.ID+" was interrupted and continues here") {
		t.Errorf("it says %q", x.noted())
	}
	if err := conn.Close(t.Context()); err != nil { // which waits for it
		t.Error(err)
	}
	v, err := Open(t.Context(), x.Dir, x.getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if got, err := v.API.Mission(t.Context(), m.ID); err != nil || got.Status != centurion.MissionCompleted {
		t.Errorf("it left a mission that is %s (%s), %v", got.Status, got.Reason, err)
	}
}

// A background host ends when it has been idle for a while, counted from the end of its last mission, and at once when it is told to.
func TestBackgroundHostEndsWhenIdle(t *testing.T) {
	for name, tt := range map[string]struct {
		works, stopped time.Duration
		want           time.Duration
	}{
		"no work":         {0, time.Hour, idleTimeout},
		"a long mission":  {time.Minute, time.Hour, time.Minute + idleTimeout},
		"a short one":     {idleTimeout / 2, time.Hour, idleTimeout/2 + idleTimeout},
		"told to stop":    {time.Minute, time.Second, time.Second},
		"told while idle": {0, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, why := going(t, centurion.Mission{ID: "msn_1", Status: centurion.MissionCompleted})
				if tt.works == 0 {
					r.all["msn_1"].end(nil)
				} else {
					time.AfterFunc(tt.works, func() { r.all["msn_1"].end(nil) })
				}
				synctest.Wait()
				unlocked := false
				h := &Host{runs: r, unlock: func() error { unlocked = true; return nil }}
				ctx, cancel := context.WithTimeout(t.Context(), tt.stopped)
				defer cancel()
				begun := time.Now()
				if err := h.hostUntilIdle(ctx, func(string) {}); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun); took != tt.want || !unlocked {
					t.Errorf("it ended after %s, want %s; unlocked: %v", took, tt.want, unlocked)
				}
				if tt.works > tt.stopped && *why["msn_1"] != centurion.ErrHandover {
					t.Errorf("its mission ended with %v", *why["msn_1"])
				}
			})
		})
	}
}

// A background host is started where none is to follow the present host, and what keeps it from starting is told at once.
func TestConnectBackground(t *testing.T) {
	for name, tt := range map[string]struct {
		info  *server.Info
		says  string // by the child
		child bool
		want  centurion.Kind
	}{
		"a host in the background":   {info: &server.Info{PID: 4711, Detached: true}},
		"a host at a terminal":       {info: &server.Info{PID: 4711}, child: true},
		"a host of another version":  {info: &server.Info{PID: 4711, Version: "9"}, want: centurion.KindConflict},
		"none, and one cannot start": {says: "centurion: no model is configured\nnext: configure one\n", child: true, want: centurion.KindConfig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CENTURION_TEST_HOST", tt.says)
			conn := &Connection{Place: hostElsewhere(t, tt.info), Note: func(string) {}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := conn.ConnectBackground(ctx); centurion.KindOf(err) != tt.want {
				t.Errorf("it ends with %v", err)
			}
			conn.set(nil, nil)
			if got := exists(filepath.Join(conn.State, logName)); got != tt.child {
				t.Errorf("a child was started: %v", got)
			}
		})
	}
	conn := &Connection{Place: hostElsewhere(t, nil), Note: func(string) {}}
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := conn.ConnectBackground(t.Context())
		if took := time.Since(begun); centurion.KindOf(err) != centurion.KindTimeout || took < startTimeout || took > 2*startTimeout || !strings.Contains(centurion.HintOf(err), logName) {
			t.Errorf("one that never answers: %v after %s", err, took)
		}
	})
}

// A second background host ends at once while the first one works.
func TestSecondBackgroundHostEnds(t *testing.T) {
	x := newProject(t, nil)
	p := hostElsewhere(t, &server.Info{PID: 4711, Detached: true})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if over, err := p.awaitOwner(ctx); !over || err != nil {
		t.Fatalf("over: %v, %v", over, err)
	}
	if err := RunBackground(ctx, p, x.ws, Options{Renew: x.renewer()}); err != nil {
		t.Error(err)
	}
}

// Looking how worktrees are made leaves none behind.
func TestWorkspacesLeavesNoCheckout(t *testing.T) {
	x := newProject(t, nil)
	cfg := x.config()
	p := Place{Dir: x.Dir, State: filepath.Join(t.TempDir(), "p")}
	if how, err := p.Workspaces(t.Context(), cfg, x.ws); centurion.KindOf(err) != centurion.KindNotFound || how != "" {
		t.Errorf("without a repository: %q, %v", how, err)
	}
	git := centurion.Command{Dir: x.Dir, Script: "git init -q && git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x"}
	if res, err := (&sandbox.Runner{}).Run(t.Context(), git); err != nil || res.ExitCode != 0 {
		t.Fatal(res, err)
	}
	if how, err := p.Workspaces(t.Context(), cfg, x.ws); err != nil || how == "" {
		t.Errorf("%q, %v", how, err)
	}
	if exists(filepath.Join(p.State, "checkouts")) {
		t.Error("left checkouts behind")
	}
}

// At most three directories are named from which a project may have come, and only such as are gone.
func TestMovedFromIsShort(t *testing.T) {
	x := newProject(t, nil)
	parent := t.TempDir()
	for _, name := range []string{"a", "aa", "b", "c", "d"} {
		p := Place{Dir: filepath.Join(parent, name), State: filepath.Join(x.home, "projects", name)}
		if err := os.MkdirAll(p.State, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), p.Database())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.PutMission(&centurion.Mission{ID: "msn_" + name, Status: centurion.MissionCompleted, Directory: p.Dir})
		})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(parent, "aa"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := MovedFrom(t.Context(), filepath.Join(parent, "new"), x.getenv, x.note)
	if len(got) != 3 || slices.Contains(got, filepath.Join(parent, "aa")) {
		t.Errorf("moved from %q", got)
	}
	if got := MovedFrom(t.Context(), filepath.Join(t.TempDir(), "b"), x.getenv, x.note); !slices.Equal(got, []string{filepath.Join(parent, "b")}) {
		t.Errorf("moved from %q", got)
	}
}
