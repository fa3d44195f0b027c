package host

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"centurion"
	"centurion/config"
	"centurion/event"
	"centurion/store"
)

// Renewer has the models of a project's configuration, and reads that again when one of its files has changed: at the next thing that
// begins, for nothing else needs it. While a new one is faulty, the last good one stays in force.
type Renewer struct {
	// Read reads the configuration, and finds the model of the flags; it notes files in stamps and tells the person what is to be known.
	Read func(ctx context.Context, stamps config.Stamps, say func(string)) (*config.Config, config.Resolved, error)
	Note func(string) // prints to the person; nil if a live view is shown
	Warn func(string) // tells clients of the host; nil if there are none

	mu     sync.Mutex // protects the fields below
	now    *Models
	stamps config.Stamps
	said   map[string]bool
	fault  string
	host   *Host // of this process; nil if another one hosts the project
}

// Begin reads the configuration for the first time.
func (r *Renewer) Begin(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamps, r.said = config.Stamps{}, map[string]bool{}
	cfg, first, err := r.Read(ctx, r.stamps, r.say)
	if err == nil {
		r.now = NewModels(cfg, first)
	}
	return err
}

// Models returns the models of the configuration that is in force for what begins now.
func (r *Renewer) Models(ctx context.Context) *Models {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stamps.Changed() {
		return r.now
	}
	stamps := config.Stamps{}
	cfg, first, err := r.Read(context.WithoutCancel(ctx), stamps, r.say) // one who leaves does not make it faulty
	var next *Models
	if err == nil {
		if lost := cfg.Lost(r.now.Config); lost != "" {
			err = &centurion.Error{Op: "read config", Kind: centurion.KindConfig, Msg: lost + " is gone or wider, and the file came with the project and is not trusted",
				Hint: "put it back, or start the process again if you want that"}
		}
	}
	if err == nil {
		next = r.now.again(cfg, first)
		err = r.adopt(ctx, next)
	}
	if len(stamps) > 0 { // else the project is gone
		r.stamps = stamps
	}
	if err != nil {
		if fault := strings.TrimSuffix(err.Error()+"; next: "+centurion.HintOf(err), "; next: "); fault != r.fault {
			r.fault = fault
			r.tell(fault + "; until then, the configuration stays as it was")
		}
		return r.now
	}
	r.now, r.fault = next, ""
	if r.Note != nil {
		r.Note("the configuration was changed, and counts for what begins from now on")
	}
	return next
}

// serve makes a host follow the configuration until it gets nil.
func (r *Renewer) serve(ctx context.Context, h *Host) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host = h
	if h == nil || h.models == r.now {
		return nil
	}
	return r.adopt(ctx, r.now) // read again since the host got its own
}

func (r *Renewer) adopt(ctx context.Context, next *Models) error {
	if r.host == nil {
		return nil
	}
	oc, err := r.host.configuration(context.WithoutCancel(ctx), next, r.host.hub, r.host.how)
	if err != nil {
		return err
	}
	r.host.missions.Renew(oc)
	if later := fixed(r.host.models.Config, next.Config); len(later) > 0 {
		r.say("changed, and in force only when the process that hosts the project is started again: " + strings.Join(later, ", "))
	}
	return nil
}

// fixed lists the keys of which a host takes the values only at its start.
func fixed(before, after *config.Config) (keys []string) {
	was, now := &before.Own, &after.Own
	for _, of := range []struct {
		key      string
		was, now any
	}{
		{"sandbox", was.Sandbox, now.Sandbox}, {"max_processes", was.MaxProcesses, now.MaxProcesses}, {"max_memory", was.MaxMemory, now.MaxMemory},
		{"max_commands", was.MaxCommands, now.MaxCommands}, {"max_checks", was.MaxChecks, now.MaxChecks}, {"concurrency", was.Concurrency, now.Concurrency},
		{"worktree.workspaces", was.Workspaces, now.Workspaces}, {"co_authored_by", was.CoAuthoredBy, now.CoAuthoredBy}, {"notify", was.Notify, now.Notify}, {"mcp", before.Servers, after.Servers},
		{"plugin", before.Plugins, after.Plugins},
		{"poll_interval", was.PollInterval, now.PollInterval}, {"retention", was.Retention, now.Retention}, {"archive_after", was.ArchiveAfter, now.ArchiveAfter},
		{"archive_failed_after", was.ArchiveFailedAfter, now.ArchiveFailedAfter}, {"keep_tasks", was.KeepTasks, now.KeepTasks},
	} {
		if !reflect.DeepEqual(of.was, of.now) {
			keys = append(keys, of.key)
		}
	}
	return keys
}

// say tells something once.
func (r *Renewer) say(line string) {
	if !r.said[line] {
		r.said[line] = true
		r.tell(line)
	}
}

func (r *Renewer) tell(line string) {
	if r.Note != nil {
		r.Note(line)
	}
	switch {
	case r.Warn != nil:
		r.Warn(line)
	case r.host != nil:
		r.host.tell(line)
	}
}

// tell notes something in the journal of every running mission.
func (h *Host) tell(note string) {
	_ = h.store.Update(context.Background(), func(tx *store.Tx) error { // it is true either way
		for _, id := range h.missions.Running() {
			if _, err := tx.Append(centurion.Event{Type: centurion.EventMissionUpdated, Mission: id, Data: event.Data(event.MissionData{Note: note})}); err != nil {
				return err
			}
		}
		return nil
	})
}
