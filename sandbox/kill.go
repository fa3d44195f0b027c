package sandbox

import (
	"maps"
	"os/exec"
	"slices"

	"centurion"
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
	for _, cmd := range running {
		kill(cmd)
	}
	endStrays(0, slices.Collect(maps.Keys(running))...)
}

// start starts a command so that [Runner.Kill] finds it, unless that was called before.
func (r *Runner) start(cmd *exec.Cmd, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.killed {
		return &centurion.Error{Op: runOp, Kind: centurion.KindInterrupted, Msg: "stopped"}
	}
	if err := cmd.Start(); err != nil {
		return &centurion.Error{Op: runOp, Kind: centurion.KindInternal, Msg: "the shell did not start", Err: err}
	}
	if r.running == nil {
		r.running = map[string]*exec.Cmd{}
	}
	r.running[id] = cmd
	return nil
}

// forget is called when a command has ended.
func (r *Runner) forget(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, id)
}
