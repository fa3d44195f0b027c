package merge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/orchestrator/speculation"
	"centurion/verify"
	"centurion/worktree"
)

// proofTrees is the input of a proof: the mission's repository, and the checkout where its runs happen.
type proofTrees struct {
	*worktree.Repo
	bench *worktree.Checkout
}

var _ verify.Trees = proofTrees{}

// Lay brings the checkout to a tree or commit.
func (t proofTrees) Lay(ctx context.Context, tree string) (at centurion.Place, err error) {
	if err = t.bench.Clean(ctx, tree); err == nil {
		_, at, err = t.bench.Files(ctx)
	}
	return at, err
}

// Changed lists tracked files that a check has changed.
func (t proofTrees) Changed(ctx context.Context) ([]string, error) { return t.bench.Changed(ctx) }

// run runs a check in a checkout that no other one uses meanwhile.
func (m *Prover) run(ctx context.Context, c speculation.Check) (centurion.Receipt, error) {
	place, err := m.takePlace(ctx, c.After)
	if err != nil {
		return centurion.Receipt{Command: c.Command}, err
	}
	defer m.givePlace(place)
	t := proofTrees{m.iso.Ground.Repo, place}
	if c.Proves {
		return m.checker.Prove(ctx, t, verify.Work{Command: c.Command, Before: c.Before, After: c.After, Regression: c.Keeps}, nil)
	}
	r, err := m.checker.RunOn(ctx, t, c.After, c.Command)
	if err != nil || r.Passed || !c.Twice {
		return r, err
	}
	first := r
	if r, err = m.checker.RunOn(ctx, t, c.After, c.Command); err == nil && r.Passed {
		r.Proof, r.Why = centurion.ProofFlaky, "it failed first ("+firstLine(first)+"), then it passed on the same files"
	}
	return r, err
}

func firstLine(r centurion.Receipt) string {
	line, _, _ := strings.Cut(strings.TrimSpace(r.Output), "\n")
	return centurion.Clip(line, 120)
}

// takePlace returns a free checkout for checks, or makes one. The one that was used last comes first: it has what earlier checks built.
func (m *Prover) takePlace(ctx context.Context, commit string) (c *worktree.Checkout, err error) {
	m.placing.Lock()
	if n := len(m.free); n > 0 {
		c, m.free = m.free[n-1], m.free[:n-1]
	}
	m.placing.Unlock()
	if c != nil {
		return c, nil
	}
	if err = m.iso.MayPrepare(ctx); err == nil {
		c, err = m.iso.Ground.Repo.Take(ctx, worktree.Want{Commit: commit, Setup: m.iso.Ground.Setup, Check: true})
	}
	if err != nil {
		return nil, errors.Join(err, m.iso.TellNoCheckout(ctx, err))
	}
	return c, nil
}

func (m *Prover) givePlace(c *worktree.Checkout) {
	m.placing.Lock()
	defer m.placing.Unlock()
	m.free = append(m.free, c)
}

// Close releases the checkouts for checks. Nothing of the mission is running any more.
func (m *Prover) Close(ctx context.Context) (err error) {
	for _, c := range m.free {
		_, lost := c.Release(ctx, "")
		err = errors.Join(err, lost)
	}
	m.free = nil
	return err
}

func proofOf(command, before, after string, keeps bool) speculation.Check {
	return speculation.Check{Command: command, Proves: true, Before: before, After: after, Keeps: keeps}
}

// result returns the receipt of a check for l, which may be nil. While it waits, checks run that the queue will need. The caller has the queue's
// turn.
func (m *Prover) result(ctx context.Context, l *Work, c speculation.Check) (centurion.Receipt, error) {
	var of *speculation.Landing
	if l != nil {
		of = l.ahead
	}
	return m.bench.Result(ctx, of, c, func(most int) []speculation.Wanted { return m.ahead(ctx, most) })
}

// lay puts work on top of a commit, once for each: what is proven ahead is the commit that is merged. The result is that commit if it has the
// work already: a host has died right after merging it. The caller has the queue's turn.
func (m *Queue) lay(ctx context.Context, l *Work, at string) (worktree.Rebased, error) {
	if x, ok := l.laid[at]; ok {
		return x, nil
	}
	x, err := m.iso.Ground.Repo.Rebase(ctx, l.Commit.ID, at)
	if err == nil && len(x.Conflicts) == 0 {
		var same bool
		if same, err = m.iso.SameTree(ctx, at, x.Commit); same {
			x.Commit = at
		}
	}
	if err != nil {
		return x, err
	}
	if l.laid == nil {
		l.laid = map[string]worktree.Rebased{}
	}
	l.laid[at] = x
	return x, nil
}

