package sandbox

import (
	"maps"
	"slices"
)

// Kill ends all running commands at once with SIGKILL, without a chance to clean up, including processes that left their group, where
// processes can be listed. Afterwards Run and RunBackground return an error of centurion.KindInterrupted. It is for a person who does
// not want to wait; normally commands end with the context of their Run. Run returns as for a command killed from outside.
func (r *Runner) Kill() {
	r.mu.Lock()
	r.killed = true
	running := maps.Clone(r.running)
	r.mu.Unlock()
	if len(running) == 0 {
		return
	}
	for _, p := range running {
		kill(p)
	}
	endStrays(0, slices.Collect(maps.Keys(running))...)
}

// stopped reports whether [Runner.Kill] was called.
func (r *Runner) stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed
}

// register makes a started command known to [Runner.Kill] until forget is called. It reports whether Kill was called meanwhile.
func (r *Runner) register(p process, id string) (killed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running == nil {
		r.running = map[string]process{}
	}
	r.running[id] = p
	return r.killed
}

// forget is called when a command has ended.
func (r *Runner) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, id)
	delete(r.placed, id)
}
