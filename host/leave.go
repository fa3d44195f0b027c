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
		_ = os.Remove(h.OwnerFile()) // if it stays, it does no harm: the lock decides
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

// leave ends the host when its own mission has stopped. Missions with a successor are handed over at once; the others are finished first,
// unless ctx ends or only a person can continue them.
func (h *Host) leave(ctx context.Context, say func(string)) error {
	h.waitForOthers(ctx, say)
	return h.Close()
}
