package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"centurion"
	"centurion/failpoint"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/sandbox"
	"centurion/store"
	"centurion/text"
)

// AsksHint is part of the reason of a mission that is blocked on several questions.
const AsksHint = state.AsksHint

// Answer answers an open ask: once, always or reject for a permission, run or quit for a plan, a text for a question. from is the process
// that answers, which is recorded. running returns the approvals of a running mission, otherwise nil: then only questions can be answered,
// and a resume uses the answer. The error has centurion.KindNotFound if no open ask has that id.
func Answer(ctx context.Context, st *store.Store, id, answer string, from sandbox.Peer, running func(mission string) *Approvals) error {
	open, err := st.Asks(ctx, "", true)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(a store.Ask) bool { return a.ID == id })
	if i < 0 {
		return notOpen(ctx, st, id)
	}
	ask := open[i]
	ask.By, ask.PID, ask.Command = text.If(from.Person(), state.ByPerson, state.ByProgram), from.PID, from.Command
	m := running(ask.Mission)
	if ask.Type == store.AskQuestion {
		if answer = Chosen(ask.Options, answer); answer == "" {
			return &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: "the answer is empty", Hint: "give a text, or the number of a choice"}
		}
		if m == nil && ask.Call != "" {
			return st.Update(ctx, func(tx *store.Tx) error {
				now, err := tx.Ask(ask.ID)
				if err == nil && !now.Answered.IsZero() {
					return answeredAs(now)
				}
				if err != nil {
					return err
				}
				return state.PutReply(tx, ask, answer)
			})
		}
	}
	if m == nil {
		return &centurion.Error{Op: "answer", Kind: centurion.KindConflict, Msg: "mission " + ask.Mission + " is not running",
			Hint: "resume it, then answer: centurion resume " + ask.Mission}
	}
	return m.answer(ctx, ask, answer)
}

// answer stores an answer and wakes its waiter. A rejected plan ends the mission's work.
func (m *Approvals) answer(ctx context.Context, ask store.Ask, answer string) error {
	accepted := ask.Type == store.AskPlan && slices.Contains(planAccepted, answer)
	var p plan.View
	if accepted {
		var err error
		if p, err = m.plan.Read(); err != nil {
			return err
		}
	}
	if err := m.st.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := tx.Ask(ask.ID)
		if err == nil && !now.Answered.IsZero() {
			return answeredAlready(ask.ID)
		}
		if err == nil && accepted {
			err = acceptPlan(tx, ask.Mission, p.VerifyLines())
		}
		if err != nil {
			return err
		}
		return state.PutReply(tx, ask, answer)
	}); err != nil {
		return err
	}
	failpoint.Hit(failpoint.AskAnswered)
	ask.Answer = answer
	m.mu.Lock()
	m.always.add(ask)
	done := m.waiters[ask.ID]
	m.mu.Unlock()
	if done != nil {
		close(done)
	}
	if ask.Type == store.AskPlan && !accepted {
		m.st.End(&centurion.Error{Kind: centurion.KindInterrupted, Msg: "the plan was not accepted"})
	}
	m.st.Notify()
	return nil
}

// Chosen returns the choice with that number or that text, ignoring case, and otherwise the answer itself.
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

// NoChoice refuses an answer, as returned by [Chosen], that is a number without a choice: the asking agent could not interpret it.
// Other words are fine, and so is any number for a question without choices. The error has KindUsage and no hint.
func NoChoice(options []string, answer string) error {
	_, err := strconv.Atoi(answer)
	if number := err == nil || errors.Is(err, strconv.ErrRange); !number || len(options) == 0 || slices.Contains(options, answer) {
		return nil
	}
	return &centurion.Error{Kind: centurion.KindUsage,
		Msg: fmt.Sprintf("there is no choice %s; the question has %s", centurion.Clip(answer, 40), centurion.Count(len(options), "choice"))}
}

// answeredAs is the error for a second answer.
func answeredAs(a store.Ask) error {
	return &centurion.Error{Op: "answer", Kind: centurion.KindNotFound,
		Msg:  a.ID + " was answered already by " + cmp.Or(a.By, "a person") + ": " + centurion.Clip(a.Answer, 80),
		Hint: "see what waits with: centurion asks"}
}

// notOpen is the error for an answer to an ask that is not open, and says why.
func notOpen(ctx context.Context, st *store.Store, id string) error {
	all, err := st.Asks(ctx, "", false)
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

func answeredAlready(id string) error {
	return &centurion.Error{Op: "answer", Kind: centurion.KindNotFound, Msg: "nothing waits for an answer under " + id,
		Hint: "it may have been answered already; see what waits with: centurion asks"}
}

// Refusal is the answer that refuses a permission or a plan for a reason, which may be "": it stays a refusal, however it is worded.
func Refusal(why string) string {
	why = strings.TrimSpace(why)
	if slices.Contains(planAccepted, why) {
		return "no: " + why
	}
	return cmp.Or(why, "reject")
}

// planAccepted lists the answers that accept a plan.
var planAccepted = []string{"run", "once", "always", "yes"}

// AskPlan shows the plan to the person, unless it is shown already. It does not wait; the tasks do.
func (m *Approvals) AskPlan(ctx context.Context, rec centurion.Mission, p plan.View) error {
	low, high := m.Estimate(rec.Options.Model, tries(p)+1)
	return m.st.Store.Update(ctx, func(tx *store.Tx) error {
		open, err := tx.OpenAsks(m.st.ID)
		if err != nil || slices.ContainsFunc(open, func(a store.Ask) bool { return a.Type == store.AskPlan }) {
			return err
		}
		return state.PutAsk(tx, store.Ask{ID: centurion.NewID(centurion.PrefixQuestion), Type: store.AskPlan, Mission: m.st.ID, Session: rec.Session,
			Title: p.Doc.Title(), Text: string(p.Doc.Bytes()), Options: []string{"run", "quit"}, CostLow: low, CostHigh: high,
			Created: centurion.Now()})
	})
}

// The rough cost of one item of a plan: a small one takes some 6 requests over a history of a few files, a large one some 40 over a
// long history; most of the repeated input comes from the provider's cache. The range is wide on purpose.
var (
	smallItem = centurion.Tokens{Input: 8_000, Output: 1_500, Cache: centurion.CacheUsage{Read: 24_000}}
	largeItem = centurion.Tokens{Input: 150_000, Output: 20_000, Cache: centurion.CacheUsage{Read: 900_000}}
)

// Estimate is a rough range of the cost of n items in USD. Both are zero without a price.
func (m *Approvals) Estimate(model string, n int) (low, high float64) {
	price := m.cfg.Price(model)
	if price == nil {
		return 0, 0
	}
	return float64(n) * price.Cost(smallItem).USD, float64(n) * price.Cost(largeItem).USD
}

// tries is how often an open item of the plan is worked on: once, or by each agent of its race.
func tries(p plan.View) (n int) {
	for _, it := range p.Unfinished() {
		n += max(1, len(it.Race))
	}
	return n
}

// acceptPlan records that a person accepted the current plan, with its verify lines.
func acceptPlan(tx *store.Tx, mission string, lines []string) error {
	rec, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	rec.Accepted, rec.Approved = true, lines
	return tx.PutMission(&rec)
}
