package merge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/speculation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/verify"
	"centurion/workspace/todo"
)

// ProveWork proves one command and keeps the receipt.
func (m *Prover) ProveWork(ctx context.Context, l *Work, command, before, after string) (centurion.Receipt, error) {
	r, err := m.proveWork(ctx, l, command, before, after)
	return r, errors.Join(err, m.keepUnkept(context.WithoutCancel(ctx)))
}

// proveWork proves one command. A passing receipt that the command has for the same files already is returned as it is; a new one is kept by
// the next transaction. The caller has the queue's turn.
func (m *Prover) proveWork(ctx context.Context, l *Work, command, before, after string) (centurion.Receipt, error) {
	if err := m.keepUnkept(ctx); err != nil {
		return centurion.Receipt{}, err
	}
	all, err := m.st.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return centurion.Receipt{}, err
	}
	tree, err := m.iso.Ground.Repo.TreeOf(ctx, after)
	if err != nil {
		return centurion.Receipt{}, err
	}
	all = slices.DeleteFunc(all, func(r centurion.Receipt) bool { return !isGreen(r, l.Item, command) && !isGreen(r, l.Checks, command) })
	if i := slices.IndexFunc(all, func(r centurion.Receipt) bool { return r.Tree == tree }); i >= 0 {
		if l.Task != nil {
			err = m.st.MoveRun(ctx, l.Task, centurion.TaskVerifying, nil)
		}
		return all[i], err
	}
	want := centurion.Receipt{Mission: m.st.ID, Command: command, Item: cmp.Or(l.Checks, l.Item)}
	if l.Task != nil {
		want.Task = l.Task.ID
	}
	if err := m.may.MayCheck(ctx, command, l.Agent, want.Task); err != nil {
		return want, err
	}
	if err := m.start(ctx, want, l.Task); err != nil {
		return want, err
	}
	got, err := m.result(ctx, l, proofOf(command, before, after, l.Keeps))
	if err == nil && got.Passed && got.Proof == centurion.ProofUnproven {
		got, err = m.proveWhole(ctx, l, got, before, after)
	}
	if err != nil {
		return got, err
	}
	proven := slices.ContainsFunc(all, func(r centurion.Receipt) bool { return r.Proof.Solid() })
	if got.Passed && got.Proof == centurion.ProofUnproven && proven && len(got.Weakened) == 0 {
		// This item's earlier work has turned the check green, and it still is.
		got.Proof, got.Why = centurion.ProofRegression, "earlier work of the same item was proven by it"
	}
	if got.Proof.Solid() && l.Task != nil && !slices.Contains(verify.Distinct(l.Given), command) {
		// The file may have been changed by the work itself: a shell can write anywhere.
		got.Proof, got.Why = centurion.ProofUnproven, "the command was changed after work on the item had begun; it was "+brief.Lines(l.Given)
	}
	got.Mission, got.Task, got.Item, got.Tree = m.st.ID, want.Task, want.Item, tree
	if after != before {
		got.Commit = after
	}
	failpoint.Hit(failpoint.CheckRan)
	m.unkept = append(m.unkept, unkeptReceipt{Receipt: got})
	return got, nil
}

// proveWhole repeats a proof that an item's newest work alone did not pass, removing everything that tasks have merged for the item: a
// test fixed later is red without the code it tests, which came before it. If that cannot be separated from others' later work, the
// first receipt stands. Tests added by the item itself may change. If there is no newest work, as after a crash between a merge and the
// end of its task, the result for all of it counts even if it is weak: otherwise it would be lost.
func (m *Prover) proveWhole(ctx context.Context, l *Work, first centurion.Receipt, before, after string) (centurion.Receipt, error) {
	if l.Item == "" {
		return first, nil
	}
	without, ok, err := m.withoutItem(ctx, l.Item, before)
	if err != nil || !ok {
		return first, err
	}
	whole, err := m.result(ctx, l, proofOf(first.Command, without, after, false))
	if err != nil || !whole.Passed || !whole.Proof.Solid() && before != after {
		return first, err
	}
	return whole, nil
}

// withoutItem removes everything that tasks have merged for an item from a commit. ok is false if there is nothing, or if it cannot be
// separated from others' later work.
func (m *Prover) withoutItem(ctx context.Context, item, commit string) (without string, ok bool, err error) {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
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

// unkeptReceipt is a receipt that the queue's next transaction stores. early says that it is of a check of the mission that the mission's branch
// has not passed.
type unkeptReceipt struct {
	centurion.Receipt
	early bool
}

// update runs f in a transaction that first stores the unkept receipts: a check and what follows from it at once are one write. The caller
// has the queue's turn.
func (m *Prover) update(ctx context.Context, f func(tx *store.Tx) error) error {
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		for _, r := range m.unkept {
			if err := putReceipt(tx, r.Receipt, r.early); err != nil {
				return err
			}
		}
		return f(tx)
	})
	if err == nil {
		m.unkept = nil
	}
	return err
}