// enter puts a landing at the end of the line.
func (m *Queue) enter(ctx context.Context, l *Work) {
	l.ahead = &speculation.Landing{Commands: verify.Distinct(l.Verify), Empty: l.Commit.ID == "", Keeps: l.Keeps, Item: cmp.Or(l.Checks, l.Item), Race: l.Race, Agent: l.Agent,
		Lay: func(ctx context.Context, at string) (string, bool) {
			x, err := m.lay(ctx, l, at)
			return x.Commit, err == nil && len(x.Conflicts) == 0
		},
		Passes: func(r centurion.Receipt) bool {
			return r.Passed && (r.Proof.Solid() || !l.Stuck && !(l.Mends && r.TestsMissWork))
		}}
	m.mu.Lock()
	m.waiting = append(m.waiting, l)
	m.mu.Unlock()
	m.bench.Join(ctx, l.ahead)
}

// stands says where the round stands: chain has passed on top of the tip, up to at, and batch still comes.
func (m *Queue) stands(tip, at string, chain, batch []*Work) {
	m.now = speculation.Course{Tip: tip, At: at}
	for _, l := range chain {
		m.now.Chain = append(m.now.Chain, speculation.Step{Of: l.ahead, Commit: l.Next})
	}
	for _, l := range batch {
		m.now.Batch = append(m.now.Batch, l.ahead)
	}
}

// foresee returns the first checks that the round that goes on, and those after it, will need, at most `most`. The caller has the turn.
func (m *Queue) foresee(ctx context.Context, most int) []speculation.Wanted {
	if m.now.Tip == "" {
		return nil
	}
	own, err := m.ownChecks(ctx)
	receipts, rerr := m.st.Store.Receipts(ctx, m.st.ID)
	if errors.Join(err, rerr) != nil {
		return nil // the queue meets the same error itself
	}
	c := m.now
	m.mu.Lock()
	for _, l := range m.waiting {
		chained := slices.ContainsFunc(c.Chain, func(s speculation.Step) bool { return s.Of == l.ahead })
		if !l.Done && !chained && !slices.Contains(c.Batch, l.ahead) {
			c.Line = append(c.Line, l.ahead)
		}
	}
	m.mu.Unlock()
	return speculation.Foresee(ctx, c, own, func(w speculation.Wanted) (passed, known bool) { return m.outcome(ctx, receipts, w) }, most)
}

// outcome returns what is known of a check: it has run ahead, or its receipt is stored.
func (m *Queue) outcome(ctx context.Context, stored []centurion.Receipt, w speculation.Wanted) (passed, known bool) {
	r, known := m.bench.Known(w.Check)
	if tree, err := m.iso.Ground.Repo.TreeOf(ctx, w.After); err == nil && !known {
		if r, known = m.known[ownKey(w.Command, tree)]; w.Proves || !known {
			r, known = newest(stored, tree, func(r centurion.Receipt) bool {
				return w.Proves && isGreen(r, w.Of.Item, w.Command) || !w.Proves && isOwn(r, w.Command)
			})
		}
	}
	return r.Passed && (!w.Proves || w.Of.Passes(r)), known
}

func ownKey(command, tree string) string { return command + "\x00" + tree }

// newest returns the last of the receipts on a tree that is wanted.
func newest(all []centurion.Receipt, tree string, wanted func(centurion.Receipt) bool) (centurion.Receipt, bool) {
	for _, r := range slices.Backward(all) {
		if r.Tree == tree && wanted(r) {
			return r, true
		}
	}
	return centurion.Receipt{}, false
}

// isOwn reports whether a receipt is of a check of the mission.
func isOwn(r centurion.Receipt, command string) bool {
	return r.Item == "" && strings.TrimSpace(r.Command) == command
}

// isGreen reports whether a receipt is of an item's command that passed.
func isGreen(r centurion.Receipt, item, command string) bool {
	return r.Item == item && !r.Final && strings.TrimSpace(r.Command) == command && r.Passed
}
