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
	"centurion/store"
)

// AsksHint stands in the reason of a mission that is blocked on several questions.
const AsksHint = state.AsksHint

// Answer answers an open ask: once, always or reject for a permission, run or quit for a plan, a text for a question. running returns
// the approvals of a mission that is being worked on, else nil: then only a question can be answered, and who resumes the mission
// goes on with the answer. The error has centurion.KindNotFound if nothing of that id waits.
func Answer(ctx context.Context, st *store.Store, id, answer string, running func(mission string) *Approvals) error {
	open, err := st.Asks(ctx, "", true)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(a store.Ask) bool { return a.ID == id })
	if i < 0 {
		return notOpen(ctx, st, id)
	}
	ask := open[i]
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
				return state.PutReply(tx, now, answer)
			})
		}
	}
	if m == nil {
		return &centurion.Error{Op: "answer", Kind: centurion.KindConflict, Msg: "mission " + ask.Mission + " is not running",
			Hint: "resume it, then answer: centurion resume " + ask.Mission}
	}
	return m.answer(ctx, ask, answer)
}

// answer stores a person's answer and wakes who waits for it. That a plan is not accepted ends the mission's work.
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
	ask.Answer, ask.By = answer, "person"
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

// answeredAs is the error for a second answer.
func answeredAs(a store.Ask) error {
	return &centurion.Error{Op: "answer", Kind: centurion.KindNotFound,
		Msg:  a.ID + " was answered already by " + cmp.Or(a.By, "a person") + ": " + centurion.Clip(a.Answer, 80),
		Hint: "see what waits with: centurion asks"}
}

// notOpen is the error for an answer to what does not wait, which says what became of it.
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

// planAccepted are the answers that accept a plan.
var planAccepted = []string{"run", "once", "always", "yes"}

// AskPlan shows the plan to the person, unless that is under way. It does not wait: the tasks do.
func (m *Approvals) AskPlan(ctx context.Context, rec centurion.Mission, p plan.View) error {
	low, high := estimate(m.cfg.Price(rec.Options.Model), p)
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

// What one item of a plan takes, roughly: a small one is some 6 requests over a history of a few files, a large one some
// 40 over a long history; most of what is sent again comes from the provider's cache. Nobody knows it better before the
// work is done, and the range is meant to be wide.
var (
	smallItem = centurion.Tokens{Input: 8_000, Output: 1_500, Cache: centurion.CacheUsage{Read: 24_000}}
	largeItem = centurion.Tokens{Input: 150_000, Output: 20_000, Cache: centurion.CacheUsage{Read: 900_000}}
)

// estimate is a rough range of what the plan's open items will cost, in USD, the Commander's own part counted as one item
// more. Both are zero without a price.
func estimate(price *centurion.Price, p plan.View) (low, high float64) {
	if price == nil {
		return 0, 0
	}
	c := p.Doc.Counts()
	n := float64(c.Open + c.Running + c.Blocked + 1)
	return n * price.Cost(smallItem).USD, n * price.Cost(largeItem).USD
}

// acceptPlan records that a person accepted the plan as it stands, with its verify lines.
func acceptPlan(tx *store.Tx, mission string, lines []string) error {
	rec, err := tx.Mission(mission)
	if err != nil {
		return err
	}
	rec.Accepted, rec.Approved = true, lines
	return tx.PutMission(&rec)
}
