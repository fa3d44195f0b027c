// Package commander drives the conversation of a mission's own agent from its first turn to the verdict: its turns, the waits between
// them, the checks before the end, and how the mission starts and stops. What tasks do meanwhile is decided elsewhere.
package commander

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/budget"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/workspace"
)

// Loop drives the root conversation of a mission. The exported fields are set before the first call. Its methods are called by one
// goroutine, except for Missing, called during its agent's turn, and Claim, Claimed and HasClaimed, which are safe for concurrent use.
type Loop struct {
	Mission   *state.Mission
	Plan      *plan.Plan
	Judge     *review.Judge
	Checkouts *isolation.Checkouts
	Approvals *approval.Approvals
	Sessions  *agent.Sessions
	Reserves  *budget.Reserves
	Queue     *merge.Queue
	Workspace *workspace.Workspace
	Policy    loop.Policy
	Returns   int                    // how often work may be returned, and final checks may fail, before a person decides
	Confined  *centurion.Confinement // how commands are confined; nil says nothing
	Ending    func()                 // called before the verdict is recorded
	// Branched returns the message for the agent about a later rewind or fork of its conversation, or "".
	Branched func(context.Context, centurion.Session) (string, error)

	Root  *agent.Conversation // of the mission's own agent; nil before it is opened
	Begun bool                // the mission was moved to a living state
	Again string              // why the same host restarts it; "" if it does not

	resumed   bool // a person has resumed it after it had stopped
	restarted bool // it has crashed and restarts

	said       string // the text at the end of its own agent's newest turn
	lastSeen   string // the plan and the tasks at the last continuation
	passed     int    // final checks that passed on the current work
	checked    bool   // the final checks have run on the current work
	ownReturns int    // consecutive failures to merge its own agent's work
	// sentForReview counts how often the mission was idle with every item done and a review missing.
	sentForReview int
	questioned    bool // its own agent was asked why it ends without anything to show for it

	claimed, claimedOnce atomic.Bool // see [Loop.Claim]
}

// run drives the root conversation until there is a verdict.
func (l *Loop) run(ctx context.Context) (Verdict, error) {
	stands := !l.resumed && l.Root.StoppedBefore()
	if !stands && !l.restarted {
		if err := l.resumeWord(ctx); err != nil {
			return Verdict{}, err
		}
	}
	due := l.Root.Sess.Due() && !stands
	finished := !due && !stands
	if finished {
		var err error
		if l.said, err = l.Mission.LastText(ctx, l.Root.ID()); err != nil {
			return Verdict{}, err
		}
	}
	for {
		if due {
			if err := l.Checkouts.CatchUp(ctx, &l.Root.Seat); err != nil {
				return VerdictOf(ctx, err), nil
			}
			l.Reserves.Wake(l.Mission.ID)
			out, err := l.Root.Turn(ctx)
			l.Reserves.Rest(l.Mission.ID)
			switch {
			case agent.AbortedIn(ctx, err) != nil:
				l.claimed.Store(false)
				out.Finish = centurion.FinishToolCalls // it has no last text
			case state.Crashed(err) && ctx.Err() == nil:
				return Verdict{}, err
			case err != nil:
				return VerdictOf(ctx, err), nil
			}
			if due, err = l.ownTurnEnded(ctx); err != nil {
				return VerdictOf(ctx, err), nil
			} else if due {
				l.claimed.Store(false)
				continue
			}
			if l.Claimed() {
				missing, err := l.unmet(ctx)
				if err != nil {
					return VerdictOf(ctx, err), nil
				}
				if len(missing) == 0 && !mail.HasUnread(ctx, l.Mission.Store, l.Root.ID()) {
					return l.completed(ctx)
				}
				l.claimed.Store(false) // the rest of the same answer, or a person, has brought more to do
			}
			due, finished, l.said, l.checked = false, out.Finish != centurion.FinishToolCalls, out.Text, false
		}
		v, again, err := l.idle(ctx, finished)
		if err != nil {
			return VerdictOf(ctx, err), nil
		}
		if !again {
			return v, nil
		}
		due = true
	}
}

