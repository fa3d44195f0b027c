package orchestrator

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
	"centurion/orchestrator/state"
)

// mainLoop drives the root conversation of a mission: its turns, the waits between them, and what is looked at before the end. Its fields
// are its goroutine's own.
type mainLoop struct {
	m        *mission
	said     string // the text with which its own agent ended its newest turn
	lastSeen string // what the plan and the tasks looked like at the last continuation
	passed   int    // final checks that passed on the work as it is
	checked  bool   // the final checks were run on the work as it is
	// sentForReview counts the times that the mission was idle with every item done and a review missing.
	sentForReview int
	questioned    bool // its own agent was asked why it ends with nothing to show for it
	// Set by tool calls: mission_complete was accepted and nothing has come since; it was accepted at some time.
	claimed, everClaimed atomic.Bool
}

// run drives the root conversation until there is a verdict.
func (l *mainLoop) run(ctx context.Context) (verdict, error) {
	stands := !l.m.resumed && l.m.root.StoppedBefore()
	if !stands && !l.m.restarted {
		if err := l.resumeWord(ctx); err != nil {
			return verdict{}, err
		}
	}
	due := l.m.root.Sess.Due() && !stands
	finished := !due && !stands
	if finished {
		var err error
		if l.said, err = l.m.st.LastText(ctx, l.m.root.ID()); err != nil {
			return verdict{}, err
		}
	}
	for {
		if due {
			if err := l.m.iso.CatchUp(ctx, &l.m.root.Seat); err != nil {
				return verdictOf(ctx, err), nil
			}
			l.m.reserves.Wake(l.m.st.ID)
			out, err := l.m.root.Turn(ctx)
			l.m.reserves.Rest(l.m.st.ID)
			switch {
			case agent.AbortedIn(ctx, err) != nil:
				l.claimed.Store(false)
				out.Finish = centurion.FinishToolCalls // it has no last word
			case state.Crashed(err) && ctx.Err() == nil:
				return verdict{}, err
			case err != nil:
				return verdictOf(ctx, err), nil
			}
			if due, err = l.m.ownTurnEnded(ctx); err != nil {
				return verdictOf(ctx, err), nil
			} else if due {
				l.claimed.Store(false)
				continue
			}
			if l.Claimed() {
				missing, err := l.missing(ctx)
				if err != nil {
					return verdictOf(ctx, err), nil
				}
				if len(missing) == 0 && !l.m.hasMail(ctx) {
					return l.completed(ctx)
				}
				l.claimed.Store(false) // what else stood in the same answer, or a person, has brought more to do
			}
			due, finished, l.said, l.checked = false, out.Finish != centurion.FinishToolCalls, out.Text, false
		}
		v, again, err := l.idle(ctx, finished)
		if err != nil {
			return verdictOf(ctx, err), nil
		}
		if !again {
			return v, nil
		}
		due = true
	}
}

// idle waits, counts down and checks until the root conversation has to go on (again is true) or the mission has its
// verdict.
func (l *mainLoop) idle(ctx context.Context, finished bool) (v verdict, again bool, err error) {
	var until time.Time // what is held back is due then; zero while nothing is
	var last loop.Action
	for {
		changed := l.m.st.Change()
		facts, err := l.facts(ctx, finished)
		if err != nil {
			return v, false, err
		}
		d := loop.Policy{Countdown: l.m.h.cfg.Countdown, NewApproach: l.m.h.cfg.NewApproach, GiveUp: l.m.h.cfg.GiveUp}.Decide(facts)
		if d.Action != last {
			until, last = time.Time{}, d.Action
		}
		switch d.Action {
		case loop.Wait:
			if err := l.m.st.Await(ctx, changed, 0); err != nil {
				return v, false, err
			}
		case loop.Deliver:
			l.m.root.Told()
			if facts.Messages > 0 { // a person's word is a new beginning
				l.m.sessions.Stagnant = 0
			}
			return v, true, nil
		case loop.Continue:
			over, err := l.countDown(ctx, changed, &until, d)
			if over && err == nil {
				l.questioned = l.questioned || d.Bare
				err = l.prompt(ctx, d.Prompt)
			}
			if over || err != nil {
				return v, over, err
			}
		case loop.Verify:
			if again, err := l.reviewFirst(ctx); err != nil || again {
				return v, again, err
			}
			missing, err := l.finalChecks(ctx)
			if err != nil {
				return v, false, err
			}
			if len(missing) > 0 {
				return l.sendBack(ctx, missing)
			}
		case loop.Complete:
			v, err := l.completed(ctx)
			if l.passed == 0 && v.status == centurion.MissionCompleted {
				v.reason = d.Reason
			}
			return v, false, err
		case loop.Block:
			// An editor that writes the plan anew is not seen as one that has deleted it.
			over, err := l.hold(ctx, changed, &until, stuckFor)
			if err != nil || over {
				return verdict{status: centurion.MissionBlocked, reason: l.m.iso.AskedFor(d.Question), asks: d.Asks}, false, err
			}
		case loop.Pause:
			return l.pausedFor(d, facts), false, nil
		}
	}
}

