package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"centurion"
)

// shutdownGrace is how long clients may take to read the last events when the host ends.
const shutdownGrace = time.Second

// HandOver ends what is still being worked on and leaves it to the next host, as it is.
func (h *Host) HandOver() {
	h.mu.Lock()
	h.ending = true
	h.mu.Unlock()
	living, _ := h.running()
	for _, x := range living {
		x.end(centurion.ErrHandover)
	}
	for _, x := range living {
		<-x.done
	}
}

// Close ends the missions, the socket and the store, and gives the lock back.
func (h *Host) Close() error {
	var errs []error
	h.HandOver()
	if h.stopCleaner != nil {
		h.stopCleaner()
	}
	if h.stopForce != nil {
		h.stopForce()
	}
	if h.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownGrace)
		if h.server.Shutdown(ctx) != nil { // somebody follows the events
			errs = append(errs, h.server.Close())
		}
		cancel()
		errs = append(errs, h.group.Wait())
		_ = os.Remove(h.OwnerFile()) // what is left says who it was and misleads nobody: the lock decides
		if dir := filepath.Dir(h.socket); dir != h.State {
			_ = os.RemoveAll(dir)
		}
	}
	if h.missions != nil {
		errs = append(errs, h.missions.Close())
	}
	errs = append(errs, h.store.Close(), h.unlock())
	return errors.Join(errs...)
}

// leave ends this process's hosting when its own mission has stopped. What a client or a background host takes over is
// handed to it at once; what nobody else waits for is worked on to its end first, unless ctx ends or only a person can go on.
func (h *Host) leave(ctx context.Context, say func(string)) error {
	h.waitForOthers(ctx, say)
	return h.Close()
}

// personTimeout is how long a host that leaves waits for a person while nothing else happens.
const personTimeout = time.Minute

// waitForOthers waits for the missions that nobody takes over. When ctx ends it pauses them; one that waits for a person it pauses
// when nothing has happened for [personTimeout].
func (h *Host) waitForOthers(ctx context.Context, say func(string)) {
	told := map[string]bool{}
	for {
		living, changed := h.running()
		var alone []string
		for id := range living {
			if !h.hasSuccessor(ctx, id) {
				alone = append(alone, id)
			}
		}
		if len(alone) == 0 {
			return
		}
		if ctx.Err() != nil {
			for _, id := range alone {
				living[id].pause()
			}
			return
		}
		for _, id := range alone {
			if !told[id] && h.isRunning(ctx, id) {
				say(fmt.Sprintf("mission %s still runs here; waiting for it (Ctrl-C pauses it)", id))
				told[id] = true
			}
		}
		seq, quiet := h.store.LastSeq(), time.NewTimer(personTimeout)
		select {
		case <-changed:
		case <-ctx.Done():
		case <-quiet.C:
			for _, id := range alone {
				if asks, err := h.store.Asks(ctx, id, true); err == nil && len(asks) > 0 && h.store.LastSeq() == seq {
					living[id].pause()
					say(fmt.Sprintf("mission %s waits for you and is paused; see centurion asks, then run: centurion resume %s", id, id))
				}
			}
		}
		quiet.Stop()
	}
}

// pause ends the work on a mission, which can be resumed, and waits for its end.
func (x *run) pause() {
	x.end(centurion.ErrShutdown)
	<-x.done
}

// isRunning reports whether a mission is still running. One that has just stopped may still be releasing its checkouts.
func (h *Host) isRunning(ctx context.Context, id string) bool {
	m, err := h.store.Mission(context.WithoutCancel(ctx), id)
	return err != nil || m.Status.Alive()
}

// hasSuccessor reports whether another process takes a mission over when this one ends.
func (h *Host) hasSuccessor(ctx context.Context, id string) bool {
	h.mu.Lock()
	kept := h.keepers[id] > 0
	h.mu.Unlock()
	if kept {
		return true
	}
	m, err := h.store.Mission(context.WithoutCancel(ctx), id)
	return err == nil && cmp.Or(m.Options.Detached, m.Status.Ended())
}
