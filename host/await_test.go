package host

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// Who waits for the next host of a mission waits while it was only interrupted, and not long.
func TestAwaitHost(t *testing.T) {
	for status, waits := range map[centurion.MissionStatus]bool{centurion.MissionRunning: true, centurion.MissionPaused: false} {
		x := newProject(t, nil)
		s, err := store.Open(t.Context(), x.Database())
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.PutMission(&centurion.Mission{ID: "msn_1", Status: status, Directory: x.Dir})
		})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			x.Place.AwaitHost(t.Context(), "msn_1")
			if took := time.Since(begun); took > HeirTimeout+retryPause || (took >= HeirTimeout) != waits || !waits && took > 0 {
				t.Errorf("%s: it waited for %s", status, took)
			}
			// One that has the project's lock begins, however slow the machine is, or hangs.
			for frees, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Minute: startTimeout} {
				unlock, err := x.Place.Lock()
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				time.AfterFunc(frees, func() { _ = unlock() })
				x.Place.AwaitHost(t.Context(), "msn_1")
				if took := time.Since(begun); waits && (took < want || took > want+retryPause) || !waits && took > 0 {
					t.Errorf("%s, held for %s: it waited for %s", status, frees, took)
				}
				time.Sleep(2 * time.Minute)
			}
		})
	}
}

// The error that names a host that does not answer says who it is, and how to wake or to end it.
func TestHeldByNamesTheHost(t *testing.T) {
	p := hostElsewhere(t, nil)
	err := HeldBy(p)
	if !IsHeld(err) || !strings.Contains(err.Error(), "another centurion works in "+p.Dir+" (process 4711, since ") || !strings.Contains(centurion.HintOf(err), "kill -CONT 4711") {
		t.Errorf("%v (%s)", err, centurion.HintOf(err))
	}
	none := Place{Dir: "/p", State: t.TempDir()}
	if err := HeldBy(none); !IsHeld(err) || err.Error() == "" || strings.Contains(err.Error(), "process") || !strings.Contains(centurion.HintOf(err), "kill -CONT PID") {
		t.Errorf("an unknown one: %v (%s)", err, centurion.HintOf(err))
	}
}

// A command that acts beside a host reads the repository, takes nothing over, and one that acts in its place remembers the plans.
func TestVisitorsBesideAndInPlace(t *testing.T) {
	x := newProject(t, nil)
	v, stale := x.visit()
	var beside, inPlace *server.Local
	keep := func(to **server.Local) func(server.API) error {
		return func(api server.API) error { *to, _ = api.(*server.Local); return nil }
	}
	if err := v.Beside(keep(&beside)); err != nil || beside == nil || beside.Host == nil || beside.Person == nil || beside.Work != nil {
		t.Errorf("beside: %+v, %v", beside, err)
	}
	if err := stale.Update(t.Context(), func(tx *store.Tx) error { return tx.PutSession(&centurion.Session{ID: "ses_1"}) }); err != nil || exists(x.State+"/plans") {
		t.Errorf("it took something over: %v", err)
	}
	if err := v.AsHost(t.Context(), keep(&inPlace)); err != nil || inPlace == nil || inPlace.Host == nil || !exists(x.State+"/plans") {
		t.Errorf("in place: %+v, %v", inPlace, err)
	}
	h := x.mustOwn(Options{})
	defer h.Close()
	w, err := Open(t.Context(), x.Dir, x.getenv)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for name, do := range map[string]func() error{"beside": func() error { return w.Beside(func(api server.API) error { return through(api) }) },
		"in place": func() error { return w.AsHost(t.Context(), through) }} {
		if err := do(); err != nil || w.Local() != nil {
			t.Errorf("%s of a host: %v", name, err)
		}
	}
}

// through fails unless an API is that of another process.
func through(api server.API) error {
	if _, ok := api.(*server.Client); !ok {
		return errors.New("the host was passed over")
	}
	return nil
}
