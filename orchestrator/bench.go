package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/brief"
	"centurion/store"
	"centurion/verify"
	"centurion/worktree"
)

// proofTrees is what a proof looks at: the mission's repository, and the checkout in which its checks run. Whoever uses it has the
// queue's turn.
type proofTrees struct {
	*worktree.Repo
	bench *worktree.Checkout
}

var _ verify.Trees = proofTrees{}

// Lay brings the checkout to a tree or commit.
func (t proofTrees) Lay(ctx context.Context, tree string) (string, error) {
	if err := t.bench.Clean(ctx, tree); err != nil {
		return "", err
	}
	return t.bench.Where().Dir, nil
}

// Changed lists tracked files that a check has changed.
func (t proofTrees) Changed(ctx context.Context) ([]string, error) { return t.bench.Changed(ctx) }

// proofTrees returns what checks run on, and makes the checkout at the first use.
func (m *mission) proofTrees(ctx context.Context) (proofTrees, error) {
	q := m.queue
	if q.bench == nil {
		tip, err := m.iso.Tip(ctx)
		if err != nil {
			return proofTrees{}, err
		}
		if err := m.iso.MayPrepare(ctx); err != nil {
			return proofTrees{}, errors.Join(err, m.iso.TellNoCheckout(ctx, err))
		}
		if q.bench, err = m.iso.Ground.Repo.Take(ctx, worktree.Want{Commit: tip, Setup: m.iso.Ground.Setup}); err != nil {
			q.bench = nil
			return proofTrees{}, errors.Join(err, m.iso.TellNoCheckout(ctx, err))
		}
	}
	return proofTrees{m.iso.Ground.Repo, q.bench}, nil
}

// closeQueue gives the checkout for checks back. Nothing of the mission runs any more.
func (m *mission) closeQueue(ctx context.Context) error {
	if m.queue.bench == nil {
		return nil
	}
	_, err := m.queue.bench.Release(ctx, "")
	m.queue.bench = nil
	return err
}

// proveLanding runs the acceptance commands of the work's item: on what it stands on, with it, and with it taken out. It
// returns why the work goes back, or nil: a check is red, the work's own tests tell nothing of it, or its agent says that it is stuck and
// a green check does not prove otherwise.
func (m *mission) proveLanding(ctx context.Context, l *landing, before, after string) (*rejection, error) {
	var back *rejection
	told, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	for _, command := range verify.Distinct(l.verify) {
		r, err := m.proveWork(ctx, l, command, before, after)
		if err != nil {
			return nil, err
		}
		if !r.Passed {
			on := "on your work, put on top of the newest state of the mission"
			if l.commit.ID == "" {
				on = "on the newest state of the mission as it is, since you have changed no file that is not merged"
			}
			return &rejection{text: "The host ran your acceptance command " + on + ", and it failed.\n" + accountAgain(r, told) +
				"\nMend the cause, then end your turn; the host runs it again.", short: "its acceptance command fails: " + account(r),
				cause: event.ReturnedCheck, command: r.Command, tree: l.tree, onto: before}, nil
		}
		if back == nil && l.stuck {
			if back = stuckOn(l, r); back != nil {
				back.command, back.tree, back.onto = r.Command, l.tree, before
			}
		}
		if back == nil && l.more && !l.stuck && r.Proof == centurion.ProofUnproven && verify.RanNoTest(r) && !slices.ContainsFunc(told, func(t centurion.Receipt) bool { return t.ID == r.ID }) {
			back = testless(r)
			back.tree, back.onto = l.tree, before
		}
		if back == nil && l.mends && r.TestsMissWork && r.Proof == centurion.ProofUnproven {
			back = hollow(r)
			back.tree, back.onto = l.tree, before
		}
	}
	return back, nil
}

