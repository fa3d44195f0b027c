package host

import (
	"context"
	"slices"
	"sync"

	"centurion/guard"
	"centurion/server"
)

// Keeper keeps the missions that a program has started over a connection: they continue here when another process that hosts them ends, and
// are paused when the program leaves.
type Keeper struct {
	conn  *Connection
	ctx   context.Context // while it keeps them
	free  func()
	group guard.Group

	mu      sync.Mutex // protects the fields below, and free
	started []string
}

// Keeper returns a keeper without missions.
func (conn *Connection) Keeper(ctx context.Context) *Keeper {
	k := &Keeper{conn: conn}
	k.ctx, k.free = context.WithCancel(context.WithoutCancel(ctx))
	return k
}

// Take makes a mission one of the program's.
func (k *Keeper) Take(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.started, id) {
		return
	}
	if k.started = append(k.started, id); k.ctx.Err() != nil {
		return // it leaves
	}
	k.group.Go("keep mission", func() error {
		for _, err := range k.conn.Events(k.ctx, server.EventQuery{Mission: id, Follow: true, Keep: true}) {
			if err != nil {
				return nil // the next call tells it
			}
		}
		return nil
	})
}

// Owns reports whether a mission is one of the program's.
func (k *Keeper) Owns(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Contains(k.started, id)
}

// Leave pauses the program's missions, except those for which kept returns true. It may be called again.
func (k *Keeper) Leave(kept func(id string) bool) {
	k.mu.Lock()
	k.free()
	started := k.started
	k.mu.Unlock()
	_ = k.group.Wait() // they return nil
	for _, id := range started {
		if !kept(id) {
			k.conn.PauseLeft(id)
		}
	}
}

// PauseLeft pauses a mission that works, as the program that started it has left.
func (conn *Connection) PauseLeft(id string) {
	if m, err := conn.Mission(context.Background(), id); err == nil && m.Status.Alive() {
		conn.Pause(id)
		conn.Note("mission " + id + " is paused; continue with: centurion resume " + id)
	}
}

// Do calls the host, like [Call].
func (conn *Connection) Do(ctx context.Context, f func(server.API) error) error {
	_, err := Call(ctx, conn, func(api server.API) (struct{}, error) { return struct{}{}, f(api) })
	return err
}