// keepUnkept stores the unkept receipts before something that may take long, or at the end. The caller has the queue's turn.
func (m *Prover) keepUnkept(ctx context.Context) error {
	if len(m.unkept) == 0 {
		return nil
	}
	return m.update(ctx, func(*store.Tx) error { return nil })
}

// putReceipt stores a receipt and its event.
func putReceipt(tx *store.Tx, r centurion.Receipt, early bool) error {
	if err := tx.PutReceipt(&r); err != nil {
		return err
	}
	typ, data := centurion.EventVerifyFailed, checkData(r)
	if r.Passed {
		typ = centurion.EventVerifyPassed
	}
	data.Early = early
	_, err := tx.Append(centurion.Event{Type: typ, Mission: r.Mission, Task: r.Task, Data: event.Data(data)})
	return err
}

// ownChecks lists the mission's own checks: those of the configuration, and those under the plan's title.
func (m *Prover) ownChecks(ctx context.Context) ([]string, error) {
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	commands := rec.Options.Verify
	if p, err := m.plan.Read(); err == nil && p.Doc != nil {
		commands = append(commands[:len(commands):len(commands)], p.Doc.Checks()...)
	}
	return verify.Distinct(commands), nil
}

// OwnCheck is ownCheck, whose receipt is kept at once.
func (m *Prover) OwnCheck(ctx context.Context, command, commit string, green bool) (centurion.Receipt, error) {
	r, err := m.ownCheck(ctx, nil, command, commit, green)
	return r, errors.Join(err, m.keepUnkept(context.WithoutCancel(ctx)))
}

// ownCheck returns the result of a check of the mission on a commit, because of l, which may be nil; it runs once for each tree. If green, a
// failing one is run once more. The caller has the queue's turn.
func (m *Prover) ownCheck(ctx context.Context, l *Work, command, commit string, green bool) (centurion.Receipt, error) {
	tree, err := m.iso.Ground.Repo.TreeOf(ctx, commit)
	if err != nil {
		return centurion.Receipt{}, err
	}
	key := ownKey(command, tree)
	if r, ok := m.known[key]; ok {
		return r, nil
	}
	all, err := m.st.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return centurion.Receipt{}, err
	}
	if r, ok := newest(all, tree, func(r centurion.Receipt) bool { return isOwn(r, command) }); ok { // an earlier host has run it
		m.known[key] = r
		return r, nil
	}
	r, err := m.runOn(ctx, l, centurion.Receipt{Command: command, Commit: commit, Tree: tree}, green)
	if err == nil {
		m.known[key] = r
	}
	return r, err
}

// runOn runs a command on a commit, because of l, which may be nil. The next transaction keeps its receipt. The caller has the queue's turn.
func (m *Prover) runOn(ctx context.Context, l *Work, want centurion.Receipt, green bool) (centurion.Receipt, error) {
	if err := m.start(ctx, want, nil); err != nil {
		return want, err
	}
	r, err := m.result(ctx, l, speculation.Check{Command: want.Command, After: want.Commit, Twice: green})
	if err != nil {
		return r, err
	}
	r.Mission, r.Item, r.Task, r.Final, r.Tree, r.Commit = m.st.ID, want.Item, want.Task, want.Final, want.Tree, want.Commit
	r.Early = !green && !r.Passed
	failpoint.Hit(failpoint.CheckRan)
	m.unkept = append(m.unkept, unkeptReceipt{Receipt: r, early: !green})
	return r, nil
}

// Check is a requested run of a check.
type Check struct {
	Command string
	Item    string // of the acceptance command; empty for a check of the mission
	Task    string // that requests it, if any
	Agent   string // whose rules apply
	Final   bool   // on the finished work
	Proves  bool   // a final one is to prove all of the mission's work, so it also runs without it
}

// Check runs a check and keeps its receipt. An error of centurion.KindPermission means that its command may not run.
func (m *Prover) Check(ctx context.Context, c Check) (centurion.Receipt, error) {
	switch {
	case !m.iso.Isolated():
		return m.shared(ctx, c)
	case c.Final:
		return m.final(ctx, c)
	}
	return m.anew(ctx, c)
}

