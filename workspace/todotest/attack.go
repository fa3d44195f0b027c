// Package todotest attacks the plan of a project: agents edit it by id while a person's editor, which ignores locks, saves it in all
// the ways that editors do. It counts losses. It is for tests and trials; package workspace itself merges edits and saves.
package todotest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// Options configure the attack. Zero values mean those in brackets.
type Options struct {
	Dir    string // an empty directory; every round has its own project in it
	Agents int    // goroutines that edit their own items by id [50]
	Edits  int    // edits of agents and the person in total [500]
	Round  int    // edits before a new plan is started, to keep its size realistic [1000]
	// Openings is how many openings of a project the agents share; two are equivalent to two processes [1]. They share their memory of
	// the plan; see workspace.Workspace.Remember.
	Openings int
	Think    time.Duration // maximum time between the person's reading and saving [30 ms]
	Pause    time.Duration // maximum time between two pieces of one save [8 ms]
	Seed     uint64        // of the choices of agents and person; their order is up to the machine
}

// Report is the result of an attack.
type Report struct {
	AgentEdits    int // acknowledged
	PersonEdits   int // saved completely
	Interleavings int // edits that overlapped with another one
	Stale         int // saves of the person based on a text that an agent had changed by then
	Healed        int // times Heal wrote the file
	Retried       int // edits retried by an agent because its item was missing while the file was away
	Partial       int // edits that saw a plan with missing items
	Reads         int // times the file was read without a lock while no save was in progress
	Torn          int // such reads without a whole plan
	Stalled       int // saves too slow to be distinguished from finished ones: see stall
	Took          time.Duration
	Lost          []string // edits missing from the final plan
	Saves         map[string]int
}

func (r *Report) add(o Report) {
	r.AgentEdits += o.AgentEdits
	r.PersonEdits += o.PersonEdits
	r.Interleavings += o.Interleavings
	r.Stale += o.Stale
	r.Healed += o.Healed
	r.Retried += o.Retried
	r.Partial += o.Partial
	r.Reads += o.Reads
	r.Torn += o.Torn
	r.Stalled += o.Stalled
	r.Lost = append(r.Lost, o.Lost...)
	for how, n := range o.Saves {
		r.Saves[how] += n
	}
}

