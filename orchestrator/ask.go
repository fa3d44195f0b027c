package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"centurion"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/tools"
)

// asker puts the questions of one conversation to the person. They stand in the same queue as the asks for permission, from
// whatever depth they come, so that nobody above has to pass them on.
type asker struct{ c *conversation }

var _ tools.Asker = asker{}

// AskPerson asks once for each call: a call that a restart has cut off finds its question, open or answered.
func (a asker) AskPerson(ctx context.Context, call *tools.Call, q tools.Question) (tools.Answer, error) {
	m := a.c.m
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return tools.Answer{}, err
	}
	ask, found, err := m.asked(ctx, call)
	if err != nil {
		return tools.Answer{}, err
	}
	if !found {
		ask = m.newQuestion(ctx, call, q)
	}
	switch {
	case !ask.Answered.IsZero():
	case rec.Options.Ask != "ask":
		ask, err = a.byPolicy(ctx, ask, rec.Options.Ask)
	default:
		ask, err = a.person(ctx, ask, call.Begun, rec.Options.Unattended)
	}
	return tools.Answer{Text: toldOf(ask), By: ask.By}, m.st.Later(err)
}

// toldOf is what the model is told of an answer.
func toldOf(a store.Ask) string {
	if a.By == state.ByPolicy && slices.Contains(a.Options, a.Answer) {
		return "Nobody is there to be asked; the first choice is taken, as the person wants it then:\n" + a.Answer
	}
	return a.Answer
}

// asked finds the question that a call has asked before, unless it ended without an answer that counts.
func (m *mission) asked(ctx context.Context, call *tools.Call) (store.Ask, bool, error) {
	all, err := m.h.cfg.Store.Asks(ctx, m.st.ID, false)
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

func (m *mission) newQuestion(ctx context.Context, call *tools.Call, q tools.Question) store.Ask {
	now := centurion.Now()
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskQuestion, Mission: m.st.ID, Session: call.Session,
		Task: call.Task, Message: call.Message, Call: call.ID, Text: q.Text, Options: q.Choices, Created: now}
	if d := m.h.cfg.AskTimeout; d > 0 {
		ask.Deadline = centurion.Time{Time: now.Add(d)}
	}
	m.from(ctx, &ask)
	return ask
}

// from fills in who asks. Who cannot be found is left out: the ask itself matters more.
func (m *mission) from(ctx context.Context, ask *store.Ask) {
	var line []string
	for id := ask.Session; id != ""; {
		s, err := m.h.cfg.Store.Session(ctx, id)
		if err != nil {
			break
		}
		if ask.Agent == "" {
			ask.Agent, ask.Address = s.Agent, s.Metadata.Address
		} else {
			line = append(line, s.Agent+" "+s.Metadata.Address)
		}
		id = s.ParentID
	}
	slices.Reverse(line)
	ask.Line = strings.Join(line, " › ")
}

