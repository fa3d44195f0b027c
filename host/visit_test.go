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
	"centurion/orchestrator/retention"
	"centurion/server"
	"centurion/store"
	"centurion/store/storetest"
)

// visit opens the project as a command does that does not host it, with a store of a host beside it that thinks it is the owner.
func (x *project) visit() (v *View, stale *store.Store) {
	x.t.Helper()
	ctx := x.t.Context()
	stale, err := store.Open(ctx, x.Database())
	if err == nil {
		err = stale.Own(ctx)
	}
	if err == nil {
		err = stale.Update(ctx, func(tx *store.Tx) error {
			return tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: "x", Status: centurion.MissionCompleted, Directory: x.Dir})
		})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	v, err = Open(ctx, x.Dir, x.getenv)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		if err := errors.Join(v.Close(), stale.Close()); err != nil {
			x.t.Error(err)
		}
	})
	return v, stale
}

// Whatever a command does in the place of a host it does as the owner: a host that still writes is refused from then on, one that
// holds the project keeps it, and the project is free afterwards, however that ended.
func TestVisitorsOwnWhatTheyChange(t *testing.T) {
	failed := errors.New("no")
	for name, do := range map[string]func(v *View) error{
		"gc":     func(v *View) error { _, err := v.Tidy(t.Context(), retention.TidyOptions{}); return err },
		"change": func(v *View) error { return v.AsHost(t.Context(), func(server.API) error { return nil }) },
		"failed": func(v *View) error {
			if err := v.AsHost(t.Context(), func(server.API) error { return failed }); !errors.Is(err, failed) {
				return errors.Join(errors.New("it went well"), err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newProject(t, nil)
			v, stale := x.visit()
			unlock, err := x.Place.Lock()
			if err != nil {
				t.Fatal(err)
			}
			if err := do(v); !IsHeld(err) {
				t.Errorf("while another holds it: %v", err)
			}
			write := func() error {
				return stale.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
			}
			if err := errors.Join(unlock(), write()); err != nil {
				t.Fatal(err)
			}
			if err := do(v); err != nil {
				t.Fatal(err)
			}
			if err := write(); centurion.KindOf(err) != centurion.KindConflict {
				t.Errorf("a host that lost the project still writes: %v", err)
			}
			x.free("afterwards")
		})
	}
}

// A look at what gc would do leaves the state as it is, and only looking at a project takes nothing over.
func TestTidyReports(t *testing.T) {
	x := newProject(t, nil)
	v, stale := x.visit()
	if v.Local().Archive != v.Workspace {
		t.Error("what was archived cannot be read where no host runs")
	}
	rep, err := v.Tidy(t.Context(), retention.TidyOptions{DryRun: true})
	if err != nil || rep.Before != 0 || rep.After != 0 {
		t.Errorf("a look: %+v, %v", rep, err)
	}
	if rep, err = v.Tidy(t.Context(), retention.TidyOptions{}); err != nil || rep.Before == 0 || rep.After == 0 || rep.HostPID != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	if err := stale.Own(t.Context()); err != nil {
		t.Fatal(err)
	}
	var missions []server.Mission
	err = v.Beside(func(api server.API) (err error) { missions, err = api.Missions(t.Context()); return err })
	if err != nil || len(missions) != 1 {
		t.Errorf("%+v, %v", missions, err)
	}
	err = stale.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	if err != nil {
		t.Errorf("looking has taken the project over: %v", err)
	}
}

// going is a host's runs with these missions being worked on; each ends when it is told to, and tells why.
func going(t *testing.T, missions ...centurion.Mission) (*runs, map[string]*error) {
	t.Helper()
	s := storetest.Open(t)
	r := &runs{store: s, changed: make(chan struct{}), all: map[string]*run{}, keepers: map[string]int{}}
	why := map[string]*error{}
	for _, m := range missions {
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.PutMission(&m) }); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancelCause(context.Background())
		x, cause := &run{end: end, done: make(chan struct{})}, new(error)
		context.AfterFunc(ctx, func() { *cause = context.Cause(ctx); close(x.done); r.wake() })
		r.all[m.ID], why[m.ID] = x, cause
	}
	return r, why
}

// A process that leaves waits for missions that nobody goes on with, says so once, and pauses them when it may wait no longer.
func TestLeaving(t *testing.T) {
	mission := func(status centurion.MissionStatus, detached bool) centurion.Mission {
		return centurion.Mission{ID: "msn_1", Status: status, Options: centurion.MissionOptions{Detached: detached}}
	}
	for name, tt := range map[string]struct {
		mission centurion.Mission
		kept    int
		paused  bool
		said    int
	}{
		"nobody goes on":          {mission(centurion.MissionRunning, false), 0, true, 1},
		"a background host does":  {mission(centurion.MissionRunning, true), 0, false, 0},
		"a reader does":           {mission(centurion.MissionRunning, false), 1, false, 0},
		"two readers, one leaves": {mission(centurion.MissionRunning, false), 2, false, 0},
		"it has ended":            {mission(centurion.MissionCompleted, false), 0, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, why := going(t, tt.mission)
				var done func()
				for range tt.kept {
					done = r.Keep("msn_1")
				}
				if tt.kept > 1 {
					done()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				var said []string
				begun := time.Now()
				r.waitForOthers(ctx, func(line string) { said = append(said, line) })
				if waited := time.Since(begun) > 0; waited != tt.paused || (*why["msn_1"] != nil) != tt.paused || len(said) != tt.said {
					t.Errorf("it left after %s (%v) and said %q", time.Since(begun), *why["msn_1"], said)
				}
				if tt.paused && (*why["msn_1"] != centurion.ErrShutdown || !strings.Contains(said[0], "mission msn_1 still runs here")) {
					t.Errorf("%v, %q", *why["msn_1"], said)
				}
				if tt.kept == 1 {
					if done(); r.hasSuccessor(t.Context(), "msn_1") {
						t.Error("a reader that has left still keeps it")
					}
				}
				if got := r.hasDetached(t.Context()); got != tt.mission.Options.Detached {
					t.Errorf("one for a background host: %v", got)
				}
				r.all["msn_1"].end(nil)
			})
		})
	}
}