// proveWork proves one command and keeps the receipt. One that the same command has given for the same files counts on.
func (m *mission) proveWork(ctx context.Context, l *landing, command, before, after string) (centurion.Receipt, error) {
	all, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return centurion.Receipt{}, err
	}
	tree, err := m.iso.Ground.Repo.TreeOf(ctx, after)
	if err != nil {
		return centurion.Receipt{}, err
	}
	proven := false
	for _, r := range all {
		if r.Item != l.item || r.Final || strings.TrimSpace(r.Command) != command || !r.Passed {
			continue
		}
		if r.Tree == tree {
			return r, nil
		}
		proven = proven || r.Proof.Solid()
	}
	want := centurion.Receipt{Mission: m.st.ID, Command: command, Item: l.item}
	if l.task != nil {
		want.Task = l.task.ID
	}
	if err := m.mayCheck(ctx, command, l.agent, want.Task); err != nil {
		return want, err
	}
	if err := m.tellCheck(ctx, centurion.EventVerifyStarted, want); err != nil {
		return want, err
	}
	t, err := m.proofTrees(ctx)
	if err != nil {
		return want, err
	}
	got, err := m.h.checker.Prove(ctx, t, verify.Work{Command: command, Before: before, After: after, Regression: l.keeps}, nil)
	if err == nil && got.Passed && got.Proof == centurion.ProofUnproven {
		got, err = m.proveWhole(ctx, t, l, got, before, after)
	}
	if err != nil {
		return got, err
	}
	if got.Passed && got.Proof == centurion.ProofUnproven && proven && len(got.Weakened) == 0 {
		// What this item did before has turned the check green, and it still is.
		got.Proof, got.Why = centurion.ProofRegression, "earlier work of the same item was proven by it"
	}
	if got.Proof.Solid() && l.task != nil && !slices.Contains(verify.Distinct(l.given), command) {
		// The file may have been changed by the very work that the line is to prove: a shell gets everywhere.
		got.Proof, got.Why = centurion.ProofUnproven, "the command was changed after work on the item had begun; it was "+brief.Lines(l.given)
	}
	got.Mission, got.Task, got.Item, got.Tree = m.st.ID, want.Task, want.Item, tree
	if after != before {
		got.Commit = after
	}
	failpoint.Hit(failpoint.CheckRan)
	return got, m.keepReceipt(ctx, &got)
}

// proveWhole proves once more what an item's newest work alone could not, with everything taken out that tasks have merged for
// the item: a test that was mended later is red without what it tests, which came before it. Where that does not come apart
// from what others have done since, the first receipt stands. Tests that the item itself brought it may change. Where there is no newest
// work, as after a crash that came between a merge and the end of its task, what all of it is worth counts, also if that is little:
// else nobody would hear of it any more.
func (m *mission) proveWhole(ctx context.Context, t proofTrees, l *landing, first centurion.Receipt, before, after string) (centurion.Receipt, error) {
	if l.item == "" {
		return first, nil
	}
	without, ok, err := m.withoutItem(ctx, l.item, before)
	if err != nil || !ok {
		return first, err
	}
	whole, err := m.h.checker.Prove(ctx, t, verify.Work{Command: first.Command, Before: without, After: after}, nil)
	if err != nil || !whole.Passed || !whole.Proof.Solid() && before != after {
		return first, err
	}
	return whole, nil
}

// withoutItem takes everything that tasks have merged for an item out of a commit. ok is false where there is nothing, or where
// it does not come apart from what others have done since.
func (m *mission) withoutItem(ctx context.Context, item, commit string) (without string, ok bool, err error) {
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return "", false, err
	}
	var landed []centurion.Landed
	for _, t := range tasks {
		if t.Item == item {
			landed = append(landed, t.Landed...)
		}
	}
	slices.SortFunc(landed, func(a, b centurion.Landed) int { return b.Time.Compare(a.Time.Time) })
	for _, x := range landed {
		if commit, _, ok, err = m.iso.Ground.Repo.Revert(ctx, commit, x.Before, x.Commit, nil); err != nil || !ok {
			return "", false, err
		}
	}
	return commit, len(landed) > 0, nil
}

// keepReceipt stores a receipt and tells of it.
func (m *mission) keepReceipt(ctx context.Context, r *centurion.Receipt) error {
	return m.keepOwn(ctx, r, false)
}

// keepOwn is keepReceipt for a check of the mission, which is early while the mission's branch has not passed it.
func (m *mission) keepOwn(ctx context.Context, r *centurion.Receipt, early bool) error {
	typ := centurion.EventVerifyFailed
	if r.Passed {
		typ = centurion.EventVerifyPassed
	}
	r.Early = early && !r.Passed
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.PutReceipt(r); err != nil {
			return err
		}
		fact := checkFact(typ, *r)
		if early {
			d := checkData(*r)
			d.Early = true
			fact.Data = event.Data(d)
		}
		_, err := tx.Append(fact)
		return err
	})
}

// ownChecks lists the mission's own checks: those of the configuration, and those under the plan's title.
func (m *mission) ownChecks(ctx context.Context) ([]string, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	commands := rec.Options.Verify
	if p, err := m.plan.Read(); err == nil && p.Doc != nil {
		commands = append(commands[:len(commands):len(commands)], p.Doc.Checks()...)
	}
	return verify.Distinct(commands), nil
}

