package speculation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"centurion"
	"centurion/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// asked is a need of the serial queue, and what it says to it.
type asked func(of *work, c Check, now Course) bool

// serial is the queue as the pages describe it, one check after the other: it returns what happened, in order.
func (p plan) serial(ask asked) (log []string) {
	line, tip := slices.Clone(p), "base"
	known := map[string]bool{}
	for len(line) > 0 {
		batch := line[:min(len(line), Crowd)]
		at, done := tip, map[*work]bool{}
		var chain []Step
		var chained []*work
		now := func(i int) Course {
			c := Course{Tip: tip, At: at, Chain: chain, Batch: plan(batch[i:]).landings()}
			for _, w := range line {
				if !done[w] && !slices.Contains(batch[i:], w) && !slices.Contains(chained, w) {
					c.Line = append(c.Line, &w.Landing)
				}
			}
			return c
		}
		for i, w := range batch {
			first, next, fits := at == tip, at, true
			if !w.Empty {
				next, fits = w.lay(context.Background(), at)
			}
			why := "conflict"
			for _, command := range w.Commands {
				if fits && !ask(w, Check{Command: command, Proves: true, Before: at, After: next}, now(i)) {
					fits, why = false, "check"
				}
			}
			switch {
			case !fits && first:
				log, done[w] = append(log, w.name+" came back for its "+why), true
			case fits && next == at:
				log, done[w] = append(log, w.name+" has nothing to merge"), true
			case fits:
				chain, chained, at = append(chain, Step{&w.Landing, next}), append(chained, w), next
			}
		}
		own := func(i int, commit string, twice bool) bool {
			if _, ok := known[commit]; !ok {
				known[commit] = ask(chained[i], Check{Command: ownCheck, After: commit, Twice: twice}, now(len(batch)))
			}
			return known[commit]
		}
		if n := len(chain); n > 0 {
			if was := own(n-1, tip, false); !own(n-1, at, was) && was {
				low, guilty := 0, n-1
				for low < guilty {
					if mid := (low + guilty) / 2; own(mid, chain[mid].Commit, true) {
						low = mid + 1
					} else {
						guilty = mid
					}
				}
				log, done[chained[guilty]] = append(log, chained[guilty].name+" came back for the mission's check"), true
				chain, chained = chain[:guilty], chained[:guilty]
			}
		}
		for i, s := range chain {
			log, tip, done[chained[i]] = append(log, "merged "+s.Commit), s.Commit, true
		}
		line = slices.DeleteFunc(line, func(w *work) bool { return done[w] })
	}
	return log
}

// result is what a queue did, with the checks that it asked for, which are its receipts, and how long it took.
type result struct {
	log, receipts []string
	took          time.Duration
	ran           int
}

// through puts a plan through a bench for most checks at once, each of which takes as long as takes says.
func (p plan) through(t testing.TB, most int, takes func(Check) time.Duration) (r result) {
	var running, ran atomic.Int32
	b := New(most, func(ctx context.Context, c Check) (centurion.Receipt, error) {
		defer running.Add(-1)
		// The needed one begins at once, while the last of the others is being stopped.
		if n := running.Add(1); int(n) > most+1 || most == 1 && n > 1 {
			t.Errorf("%d checks at once, at most %d", n, most)
		}
		if err := guard.Sleep(ctx, takes(c)); err != nil {
			return centurion.Receipt{}, err
		}
		ran.Add(1)
		return centurion.Receipt{Command: c.Command, Passed: p.passes(c)}, nil
	}, func(context.Context, Wanted) bool { return true })
	start := time.Now()
	for _, w := range p {
		b.Join(t.Context(), &w.Landing)
	}
	own := map[string]centurion.Receipt{}
	known := func(w Wanted) (passed, known bool) {
		got, known := b.Known(w.Check)
		if !known && !w.Proves {
			got, known = own[w.After]
		}
		return got.Passed, known
	}
	r.log = p.serial(func(w *work, c Check, now Course) bool {
		got, err := b.Result(t.Context(), &w.Landing, c, func(most int) []Wanted {
			all := Foresee(t.Context(), now, []string{ownCheck}, known, most)
			if _, done := b.Known(c); !done && (len(all) == 0 || !all[0].same(c)) {
				t.Errorf("%s is needed, foreseen were %s", text(c), texts(all))
			}
			return all
		})
		if err != nil {
			t.Error(err)
		}
		if !c.Proves {
			own[c.After] = got
		}
		r.receipts = append(r.receipts, fmt.Sprint(text(c), " ", got.Passed))
		return got.Passed
	})
	for _, w := range p {
		b.Leave(&w.Landing)
	}
	if len(b.jobs) > 0 {
		t.Errorf("%d results are left", len(b.jobs))
	}
	r.took, r.ran = time.Since(start), int(ran.Load())
	return r
}

