package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/config"
	"centurion/event"
	"centurion/orchestrator/retention"
	"centurion/provider/scripted"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/server"
	"centurion/store"
	"centurion/trust"
)

// A host writes no keys, and takes the state from a process that still thinks it owns it.
func TestHostOwnsItsState(t *testing.T) {
	x := newProject(t, nil)
	stale, err := store.Open(t.Context(), x.Database())
	if err == nil {
		err = stale.Own(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stale.Close()
	if err := os.WriteFile(filepath.Join(x.State, "host.sock"), nil, 0o600); err != nil { // of a host that was killed
		t.Fatal(err)
	}
	h := x.mustOwn(Options{})
	defer h.Close()
	err = stale.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) })
	if centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("the last owner still writes: %v", err)
	}
	err = h.store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.PutMission(&centurion.Mission{ID: "msn_1", Goal: "use " + x.Token})
	})
	if m, merr := h.store.Mission(t.Context(), "msn_1"); err != nil || merr != nil || m.Goal != "use [key centurion token]" {
		t.Errorf("it stores %q, %v, %v", m.Goal, err, merr)
	}
	if h.api.Archive != x.ws || h.api.Hub == nil || h.api.Work == nil || h.api.Person == nil {
		t.Errorf("it serves %+v", h.api)
	}
	if !exists(filepath.Join(x.State, "plans")) {
		t.Error("it does not remember the plans")
	}
	if h.stopCleaner == nil {
		t.Error("it cleans nothing up")
	}
	c, info, _ := x.Connect(t.Context())
	if c == nil || info.Way == "" || info.Way != h.runner.Confinement().Way {
		t.Fatalf("it says that commands are confined in the way %q", info.Way)
	}
	c.Close()
	v, err := Open(t.Context(), x.Dir, x.getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if rep, err := v.Tidy(t.Context(), retention.TidyOptions{}); err != nil || rep.HostPID != os.Getpid() || rep.Before != 0 {
		t.Errorf("gc by the host: %+v, %v", rep, err)
	}
}

// Desktop notices are shown unless the person has turned them off, and begin with the start of the mission that has the goal.
func TestNoticesOfAHost(t *testing.T) {
	var got []centurion.EventType
	watch := func(_ context.Context, events iter.Seq2[centurion.Event, error]) {
		for e, err := range events {
			if err != nil {
				t.Error(err)
			}
			got = append(got, e.Type)
		}
	}
	for name, on := range map[string]*bool{"by default": nil, "on": new(true), "off": new(false)} {
		x := newProject(t, func(scripted.Request) scripted.Answer { return scripted.Answer{Say: "It is done already."} })
		cfg := x.config(func(o *config.Own) { o.Notify = on })
		got = nil
		h, err := Own(t.Context(), x.Place, x.ws, NewModels(cfg, config.Resolved{}), cfg, Options{Watch: watch})
		if err != nil {
			t.Fatal(err)
		}
		m, err := h.api.Start(t.Context(), "go", centurion.MissionOptions{Model: "custom/m", Isolation: centurion.IsolationShared})
		if err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		r := h.all[m.ID]
		h.mu.Unlock()
		<-r.done
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if on != nil && !*on {
			if len(got) > 0 {
				t.Errorf("%s: %q", name, got)
			}
			continue
		}
		if len(got) < 2 || got[0] != centurion.EventMissionStarted || !slices.Contains(got, centurion.EventMissionCompleted) {
			t.Errorf("%s: %q", name, got)
		}
		if n := len(slices.DeleteFunc(slices.Clone(got), func(e centurion.EventType) bool { return e != centurion.EventMissionStarted })); n != 1 {
			t.Errorf("%s: it starts %d times", name, n)
		}
	}
}

