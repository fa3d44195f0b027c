// Package speculation runs checks of the merge queue before the queue asks for them: those that it will ask for if everything that is not
// known yet passes. It decides which checks run, and owns their goroutines. The queue asks in the same order as without it, so that what is
// merged, returned and recorded is the same; only the waiting is shorter.
package speculation

import (
	"context"
	"slices"

	"centurion"
	"centurion/guard"
)

// Crowd is the maximum number of landings that are merged together, with the mission's own checks once on the last.
const Crowd = 5

// Check is one check of the queue.
type Check struct {
	Command string
	Proves  bool   // it proves the work between Before and After; otherwise it is one of the mission, on After
	Before  string // a commit or tree; "" for a check of the mission
	After   string // a commit
	Keeps   bool   // the proof is only that it passes before and after
	Twice   bool   // a check of the mission that fails is run once more
}

// same reports whether two checks have the same result.
func (c Check) same(o Check) bool {
	if !c.Proves && !o.Proves {
		c.Twice = o.Twice
	}
	return c == o
}

// Landing is work in the line of the queue. All fields are set before [Bench.Join].
type Landing struct {
	Commands []string // its acceptance commands, without repetitions
	Empty    bool     // it has changed nothing
	Keeps    bool     // see Check
	Item     string   // of the plan, or the try of one; "" without one
	Race     string   // of which it is a try, if any: at most one of those in a batch is merged, and all are put on the same commit
	Agent    string   // whose rules apply

	// Lay puts it on a commit and returns the result, which is the same commit if that has the work already; fits is false in a conflict.
	Lay func(ctx context.Context, at string) (next string, fits bool)
	// Passes reports whether the queue would merge it with this receipt of an acceptance command. A wrong answer only costs time.
	Passes func(centurion.Receipt) bool

	checks guard.Group // of its own checks, until [Bench.Leave]
	life   context.Context
	stop   context.CancelFunc
}

// Step is a landing that has been put on others: Commit is the result.
type Step struct {
	Of     *Landing
	Commit string
}

// Course is where a round of the queue stands: Chain has been put on the tip of the mission's branch and passed, At is its end; Batch, then
// Line, still come, the first of Batch at once.
type Course struct {
	Tip, At     string
	Chain       []Step
	Batch, Line []*Landing
}

// Wanted is a check that the queue will ask for because of a landing.
type Wanted struct {
	Check
	Of *Landing
}

// Foresee returns the next checks that the queue will ask for, at most `most`, in that order, if all that are not known pass. It follows the
// rounds of the queue: a landing that conflicts or fails is returned if it is the first of its round, otherwise it is tried again in the next
// one, without those that came before it. own are the mission's own checks. What comes after one of them that fails cannot be foreseen: then
// those follow that find the guilty work.
func Foresee(ctx context.Context, c Course, own []string, known func(Wanted) (passed, known bool), most int) (out []Wanted) {
	ask := func(w Wanted) (passes, open bool) {
		passed, known := known(w)
		if !known && !slices.ContainsFunc(out, func(o Wanted) bool { return o.same(w.Check) }) {
			out = append(out, w)
		}
		return passed || !known, !known
	}
	for len(c.Batch)+len(c.Chain) > 0 {
		var again []*Landing
		raced := map[string]string{} // what the tries of a race are put on of which one is in the chain
		for _, l := range c.Batch {
			at, over := raced[l.Race]
			if !over {
				at = c.At
			}
			first, next, fits := at == c.Tip, at, true
			if !l.Empty {
				next, fits = l.Lay(ctx, at)
			}
			for _, command := range l.Commands {
				if fits {
					fits, _ = ask(Wanted{Check{Command: command, Proves: true, Before: at, After: next, Keeps: l.Keeps}, l})
				}
			}
			switch {
			case !fits && !first:
				again = append(again, l)
			case fits && next != at && !over:
				if c.Chain, c.At = append(slices.Clip(c.Chain), Step{l, next}), next; l.Race != "" {
					raced[l.Race] = at
				}
			}
			if len(out) >= most {
				return out[:most]
			}
		}
		for _, command := range own {
			if len(c.Chain) == 0 {
				break
			}
			last := c.Chain[len(c.Chain)-1]
			was, _ := ask(Wanted{Check{Command: command, After: c.Tip}, last.Of})
			if now, _ := ask(Wanted{Check{Command: command, After: last.Commit, Twice: was}, last.Of}); was && !now {
				halve(c.Chain, func(s Step) (bool, bool) {
					return ask(Wanted{Check{Command: command, After: s.Commit, Twice: true}, s.Of})
				})
				return out[:min(most, len(out))]
			}
		}
		line := append(again, c.Line...)
		n := min(len(line), Crowd)
		if len(out) >= most {
			break
		}
		c = Course{Tip: c.At, At: c.At, Batch: line[:n], Line: line[n:]}
	}
	return out[:min(most, len(out))]
}

// halve asks for the checks that find the guilty landing of a chain whose last is red: first the one that decides next, then the others
// that may come, since they are few.
func halve(chain []Step, ask func(Step) (passes, open bool)) {
	low, guilty := 0, len(chain)-1
	for low < guilty {
		mid := (low + guilty) / 2
		switch passes, open := ask(chain[mid]); {
		case open:
			for _, s := range chain[low:guilty] {
				ask(s)
			}
			return
		case passes:
			low = mid + 1
		default:
			guilty = mid
		}
	}
}

// steer decides which running checks are stopped, because they are not among the first that are wanted, and which are started. need is
// the one that the queue waits for. Those that were stopped and have not ended yet (true in running) count among most.
func steer(need Check, wanted []Wanted, running map[Check]bool, most int) (stop []Check, start []Wanted) {
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(w Wanted) bool { return w.same(need) })
	wanted = wanted[:min(len(wanted), most-1)]
	for c, stopped := range running {
		if !stopped && c != need && !slices.ContainsFunc(wanted, func(w Wanted) bool { return w.Check == c }) {
			stop = append(stop, c)
		}
	}
	room := most - len(running)
	for _, w := range wanted {
		if _, runs := running[w.Check]; !runs && len(start) < room {
			start = append(start, w)
		}
	}
	return stop, start
}