// Random plans with red and conflicting work end in the same order, with the same commits and receipts, however many checks run at once and
// however long each takes; and what the queue needs was always foreseen first.
func TestSameAsOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var words []string
		for i := range rapid.IntRange(1, 16).Draw(rt, "landings") {
			word := rapid.SampledFrom([]string{"", "", "", "", "", "unchecked", "empty", "red", "breaks", "conflicts"}).Draw(rt, "kind")
			if word == "conflicts" {
				word += fmt.Sprint(" ", rapid.IntRange(0, i).Draw(rt, "with"))
			}
			words = append(words, word)
		}
		seed := rapid.IntRange(1, 1<<20).Draw(rt, "seed")
		takes := func(c Check) time.Duration {
			n := seed
			for _, r := range c.Command + c.Before + c.After {
				n = (n*31 + int(r)) % 9973
			}
			return time.Duration(n%5) * time.Second
		}
		p := newPlan(words...)
		var receipts []string
		log := p.serial(func(_ *work, c Check, _ Course) bool {
			receipts = append(receipts, fmt.Sprint(text(c), " ", p.passes(c)))
			return p.passes(c)
		})
		for _, most := range []int{1, 2, 8} {
			var got result
			synctest.Test(t, func(t *testing.T) { got = newPlan(words...).through(t, most, takes) })
			if !slices.Equal(got.log, log) || !slices.Equal(got.receipts, receipts) {
				rt.Fatalf("%d at once, %q:\n%q\n%q\nwant\n%q\n%q", most, words, got.log, got.receipts, log, receipts)
			}
			if most == 1 && got.ran != len(receipts) {
				rt.Fatalf("one at a time ran %d checks for %d receipts", got.ran, len(receipts))
			}
		}
	})
}

// Fifty landings whose checks take two seconds: with eight at once in an eighth of the time, and not one check more than one at a time runs.
func TestFiftyLandings(t *testing.T) {
	words := make([]string, 50)
	two := func(Check) time.Duration { return 2 * time.Second }
	var all []result
	for _, most := range []int{1, 8} {
		synctest.Test(t, func(t *testing.T) { all = append(all, newPlan(words...).through(t, most, two)) })
	}
	one, eight := all[0], all[1]
	if checks := 50 + 1 + 50/Crowd; one.ran != checks || eight.ran != checks || one.took != time.Duration(checks)*2*time.Second {
		t.Errorf("%d checks in %s, %d in %s, want %d", one.ran, one.took, eight.ran, eight.took, checks)
	}
	if eight.took > one.took/7 {
		t.Errorf("eight at once took %s, one at a time %s", eight.took, one.took)
	}
	if !slices.Equal(one.log, eight.log) || !slices.Equal(one.receipts, eight.receipts) {
		t.Errorf("\n%q\n%q\nwant\n%q\n%q", eight.log, eight.receipts, one.log, one.receipts)
	}
}

// bench is one of two checks at once, whose checks take a minute and pass, except for those that fail to run.
func bench(t *testing.T, broken string) *Bench {
	return New(2, func(ctx context.Context, c Check) (centurion.Receipt, error) {
		if err := guard.Sleep(ctx, time.Minute); err != nil {
			return centurion.Receipt{}, err
		}
		switch {
		case c.Command == "panic":
			panic("boom")
		case c.Command == "exit":
			runtime.Goexit()
		case c.Command == broken:
			return centurion.Receipt{}, errors.New("no checkout")
		}
		return centurion.Receipt{Command: c.Command, Passed: true}, nil
	}, func(_ context.Context, w Wanted) bool { return w.Command != "forbidden" })
}

// A check that could not run ahead runs when the queue asks for it, and then its error is the queue's; a crash is an error, too. Neither is
// tried twice before, nor is one that may not run without a question.
func TestWhatCannotRunAhead(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]time.Duration{"fine": time.Minute, "broken": 2 * time.Minute, "panic": 2 * time.Minute, "exit": 2 * time.Minute, "forbidden": 2 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			b, l := bench(t, "broken"), &Landing{}
			b.Join(t.Context(), l)
			start := time.Now()
			ahead := func(int) []Wanted { return []Wanted{{Check{Command: "first"}, l}, {Check{Command: name}, l}} }
			if _, err := b.Result(t.Context(), l, Check{Command: "first"}, ahead); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if _, known := b.Known(Check{Command: name}); known != (name == "fine") {
				t.Errorf("%s: its result is known: %v", name, known)
			}
			got, err := b.Result(t.Context(), l, Check{Command: name}, ahead)
			if (err != nil) != (name == "broken" || name == "panic" || name == "exit") || got.Passed != (err == nil) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if took := time.Since(start); took != want {
				t.Errorf("%s took %s", name, took)
			}
			b.Leave(l)
		})
	}
}