// ownCheck returns what a check of the mission says of a commit; it runs once for each tree. A red one that should be green
// is run once more.
func (m *mission) ownCheck(ctx context.Context, command, commit string, green bool) (centurion.Receipt, error) {
	tree, err := m.iso.Ground.Repo.TreeOf(ctx, commit)
	if err != nil {
		return centurion.Receipt{}, err
	}
	key := command + "\x00" + tree
	if r, ok := m.queue.known[key]; ok {
		return r, nil
	}
	all, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return centurion.Receipt{}, err
	}
	for _, r := range all { // a host before this one has run it
		if r.Item == "" && r.Tree == tree && strings.TrimSpace(r.Command) == command {
			m.queue.known[key] = r
		}
	}
	if r, ok := m.queue.known[key]; ok {
		return r, nil
	}
	r, err := m.runOn(ctx, centurion.Receipt{Command: command, Commit: commit, Tree: tree}, green)
	if err == nil {
		m.queue.known[key] = r
	}
	return r, err
}

// runOn runs a command on a commit, keeps the receipt and tells of it. The one who calls has the queue's turn.
func (m *mission) runOn(ctx context.Context, want centurion.Receipt, green bool) (centurion.Receipt, error) {
	if err := m.tellCheck(ctx, centurion.EventVerifyStarted, want); err != nil {
		return want, err
	}
	t, err := m.proofTrees(ctx)
	if err != nil {
		return want, err
	}
	r, err := m.h.checker.RunOn(ctx, t, want.Commit, want.Command)
	if err == nil && green && !r.Passed {
		first := r
		if r, err = m.h.checker.RunOn(ctx, t, want.Commit, want.Command); err == nil && r.Passed {
			r.Proof, r.Why = centurion.ProofFlaky, "it failed first ("+firstLine(first)+"), then it passed on the same files"
		}
	}
	if err != nil {
		return r, err
	}
	r.Mission, r.Item, r.Task, r.Final, r.Tree, r.Commit = m.st.ID, want.Item, want.Task, want.Final, want.Tree, want.Commit
	failpoint.Hit(failpoint.CheckRan)
	return r, m.keepOwn(ctx, &r, !green)
}

func firstLine(r centurion.Receipt) string {
	line, _, _ := strings.Cut(strings.TrimSpace(r.Output), "\n")
	return centurion.Clip(line, 120)
}

// finalCheck runs a command on the finished work, unless it was green on the same files, at the end or as a check of the mission. One that
// proves runs without all of the mission's work as well: only a run of that kind spares it another.
func (m *mission) finalCheck(ctx context.Context, command, agent string, proves bool) (centurion.Receipt, error) {
	want := centurion.Receipt{Command: command, Final: true}
	if err := m.mayCheck(ctx, command, agent, ""); err != nil {
		return want, err
	}
	if err := m.queue.turn.Acquire(ctx, 1); err != nil {
		return want, context.Cause(ctx)
	}
	defer m.queue.turn.Release(1)
	var err error
	if want.Commit, err = m.iso.Tip(ctx); err != nil {
		return want, err
	}
	if want.Tree, err = m.iso.Ground.Repo.TreeOf(ctx, want.Commit); err != nil {
		return want, err
	}
	all, err := m.h.cfg.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return want, err
	}
	for _, r := range slices.Backward(all) {
		if !r.Passed || r.Tree != want.Tree || strings.TrimSpace(r.Command) != strings.TrimSpace(command) || proves && r.Proof == "" {
			continue
		}
		if !r.Final && !proves && r.Item == "" && r.Proof == "" { // neither an item's nor flaky
			r.Final = true // it ran on the files that are the finished work
			err = m.keepReceipt(ctx, &r)
		}
		if r.Final || err != nil {
			return r, err
		}
	}
	if proves {
		return m.proveFinal(ctx, want)
	}
	return m.runOn(ctx, want, true)
}

// proveFinal proves all that the mission has done by one command, and keeps the receipt.
func (m *mission) proveFinal(ctx context.Context, want centurion.Receipt) (centurion.Receipt, error) {
	base, err := m.iso.Base(ctx)
	if err == nil {
		err = m.tellCheck(ctx, centurion.EventVerifyStarted, want)
	}
	if err != nil {
		return want, err
	}
	t, err := m.proofTrees(ctx)
	if err != nil {
		return want, err
	}
	r, err := m.h.checker.Prove(ctx, t, verify.Work{Command: want.Command, Before: base.Commit, After: want.Commit}, nil)
	if err != nil {
		return r, err
	}
	r.Mission, r.Final, r.Tree, r.Commit = m.st.ID, true, want.Tree, want.Commit
	failpoint.Hit(failpoint.CheckRan)
	return r, m.keepReceipt(ctx, &r)
}
