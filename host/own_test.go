package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/guard"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/store"
	"centurion/workspace"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.HelperCommand {
		os.Exit(sandbox.Helper())
	}
	if len(os.Args) > 1 && os.Args[1] == "host" { // this program started as a background host
		told(os.Stdout)
		ends := make(chan os.Signal, 1)
		signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
		switch os.Getenv("CENTURION_TEST_EXIT") {
		case "fail":
			os.Exit(1)
		case "crash":
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				_ = self.Kill()
			}
			<-ends
		case "wait":
			<-ends
		}
		os.Exit(0)
	}
	if len(os.Args) == 4 && os.Args[1] == "connect" {
		fmt.Print(connected(Place{State: os.Args[2], Token: os.Args[3]}))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// project is a project with a configuration and a model that answers "done", or stalls until the test ends.
type project struct {
	t *testing.T
	Place
	ws     *workspace.Workspace
	getenv func(string) string
	home   string

	mu    sync.Mutex
	notes []string
}

// newProject makes one below a directory of the given length; 0 leaves it as it is.
func newProject(t *testing.T, answer func(scripted.Request) scripted.Answer) *project {
	t.Helper()
	state, err := os.MkdirTemp("", "s") // short: see maxSocket
	if err != nil {
		t.Fatal(err)
	}
	x := &project{t: t, home: state}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	env := map[string]string{"CENTURION_HOME": state}
	if answer != nil {
		m := scripted.New(scripted.Config{Func: answer})
		if env["OPENAI_BASE_URL"], err = m.Serve(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
	}
	x.getenv = func(name string) string { return env[name] }
	if x.Place, x.ws, err = Locate(t.TempDir(), x.getenv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.ws.Close() })
	return x
}

func (x *project) config(own ...func(*config.Own)) *config.Config {
	x.t.Helper()
	cfg, err := config.Load(config.Options{Dir: x.Dir, Home: x.home, Env: x.getenv})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, change := range own {
		change(&cfg.Own)
	}
	return cfg
}

// renewer reads the project's configuration, and has read it once.
func (x *project) renewer() *Renewer {
	x.t.Helper()
	r := &Renewer{Note: x.note, Read: func(_ context.Context, stamps config.Stamps, _ func(string)) (*config.Config, config.Resolved, error) {
		cfg, err := config.Load(config.Options{Dir: x.Dir, Home: x.home, Env: x.getenv, Stamps: stamps})
		return cfg, config.Resolved{}, err
	}}
	if err := r.Begin(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	return r
}

func (x *project) own(how Options) (*Host, error) {
	cfg := x.config()
	return Own(x.t.Context(), x.Place, x.ws, NewModels(cfg, config.Resolved{}), cfg, how)
}

func (x *project) mustOwn(how Options) *Host {
	x.t.Helper()
	h, err := x.own(how)
	if err != nil {
		x.t.Fatal(err)
	}
	return h
}

func (x *project) note(line string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, line)
}

func (x *project) noted() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Join(x.notes, "\n")
}

