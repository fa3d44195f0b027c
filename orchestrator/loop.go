package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/state"
)

// loop drives the root conversation until there is a verdict.
func (m *mission) loop(ctx context.Context) (verdict, error) {
	stands := !m.resumed && m.root.StoppedBefore()
	if !stands && !m.restarted {
		if err := m.resumeWord(ctx); err != nil {
			return verdict{}, err
		}
	}
	due := m.root.Sess.Due() && !stands
	finished := !due && !stands
	if finished {
		var err error
		if m.said, err = m.st.LastText(ctx, m.root.ID()); err != nil {
			return verdict{}, err
		}
	}
	for {
		if due {
			if err := m.iso.CatchUp(ctx, &m.root.Seat); err != nil {
				return verdictOf(ctx, err), nil
			}
			m.reserves.Wake(m.st.ID)
			out, err := m.root.Turn(ctx)
			m.reserves.Rest(m.st.ID)
			switch {
			case agent.AbortedIn(ctx, err) != nil:
				m.setClaimed(false)
				out.Finish = centurion.FinishToolCalls // it has no last word
			case state.Crashed(err) && ctx.Err() == nil:
				return verdict{}, err
			case err != nil:
				return verdictOf(ctx, err), nil
			}
			if due, err = m.ownTurnEnded(ctx); err != nil {
				return verdictOf(ctx, err), nil
			} else if due {
				m.setClaimed(false)
				continue
			}
			if m.isClaimed() {
				missing, err := m.missing(ctx)
				if err != nil {
					return verdictOf(ctx, err), nil
				}
				if len(missing) == 0 && !m.hasMail(ctx) {
					return m.completed(ctx)
				}
				m.setClaimed(false) // what else stood in the same answer, or a person, has brought more to do
			}
			due, finished, m.said, m.checked = false, out.Finish != centurion.FinishToolCalls, out.Text, false
		}
		v, again, err := m.idle(ctx, finished)
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
func (m *mission) idle(ctx context.Context, finished bool) (v verdict, again bool, err error) {
	var until time.Time // what is held back is due then; zero while nothing is
	var last loop.Action
	for {
		changed := m.st.Change()
		facts, err := m.facts(ctx, finished)
		if err != nil {
			return v, false, err
		}
		d := loop.Policy{Countdown: m.h.cfg.Countdown, NewApproach: m.h.cfg.NewApproach, GiveUp: m.h.cfg.GiveUp}.Decide(facts)
		if d.Action != last {
			until, last = time.Time{}, d.Action
		}
		switch d.Action {
		case loop.Wait:
			if err := m.st.Await(ctx, changed, 0); err != nil {
				return v, false, err
			}
		case loop.Deliver:
			m.root.Told()
			if facts.Messages > 0 { // a person's word is a new beginning
				m.sessions.Stagnant = 0
			}
			return v, true, nil
		case loop.Continue:
			over, err := m.countDown(ctx, changed, &until, d)
			if over && err == nil {
				m.questioned = m.questioned || d.Bare
				err = m.prompt(ctx, d.Prompt)
			}
			if over || err != nil {
				return v, over, err
			}
		case loop.Verify:
			if again, err := m.reviewFirst(ctx); err != nil || again {
				return v, again, err
			}
			missing, err := m.finalChecks(ctx)
			if err != nil {
				return v, false, err
			}
			if len(missing) > 0 {
				return m.sendBack(ctx, missing)
			}
		case loop.Complete:
			v, err := m.completed(ctx)
			if m.passed == 0 && v.status == centurion.MissionCompleted {
				v.reason = d.Reason
			}
			return v, false, err
		case loop.Block:
			// An editor that writes the plan anew is not seen as one that has deleted it.
			over, err := m.hold(ctx, changed, &until, stuckFor)
			if err != nil || over {
				return verdict{status: centurion.MissionBlocked, reason: m.iso.AskedFor(d.Question), asks: d.Asks}, false, err
			}
		case loop.Pause:
			return m.pausedFor(d, facts), false, nil
		}
	}
}

// pausedFor is the verdict of a mission that pauses. If a person has stopped its agent it says how.
func (m *mission) pausedFor(d loop.Decision, f loop.Facts) verdict {
	reason := d.Reason
	if stood := m.root.StandsSince(); stood != nil && f.Aborted && !f.Budget {
		reason += ": " + stood.Why()
	}
	return verdict{status: centurion.MissionPaused, reason: reason}
}

// countDown holds the continuation back for as long as d says, after telling of it once; until is as in hold.
func (m *mission) countDown(ctx context.Context, changed <-chan struct{}, until *time.Time, d loop.Decision) (over bool, err error) {
	if until.IsZero() {
		if err := m.st.Tell(ctx, func(x *event.MissionData) { x.Countdown, x.Reason = d.After.Milliseconds(), d.Reason }); err != nil {
			return false, err
		}
	}
	return m.hold(ctx, changed, until, d.After)
}

// hold waits until the time that it sets, d from now, when it is first called; it reports whether that has come. It
// returns earlier when something has changed.
func (m *mission) hold(ctx context.Context, changed <-chan struct{}, until *time.Time, d time.Duration) (over bool, err error) {
	if until.IsZero() {
		*until = time.Now().Add(d)
	}
	left := time.Until(*until)
	if left <= 0 {
		return true, nil
	}
	return false, m.st.Await(ctx, changed, left)
}

// stuckFor is how long what blocks a mission must stand before a person is called.
const stuckFor = time.Second

// facts gathers what the decision about an idle mission rests on.
func (m *mission) facts(ctx context.Context, finished bool) (loop.Facts, error) {
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	if err != nil {
		return loop.Facts{}, err
	}
	if err := m.root.TakeIn(ctx); err != nil { // after the tasks: the result of whoever has ended by then is there
		return loop.Facts{}, err
	}
	stands, err := m.root.TakeUp(ctx, m.resumedWord())
	if err != nil {
		return loop.Facts{}, err
	}
	said := ""
	if finished {
		said = m.said
	}
	f := loop.Facts{Aborted: stands, Said: said, Attended: rec.Options.Ask == "ask",
		Status: rec.Status, EverHadItems: rec.HadItems, FinishedText: finished, Claimed: m.isClaimed(),
		PlanOnly: rec.Options.PlanOnly, Proof: rec.Options.RequireProof, ChecksPending: !m.checked, Verified: m.passed,
		Alone: state.Alone(m.st.Profile), PendingDeliveries: m.root.Untold, WakingDeliveries: m.root.Urgent, Messages: m.root.Heard}
	plan := m.plan.Look(&f)
	waiting, alive := sortTasks(&f, tasks, m.st.Runs())
	plan.AddMisread(&f, waiting)
	f.WaitingTasks, f.HeldTasks = len(waiting), plan.HeldForNobody(waiting, alive)
	f.Runnable = slices.DeleteFunc(f.Runnable, func(id string) bool { return alive[id] })
	if f.Edited, err = m.plan.HasEdits(ctx, m.root.ID()); err != nil {
		return f, err
	}
	open, err := m.h.cfg.Store.Asks(ctx, m.st.ID, true)
	f.OpenAsks = len(open)
	seen := fmt.Sprint(f.Counts, len(tasks), f.RunningTasks, f.WaitingTasks)
	if seen != m.lastSeen {
		m.lastSeen, m.sessions.Stagnant = seen, 0
	}
	f.RoundsWithoutProgress = m.sessions.Stagnant
	if err == nil && m.checked && finished {
		f.Bare, err = m.bare(ctx)
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
func (m *mission) prompt(ctx context.Context, text string) error {
	m.sessions.Stagnant++
	return m.root.Say(ctx, centurion.OriginHost, text)
}

// resumeWord tells the Commander that its mission goes on after it had stopped with the turn ended: without a word of
// somebody there would be nothing to answer.
func (m *mission) resumeWord(ctx context.Context) error {
	branched, err := m.h.Branches.Word(ctx, m.root.Sess.Record())
	if err == nil && branched != "" {
		err = m.root.Say(ctx, centurion.OriginHost, branched)
	}
	if err != nil {
		return err
	}
	parked := m.resumed && m.root.Sess.Parks(ctx) // a person who resumes wakes it; the next host after a crash does not
	if m.root.Sess.Due() && !parked {
		return nil
	}
	if err := m.root.TakeIn(ctx); err != nil || m.root.Sess.Due() && !parked { // what a person has written says how to go on
		return err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.st.ID)
	if err != nil {
		return err
	}
	text := m.resumedWord()
	if rec.Accepted && rec.HadItems {
		text = "The person has accepted the plan and resumed the mission. Carry it out."
	}
	return m.root.Say(ctx, centurion.OriginHost, text)
}

// resumedWord is what the root's agent is told when its person lets it go on.
func (m *mission) resumedWord() string {
	if state.Alone(m.st.Profile) {
		return "The person has resumed your work. Look at what has changed meanwhile, then go on."
	}
	return "The person has resumed the mission. Look at the todo list and at what has changed meanwhile, then go on."
}