// While the queue waits for a long check, short ones run one after the other beside it. One that is not wanted any more is ended at once, and
// begins anew if it is wanted again.
func TestBesideALongCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, start := &Landing{}, time.Now()
		var mu sync.Mutex // protects ended and wanted
		var ended []string
		wanted := []string{"long", "stopped"}
		b := New(2, func(ctx context.Context, c Check) (centurion.Receipt, error) {
			long := map[string]time.Duration{"long": 10 * time.Minute, "stopped": 5 * time.Minute}[c.Command]
			err := guard.Sleep(ctx, max(long, time.Minute))
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, fmt.Sprint(c.Command, " ", time.Since(start)))
			return centurion.Receipt{Command: c.Command, Passed: true}, err
		}, func(context.Context, Wanted) bool { return true })
		b.Join(t.Context(), l)
		ahead := func(int) (all []Wanted) {
			mu.Lock()
			defer mu.Unlock()
			for _, command := range wanted {
				if _, known := b.Known(Check{Command: command}); !known {
					all = append(all, Wanted{Check{Command: command}, l})
				}
			}
			return all
		}
		var g guard.Group
		g.Go("change the line", func() error {
			time.Sleep(2 * time.Minute)
			mu.Lock()
			wanted = []string{"long", "a", "b", "stopped"}
			mu.Unlock()
			b.Tell()
			return nil
		})
		if _, err := b.Result(t.Context(), l, Check{Command: "long"}, ahead); err != nil {
			t.Error(err)
		}
		if want := []string{"stopped 2m0s", "a 3m0s", "b 4m0s", "stopped 9m0s", "long 10m0s"}; !slices.Equal(ended, want) {
			t.Errorf("ended: %q, want %q", ended, want)
		}
		b.begin(Wanted{Check{Command: "a of its landing"}, l})
		synctest.Wait()
		b.Leave(l)
		if err := g.Wait(); err != nil || time.Since(start) != 10*time.Minute {
			t.Errorf("it left after %s: %v", time.Since(start), err)
		}
	})
}

// A check works in a checkout that is used for something else after it: who leaves waits also for one that takes long to end.
func TestLeaveWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		b := New(2, func(ctx context.Context, c Check) (centurion.Receipt, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return centurion.Receipt{}, context.Cause(ctx)
		}, func(context.Context, Wanted) bool { return true })
		l := &Landing{}
		b.Join(t.Context(), l)
		b.begin(Wanted{Check{Command: "slow"}, l})
		if b.Leave(l); !ended {
			t.Error("its check goes on")
		}
	})
}

// Who leaves the line, or ends, takes its checks with it: they have ended when Leave returns, and the queue runs what it still needs itself.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, first, second := bench(t, ""), &Landing{}, &Landing{}
		b.Join(t.Context(), first)
		ctx, end := context.WithCancelCause(t.Context())
		b.Join(ctx, second)
		ahead := func(int) []Wanted {
			return []Wanted{{Check{Command: "one"}, first}, {Check{Command: "two"}, second}}
		}
		var g guard.Group
		g.Go("leave", func() error {
			time.Sleep(30 * time.Second)
			end(errors.New("cancelled"))
			return nil
		})
		start := time.Now()
		for _, command := range []string{"one", "two"} {
			if got, err := b.Result(t.Context(), first, Check{Command: command}, ahead); err != nil || !got.Passed {
				t.Errorf("%s: %+v, %v", command, got, err)
			}
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("took %s", took)
		}
		b.Leave(second)
		b.Leave(first)
		if err := g.Wait(); err != nil || len(b.jobs) > 0 {
			t.Errorf("%v, %d results left", err, len(b.jobs))
		}
		third := &Landing{}
		b.Join(t.Context(), third)
		stopped, stop := context.WithCancelCause(t.Context())
		g.Go("leave while it runs", func() error {
			time.Sleep(time.Second)
			stop(centurion.ErrShutdown)
			return nil
		})
		_, err := b.Result(stopped, third, Check{Command: "three"}, func(int) []Wanted { return []Wanted{{Check{Command: "four"}, third}} })
		if !errors.Is(err, centurion.ErrShutdown) || b.jobs[Check{Command: "four"}] == nil || b.jobs[Check{Command: "three"}] != nil {
			t.Errorf("%v, %d results", err, len(b.jobs))
		}
		if _, err := b.Result(stopped, third, Check{Command: "four"}, func(int) []Wanted { return nil }); !errors.Is(err, centurion.ErrShutdown) {
			t.Error(err)
		}
		b.Leave(third)
		if err := g.Wait(); err != nil || len(b.jobs) > 0 {
			t.Errorf("%v, %d results left", err, len(b.jobs))
		}
		if b.begin(Wanted{Check{Command: "five"}, third}); len(b.jobs) > 0 {
			t.Error("a check began for who has left")
		}
	})
}