// A hand-over ends all missions with the cause by which the next host goes on with them, and takes no new ones.
func TestHandOverEndsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, why := going(t, centurion.Mission{ID: "msn_1", Status: centurion.MissionRunning}, centurion.Mission{ID: "msn_2", Status: centurion.MissionRunning})
		if r.endIfIdle() {
			t.Error("it is idle")
		}
		r.HandOver()
		for id, cause := range why {
			if *cause != centurion.ErrHandover || !r.all[id].isOver() {
				t.Errorf("%s ended with %v", id, *cause)
			}
		}
		if err := r.Launch("msn_3"); centurion.KindOf(err) != centurion.KindNetwork {
			t.Errorf("it takes a new one: %v", err)
		}
		if living, _ := r.running(); len(living) > 0 || !r.endIfIdle() {
			t.Errorf("still running: %v", living)
		}
	})
}

// A background host works in its state directory, apart from the terminal, and is nobody's child by its mark.
func TestBackgroundCommand(t *testing.T) {
	p := Place{Dir: "/project", State: t.TempDir()}
	env := []string{"A=1", centurion.HostVariable + "=mark", "CENTURION_HOST_LIKE=2"}
	cmd := p.hostCommand(t.Context(), "/bin/centurion", "require", os.Stderr, env)
	if !slices.Equal(cmd.Args, []string{"/bin/centurion", "host", "--dir", "/project", "--sandbox=require"}) || cmd.Dir != p.State || cmd.Stdout != os.Stderr || cmd.Stderr != os.Stderr {
		t.Errorf("%+v", cmd)
	}
	if !slices.Equal(cmd.Env, []string{"A=1", "CENTURION_HOST_LIKE=2"}) || env[1] != centurion.HostVariable+"=mark" {
		t.Errorf("its environment is %q", cmd.Env)
	}
	if cmd.SysProcAttr == nil {
		t.Error("it ends with the terminal")
	}
}

// Projects are found by what their states say; those without a mission are passed over in silence, those that cannot be read with
// a word. Of what was interrupted only that is brought back whose directory is still the same project.
func TestProjectsOfAMachine(t *testing.T) {
	x := newProject(t, nil)
	put := func(p Place, status centurion.MissionStatus) {
		t.Helper()
		if err := os.MkdirAll(p.State, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), p.Database())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.PutMission(&centurion.Mission{ID: centurion.NewID(centurion.PrefixMission), Status: status, Directory: p.Dir})
		})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	place := func(dir, name string) Place {
		return Place{Dir: dir, State: filepath.Join(x.home, "projects", name)}
	}
	put(x.Place, centurion.MissionRunning)
	moved := place(filepath.Join(filepath.Dir(x.Dir), "gone"), "moved")
	put(moved, centurion.MissionRunning)
	put(place(x.Dir, "copy"), centurion.MissionRunning) // the same directory under another name
	done, _, err := Locate(t.TempDir(), x.getenv)
	if err != nil {
		t.Fatal(err)
	}
	put(done, centurion.MissionCompleted)
	empty, broken := place("", "empty"), place("", "broken")
	if err := errors.Join(os.MkdirAll(empty.State, 0o700), os.MkdirAll(broken.State, 0o700), os.WriteFile(broken.Database(), []byte(strings.Repeat("no", 4096)), 0o600),
		os.WriteFile(filepath.Join(x.home, "projects", "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	all, err := Projects(t.Context(), x.getenv, x.note)
	var dirs []string
	for _, p := range all {
		dirs = append(dirs, p.Dir)
		if p.Token != x.Token {
			t.Errorf("%s would let in with %q", p.Dir, p.Token)
		}
	}
	slices.Sort(dirs)
	want := []string{x.Dir, x.Dir, moved.Dir, done.Dir}
	slices.Sort(want)
	if err != nil || !slices.Equal(dirs, want) {
		t.Errorf("projects %q, %v, want %q", dirs, err, want)
	}
	if n := x.noted(); strings.Count(n, "\n") != 0 || !strings.Contains(n, broken.State+" is passed over") {
		t.Errorf("it says %q", n)
	}
	x.notes = nil
	found, err := InterruptedProjects(t.Context(), x.getenv, x.note)
	if err != nil || len(found) != 1 || found[0].State != config.ProjectDir(x.home, x.Dir) {
		t.Errorf("interrupted: %+v, %v", found, err)
	}
	for _, words := range []string{"stays interrupted", "the directory has become another project", moved.Dir} {
		if !strings.Contains(x.noted(), words) {
			t.Errorf("%q does not say %q", x.noted(), words)
		}
	}
	if got := MovedFrom(t.Context(), filepath.Join(filepath.Dir(x.Dir), "new"), x.getenv, x.note); !slices.Equal(got, []string{moved.Dir}) {
		t.Errorf("moved from %q", got)
	}
	if got := MovedFrom(t.Context(), filepath.Join(t.TempDir(), "else"), x.getenv, x.note); len(got) > 0 {
		t.Errorf("moved from %q", got)
	}
}
