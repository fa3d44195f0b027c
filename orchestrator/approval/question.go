package approval

import (
	"context"
	"errors"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/tools"
)

// AskPerson asks once per call: a call interrupted by a restart finds its question, open or answered. Questions of all depths share one
// queue with the permission asks, so no agent has to pass them on.
func (d Desk) AskPerson(ctx context.Context, call *tools.Call, q tools.Question) (tools.Answer, error) {
	rec, err := d.st.Store.Mission(ctx, d.st.ID)
	if err != nil {
		return tools.Answer{}, err
	}
	ask, found, err := d.Asked(ctx, call)
	if err != nil {
		return tools.Answer{}, err
	}
	if !found {
		ask = d.newQuestion(ctx, call, q)
	}
	switch {
	case !ask.Answered.IsZero():
	case rec.Options.Ask != "ask":
		ask, err = d.byPolicy(ctx, ask, rec.Options.Ask)
	default:
		err = d.Rest(ctx, "question: "+centurion.Clip(ask.Text, 80), func() (err error) {
			ask, err = d.hear(ctx, ask, call.Begun, rec.Options.Unattended)
			return err
		})
	}
	return tools.Answer{Text: toldOf(ask), By: ask.By}, d.st.Later(err)
}

// toldOf is the answer as the model sees it.
func toldOf(a store.Ask) string {
	if a.By == state.ByPolicy && slices.Contains(a.Options, a.Answer) {
		return "There is no one to ask; the first choice applies, as the person's settings say:\n" + a.Answer
	}
	return a.Answer
}

// Asked finds the earlier question of a call, unless it ended without a valid answer.
func (m *Approvals) Asked(ctx context.Context, call *tools.Call) (store.Ask, bool, error) {
	all, err := m.st.Store.Asks(ctx, m.st.ID, false)
	if err != nil {
		return store.Ask{}, false, err
	}
	for _, a := range slices.Backward(all) {
		if a.Type == store.AskQuestion && a.Session == call.Session && a.Message == call.Message && a.Call == call.ID {
			return a, a.By != state.ByEnd && a.By != state.ByAbort, nil
		}
	}
	return store.Ask{}, false, nil
}

func (m *Approvals) newQuestion(ctx context.Context, call *tools.Call, q tools.Question) store.Ask {
	now := centurion.Now()
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskQuestion, Mission: m.st.ID, Session: call.Session,
		Task: call.Task, Message: call.Message, Call: call.ID, Text: q.Text, Options: q.Choices, Created: now}
	if m.cfg.Timeout > 0 {
		ask.Deadline = centurion.Time{Time: now.Add(m.cfg.Timeout)}
	}
	m.from(ctx, &ask)
	return ask
}

// byPolicy answers a question when no person is available.
func (d Desk) byPolicy(ctx context.Context, ask store.Ask, policy string) (store.Ask, error) {
	answer := event.NobodyThere
	if policy == "allow" && len(ask.Options) > 0 {
		answer = ask.Options[0]
	}
	err := d.st.Store.Update(ctx, func(tx *store.Tx) error {
		if err := d.Current(); err != nil {
			return err
		}
		now, err := tx.Ask(ask.ID)
		switch {
		case centurion.KindOf(err) == centurion.KindNotFound:
			told := ask
			told.By = state.ByPolicy // no notification for it
			if err := state.PutAsk(tx, told); err != nil {
				return err
			}
		case err != nil:
			return err
		case !now.Answered.IsZero():
			ask = now
			return nil
		}
		ask.Answer, ask.By, ask.Answered = answer, state.ByPolicy, centurion.Now()
		return state.PutAnswer(tx, ask, answer, state.ByPolicy)
	})
	d.st.Notify()
	return ask, err
}

// hear stores a new question and waits for its answer.
func (d Desk) hear(ctx context.Context, ask store.Ask, begun func(), unattended bool) (store.Ask, error) {
	done, over := d.expect(ask.ID)
	defer over()
	now, err := d.put(ctx, ask)
	if err != nil || !now.Answered.IsZero() {
		return now, err
	}
	failpoint.Hit(failpoint.AskStored)
	if begun != nil {
		begun()
	}
	d.st.Notify()
	var late <-chan time.Time
	if !ask.Deadline.IsZero() {
		t := time.NewTimer(time.Until(ask.Deadline.Time))
		defer t.Stop()
		late = t.C
	}
	var look <-chan time.Time
	if unattended {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		look = t.C
	}
	for {
		var changed <-chan struct{}
		if unattended {
			changed = d.st.Change()
			if err := d.blockAtStandstill(ctx, ask); err != nil {
				return ask, err
			}
		}
		select {
		case <-done:
			return d.settle(ctx, ask, "", "")
		case <-late:
			return d.settle(ctx, ask, event.TooLate, state.ByTimeout)
		case <-changed:
		case <-look:
		case <-ctx.Done():
			err := context.Cause(ctx)
			if d.st.Ctx.Err() != nil { // the call asks again when the mission is resumed; the mission's end closes the rest
				return ask, err
			}
			_, serr := d.settle(context.WithoutCancel(ctx), ask, event.NoAnswer, state.ByAbort)
			return ask, errors.Join(err, serr)
		}
	}
}

