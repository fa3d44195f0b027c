package merge

import (
	"context"
	"fmt"
	"slices"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/state"
	"centurion/store"
)

// Return returns work to its session, for the n-th time in a row, with others' later work in its checkout. The message comes first: a
// host that dies in between finds the same conflict again, while unexplained markers would be a riddle.
func (m *Queue) Return(ctx context.Context, a *Author, back *Rejection, n int) error {
	if err := m.recordReturn(ctx, a, back, n); err != nil {
		return err
	}
	if err := a.Say(ctx, centurion.OriginHost, back.Text); err != nil {
		return err
	}
	return layBack(ctx, a, back)
}

// Refuse is [Queue.Return] for a call of the session: the message is the call's error.
func (m *Queue) Refuse(ctx context.Context, a *Author, back *Rejection) error {
	if err := m.recordReturn(ctx, a, back, 0); err != nil {
		return err
	}
	return layBack(ctx, a, back)
}

// recordReturn records that work is returned, and why, and adds what the session needs to know to the rejection's text.
func (m *Queue) recordReturn(ctx context.Context, a *Author, back *Rejection, n int) error {
	err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		e := centurion.Event{Type: centurion.EventTaskReturned, Mission: m.st.ID, Session: a.Session,
			Data: event.Data(event.ReturnData{Cause: back.Cause, Reason: centurion.Clip(back.Short, 2000), Files: back.Files, Command: back.Command, Returns: n})}
		if a.Task != nil {
			e.Task = a.Task.ID
			if _, err := state.MoveTask(tx, e.Task, centurion.TaskRunning, func(t *centurion.Task) {
				t.Returns, t.CameBack = n, t.CameBack+1
				t.Rejections = append(t.Rejections, centurion.Rejection{Cause: back.Cause, Files: back.Files[:min(len(back.Files), centurion.MaxRejectionFiles)], Command: back.Command})
			}); err != nil {
				return err
			}
		}
		_, err := tx.Append(e)
		return err
	})
	if err == nil && a.Checkout() != nil && back.Tree != "" {
		back.Text += "\nYour checkout holds your work on top of the newest state of the mission now: read files again before you edit them."
	}
	if err != nil || a.Task == nil || n == 0 || back.Notice || back.Cause == event.ReturnedHollow {
		return err
	}
	rec, err := m.st.Store.Mission(ctx, m.st.ID)
	back.Text += "\n\n" + countdown(n, m.returns, m.iso.Isolated(), rec.Options.Ask)
	return err
}

// layBack puts others' later work into a session's checkout, together with its own.
func layBack(ctx context.Context, a *Author, back *Rejection) error {
	checkout := a.Checkout()
	if checkout == nil || back.Tree == "" {
		return nil
	}
	if err := checkout.Lay(ctx, back.Tree, back.Onto); err != nil {
		return err
	}
	return a.KeepPlace(ctx)
}

// countdown tells a session how often its work was returned, and what happens after the last time. A person is only asked if there is
// one.
func countdown(n, most int, isolated bool, ask string) string {
	end := "your task has failed"
	switch {
	case isolated && ask == "ask":
		end = "your work is not merged and a person is asked"
	case isolated:
		end = "your work is not merged and your task is blocked"
	}
	return fmt.Sprintf("(Returned %d of %d; after that %s.)", n, most, end)
}

// unfinished holds back the work of an agent that says it is stuck if no check of the item could refute that: the work is incomplete,
// and the item is not done. If the item has checks, their result decides, and stuck is true.
func (m *Queue) unfinished(ctx context.Context, a *Author, said string) (stuck bool, back *Rejection, err error) {
	if !GivesUp(said) || a.Task.Item == "" {
		return false, nil, nil
	}
	t, err := m.st.Store.Task(ctx, a.Task.ID)
	if err != nil || t.Reviews {
		return false, nil, err // a review's item is the work of others
	}
	if it, ok := m.plan.ItemNow(t.Item); !ok || len(it.Verify) > 0 {
		return len(it.Verify)+len(t.Verify) > 0, nil, nil
	}
	return true, StuckAnyway("its item has no check that could show otherwise"), nil
}

// stuckShared decides about the work of an agent that says it is stuck if all write in the same place: a green check may have been
// green before. failed is the red one, or nil.
func stuckShared(failed *centurion.Receipt) *Rejection {
	if failed != nil {
		return StuckAnyway("its acceptance command fails: " + brief.Account(*failed))
	}
	return StuckAnyway("that its checks pass does not show otherwise: without isolation nothing tells whether they passed before")
}

// onlyAsks holds back the work of an agent that has changed nothing for its item and whose last text is a question: no one reads it,
// and the item is not done. It is told so once, which does not count as a return; if it asks again, the delegating agent decides.
func (m *Queue) onlyAsks(ctx context.Context, a *Author, said string) (*Rejection, error) {
	if a.Task.Item == "" || !a.mayChange() || GivesUp(said) || !loop.Asks(said) {
		return nil, nil
	}
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		changed := len(t.Files) > 0 || slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return len(l.Files) > 0 })
		if t.Session == a.Session && (changed || t.Reviews) {
			return nil, nil
		}
	}
	if slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.ID == a.Task.ID && t.RejectedFor(event.ReturnedQuestion) }) {
		return &Rejection{Cause: event.ReturnedStuck, Ends: true, Short: "it has changed no file and ended twice with a question: " + state.LastLine(said),
			Text: "A person wants you to continue: finish the item, then end your turn with what you have done."}, nil
	}
	ways := "Answer"
	if a.Agent.Holds("ask_user") {
		ways = "Ask the person with ask_user. Or answer"
	}
	text := "You have changed no file, and your last text ends with a question. No one reads a question there. " + ways +
		" it yourself: decide, do the work, and say what you have decided. If you cannot, begin your last text with " + StuckWord + " and say why."
	return &Rejection{Cause: event.ReturnedQuestion, Notice: true, Short: "it has changed no file and ended with a question: " + state.LastLine(said),
		Text: text}, nil
}

// unruled asks a review for a missing verdict, or for one that rests on something. That happens once per task and does not count as a
// return; if the next answer is no better, the requester of the review is told.
func (m *Queue) unruled(ctx context.Context, a *Author, said string) (*Rejection, error) {
	ruling := centurion.RulingOf(said)
	if a.Agent.Name != agents.Reviewer || GivesUp(said) || ruling == centurion.RulingFail {
		return nil, nil
	}
	back := &Rejection{Cause: event.ReturnedVerdict, Notice: true, Short: "its answer has no verdict: " + state.LastLine(said), Text: brief.NoVerdict}
	t, err := m.st.Store.Task(ctx, a.Task.ID)
	if ruling == centurion.RulingPass && err == nil && !t.Unchanged {
		a.Task.Blind, err = m.st.SawNothing(ctx, a.Session)
		back.Short, back.Text = "it said PASS without having looked at anything", brief.SawNothing
	}
	if err != nil || t.RejectedFor(event.ReturnedVerdict) || ruling == centurion.RulingPass && !a.Task.Blind {
		return nil, err
	}
	return back, nil
}