// byPolicy answers a question for which nobody is there.
func (a asker) byPolicy(ctx context.Context, ask store.Ask, policy string) (store.Ask, error) {
	answer := event.NobodyThere
	if policy == "allow" && len(ask.Options) > 0 {
		answer = ask.Options[0]
	}
	err := a.c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		if err := a.c.current(); err != nil {
			return err
		}
		now, err := tx.Ask(ask.ID)
		switch {
		case centurion.KindOf(err) == centurion.KindNotFound:
			told := ask
			told.By = state.ByPolicy // nobody is called for it
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
	a.c.m.st.Notify()
	return ask, err
}

// person waits for a person's answer. The slot is given back meanwhile, and the clocks of the conversation stand.
func (a asker) person(ctx context.Context, ask store.Ask, begun func(), unattended bool) (store.Ask, error) {
	defer a.c.live.wait(WaitPerson)()
	if err := a.c.leave(ctx, "question: "+centurion.Clip(ask.Text, 80)); err != nil {
		return ask, err
	}
	got, err := a.hear(ctx, ask, begun, unattended)
	return got, errors.Join(err, a.c.enter())
}

// hear stores a question that is new, and waits until it is answered.
func (a asker) hear(ctx context.Context, ask store.Ask, begun func(), unattended bool) (store.Ask, error) {
	m := a.c.m
	done, over := m.expect(ask.ID)
	defer over()
	now, err := a.put(ctx, ask)
	if err != nil || !now.Answered.IsZero() {
		return now, err
	}
	failpoint.Hit(failpoint.AskStored)
	if begun != nil {
		begun()
	}
	m.st.Notify()
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
			changed = m.st.Change()
			if err := m.blockAtStandstill(ctx, ask); err != nil {
				return ask, err
			}
		}
		select {
		case <-done:
			return m.settle(ctx, ask, "", "")
		case <-late:
			return m.settle(ctx, ask, event.TooLate, state.ByTimeout)
		case <-changed:
		case <-look:
		case <-ctx.Done():
			err := context.Cause(ctx)
			if m.st.Ctx.Err() != nil { // who goes on with the mission asks on; its end closes what is left
				return ask, err
			}
			_, serr := m.settle(context.WithoutCancel(ctx), ask, event.NoAnswer, state.ByAbort)
			return ask, errors.Join(err, serr)
		}
	}
}

// blockAtStandstill ends a mission in which everybody waits for an answer, and nobody is there to give one.
func (m *mission) blockAtStandstill(ctx context.Context, ask store.Ask) error {
	still, err := m.standstill(ctx)
	if err != nil || !still {
		return err
	}
	open, err := m.h.cfg.Store.Asks(ctx, m.st.ID, true)
	if err != nil {
		return err
	}
	m.st.End(&state.Blocked{Question: state.OpenQuestions(ask, open)})
	return nil
}

// closingQuestion is the question with which the mission's own agent ended its turn when there was nothing else to do.
func (m *mission) closingQuestion(text string) store.Ask {
	ctx := context.WithoutCancel(m.st.Ctx)
	ask := store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskQuestion, Mission: m.st.ID, Session: m.root.id(),
		Call: state.EndOfTurn, Text: centurion.Clip(text, 4000), Created: centurion.Now()}
	m.from(ctx, &ask)
	if newest, _, err := m.h.cfg.Store.Newest(ctx, ask.Session); err == nil { // it says where the question stands, no more
		ask.Message = newest
	}
	return ask
}

// put stores a question that is new, and returns it as it stands: a person may have answered it before a restart.
func (a asker) put(ctx context.Context, ask store.Ask) (now store.Ask, err error) {
	err = a.c.m.h.cfg.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if err := a.c.current(); err != nil {
			return err
		}
		if now, err = tx.Ask(ask.ID); centurion.KindOf(err) == centurion.KindNotFound {
			now, err = ask, state.PutAsk(tx, ask)
		}
		return err
	})
	return now, err
}

// lookEvery is how often, where nobody watches, a question looks whether anything but questions is left: that a turn of the
// mission's own agent has ended wakes nobody.
const lookEvery = 2 * time.Second

// settle returns a question as it was answered, and answers it if nobody has.
func (m *mission) settle(ctx context.Context, ask store.Ask, answer, by string) (store.Ask, error) {
	err := m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Ask(ask.ID)
		if err != nil || !now.Answered.IsZero() {
			ask = now
			return err
		}
		if err := state.PutAnswer(tx, ask, answer, by); err != nil {
			return err
		}
		ask, err = tx.Ask(ask.ID)
		return err
	})
	m.st.Notify()
	return ask, err
}

