package merge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/frozen"
	"centurion/orchestrator/review"
	"centurion/store"
	"centurion/verify"
	"centurion/workspace/todo"
)

// KeepsChecks refuses a new plan that changes proofs after work on them has started: the acceptance commands of a started or done item,
// and the mission's own checks. Only a person may change them, or the reviewer, who has no work of its own to defend, or the mission's
// own agent for commands that have proved nothing ([mayExchange]): it returns the changes.
func (m *Queue) KeepsChecks(ctx context.Context, a *Author, prev, next *todo.Doc) ([]centurion.Exchange, error) {
	if prev == nil {
		return nil, nil
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	begun := func(it, now todo.Item) bool { // an item that was only delegated may get other commands, but no weaker ones
		if weaker(it.Verify, now.Verify) && slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == it.ID }) {
			return true
		}
		return rec.Accepted || prev.Status(it.ID) == todo.Done || slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == it.ID && !t.Started.IsZero() })
	}
	receipts, err := m.st.Store.Receipts(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	var changed, refused []centurion.Exchange
	note := func(x centurion.Exchange, sameProof bool) {
		changed = append(changed, x)
		if a.Agent.Name != agents.Reviewer && !(a.Task == nil && sameProof && (x.Item == "" || m.plan.RunOf(x.Item) == "") && mayExchange(x, receipts)) {
			refused = append(refused, x)
		}
	}
	for _, it := range prev.Items() {
		now, ok := next.Item(it.ID)
		if it.Group || !ok || len(it.Verify) == 0 || !begun(it, now) {
			continue
		}
		if !slices.Equal(verify.Distinct(it.Verify), verify.Distinct(now.Verify)) || it.Proof != now.Proof {
			note(centurion.Exchange{Item: it.ID, From: it.Verify, To: now.Verify}, it.Proof == now.Proof)
		}
	}
	if (rec.Accepted || len(tasks) > 0) && !slices.Equal(verify.Distinct(prev.Checks()), verify.Distinct(next.Checks())) && len(prev.Checks()) > 0 {
		note(centurion.Exchange{From: prev.Checks(), To: next.Checks()}, true)
	}
	if len(refused) > 0 {
		return nil, &centurion.Error{Kind: centurion.KindPermission, Msg: "acceptance commands are not changed once work on them has begun: " + exchangeWords(refused),
			Hint: "keep the lines as they were. A line that can only pass, or that passed and was `unproven`, you may replace with one that can fail, when no task works on its item. " +
				"If another one is wrong, delegate to the reviewer, which may change it with update_todo, or ask the person"}
	}
	return changed, nil
}

// mayExchange reports whether the mission's own agent may change commands: each removed one can only pass, or is an item's and proved
// nothing in its last run, and at least as many remain. The worth of a new command shows when it runs.
func mayExchange(x centurion.Exchange, receipts []centurion.Receipt) bool {
	from, to := verify.Distinct(x.From), verify.Distinct(x.To)
	if weaker(from, to) {
		return false
	}
	return !slices.ContainsFunc(from, func(command string) bool {
		if slices.Contains(to, command) || verify.CanOnlyPass(command) {
			return false
		}
		r := review.Newest(receipts, x.Item, command)
		return x.Item == "" || r == nil || !r.Passed || r.Proof != centurion.ProofUnproven
	})
}

func exchangeWords(changed []centurion.Exchange) string {
	out := make([]string, len(changed))
	for i, x := range changed {
		whose := "the mission's own checks"
		if x.Item != "" {
			whose = "item " + x.Item
		}
		out[i] = fmt.Sprintf("%s: %s became %s", whose, brief.Lines(x.From), brief.Lines(x.To))
	}
	return strings.Join(out, "; ")
}

// ChecksExchanged records an agent's changes of proofs, for a person and the requester of a review, and runs the new commands of done
// items, so that their worth is known at once. It returns that in words.
func (m *Queue) ChecksExchanged(ctx context.Context, a *Author, changed []centurion.Exchange) (notes []string, err error) {
	if len(changed) == 0 {
		return nil, nil
	}
	if err := m.st.Tell(ctx, func(d *event.MissionData) {
		d.Note = "the " + a.Agent.Name + " changed what has to be proven: " + exchangeWords(changed)
	}); err != nil {
		return nil, err
	}
	if a.Task != nil {
		err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
			t, err := tx.Task(a.Task.ID)
			if err != nil {
				return err
			}
			t.Exchanged = append(t.Exchanged, changed...)
			return tx.PutTask(&t)
		})
		if err != nil {
			return nil, err
		}
	}
	p, err := m.plan.Read()
	if err != nil {
		return nil, err
	}
	for _, x := range changed {
		if !p.IsDone(x.Item) || !m.iso.Isolated() {
			continue
		}
		for _, command := range verify.Distinct(x.To) {
			r, err := m.Check(ctx, Check{Command: command, Item: x.Item, Agent: a.Agent.Name})
			switch {
			case centurion.KindOf(err) == centurion.KindPermission:
				notes = append(notes, x.Item+": "+err.Error())
			case err != nil:
				return notes, err
			case r.Passed:
				notes = append(notes, x.Item+": "+brief.Passed(r))
			default:
				notes = append(notes, x.Item+": "+brief.Account(r))
			}
		}
	}
	return notes, nil
}

// askForeignChecks asks the person, if there is one, whether a check counts that someone has written into the plan's file after the
// author's task was handed out. Otherwise the frozen one is put back.
func (m *Queue) askForeignChecks(ctx context.Context, a *Author) error {
	if err := m.frozen.Tell(ctx); err != nil {
		return err
	}
	for _, x := range m.frozen.Foreign() {
		if x.Item != "" && x.Item != a.Task.Item {
			continue
		}
		yes, err := m.may.MayExchange(ctx, x, frozen.Word([]centurion.Exchange{x}), a.Task.ID)
		if err != nil {
			return err
		}
		if !yes {
			return m.frozen.Restore(ctx)
		}
		if err := m.frozen.Take(ctx, x); err != nil {
			return err
		}
		if err := m.st.Tell(ctx, func(d *event.MissionData) {
			d.Note = "the person changed what has to be proven: " + exchangeWords([]centurion.Exchange{x})
		}); err != nil {
			return err
		}
	}
	return nil
}

// weaker reports whether commands demand less than others: there are fewer, or one can only pass.
func weaker(from, to []string) bool {
	to = verify.Distinct(to)
	return len(to) < len(verify.Distinct(from)) || slices.ContainsFunc(to, verify.CanOnlyPass)
}