// free fails the test if the project still has an owner.
func (x *project) free(when string) {
	x.t.Helper()
	unlock, err := x.Place.Lock()
	if err != nil {
		x.t.Fatalf("%s: the project is still held: %v", when, err)
	}
	if err := unlock(); err != nil {
		x.t.Fatal(err)
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// A host says where it is found and who it is, to nobody but its user, and takes all of that away when it leaves.
func TestOwnerIsToldAndForgotten(t *testing.T) {
	for name, long := range map[string]bool{"a socket in the state directory": false, "a path that is too long for a socket": true} {
		t.Run(name, func(t *testing.T) {
			x := newProject(t, nil)
			if long {
				x.State = filepath.Join(x.State, strings.Repeat("d", maxSocket))
				if err := os.MkdirAll(x.State, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			h := x.mustOwn(Options{Version: "1.2.3", Detached: long})
			o, err := x.Owner()
			if err != nil || o.PID != os.Getpid() || o.Boot != bootID() || o.Detached != long || o.Since.IsZero() || o.Socket != h.socket {
				t.Errorf("the owner is %+v, %v", o, err)
			}
			if inside := filepath.Dir(o.Socket) == x.State; inside == long || len(o.Socket) > maxSocket {
				t.Errorf("the socket is %s", o.Socket)
			}
			for _, path := range []string{x.OwnerFile(), o.Socket} {
				if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", path, fi, err)
				}
			}
			c, info, _ := x.Connect(t.Context())
			if c == nil || info.PID != os.Getpid() || info.Version != "1.2.3" || info.Directory != x.Dir || info.Detached != long {
				t.Errorf("it says of itself: %+v", info)
			} else {
				c.Close()
			}
			stranger := x.Place
			stranger.Token = "another"
			if c, _, _ := stranger.Connect(t.Context()); c != nil {
				t.Error("it lets in who has another token")
			}
			if _, err := x.own(Options{}); !IsHeld(err) || centurion.KindOf(err) != centurion.KindConflict {
				t.Errorf("a second host: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			if exists(x.OwnerFile()) || exists(o.Socket) || long && exists(filepath.Dir(o.Socket)) {
				t.Error("it left its socket or its owner file behind")
			}
			x.free("after Close")
		})
	}
}

// A host that cannot begin holds nothing: the next attempt finds the project free, and what a dead one left is gone.
func TestOwnThatFailsHoldsNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(x *project)
		own   func(*config.Own)
		want  centurion.Kind
	}{
		"a state that is no database": {spoil: func(x *project) {
			if err := os.WriteFile(x.Database(), bytes.Repeat([]byte("no"), 4096), 0o600); err != nil {
				x.t.Fatal(err)
			}
		}, want: centurion.KindState},
		"a directory in the place of the socket": {spoil: func(x *project) {
			if err := os.MkdirAll(filepath.Join(x.State, "host.sock", "full"), 0o700); err != nil {
				x.t.Fatal(err)
			}
		}, want: centurion.KindConfig},
		"a policy of nobody": {own: func(o *config.Own) {
			o.Agents = map[string]config.OwnAgent{"nobody": {ToolPolicy: "auto"}}
		}, want: centurion.KindConfig},
		"slots of nobody": {own: func(o *config.Own) { o.Concurrency.Agents = map[string]int{"nobody": 1} }, want: centurion.KindConfig},
	} {
		t.Run(name, func(t *testing.T) {
			x := newProject(t, nil)
			if tt.spoil != nil {
				tt.spoil(x)
			}
			cfg := x.config()
			if tt.own != nil {
				tt.own(&cfg.Own)
			}
			h, err := Own(t.Context(), x.Place, x.ws, NewModels(cfg, config.Resolved{}), cfg, Options{})
			if err == nil {
				_ = h.Close()
			}
			if centurion.KindOf(err) != tt.want {
				t.Errorf("it ended with %v", err)
			}
			x.free("after it failed")
		})
	}
}

// What a host that died had in hand is taken away before the next one begins: its scratch files, and those of its commands
// that still run, in this boot of the machine and with this project's mark only.
func TestNextHostEndsWhatADeadOneLeft(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		if runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		t.Skip("this system lists no environments")
	}
	for name, tt := range map[string]struct {
		boot string
		mark func(Place) string
		ends bool
	}{
		"its command":           {bootID(), Place.Mark, true},
		"another boot":          {"long ago", Place.Mark, false},
		"another project's":     {bootID(), func(p Place) string { p.State += "x"; return p.Mark() }, false},
		"without an owner file": {"", Place.Mark, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := newProject(t, nil)
			left := filepath.Join(x.scratch(), "output")
			if err := errors.Join(os.MkdirAll(x.scratch(), 0o700), os.WriteFile(left, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			if tt.boot != "" {
				b, err := json.Marshal(Owner{PID: 4711, Boot: tt.boot, Socket: "gone"})
				if err = errors.Join(err, os.WriteFile(x.OwnerFile(), b, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sleep", "60")
			cmd.Env = append(os.Environ(), centurion.HostVariable+"="+tt.mark(x.Place))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var g guard.Group
			ended := make(chan struct{})
			g.Go("sleep", func() error { _ = cmd.Wait(); close(ended); return nil })
			h := x.mustOwn(Options{})
			if tt.ends {
				<-ended
			} else {
				select {
				case <-ended:
					t.Error("it ended a process that is not its own")
				default:
				}
				_ = cmd.Process.Kill()
			}
			if exists(left) {
				t.Error("the scratch files of a dead host are still there")
			}
			if err := errors.Join(g.Wait(), h.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A mission that its host hands over goes on in the next one, unless that one is told not to or knows no model for it.
func TestInterruptedMissionsAreResumed(t *testing.T) {
	release := make(chan struct{})
	asked := make(chan struct{}, 8)
	x := newProject(t, func(scripted.Request) scripted.Answer {
		asked <- struct{}{}
		<-release
		return scripted.Answer{Say: "It is done already."}
	})
	opts := centurion.MissionOptions{Model: "custom/m", Isolation: centurion.IsolationShared}
	h := x.mustOwn(Options{})
	m, err := h.api.Start(t.Context(), "wait", opts)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if h.endIfIdle() {
		t.Error("a host that works on a mission takes itself for idle")
	}
	if err := h.Launch(m.ID); err != nil { // what runs is not begun twice
		t.Error(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := h.Launch(m.ID); centurion.KindOf(err) != centurion.KindNetwork {
		t.Errorf("a host that ends takes a mission: %v", err)
	}

	h = x.mustOwn(Options{})
	if !h.endIfIdle() {
		t.Error("a host without a mission does not end")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	h = x.mustOwn(Options{})
	if found, err := h.resumeInterrupted(t.Context(), m.ID, x.note); err != nil || len(found) > 0 || x.noted() != "" {
		t.Errorf("it resumes %v although its caller does (%v, %s)", found, err, x.noted())
	}
	if got, err := h.store.Mission(t.Context(), m.ID); err != nil || !got.Status.Alive() {
		t.Errorf("what was handed over is %s, %v", got.Status, err)
	}
	close(release)
	found, err := h.resumeInterrupted(t.Context(), "", x.note)
	if err != nil || !slices.Equal(found, []string{m.ID}) {
		t.Errorf("it resumes %v, %v", found, err)
	}
	living, _ := h.running()
	if r := living[m.ID]; r != nil {
		<-r.done
	}
	if got, err := h.store.Mission(t.Context(), m.ID); err != nil || got.Status != centurion.MissionCompleted {
		t.Errorf("it ended as %s (%s), %v", got.Status, got.Reason, err)
	}
	if found, err := h.resumeInterrupted(t.Context(), "", x.note); err != nil || len(found) > 0 {
		t.Errorf("what has ended is resumed: %v, %v", found, err)
	}
	err = h.store.Update(t.Context(), func(tx *store.Tx) error {
		lost := centurion.Mission{ID: "msn_lost", Status: centurion.MissionRunning, Options: centurion.MissionOptions{Model: "nobody/m"}}
		also := centurion.Mission{ID: "msn_also", Status: centurion.MissionRunning, Options: centurion.MissionOptions{Model: "nobody/n"}}
		return errors.Join(tx.PutMission(&lost), tx.PutMission(&also))
	})
	if err != nil {
		t.Fatal(err)
	}
	found, err = h.resumeInterrupted(t.Context(), "", x.note)
	if err != nil || len(found) > 0 || !strings.Contains(x.noted(), "mission msn_lost stays interrupted: ") || !strings.Contains(x.noted(), "mission msn_also stays interrupted: ") {
		t.Errorf("without a model: %v, %v, %q", found, err, x.noted())
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