// standstill reports whether everything that lives in the mission waits, in the end, for the answer to a question.
func (m *mission) standstill(ctx context.Context) (bool, error) {
	open, err := m.h.cfg.Store.Asks(ctx, m.st.ID, true)
	if err != nil {
		return false, err
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return false, err
	}
	asks := map[string]int{}
	for _, a := range open {
		if a.Type != store.AskQuestion {
			return false, nil // that one cannot be kept open while nobody runs
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
			if c := m.conversationOf(t.ID); c != nil && !c.pulse.Resting(asks[t.Session], lives) {
				return false, nil
			}
			continue
		}
		if t.Status != centurion.TaskQueued && t.Status != centurion.TaskWaiting || t.Item == "" {
			return false, nil
		}
		behind, items[t.Item] = append(behind, t), true
	}
	if !m.root.pulse.Resting(asks[m.root.id()], lives) {
		return false, nil
	}
	if len(behind) == 0 {
		return true, nil
	}
	plan, err := m.plan.Read()
	return err == nil && plan.HeldForNobody(behind, items) == len(items), err
}

// Chosen is what a person means: the choice of that number or of that text, compared without case, and otherwise their words.
func Chosen(options []string, answer string) string {
	answer = strings.TrimSpace(answer)
	for _, o := range options {
		if strings.EqualFold(o, answer) {
			return o
		}
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(options) {
		return options[n-1]
	}
	return answer
}

// NoChoice refuses an answer, as [Chosen] returned it, that is a number which none of the choices has: whoever asked could not
// tell what it means. Any other words may be an answer, and any number where there is nothing to choose. The error is of the kind
// usage and has no hint.
func NoChoice(options []string, answer string) error {
	_, err := strconv.Atoi(answer)
	if number := err == nil || errors.Is(err, strconv.ErrRange); !number || len(options) == 0 || slices.Contains(options, answer) {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindUsage,
		Msg: fmt.Sprintf("there is no choice %s; the question has %s", centurion.Clip(answer, 40), centurion.Count(len(options), "choice"))}
}

// closeQuestions ends the open questions of a conversation that none of its calls waits for any more: a person must not be
// asked what nobody will read, and the mission must not wait for it.
func (c *conversation) closeQuestions(ctx context.Context, session string) error {
	open, err := c.m.h.cfg.Store.Asks(ctx, c.m.st.ID, true)
	if err != nil {
		return err
	}
	task := ""
	if c.task != nil {
		task = c.task.ID
	}
	open = slices.DeleteFunc(open, func(a store.Ask) bool { return a.Type != store.AskQuestion || a.Call == "" || a.Task != task })
	if len(open) == 0 {
		return nil
	}
	messages, err := c.m.h.cfg.Store.Messages(ctx, session)
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
		if _, err := c.m.settle(ctx, a, event.NoAnswer, state.ByAbort); err != nil {
			return err
		}
	}
	return nil
}

// answerLater stores the answer to a question of a mission that nobody runs. Who resumes it goes on with the answer.
func (h *Host) answerLater(ctx context.Context, ask store.Ask, answer string) error {
	return h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Ask(ask.ID)
		if err == nil && !now.Answered.IsZero() {
			return answeredAs(now)
		}
		if err != nil {
			return err
		}
		return state.PutReply(tx, now, answer)
	})
}

// answeredAs is the error for a second answer.
func answeredAs(a store.Ask) error {
	return &centurion.Error{Op: "answer", Kind: centurion.KindNotFound,
		Msg:  a.ID + " was answered already by " + cmp.Or(a.By, "a person") + ": " + centurion.Clip(a.Answer, 80),
		Hint: "see what waits with: centurion asks"}
}

// notOpen is the error for an answer to what does not wait, which says what became of it.
func (h *Host) notOpen(ctx context.Context, id string) error {
	all, err := h.cfg.Store.Asks(ctx, "", false)
	if err != nil {
		return err
	}
	for _, a := range all {
		if a.ID == id {
			return answeredAs(a)
		}
	}
	return answeredAlready(id)
}

// AsksHint stands in the reason of a mission that is blocked on several questions.
const AsksHint = state.AsksHint