// The commands of agents end when the person presses Ctrl-C once more, and none begins afterwards.
func TestForceEndsCommands(t *testing.T) {
	x := newProject(t, nil)
	force, now := context.WithCancel(t.Context())
	defer now()
	h := x.mustOwn(Options{Force: force})
	defer h.Close()
	started := filepath.Join(x.Dir, "started")
	done := make(chan centurion.CommandResult, 1)
	h.group.Go("command", func() error {
		res, _ := h.runner.Run(context.Background(), centurion.Command{Script: "echo x > started; sleep 600", Dir: x.Dir, Timeout: 5 * time.Second})
		done <- res
		return nil
	})
	for !exists(started) && len(done) == 0 {
		if err := WaitRetry(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	begun := time.Now()
	now()
	if res := <-done; time.Since(begun) > 4*time.Second {
		t.Errorf("it ended by its own time limit: %+v", res)
	}
}

// waitingMission is a project whose host works on a mission that waits for its model, until release is closed.
func waitingMission(t *testing.T) (x *project, h *Host, m server.Mission, release chan struct{}) {
	t.Helper()
	asked := make(chan struct{}, 8) // more requests than there are
	release = make(chan struct{})
	x = newProject(t, func(scripted.Request) scripted.Answer {
		asked <- struct{}{}
		<-release
		return scripted.Answer{Say: "It is done already."}
	})
	h = x.mustOwn(Options{})
	m, err := h.api.Start(t.Context(), "wait", centurion.MissionOptions{Model: "custom/m", Isolation: centurion.IsolationShared})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	return x, h, m, release
}

// A process that was kept off is told of in the journal of each running mission, at most once a minute.
func TestRefusedProcessIsNoted(t *testing.T) {
	_, h, m, release := waitingMission(t)
	notes := func() (all []string) {
		t.Helper()
		found, err := h.store.Events(t.Context(), store.EventQuery{Mission: m.ID, Types: []centurion.EventType{centurion.EventMissionUpdated}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range found {
			if d, err := event.Decode[event.MissionData](e); err == nil && strings.HasPrefix(d.Note, "refused: ") {
				all = append(all, d.Note)
			}
		}
		return all
	}
	peer := sandbox.Peer{PID: 4711, Command: "sh -c x", Refused: "it is an agent's"}
	h.tellRefused(peer)
	h.tellRefused(peer)
	if got := notes(); len(got) != 1 || got[0] != "refused: process 4711 (sh -c x) tried to control Centurion: it is an agent's" {
		t.Errorf("noted: %q", got)
	}
	h.told.Store(time.Now().Add(-tellEvery).UnixNano())
	h.tellRefused(peer)
	if got := notes(); len(got) != 2 {
		t.Errorf("a minute later: %q", got)
	}
	close(release)
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// What the orchestrator is given is this host's own: how commands are confined, the keys, and what the person has trusted.
func TestConfigurationOfAHost(t *testing.T) {
	x := newProject(t, nil)
	h := x.mustOwn(Options{})
	defer h.Close()
	hub := &event.Hub{}
	oc, err := h.configuration(t.Context(), h.models.again(x.config(), config.Resolved{}), hub, Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	way := h.runner.Confinement()
	if oc.Confinement == nil || oc.Confinement.Way != way.Way || oc.Confined != (way.Way == string(confine.Full)) {
		t.Errorf("confined: %v, %+v", oc.Confined, oc.Confinement)
	}
	if oc.Keys != h.models.keys || h.runner.Redact != h.models.keys || oc.Scratch != x.scratch() || oc.Version != "1.2.3" || oc.Store != h.store {
		t.Errorf("it works with %+v", oc)
	}
	if oc.Fallback == nil || oc.Web == nil || oc.Instructions == nil || oc.Worktrees == nil || oc.Shadow == nil || oc.Cast == nil || oc.Assistant == nil {
		t.Errorf("something is missing: %+v", oc)
	}
	plan := "- [ ] go\n"
	if oc.TrustedPlan([]byte(plan)) {
		t.Error("a plan is trusted that nobody has seen")
	}
	book, err := trust.Open(x.State)
	if err = errors.Join(err, book.Trust(trust.File{Name: "plan", Sum: trust.Sum(plan)})); err != nil {
		t.Fatal(err)
	}
	if !oc.TrustedPlan([]byte(plan)) || oc.TrustedPlan([]byte(plan+"- [ ] more\n")) {
		t.Error("the trust of a plan is not that of its text")
	}
	if err := os.WriteFile(trust.Path(x.State), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if oc.TrustedPlan([]byte(plan)) {
		t.Error("a plan is trusted by a book that cannot be read")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sub := hub.Subscribe(ctx)
	oc.Publish(centurion.Event{Type: centurion.EventDelta, Data: event.Data(event.DeltaData{Delta: x.Token})})
	select {
	case e := <-sub:
		if strings.Contains(string(e.Data), x.Token) {
			t.Errorf("it publishes %s", e.Data)
		}
	default:
		t.Error("it publishes nothing")
	}
}

// confines is how this machine confines commands. Linux has to do it in full, unless it is said that it cannot.
func confines(t *testing.T) confine.Way {
	t.Helper()
	way, why := sandbox.Best()
	switch {
	case way != confine.Full && runtime.GOOS == "linux" && os.Getenv("CENTURION_TEST_NO_NAMESPACES") == "":
		t.Fatalf("the best way to confine commands is %s: %v", way, why)
	case way == confine.None || way != confine.Full && runtime.GOOS == "linux":
		t.Skip("no confinement is to be had here")
	}
	return way
}

// Commands are confined within the limits of the configuration: apart from all projects' state, but for reading their own.
func TestConfinementOfAHost(t *testing.T) {
	way := confines(t)
	root := t.TempDir()
	p := Place{Dir: t.TempDir(), State: filepath.Join(root, "projects", "p")}
	c, err := p.confinement(&config.Config{Own: config.Own{Limits: config.Limits{MaxProcesses: 7, MaxMemory: 3}}}, "", "/tmp/dir")
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Processes != 7 || c.Limits.Memory != 3<<20 || c.Way != way || c.Dir != "/tmp/dir" || c.Cache != filepath.Join(p.State, "cache") {
		t.Errorf("%+v", c)
	}
	if !slices.Contains(c.Hide, root) || !slices.Contains(c.Hide, "/run/docker.sock") || !slices.Equal(c.Read, []string{p.Dir, filepath.Join(root, "plugins")}) {
		t.Errorf("it hides %q and shows %q", c.Hide, c.Read)
	}
	if !slices.Equal(c.Protect, []string{".git", ".opencode"}) {
		t.Errorf("it protects %q", c.Protect)
	}
	if c, err = p.confinement(&config.Config{}, "", ""); err != nil || c.Limits != sandbox.DefaultLimits() {
		t.Errorf("by default: %+v, %v", c, err)
	}
	if markOf(p, nil) != "" || markOf(p, &sandbox.Runner{}) != p.Mark() {
		t.Error("the git of a command has the mark of a host, or that of a host has none")
	}
}

// A command of the person's has the network, unlike those of agents.
func TestRunOnceHasTheNetwork(t *testing.T) {
	if way := confines(t); way != confine.Full && runtime.GOOS != "linux" {
		t.Skip("this system confines no network")
	}
	mine, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	p := Place{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "projects", "p")}
	res, err := p.RunOnce(t.Context(), &config.Config{}, centurion.Command{Script: "readlink /proc/self/ns/net", Dir: p.Dir})
	if err != nil || strings.TrimSpace(res.Output) != mine {
		t.Errorf("its network is %q, not %q: %v", res.Output, mine, err)
	}
}

// A background host's log is for its user only, and an overlong one begins anew.
func TestBackgroundHostHasALog(t *testing.T) {
	for name, tt := range map[string]struct {
		before string
		want   string
	}{
		"none":     {"", "started\n"},
		"short":    {"older\n", "older\nstarted\n"},
		"too long": {strings.Repeat("x", maxLog+1), "started\n"},
	} {
		conn := &Connection{Place: Place{Dir: t.TempDir(), State: t.TempDir()}}
		path := filepath.Join(conn.State, logName)
		if tt.before != "" {
			if err := os.WriteFile(path, []byte(tt.before), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x, err := conn.startBackground()
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(len(tt.want) - len("started\n")); x.from != want {
			t.Errorf("%s: its part begins at %d, want %d", name, x.from, want)
		}
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, fi, err)
		}
		for {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(b); got == tt.want {
				break
			} else if strings.HasSuffix(got, "started\n") {
				t.Errorf("%s: the log has %d bytes", name, len(got))
				break
			}
			if err := WaitRetry(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// told is what TestMain says in the place of a background host.
func told(out io.Writer) {
	_, _ = io.WriteString(out, os.Getenv("CENTURION_TEST_HOST"))
	_, _ = io.WriteString(out, "started\n")
}

// connected says how another process fares with a host.
func connected(p Place) string {
	c, _, err := p.Connect(context.Background())
	if c != nil {
		c.Close()
	}
	_, done, apiErr := p.API(context.Background())
	if apiErr == nil {
		apiErr = done()
	}
	return fmt.Sprint(c != nil, " ", centurion.KindOf(err), " ", centurion.KindOf(apiErr))
}

// A process that an agent's command has started does not get in with the token, and the host knows of it.
func TestAgentsProcessIsRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are told apart on Linux only")
	}
	x := newProject(t, nil)
	h := x.mustOwn(Options{})
	defer h.Close()
	for _, tt := range []struct{ mark, want string }{{"", "true  "}, {x.Mark(), "false permission permission"}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "connect", x.State, x.Token)
		cmd.Env = append(os.Environ(), centurion.HostVariable+"="+tt.mark)
		out, err := cmd.Output()
		if err != nil || string(out) != tt.want || (h.told.Load() != 0) != (tt.mark != "") {
			t.Errorf("mark %q: %q, %v; the host was told at %d", tt.mark, out, err, h.told.Load())
		}
	}
}
