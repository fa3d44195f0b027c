package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/verify"
	"centurion/workspace/todo"
)

// worth is what shows that a done item is done.
type worth struct {
	item     todo.Item
	doubt    string          // why its checks alone do not show it; empty if they do
	proof    centurion.Proof // unproven or flaky, if that is the doubt
	reviewed bool            // a review has passed since its work ended
	by       centurion.Task  // that review
	blank    bool            // a review has passed since, when nothing had been changed
	evidence centurion.Evidence
}

// sure reports whether the item counts as verified. A review that found nothing changed is enough only with checks that passed and could tell.
func (w worth) sure() bool {
	return w.doubt == "" || w.reviewed || w.blank && w.evidence != centurion.EvidenceNone
}

// blankReview says what there is to do about an item where a review had nothing to judge.
const blankReview = "nothing was changed, so a review had nothing to look at. Have the work done; or, if none is needed, cancel the item with a note, " +
	"or give it a verify command that shows so, and set it to open and then to done (update_todo)"

// worths judges every done item of the plan.
func (m *mission) worths(ctx context.Context, p plan.View) ([]worth, error) {
	if p.Doc == nil {
		return nil, nil
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	return m.h.worths(ctx, m.st.ID, m.iso.Isolated(), p, tasks)
}

// worths judges every done item of a mission's plan by its tasks. isolated says that its writers have checkouts of their own.
func (h *Host) worths(ctx context.Context, mission string, isolated bool, p plan.View, tasks []centurion.Task) ([]worth, error) {
	receipts, err := h.cfg.Store.Receipts(ctx, mission)
	if err != nil {
		return nil, err
	}
	own, err := h.ownLanding(ctx, mission, isolated)
	if err != nil {
		return nil, err
	}
	reviews := reviewsIn(p, tasks)
	blank := slices.Clone(tasks) // as if each review had had something to judge
	for i := range blank {
		blank[i].Unchanged = false
	}
	var out []worth
	for _, it := range p.Items() {
		if it.Group || p.Doc.Status(it.ID) != todo.Done {
			continue
		}
		w := worth{item: it}
		w.doubt, w.proof = doubt(it, receipts, isolated)
		isReview := len(it.Verify) == 0 && (p.IsReview(it.ID) || onlyReviewed(it.ID, tasks))
		if isReview {
			w.doubt = "it is a review that has not passed since the files that it judges were changed"
		}
		w.evidence = itemGrade(it.ID, verify.Distinct(it.Verify), receipts)
		if by := reviewed(it.ID, tasks, reviews, own); by != nil {
			w.evidence = centurion.Strongest([]centurion.Evidence{w.evidence, centurion.EvidenceReviewed})
			if w.doubt != "" {
				w.reviewed, w.by = true, *by
			}
		} else if w.doubt != "" && reviewed(it.ID, blank, reviewsIn(p, blank), own) != nil {
			if w.blank = true; isReview { // its items are judged for themselves
				w.doubt = ""
			}
		}
		out = append(out, w)
	}
	return out, nil
}

// doubt says why the newest receipts of an item do not show that it is done. Where there are no trees, a green check is all
// that can be had.
func doubt(it todo.Item, receipts []centurion.Receipt, trees bool) (string, centurion.Proof) {
	commands := verify.Distinct(it.Verify)
	if len(commands) == 0 {
		return "it has no verify command", ""
	}
	if !trees {
		return "", ""
	}
	for _, command := range commands {
		switch r := newest(receipts, it.ID, command); {
		case r == nil:
			return fmt.Sprintf("unproven: `%s` was never run against its work", command), centurion.ProofUnproven
		case !r.Passed:
			return fmt.Sprintf("unproven: `%s` failed when it was run last", command), centurion.ProofUnproven
		case !r.Proof.Solid():
			why := cmp.Or(r.Why, "nothing shows that the check can fail")
			return fmt.Sprintf("%s: `%s`: %s", r.Proof, command, why), r.Proof
		}
	}
	return "", ""
}

// newest returns the newest receipt of an item's command, or nil.
func newest(receipts []centurion.Receipt, item, command string) *centurion.Receipt {
	for _, r := range slices.Backward(receipts) {
		if r.Item == item && !r.Final && strings.TrimSpace(r.Command) == command {
			return &r
		}
	}
	return nil
}

// Reviewed tells, for each item of a plan, which task was the review that has passed since the item's work ended. Without the
// plan a review covers nothing but its own item. own is when work of the mission's own agent was merged last, see [OwnLanding].
func Reviewed(doc *todo.Doc, items []string, tasks []centurion.Task, own time.Time) map[string]centurion.Task {
	p := plan.View{Doc: doc}
	reviews := reviewsIn(p, tasks)
	out := map[string]centurion.Task{}
	for _, id := range items {
		if t := reviewed(id, tasks, reviews, own); t != nil {
			out[id] = *t
		}
	}
	return out
}

// OwnLanding returns when work of a mission's own agent was put on the mission's branch last, as the mission's events tell.
func OwnLanding(events []centurion.Event) time.Time {
	var last time.Time
	for _, e := range events {
		var d event.MergeData
		if e.Type == centurion.EventMergeDone && e.Task == "" && json.Unmarshal(e.Data, &d) == nil && !d.Person {
			last = e.Time.Time
		}
	}
	return last
}

// review is a finished review that has passed.
type review struct {
	task centurion.Task
	of   map[string]bool // the items that it covers; nil means all
}

// reviews finds what the reviews that have passed cover.
func reviewsIn(p plan.View, tasks []centurion.Task) []review {
	var out []review
	for _, t := range tasks {
		if state.Approves(t) && t.Undone.IsZero() {
			out = append(out, review{task: t, of: p.Covers(t)})
		}
	}
	return out
}

// onlyReviewed reports whether an item's own tasks were all the reviewer's, and there was one: it is a review, also if it does not say so.
func onlyReviewed(id string, tasks []centurion.Task) (only bool) {
	for _, t := range tasks {
		if t.Item == id && !t.Reviews {
			if only = t.Agent == agents.Reviewer; !only {
				break
			}
		}
	}
	return only
}

// reviewed returns the newest review of the item that has passed and began after its work ended, and after other merges that touch its files;
// nil without one. A review that was itself the item's work counts as one, as long as the files of all that it judged stay as they are.
func reviewed(item string, tasks []centurion.Task, reviews []review, own time.Time) *centurion.Task {
	last, itself := workOn(item, tasks, own)
	var wide *centurion.Task // a review that came after nothing covers everything; one that names the item says more
	for _, r := range slices.Backward(reviews) {
		is := itself != nil && r.task.Item == item
		switch {
		case !is && r.task.Started.Before(last):
		case is && !stale(r.of, r.task, tasks):
			return &r.task
		case is || stale(map[string]bool{item: true}, r.task, tasks):
		case r.of[item]:
			return &r.task
		case r.of == nil && wide == nil:
			wide = &r.task
		}
	}
	return wide
}

// stale reports whether files that a review judged were changed by a merge after it began. of is the items that it judged, nil for all.
func stale(of map[string]bool, review centurion.Task, tasks []centurion.Task) bool {
	judged := map[string]bool{}
	touches := func(l centurion.Landed) bool {
		return slices.ContainsFunc(centurion.Paths(l.Files), func(f string) bool { return judged[f] })
	}
	for _, t := range tasks {
		for _, l := range t.Landed {
			for _, f := range centurion.Paths(l.Files) {
				judged[f] = judged[f] || (of == nil || of[t.Item]) && !l.Time.After(review.Started.Time)
			}
		}
	}
	return slices.ContainsFunc(tasks, func(t centurion.Task) bool {
		return workEnded(t).After(review.Started.Time) && slices.ContainsFunc(t.Landed, func(l centurion.Landed) bool { return l.Time.After(review.Started.Time) && touches(l) })
	})
}

// workOn returns when the work on an item ended last, and the passed review that was itself the item's work, if that is what it
// was. What no task did was the work of the mission's own agent, which landed last at own.
func workOn(item string, tasks []centurion.Task, own time.Time) (last time.Time, itself *centurion.Task) {
	byTask := false
	for _, t := range tasks {
		if t.Item != item || t.Reviews || t.Status == centurion.TaskCancelled && len(t.Landed) == 0 {
			continue
		}
		byTask = true
		if t.Agent == agents.Reviewer {
			if state.Approves(t) && t.Undone.IsZero() {
				itself = &t
			}
			continue
		}
		if at := workEnded(t); at.After(last) {
			last = at
		}
	}
	if !byTask {
		last = own
	}
	return last, itself
}

// hasPassed reports whether a review has passed since a task's work ended, be it the task itself.
func hasPassed(tx *store.Tx, p plan.View, t centurion.Task) (bool, error) {
	if p.Doc == nil || t.Item == "" {
		return false, nil
	}
	tasks, err := tx.Tasks(t.Mission)
	return state.Approves(t) || reviewed(t.Item, tasks, reviewsIn(p, tasks), time.Time{}) != nil, err
}

// workEnded is when a task's work stood as it stands now: reverted and restored it is as it was before.
func workEnded(t centurion.Task) time.Time {
	n := len(t.Landed)
	for n > 2 && t.Landed[n-1].Restores {
		n -= 2
	}
	if n > 0 {
		return t.Landed[n-1].Time.Time
	}
	return t.Ended.Time
}

// ownLanding returns when work of the mission's own agent was merged last.
func (m *mission) ownLanding(ctx context.Context) (time.Time, error) {
	return m.h.ownLanding(ctx, m.st.ID, m.iso.Isolated())
}

func (h *Host) ownLanding(ctx context.Context, mission string, isolated bool) (time.Time, error) {
	if !isolated {
		return time.Time{}, nil
	}
	merged, err := h.cfg.Store.Events(ctx, store.EventQuery{Mission: mission, Types: []centurion.EventType{centurion.EventMergeDone}, Limit: 1 << 20})
	return OwnLanding(merged), err
}

// unruled asks a review whose answer has no verdict for one. That is done once for a task and is no return of its work; if the next answer
// has none either, whoever has asked for the review is told so.
func (m *mission) unruled(ctx context.Context, c *conversation, said string) (*rejection, error) {
	if !state.JudgesNothing(c.agent.Name, centurion.TaskCompleted, said) || givesUp(said) {
		return nil, nil
	}
	told, err := m.returnsOf(ctx, store.EventQuery{Task: c.task.ID})
	if err != nil || slices.ContainsFunc(told, func(d event.ReturnData) bool { return d.Cause == event.ReturnedVerdict }) {
		return nil, err
	}
	return &rejection{cause: event.ReturnedVerdict, notice: true, short: "its answer has no verdict: " + lastLine(said),
		text: "Your answer has no verdict, so your review would not count. Begin your answer with one word, PASS or FAIL, then each finding in a line. " +
			"If something that you could not check keeps you from saying PASS, say FAIL and name it."}, nil
}

// mayReview reports whether the mission's own agent can have its work reviewed at all.
func (m *mission) mayReview() bool {
	if m.root == nil {
		return false
	}
	_, err := m.st.Cast.Find(agents.Reviewer)
	return err == nil && m.root.agent.MayDelegate(agents.Reviewer)
}

// unreviewed lists, in words for the Commander, the done items that need a review and have none: with the review that is on its
// way, or with the call for one.
func (m *mission) unreviewed(ctx context.Context) ([]string, error) {
	p, err := m.plan.Read()
	if err != nil || p.Doc == nil || !m.mayReview() {
		return nil, nil // the plan's own fault is told elsewhere
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return nil, err
	}
	s, err := m.state(ctx, p, tasks)
	if err != nil {
		return nil, err
	}
	_, failed := s.next()
	var out []string
	for _, w := range s.worths {
		if w.sure() {
			continue
		}
		what := fmt.Sprintf("item %s (%s): %s; ", w.item.ID, w.item.Title, w.doubt)
		by, when := nextReview(p, w.item.ID, s.tasks, s.own)
		switch call := p.FreeReview(w.item.ID, s.tasks); {
		case w.blank:
			what += blankReview
		case by != "":
			what += fmt.Sprintf("%s reviews it %s", by, when)
		case slices.Contains(failed, call):
			what += fmt.Sprintf("%s has found faults: add an item for them and let %s wait for it (after)", call, call)
		default:
			what += "no review has passed since its work ended: delegate_task " + plan.ReviewCall(call)
		}
		out = append(out, what)
	}
	return out, nil
}

// inDoubt reports whether an item that is done still needs a proof or a review.
func (m *mission) inDoubt(ctx context.Context, p plan.View, id string) (bool, error) {
	all, err := m.worths(ctx, p)
	return slices.ContainsFunc(all, func(w worth) bool { return w.item.ID == id && !w.sure() }), err
}

// reviewFirst sends a mission that is idle with every item done back to its agent as long as a review is missing. After as
// many times as a check may fail, a person is called.
func (m *mission) reviewFirst(ctx context.Context) (again bool, err error) {
	missing, err := m.unreviewed(ctx)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if m.sentForReview++; m.sentForReview > m.h.cfg.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("Every item is done, but a review is missing, and %d times nobody was asked for one: %s. What should be done?",
			m.h.cfg.Returns, state.InWords(missing[0]))}
	}
	return true, m.root.say(ctx, centurion.OriginHost, "Every item is done, but not every one is proven:\n- "+strings.Join(missing, "\n- ")+
		"\nThe reviewer's word is needed before the mission is complete.")
}

