// Package todotest attacks the plan of a project: agents edit it by id while a person's editor, which knows no lock,
// saves it in all the ways that editors have. It counts what was lost. It is for tests and trials and owns nothing of the
// program; how edits and saves are put together is package workspace's.
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

// Options says how hard the attack is. Zero values choose what stands in brackets.
type Options struct {
	Dir    string // an empty directory; every round has a project of its own in it
	Agents int    // goroutines that edit by id at once, each an item of its own [50]
	Edits  int    // edits of agents and of the person in all [500]
	Round  int    // edits until a new plan is begun, so that it stays as large as plans are [1000]
	// Openings is how many openings of a project the agents share; two are as good as two processes [1]. They share
	// their memory of the plan; see workspace.Workspace.Remember.
	Openings int
	Think    time.Duration // the longest between the person's reading and saving [30 ms]
	Pause    time.Duration // the longest between two pieces of one save [8 ms]
	Seed     uint64        // of what agents and person choose; the order in which they come is the machine's
}

// Report is what came of it.
type Report struct {
	AgentEdits    int // acknowledged
	PersonEdits   int // saved to the end
	Interleavings int // edits of either that had another one, begun or not yet over, while they were under way
	Stale         int // saves of the person that were made from a text which an agent had changed by then
	Healed        int // times that Heal wrote the file
	Retried       int // edits that an agent tried again because its item was not there while the file was away
	Partial       int // edits that were shown a plan in which items lacked that nobody had removed
	Reads         int // times that the file was read by somebody without a lock while no save was under way
	Torn          int // such reads that were no plan, or one in which items lacked
	Stalled       int // saves that took so long that they could not be told from ones that have ended: see stall
	Took          time.Duration
	Lost          []string // edits that are not in the plan at the end
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

// Attack runs rounds until there were enough edits. Each ends when all that was acknowledged is in the file, or after
// a minute of healing; what is not there then is lost. An error means that the attack itself could not go on: the end
// of ctx, or an edit that failed in a way that no editor explains.
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
	under  map[*edit]bool // edits under way
	saving int            // saves under way, during which the file may be anything
	since  time.Time      // when the one under way began
	halves bool           // a save has stalled, and the plan has not been whole since
	epoch  int            // of saves begun and ended
	agents []agent        // what each has been acknowledged
	person person
}

// edit is one that is under way.
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
	for _, plan := range r.plans { // each knows the beginning, as a process does that reads the plan when it starts
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

// first is the plan that a round begins with.
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

// over reports whether there were enough edits.
func (r *round) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.AgentEdits+r.report.PersonEdits >= r.edits
}

// read reads the file as a program does that knows no lock.
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

// whole reports whether every item is there that the plan began with. Nobody removes one.
func (r *round) whole(doc *todo.Doc) bool {
	for i := range r.Agents {
		if _, ok := doc.Item(itemID(i)); !ok {
			return false
		}
	}
	return true
}

// heal does what the orchestrator does when it is told of changes.
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

// settle waits until nothing is lacking, and no longer than a minute.
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