// pausedFor is the verdict of a mission that pauses. If a person has stopped its agent it says how.
func (l *mainLoop) pausedFor(d loop.Decision, f loop.Facts) verdict {
	reason := d.Reason
	if stood := l.m.root.StandsSince(); stood != nil && f.Aborted && !f.Budget {
		reason += ": " + stood.Why()
	}
	return verdict{status: centurion.MissionPaused, reason: reason}
}

// countDown holds the continuation back for as long as d says, after telling of it once; until is as in hold.
func (l *mainLoop) countDown(ctx context.Context, changed <-chan struct{}, until *time.Time, d loop.Decision) (over bool, err error) {
	if until.IsZero() {
		if err := l.m.st.Tell(ctx, func(x *event.MissionData) { x.Countdown, x.Reason = d.After.Milliseconds(), d.Reason }); err != nil {
			return false, err
		}
	}
	return l.hold(ctx, changed, until, d.After)
}

// hold waits until the time that it sets, d from now, when it is first called; it reports whether that has come. It
// returns earlier when something has changed.
func (l *mainLoop) hold(ctx context.Context, changed <-chan struct{}, until *time.Time, d time.Duration) (over bool, err error) {
	if until.IsZero() {
		*until = time.Now().Add(d)
	}
	left := time.Until(*until)
	if left <= 0 {
		return true, nil
	}
	return false, l.m.st.Await(ctx, changed, left)
}

// stuckFor is how long what blocks a mission must stand before a person is called.
const stuckFor = time.Second

// facts gathers what the decision about an idle mission rests on.
func (l *mainLoop) facts(ctx context.Context, finished bool) (loop.Facts, error) {
	rec, err := l.m.h.cfg.Store.Mission(ctx, l.m.st.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	tasks, err := l.m.h.cfg.Store.Tasks(ctx, l.m.st.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	if err := l.m.root.TakeIn(ctx); err != nil { // after the tasks: the result of whoever has ended by then is there
		return loop.Facts{}, err
	}
	stands, err := l.m.root.TakeUp(ctx, l.m.resumedWord())
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
		Alone: state.Alone(l.m.st.Profile), PendingDeliveries: l.m.root.Untold, WakingDeliveries: l.m.root.Urgent, Messages: l.m.root.Heard}
	plan := l.m.plan.Look(&f)
	waiting, alive := sortTasks(&f, tasks, l.m.st.Runs())
	plan.AddMisread(&f, waiting)
	f.WaitingTasks, f.HeldTasks = len(waiting), plan.HeldForNobody(waiting, alive)
	f.Runnable = slices.DeleteFunc(f.Runnable, func(id string) bool { return alive[id] })
	if f.Edited, err = l.m.plan.HasEdits(ctx, l.m.root.ID()); err != nil {
		return f, err
	}
	open, err := l.m.h.cfg.Store.Asks(ctx, l.m.st.ID, true)
	f.OpenAsks = len(open)
	seen := fmt.Sprint(f.Counts, len(tasks), f.RunningTasks, f.WaitingTasks)
	if seen != l.lastSeen {
		l.lastSeen, l.m.sessions.Stagnant = seen, 0
	}
	f.RoundsWithoutProgress = l.m.sessions.Stagnant
	if err == nil && l.checked && finished {
		f.Bare, err = l.bare(ctx)
	}
	return f, err
}

// sortTasks counts in f the tasks that are at work. It returns those that wait, and the items that have a task which has not ended.
func sortTasks(f *loop.Facts, tasks []centurion.Task, runs []*state.Run) (waiting []centurion.Task, alive map[string]bool) {
	alive = map[string]bool{}
	ending := map[string]bool{} // ended in the store, with their items not marked yet
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

// prompt asks the root conversation to go on.
func (l *mainLoop) prompt(ctx context.Context, text string) error {
	l.m.sessions.Stagnant++
	return l.m.root.Say(ctx, centurion.OriginHost, text)
}

// resumeWord tells the Commander that its mission goes on after it had stopped with the turn ended: without a word of
// somebody there would be nothing to answer.
func (l *mainLoop) resumeWord(ctx context.Context) error {
	branched, err := l.m.h.Branches.Word(ctx, l.m.root.Sess.Record())
	if err == nil && branched != "" {
		err = l.m.root.Say(ctx, centurion.OriginHost, branched)
	}
	if err != nil {
		return err
	}
	parked := l.m.resumed && l.m.root.Sess.Parks(ctx) // a person who resumes wakes it; the next host after a crash does not
	if l.m.root.Sess.Due() && !parked {
		return nil
	}
	if err := l.m.root.TakeIn(ctx); err != nil || l.m.root.Sess.Due() && !parked { // what a person has written says how to go on
		return err
	}
	rec, err := l.m.h.cfg.Store.Mission(ctx, l.m.st.ID)
	if err != nil {
		return err
	}
	text := l.m.resumedWord()
	if rec.Accepted && rec.HadItems {
		text = "The person has accepted the plan and resumed the mission. Carry it out."
	}
	return l.m.root.Say(ctx, centurion.OriginHost, text)
}

// resumedWord is what the root's agent is told when its person lets it go on.
func (m *mission) resumedWord() string {
	if state.Alone(m.st.Profile) {
		return "The person has resumed your work. Look at what has changed meanwhile, then go on."
	}
	return "The person has resumed the mission. Look at the todo list and at what has changed meanwhile, then go on."
}
