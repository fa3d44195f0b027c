package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// shutdownGrace is how long clients may take to read the last events when the host ends.
const shutdownGrace = time.Second

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