// put stores a new question and returns its current state: a person may have answered it before a restart.
func (d Desk) put(ctx context.Context, ask store.Ask) (now store.Ask, err error) {
	err = d.st.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if err := d.Current(); err != nil {
			return err
		}
		if now, err = tx.Ask(ask.ID); centurion.KindOf(err) == centurion.KindNotFound {
			now, err = ask, state.PutAsk(tx, ask)
		}
		return err
	})
	return now, err
}

// lookEvery is the interval at which an unattended question checks whether only questions are left. The end of a turn of the mission's
// own agent wakes no waiter.
const lookEvery = 2 * time.Second

// blockAtStandstill ends an unattended mission in which all agents wait for answers.
func (m *Approvals) blockAtStandstill(ctx context.Context, ask store.Ask) error {
	open, err := m.st.Store.Asks(ctx, m.st.ID, true)
	if err != nil {
		return err
	}
	still, err := m.standstill(ctx, open)
	if err == nil && still {
		m.st.End(&state.Blocked{Question: state.OpenQuestions(ask, open)})
	}
	return err
}

// standstill reports whether every living part of the mission waits, directly or indirectly, for an open question.
func (m *Approvals) standstill(ctx context.Context, open []store.Ask) (bool, error) {
	tasks, err := m.st.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return false, err
	}
	asks := map[string]int{}
	for _, a := range open {
		if a.Type != store.AskQuestion {
			return false, nil // a permission ask cannot stay open across a stop
		}
		asks[a.Session]++
	}
	alive := map[string]bool{}
	for _, t := range tasks {
		alive[t.ID] = !t.Status.Ended()
	}
	lives := func(task string) bool { return alive[task] }
	var behind []centurion.Task
	items := map[string]bool{}
	for _, t := range tasks {
		if t.Status.Ended() {
			continue
		}
		if t.Status == centurion.TaskWaiting && asks[t.Session] > 0 {
			if !m.cfg.Resting(t.ID, asks[t.Session], lives) {
				return false, nil
			}
			continue
		}
		if t.Status != centurion.TaskQueued && t.Status != centurion.TaskWaiting || t.Item == "" {
			return false, nil
		}
		behind, items[t.Item] = append(behind, t), true
	}
	if !m.cfg.Resting("", asks[m.st.Spent.Load().Session], lives) {
		return false, nil
	}
	if len(behind) == 0 {
		return true, nil
	}
	p, err := m.plan.Read()
	return err == nil && p.HeldForNobody(behind, items) == len(items), err
}

// ClosingQuestion is the question that ended the last turn of the mission's own agent. It is not stored.
func (m *Approvals) ClosingQuestion(text string) store.Ask {
	ctx := context.WithoutCancel(m.st.Ctx)
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskQuestion, Mission: m.st.ID, Session: m.st.Spent.Load().Session,
		Call: state.EndOfTurn, Text: centurion.Clip(text, 4000), Created: centurion.Now()}
	m.from(ctx, &ask)
	if newest, _, err := m.st.Store.Newest(ctx, ask.Session); err == nil { // only a reference to the question's place
		ask.Message = newest
	}
	return ask
}

// CloseQuestions closes open questions of a session and its task that no call waits for any more, so that a person is not asked in vain
// and the mission does not wait.
func (m *Approvals) CloseQuestions(ctx context.Context, session, task string) error {
	open, err := m.st.Store.Asks(ctx, m.st.ID, true)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(a store.Ask) bool { return a.Type != store.AskQuestion || a.Call == "" || a.Task != task })
	if len(open) == 0 {
		return nil
	}
	messages, err := m.st.Store.Messages(ctx, session)
	if err != nil {
		return err
	}
	waits := func(a store.Ask) bool {
		return slices.ContainsFunc(messages, func(m centurion.Message) bool {
			return m.ID == a.Message && slices.ContainsFunc(m.Parts, func(p centurion.Part) bool {
				return p.Type == centurion.PartTool && p.CallID == a.Call && p.State != nil && !p.State.Ended()
			})
		})
	}
	for _, a := range open {
		if waits(a) {
			continue
		}
		if _, err := m.settle(ctx, a, event.NoAnswer, state.ByAbort); err != nil {
			return err
		}
	}
	return nil
}
