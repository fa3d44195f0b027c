package orchestrator

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing/synctest"

	"centurion"
	"centurion/guard"
	"centurion/store"
	"centurion/workspace"
)

// life is one run of a mission in the background. The test ends it as it likes, and what is left is a project that the
// next host finds.
type life struct {
	r      *rig
	id     string
	cancel context.CancelCauseFunc
	g      guard.Group
	done   chan centurion.Mission
}

func (r *rig) live(id string) *life {
	ctx, cancel := context.WithCancelCause(r.ctx)
	l := &life{r: r, id: id, cancel: cancel, done: make(chan centurion.Mission, 1)}
	host := r.host
	l.g.Go("mission", func() error {
		m, err := host.Run(ctx, id)
		l.done <- m
		return err
	})
	return l
}

// wait returns the mission when it has stopped.
func (l *life) wait() centurion.Mission {
	l.r.t.Helper()
	m := <-l.done
	if err := l.g.Wait(); err != nil {
		l.r.t.Errorf("run: %v", err)
	}
	l.cancel(nil)
	return m
}

// settled waits for the mission's end and checks what must hold then.
func (l *life) settled() centurion.Mission {
	l.r.t.Helper()
	m := l.wait()
	l.r.runs++
	l.r.check(m)
	return m
}

// The ways in which a host goes away from a mission that is not done.
const (
	byShutdown = "shutdown"
	byHandover = "handover"
	byKill     = "kill" // what is on the disk at that moment is all that is left
)

// goAway ends the host and makes another one on what it leaves.
func (l *life) goAway(way string) centurion.Mission {
	l.r.t.Helper()
	synctest.Wait()
	left := ""
	if way == byKill {
		left = l.r.copyState()
	}
	cause := centurion.ErrShutdown
	if way == byHandover {
		cause = centurion.ErrHandover
	}
	l.cancel(cause)
	m := l.wait()
	if way == byKill {
		l.r.moveTo(left)
	}
	l.r.restart()
	l.r.runs = 0
	for _, e := range l.r.events(l.id) {
		if e.Type.EndsMission() {
			l.r.runs++
		}
	}
	return m
}

// copyState copies the state file and the project as they stand.
func (r *rig) copyState() (to string) {
	r.t.Helper()
	to = r.t.TempDir()
	db, err := sql.Open("sqlite", "file:"+r.store.Path()+"?mode=ro")
	if err == nil {
		_, err = db.ExecContext(context.Background(), "VACUUM INTO ?", filepath.Join(to, "centurion.db"))
		err = errors.Join(err, db.Close())
	}
	if err = errors.Join(err, os.CopyFS(filepath.Join(to, "project"), os.DirFS(r.dir))); err != nil {
		r.t.Fatal(err)
	}
	return to
}

// moveTo goes on with a copy.
func (r *rig) moveTo(left string) {
	r.t.Helper()
	err := errors.Join(r.store.Close(), r.ws.Close())
	r.dir = filepath.Join(left, "project")
	var werr, serr error
	r.ws, werr = workspace.Open(r.dir)
	r.store, serr = store.Open(r.ctx, filepath.Join(left, "centurion.db"))
	if err = errors.Join(err, werr, serr); err != nil {
		r.t.Fatal(err)
	}
	r.cfg.Store, r.cfg.Workspace = r.store, r.ws
}

// update writes to the store behind the host's back.
func (r *rig) update(f func(tx *store.Tx) error) {
	r.t.Helper()
	if err := r.store.Update(r.ctx, f); err != nil {
		r.t.Fatal(err)
	}
}

// told counts how often the users' messages of a session hold a text.
func (r *rig) told(session, text string) int {
	r.t.Helper()
	return strings.Count(r.userText(session), text)
}

// userText returns the users' messages of a session.
func (r *rig) userText(session string) string {
	r.t.Helper()
	messages, err := r.store.Messages(r.ctx, session)
	if err != nil {
		r.t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range messages {
		if m.Role == centurion.RoleUser {
			b.WriteString(m.Text() + "\n\n")
		}
	}
	return b.String()
}