// final runs a command on the finished work, unless it was green on the same files before, at the end or as a check of the mission. A
// proving one also runs without all of the mission's work: only an earlier run of that kind replaces it.
func (m *Prover) final(ctx context.Context, c Check) (r centurion.Receipt, err error) {
	command, proves := c.Command, c.Proves
	want := centurion.Receipt{Command: command, Final: true}
	if err := m.may.MayCheck(ctx, command, c.Agent, ""); err != nil {
		return want, err
	}
	release, err := m.Hold(ctx)
	if err != nil {
		return want, err
	}
	defer release()
	defer func() { err = errors.Join(err, m.keepUnkept(context.WithoutCancel(ctx))) }()
	if want.Commit, err = m.iso.Tip(ctx); err != nil {
		return want, err
	}
	if want.Tree, err = m.iso.Ground.Repo.TreeOf(ctx, want.Commit); err != nil {
		return want, err
	}
	all, err := m.st.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return want, err
	}
	for _, r := range slices.Backward(all) {
		if !r.Passed || r.Tree != want.Tree || strings.TrimSpace(r.Command) != strings.TrimSpace(command) || proves && r.Proof == "" {
			continue
		}
		if !r.Final && !proves && r.Item == "" && r.Proof == "" { // neither an item's nor flaky
			r.Final = true // it ran on the files of the finished work
			m.unkept = append(m.unkept, unkeptReceipt{Receipt: r})
		}
		if r.Final {
			return r, nil
		}
	}
	if proves {
		return m.proveFinal(ctx, want)
	}
	return m.runOn(ctx, nil, want, true)
}

// proveFinal proves all of the mission's work with one command, and keeps the receipt.
func (m *Prover) proveFinal(ctx context.Context, want centurion.Receipt) (centurion.Receipt, error) {
	base, err := m.iso.Base(ctx)
	if err == nil {
		err = m.start(ctx, want, nil)
	}
	if err != nil {
		return want, err
	}
	r, err := m.result(ctx, nil, proofOf(want.Command, base.Commit, want.Commit, false))
	if err != nil {
		return r, err
	}
	r.Mission, r.Final, r.Tree, r.Commit = m.st.ID, true, want.Tree, want.Commit
	failpoint.Hit(failpoint.CheckRan)
	m.unkept = append(m.unkept, unkeptReceipt{Receipt: r})
	return r, nil
}

// shared runs a command in the project's directory while no tool writes.
func (m *Prover) shared(ctx context.Context, c Check) (centurion.Receipt, error) {
	want := centurion.Receipt{Command: c.Command, Item: c.Item, Task: c.Task, Final: c.Final}
	if err := m.may.MayCheck(ctx, c.Command, c.Agent, c.Task); err != nil {
		return want, err
	}
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error { return m.tellStarted(tx, want) })
	if err != nil {
		return want, err
	}
	var got centurion.Receipt
	err = m.alone(ctx, func() (err error) {
		got, err = m.checker.Run(ctx, m.dir, want.Command)
		return err
	})
	if err != nil {
		return got, err
	}
	got.Mission, got.Task, got.Item, got.Final = m.st.ID, want.Task, want.Item, want.Final
	got.Why = "no isolation: that it is green is all that was looked at"
	failpoint.Hit(failpoint.CheckRan)
	return got, m.st.Store.Update(ctx, func(tx *store.Tx) error { return putReceipt(tx, got, false) })
}

// start records that a check begins, and that the task of run, which may be nil, is verified by it. The caller has the queue's turn.
func (m *Prover) start(ctx context.Context, want centurion.Receipt, run *state.Run) error {
	return m.update(ctx, func(tx *store.Tx) error {
		if run != nil {
			if err := m.st.MoveRunIn(tx, run, centurion.TaskVerifying, nil); err != nil {
				return err
			}
		}
		return m.tellStarted(tx, want)
	})
}

func (m *Prover) tellStarted(tx *store.Tx, r centurion.Receipt) error {
	_, err := tx.Append(centurion.Event{Type: centurion.EventVerifyStarted, Mission: m.st.ID, Task: r.Task, Data: event.Data(checkData(r))})
	return err
}

func checkData(r centurion.Receipt) event.VerifyData {
	return event.VerifyData{Command: r.Command, ExitCode: r.ExitCode, Item: r.Item, Receipt: r.ID, Final: r.Final, Error: r.Error,
		Output: event.Short(r.Output), DurationMS: r.Millis, Proof: r.Proof, Why: r.Why, FailureLine: r.FailureLine, Weakened: r.Weakened[:min(len(r.Weakened), 10)]}
}

// anew proves an item outside of a landing, when its command has changed or an agent marks it as done: it removes what the item's tasks
// have merged from the mission's branch, or all of the mission's work if no task has worked on it, or if it cannot be separated.
func (m *Prover) anew(ctx context.Context, c Check) (centurion.Receipt, error) {
	l := &Work{Agent: c.Agent, Item: c.Item}
	if it, ok := m.plan.ItemNow(c.Item); ok {
		l.Keeps = it.Proof == todo.ProofRegression
	}
	release, err := m.Hold(ctx)
	if err != nil {
		return centurion.Receipt{}, err
	}
	defer release()
	tip, err := m.iso.Tip(ctx)
	if err != nil {
		return centurion.Receipt{}, err
	}
	before, ok, err := m.withoutItem(ctx, c.Item, tip)
	if err == nil && !ok {
		var base centurion.Base
		base, err = m.iso.Base(ctx)
		before = base.Commit
	}
	if err != nil {
		return centurion.Receipt{}, err
	}
	return m.ProveWork(ctx, l, verify.Distinct([]string{c.Command})[0], before, tip)
}