// Attack runs rounds until there are enough edits. Each ends when all acknowledged changes are in the file, or after a minute of
// healing; anything still missing is lost. An error means that the attack itself could not continue: ctx ended, or an edit failed in a
// way that no editor explains.
func Attack(ctx context.Context, o Options) (Report, error) {
	o.Agents, o.Edits, o.Round = cmp.Or(o.Agents, 50), cmp.Or(o.Edits, 500), cmp.Or(o.Round, 1000)
	o.Openings = cmp.Or(o.Openings, 1)
	o.Think, o.Pause = cmp.Or(o.Think, 30*time.Millisecond), cmp.Or(o.Pause, 8*time.Millisecond)
	sum := Report{Saves: map[string]int{}}
	started := time.Now()
	for n := 0; sum.AgentEdits+sum.PersonEdits < o.Edits; n++ {
		r, err := attackOnce(ctx, o, n, min(o.Round, o.Edits-sum.AgentEdits-sum.PersonEdits))
		sum.add(r)
		sum.Took = time.Since(started)
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// round is one plan under attack.
type round struct {
	Options
	file  string
	plans []*workspace.TodoFile
	edits int

	mu     sync.Mutex
	report Report
	under  map[*edit]bool // edits in progress
	saving int            // saves in progress, when the file may have any content
	since  time.Time      // when the current one started
	halves bool           // a save has stalled, and the plan has not been whole since
	epoch  int            // counts starts and ends of saves
	agents []agent        // acknowledged changes of each
	person person
}

// edit is an edit in progress.
type edit struct{ crossed bool }

func attackOnce(ctx context.Context, o Options, n, edits int) (Report, error) {
	dir := filepath.Join(o.Dir, fmt.Sprintf("round-%d", n))
	r := &round{Options: o, edits: edits, under: map[*edit]bool{}, agents: make([]agent, o.Agents),
		file: filepath.Join(dir, workspace.Directory, "todo.md")}
	r.report.Saves = map[string]int{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return r.report, err
	}
	for range o.Openings {
		w, err := workspace.Open(dir)
		if err != nil {
			return r.report, err
		}
		defer w.Close()
		if err := w.Remember(filepath.Join(o.Dir, fmt.Sprintf("memory-%d", n))); err != nil {
			return r.report, err
		}
		r.plans = append(r.plans, w.Todo())
	}
	if _, err := r.plans[0].Replace(ctx, r.first(), nil); err != nil {
		return r.report, err
	}
	for _, plan := range r.plans { // each knows the start, like a process that reads the plan when it starts
		if _, err := plan.Edit(ctx, func(*todo.Doc) error { return nil }); err != nil {
			return r.report, err
		}
	}
	fought, cancel := context.WithCancel(ctx)
	defer cancel()
	var agents, others guard.Group
	for i := range o.Agents {
		rnd := rand.New(rand.NewPCG(o.Seed+uint64(n), uint64(i)+1))
		agents.Go("agent", func() error { return r.agent(ctx, i, rnd) })
	}
	others.Go("person", func() error { return r.edit(fought, rand.New(rand.NewPCG(o.Seed+uint64(n), 0))) })
	others.Go("reader", func() error { return r.read(fought) })
	for _, plan := range r.plans {
		others.Go("healer", func() error { return r.heal(fought, plan) })
	}
	err := agents.Wait()
	cancel()
	if oerr := others.Wait(); err == nil {
		err = oerr
	}
	if err != nil {
		return r.report, err
	}
	err = r.settle(ctx)
	return r.report, err
}

// first returns the plan at the start of a round.
func (r *round) first() string {
	var s strings.Builder
	s.WriteString("# Under attack\n\n## M1 Work\n")
	for i := range r.Agents {
		fmt.Fprintf(&s, "- [ ] %s item of agent %d @worker\n  - files: dir%d/**\n", itemID(i), i, i)
	}
	s.WriteString("\n## Notes\n")
	return s.String()
}

func itemID(agent int) string { return fmt.Sprintf("T%d", agent+1) }

// begin and end frame an edit.
func (r *round) begin() *edit {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &edit{crossed: len(r.under) > 0}
	for other := range r.under {
		other.crossed = true
	}
	r.under[e] = true
	return e
}

func (r *round) end(e *edit, acknowledged func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.under, e)
	if acknowledged == nil {
		return
	}
	acknowledged()
	if e.crossed {
		r.report.Interleavings++
	}
}

// over reports whether there are enough edits.
func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.AgentEdits+r.report.PersonEdits >= r.edits
}

// read reads the file like a program that ignores locks.
func (r *round) read(ctx context.Context) error {
	for wait(ctx, time.Millisecond) {
		r.mu.Lock()
		epoch, saving := r.epoch, r.saving
		r.mu.Unlock()
		b, err := os.ReadFile(r.file)
		r.mu.Lock()
		if saving == 0 && epoch == r.epoch {
			r.report.Reads++
			doc, perr := todo.Parse(b)
			switch torn := err != nil || perr != nil || !r.whole(doc); {
			case torn && !r.halves:
				r.report.Torn++
			case !torn:
				r.halves = false
			}
		}
		r.mu.Unlock()
	}
	return nil
}

// whole reports whether all of the plan's original items are there. No one removes any.
func (r *round) whole(doc *todo.Doc) bool {
	for i := range r.Agents {
		if _, ok := doc.Item(itemID(i)); !ok {
			return false
		}
	}
	return true
}

// heal does what the orchestrator does on a change notification.
func (r *round) heal(ctx context.Context, plan *workspace.TodoFile) error {
	for wait(ctx, 20*time.Millisecond) {
		changed, err := plan.Heal(ctx)
		if err != nil && ctx.Err() == nil && centurion.KindOf(err) != centurion.KindUsage {
			return err
		}
		if changed {
			r.mu.Lock()
			r.report.Healed++
			r.mu.Unlock()
		}
	}
	return nil
}

// settle waits until nothing is missing, for at most a minute.
func (r *round) settle(ctx context.Context) error {
	for deadline := time.Now().Add(time.Minute); ; {
		calm := true
		for _, plan := range r.plans {
			changed, err := plan.Heal(ctx)
			if err != nil {
				return err
			}
			calm = calm && !changed
		}
		doc, _, err := r.plans[0].Load()
		if err != nil {
			return err
		}
		r.report.Lost = r.lost(doc)
		if len(r.report.Lost) == 0 && calm || time.Now().After(deadline) {
			return nil
		}
		if !wait(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// wait reports whether ctx is still alive after that time.
func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
