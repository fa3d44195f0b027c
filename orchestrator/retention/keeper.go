// Package retention drops the sessions of tasks that ended long enough ago, archives the records of those tasks, and removes the
// oldest. It owns the archive in the project's directory; its caller says which missions are being worked on.
package retention

import (
	"cmp"
	"sync"
	"time"

	"centurion"
	"centurion/orchestrator/isolation"
	"centurion/store"
	"centurion/workspace"
)

// Defaults of [Config].
const (
	DefaultRetention          = 10 * time.Minute
	DefaultArchiveAfter       = 30 * time.Minute
	DefaultArchiveFailedAfter = 10 * time.Minute
	DefaultKeepTasks          = 1000
)

// Config configures a [Keeper].
type Config struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Project   *isolation.Project
	// Retention is how long the session of an ended task is kept. ArchiveAfter, or ArchiveFailedAfter for a task that was not completed,
	// is the delay before its record is archived. Beyond KeepTasks tasks, the oldest archived ones are removed.
	Retention, ArchiveAfter, ArchiveFailedAfter time.Duration
	KeepTasks                                   int
	Working                                     func(mission string) bool // whether the mission is being worked on
	Forget                                      func(centurion.Task)      // frees the memory held for a task whose session was dropped
}

// Keeper keeps ended tasks as long as configured. It collects nothing between runs: [Keeper.Clean] begins by reading the store.
type Keeper struct {
	Config
	wake chan struct{} // has a buffer of one

	mu    sync.Mutex // protects the fields below
	on    bool
	ended []string // newly ended tasks
	all   bool     // the whole store has to be read

	sweeping sync.Mutex // held during a cleaning; protects the fields below
	stuck    time.Time  // when it last removed fewer tasks than it should
}

// New returns an idle keeper.
func New(c Config) *Keeper {
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.ArchiveAfter = cmp.Or(c.ArchiveAfter, DefaultArchiveAfter)
	c.ArchiveFailedAfter = cmp.Or(c.ArchiveFailedAfter, DefaultArchiveFailedAfter)
	c.KeepTasks = cmp.Or(c.KeepTasks, DefaultKeepTasks)
	return &Keeper{Config: c, wake: make(chan struct{}, 1)}
}

// Ended reports the end of a task; "" means that several may have ended.
func (k *Keeper) Ended(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.on {
		return
	}
	if id == "" {
		k.all = true
	} else {
		k.ended = append(k.ended, id)
	}
	k.Poke()
}

// Poke wakes [Keeper.Clean] after new tasks were added.
func (k *Keeper) Poke() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *Keeper) set(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.on, k.ended, k.all = on, nil, on
}

// take returns and clears the notifications.
func (k *Keeper) take() (ended []string, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended, all = k.ended, k.all
	k.ended, k.all = nil, false
	return ended, all
}