// countProof records how many items are done with a proof or a review and how many without, which are in doubt, and which
// review has passed them.
func (m *mission) countProof(ctx context.Context, p plan.View) error {
	all, err := m.worths(ctx, p)
	if err != nil {
		return err
	}
	counted := m.h.counted(ctx, all)
	return m.h.cfg.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Mission(m.st.ID)
		if err != nil {
			return err
		}
		counted.of(&rec)
		return tx.PutMission(&rec)
	})
}

// tally is how many items are done with a proof or a review and how many without, which are in doubt, and which review has
// passed them.
type tally struct {
	verified, unverified int
	unproven, flaky      []string
	reviewed             map[string]centurion.PassedBy
}

func (h *Host) counted(ctx context.Context, all []worth) tally {
	c := tally{reviewed: map[string]centurion.PassedBy{}}
	for _, w := range all {
		if w.reviewed {
			c.reviewed[w.item.ID] = centurion.PassedBy{Task: w.by.ID, Item: w.by.Item, Address: h.addressOf(ctx, w.by)}
		}
		if w.sure() {
			c.verified++
		} else {
			c.unverified++
		}
		switch w.proof {
		case centurion.ProofUnproven:
			c.unproven = append(c.unproven, w.item.ID)
		case centurion.ProofFlaky:
			c.flaky = append(c.flaky, w.item.ID)
		}
	}
	return c
}

// of records the counts in a mission.
func (c tally) of(m *centurion.Mission) {
	m.Verified, m.Unverified, m.Unproven, m.Flaky, m.Reviewed = c.verified, c.unverified, c.unproven, c.flaky, c.reviewed
}

// addressOf returns the address of a task's session, or "" where that is not kept any more.
func (h *Host) addressOf(ctx context.Context, t centurion.Task) string {
	rec, err := h.cfg.Store.Session(ctx, t.Session)
	if err != nil {
		return ""
	}
	return rec.Metadata.Address
}