// idle waits, counts down and checks until the root conversation must continue (again is true) or the mission has its verdict.
func (l *Loop) idle(ctx context.Context, finished bool) (v Verdict, again bool, err error) {
	var until time.Time // when the held-back action is due; zero without one
	var last loop.Action
	for {
		changed := l.Mission.Change()
		if err := l.Root.Sess.ShortenAsked(ctx); err != nil {
			return v, false, err
		}
		facts, err := l.Facts(ctx, finished)
		if err != nil {
			return v, false, err
		}
		d := l.Policy.Decide(facts)
		if d.Action != last {
			until, last = time.Time{}, d.Action
		}
		switch d.Action {
		case loop.Wait:
			if err := l.Mission.Await(ctx, changed, 0); err != nil {
				return v, false, err
			}
		case loop.Deliver:
			l.Root.Told()
			if facts.Messages > 0 { // a person's message is a fresh start
				l.Sessions.Stagnant = 0
			}
			return v, true, nil
		case loop.Continue:
			over, err := l.countDown(ctx, changed, &until, d)
			if over && err == nil {
				l.questioned = l.questioned || d.Bare
				l.Sessions.Stagnant++
				err = l.Root.Say(ctx, centurion.OriginHost, d.Prompt)
			}
			if over || err != nil {
				return v, over, err
			}
		case loop.Verify:
			if again, err := l.verify(ctx); err != nil || again {
				return v, again, err
			}
		case loop.Complete:
			v, err := l.completed(ctx)
			if l.passed == 0 && v.Status == centurion.MissionCompleted {
				v.Reason = d.Reason
			}
			return v, false, err
		case loop.Block:
			// An editor that rewrites the plan should not count as having deleted it.
			over, err := l.hold(ctx, changed, &until, StuckFor)
			if err != nil || over {
				return Verdict{Status: centurion.MissionBlocked, Reason: l.Checkouts.AskedFor(d.Question), Asks: d.Asks}, false, err
			}
		case loop.Pause:
			return l.pausedFor(d, facts), false, nil
		}
	}
}

// pausedFor returns the verdict of a pausing mission. If a person has stopped its agent, it says how.
func (l *Loop) pausedFor(d loop.Decision, f loop.Facts) Verdict {
	reason := d.Reason
	if stood := l.Root.StandsSince(); stood != nil && f.Aborted && !f.Budget {
		reason += ": " + stood.Why()
	}
	return Verdict{Status: centurion.MissionPaused, Reason: reason}
}

// countDown holds back the continuation as long as d says, after announcing it once; until is as in hold.
func (l *Loop) countDown(ctx context.Context, changed <-chan struct{}, until *time.Time, d loop.Decision) (over bool, err error) {
	if until.IsZero() {
		if err := l.Mission.Tell(ctx, func(x *event.MissionData) { x.Countdown, x.Reason = d.After.Milliseconds(), d.Reason }); err != nil {
			return false, err
		}
	}
	return l.hold(ctx, changed, until, d.After)
}

// hold waits until the time that its first call sets, d from then; it reports whether that has come. It returns earlier when something
// has changed.
func (l *Loop) hold(ctx context.Context, changed <-chan struct{}, until *time.Time, d time.Duration) (over bool, err error) {
	if until.IsZero() {
		*until = time.Now().Add(d)
	}
	left := time.Until(*until)
	if left <= 0 {
		return true, nil
	}
	return false, l.Mission.Await(ctx, changed, left)
}

// StuckFor is how long a mission must stay blocked before a person is called.
const StuckFor = time.Second

