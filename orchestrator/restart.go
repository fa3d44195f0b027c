package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"centurion"
	"centurion/event"
	"centurion/guard"
	"centurion/orchestrator/state"
	"centurion/text"
)

// A part that crashes takes with it what rests on it, and nothing else. A tool call is answered with its crash. A task's
// turn is begun anew as after any failure, or fails at once where its parent waits for it. The Commander's loop begins
// anew with its history read again and repaired; that it crashes again and again ends its mission, and no other.

const (
	maxRestarts   = 3               // of a Commander's loop within restartWindow
	restartWindow = 5 * time.Second // a loop that lived longer than this since its last crashes has got over them
)

// supervise drives the mission's loop and begins it anew when it crashes.
func (m *mission) supervise(ctx context.Context) (v verdict, err error) {
	var crashes []time.Time
	for {
		err = guard.Call("mission "+m.st.ID, func() (err error) {
			v, err = m.loop.run(ctx)
			return err
		})
		if !state.Crashed(err) || ctx.Err() != nil {
			return v, err
		}
		if err := m.root.Load(ctx); err != nil { // what it has in memory may be half done
			return v, err
		}
		now := time.Now()
		crashes = append(crashes, now)
		for now.Sub(crashes[0]) > restartWindow {
			crashes = crashes[1:]
		}
		if len(crashes) > maxRestarts {
			return verdict{}, &centurion.Error{Kind: centurion.KindCrashed, Err: err,
				Msg:  fmt.Sprintf("it crashed %d times within %s", len(crashes), text.Took(restartWindow)),
				Hint: "this is a fault of the program; what is done is kept: centurion resume " + m.st.ID}
		}
		m.loop.claimed.Store(false)
		m.resumed, m.restarted = false, true
		why := fmt.Sprintf("begun anew after a crash, %d of %d: %s", len(crashes), maxRestarts, centurion.Clip(err.Error(), 200))
		if err := m.st.Tell(ctx, func(d *event.MissionData) { d.Reason = why }); err != nil {
			return v, err
		}
	}
}

// whole runs the mission, and turns a crash of what surrounds its loop into an end of this mission alone.
func (m *mission) whole(spaceCame func(error) bool) (rec centurion.Mission, err error) {
	err = guard.Call("mission "+m.st.ID, func() (err error) {
		rec, err = m.run(spaceCame)
		return err
	})
	if _, panicked := errors.AsType[*guard.PanicError](err); !panicked {
		return rec, err
	}
	// Its work has ended, and all that belongs to it: run recovers that itself.
	lost := guard.Call("end mission "+m.st.ID, func() (ferr error) {
		m.iso.Leave(centurion.MissionFailed)
		rec, ferr = m.finish(verdictOf(context.Background(), err))
		return ferr
	})
	if lost != nil {
		return rec, errors.Join(err, lost)
	}
	return rec, nil
}

// publisher keeps a fault of who watches from those who are watched.
func publisher(publish func(centurion.Event)) func(centurion.Event) {
	if publish == nil {
		return nil
	}
	return func(e centurion.Event) {
		_ = guard.Call("publish", func() error { publish(e); return nil }) // a delta may be lost
	}
}
