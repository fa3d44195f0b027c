// Package retention drops the sessions of tasks that have ended long enough ago, archives the records of those tasks, and removes the
// oldest. It owns the archive in the project's directory; missions that are being worked on it asks its caller about.
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

// Config is what a [Keeper] works with.
type Config struct {
	Store     *store.Store
	Workspace *workspace.Workspace
	Project   *isolation.Project
	// Retention is how long the session of a task that has ended is kept; ArchiveAfter and, for a task that was not
	// completed, ArchiveFailedAfter how long its record stays out of the archive. Beyond KeepTasks tasks the oldest
	// archived ones are removed.
	Retention, ArchiveAfter, ArchiveFailedAfter time.Duration
	KeepTasks                                   int
	Working                                     func(mission string) bool // whether the mission is being worked on
	Forget                                      func(centurion.Task)      // lets go of what is kept in memory for a task whose session was dropped
}

// Keeper keeps what has ended for as long as it is configured to. While it does not clean it remembers nothing: [Keeper.Clean]
// begins by reading the store.
type Keeper struct {
	Config
	wake chan struct{} // holds one

	mu    sync.Mutex // protects what follows
	on    bool
	ended []string // tasks that have ended and were not seen yet
	all   bool     // so many may have ended that the store has to be read

	sweeping sync.Mutex // held while something is cleaned; protects what follows
	stuck    time.Time  // when it last could not remove as many tasks as it should
}

// New returns a keeper that cleans nothing yet.
func New(c Config) *Keeper {
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.ArchiveAfter = cmp.Or(c.ArchiveAfter, DefaultArchiveAfter)
	c.ArchiveFailedAfter = cmp.Or(c.ArchiveFailedAfter, DefaultArchiveFailedAfter)
	c.KeepTasks = cmp.Or(c.KeepTasks, DefaultKeepTasks)
	return &Keeper{Config: c, wake: make(chan struct{}, 1)}
}

// Ended says that a task has ended; without an id, that several may have.
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

// Poke wakes [Keeper.Clean], because there are more tasks now.
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

// take returns what was told since the last time.
func (k *Keeper) take() (ended []string, all bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended, all = k.ended, k.all
	k.ended, k.all = nil, false
	return ended, all
}