// Facts gathers the facts for the decision about an idle mission; finished means that its own agent has ended its turn with a text.
func (l *Loop) Facts(ctx context.Context, finished bool) (loop.Facts, error) {
	rec, err := l.Mission.Store.Mission(ctx, l.Mission.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	tasks, err := l.Mission.Store.Tasks(ctx, l.Mission.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	if err := l.Root.TakeIn(ctx); err != nil { // after the tasks: the results of those that have ended by then are there
		return loop.Facts{}, err
	}
	stands, err := l.Root.TakeUp(ctx, l.resumedWord())
	if err != nil {
		return loop.Facts{}, err
	}
	said := ""
	if finished {
		said = l.said
	}
	f := loop.Facts{Aborted: stands, Said: said, Attended: rec.Options.Ask == "ask",
		Status: rec.Status, EverHadItems: rec.HadItems, FinishedText: finished, Claimed: l.Claimed(),
		PlanOnly: rec.Options.PlanOnly, Proof: rec.Options.RequireProof, ChecksPending: !l.checked, Verified: l.passed,
		Alone: state.Alone(l.Mission.Profile), PendingDeliveries: l.Root.Untold, WakingDeliveries: l.Root.Urgent, Messages: l.Root.Heard}
	plan := l.Plan.Look(&f)
	waiting, alive := sortTasks(&f, tasks, l.Mission.Runs())
	plan.AddMisread(&f, waiting)
	f.WaitingTasks, f.HeldTasks = len(waiting), plan.HeldForNobody(waiting, alive)
	f.Runnable = slices.DeleteFunc(f.Runnable, func(id string) bool { return alive[id] })
	if f.Edited, err = l.Plan.HasEdits(ctx, l.Root.ID()); err != nil {
		return f, err
	}
	open, err := l.Mission.Store.Asks(ctx, l.Mission.ID, true)
	f.OpenAsks = len(open)
	seen := fmt.Sprint(f.Counts, len(tasks), f.RunningTasks, f.WaitingTasks)
	if seen != l.lastSeen {
		l.lastSeen, l.Sessions.Stagnant = seen, 0
	}
	f.RoundsWithoutProgress = l.Sessions.Stagnant
	if err == nil && l.checked && finished {
		f.Bare, err = l.bare(ctx)
	}
	return f, err
}

// sortTasks counts the running tasks in f. It returns the waiting ones, and the items with a task that has not ended.
func sortTasks(f *loop.Facts, tasks []centurion.Task, runs []*state.Run) (waiting []centurion.Task, alive map[string]bool) {
	alive = map[string]bool{}
	ending := map[string]bool{} // ended in the store, but their items are not marked yet
	for _, r := range runs {
		ending[r.ID] = true
	}
	for _, t := range tasks {
		if !t.Status.Ended() && t.Item != "" {
			alive[t.Item] = true
		}
		switch {
		case t.Status.Ended() && ending[t.ID]:
			f.RunningTasks++
		case t.Status.Ended():
		case t.Status == centurion.TaskQueued || t.Status == centurion.TaskWaiting:
			waiting = append(waiting, t)
		default:
			f.RunningTasks++
		}
	}
	return waiting, alive
}

// resumeWord tells the Commander that its mission continues after it had stopped with the turn ended: otherwise it would have nothing
// to answer.
func (l *Loop) resumeWord(ctx context.Context) error {
	branched, err := l.Branched(ctx, l.Root.Sess.Record())
	if err == nil && branched != "" {
		err = l.Root.Say(ctx, centurion.OriginHost, branched)
	}
	if err != nil {
		return err
	}
	parked := l.resumed && l.Root.Sess.Parks(ctx) // a resuming person wakes it; the next host after a crash does not
	if l.Root.Sess.Due() && !parked {
		return nil
	}
	if err := l.Root.TakeIn(ctx); err != nil || l.Root.Sess.Due() && !parked { // a person's message says how to continue
		return err
	}
	rec, err := l.Mission.Store.Mission(ctx, l.Mission.ID)
	if err != nil {
		return err
	}
	text := l.resumedWord()
	if rec.Accepted && rec.HadItems {
		text = "The person has accepted the plan and resumed the mission. Carry it out."
	}
	return l.Root.Say(ctx, centurion.OriginHost, text)
}

// resumedWord is the message for the root's agent when its person resumes it.
func (l *Loop) resumedWord() string {
	if state.Alone(l.Mission.Profile) {
		return "The person has resumed your work. Look at what has changed meanwhile, then go on."
	}
	return "The person has resumed the mission. Look at the todo list and at what has changed meanwhile, then go on."
}

// Claim accepts that the mission is complete, unless more arrives before its agent's turn ends.
func (l *Loop) Claim() {
	l.claimed.Store(true)
	l.claimedOnce.Store(true)
}

// Claimed reports whether a claim was accepted, and nothing has arrived since.
func (l *Loop) Claimed() bool { return l.claimed.Load() }

// HasClaimed reports whether a claim was ever accepted; messages may have arrived since.
func (l *Loop) HasClaimed() bool { return l.claimedOnce.Load() }
