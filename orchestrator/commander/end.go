package commander

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/loop"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/verify"
	"centurion/workspace/todo"
)

// Missing runs the final checks and lists, for the Commander, what keeps the mission from being complete. The error is a
// [state.Blocked] if only a person can help.
func (l *Loop) Missing(ctx context.Context) ([]string, error) {
	missing, err := l.unmet(ctx)
	if err == nil && len(missing) == 0 {
		missing, err = l.finalChecks(ctx)
	}
	if err == nil && len(missing) == 0 {
		var bare bool
		if bare, err = l.bare(ctx); bare {
			l.questioned, missing = true, []string{loop.BareWord}
		}
	}
	return missing, err
}

// unmet lists what keeps the mission from being complete, except for the final checks.
func (l *Loop) unmet(ctx context.Context) ([]string, error) {
	v, err := l.Judge.Look(ctx)
	if err != nil {
		return nil, err
	}
	unread, err := l.Mission.Store.PendingDeliveries(ctx, v.Mission.Session)
	return v.Missing(unread), err
}

// finalChecks runs each distinct acceptance command once on the finished work. Items whose command fails are reopened. It returns what
// is missing, for the Commander.
func (l *Loop) finalChecks(ctx context.Context) ([]string, error) {
	p, err := l.Plan.Read()
	if err != nil {
		return nil, err
	}
	rec, err := l.Mission.Store.Mission(ctx, l.Mission.ID)
	if err != nil {
		return nil, err
	}
	commands := slices.Clone(rec.Options.Verify)
	if p.Doc != nil {
		commands = append(commands, p.Doc.Checks()...)
		for _, it := range p.Items() {
			if p.Doc.Status(it.ID) == todo.Done {
				commands = append(commands, it.Verify...)
			}
		}
	}
	ends := append(review.GoalChecks(rec.Goal, l.Workspace.Dir()), rec.Check) // what shows that the goal is reached if no item does
	commands = append(commands, ends...)
	l.passed, l.checked = 0, true
	var failed []centurion.Receipt
	for _, command := range verify.Distinct(commands) {
		r, err := l.Queue.Check(ctx, merge.Check{Command: command, Agent: "commander", Final: true, Proves: len(p.Items()) == 0 && slices.Contains(ends, command)})
		if err != nil {
			return nil, err
		}
		if r.Passed {
			l.passed++
		} else {
			failed = append(failed, r)
		}
	}
	if len(failed) == 0 {
		return nil, l.Judge.Count(ctx, p)
	}
	return l.reopen(ctx, p, failed)
}

// reopen reopens the items of failed final checks and says what is missing.
func (l *Loop) reopen(ctx context.Context, p plan.View, failed []centurion.Receipt) ([]string, error) {
	l.checked = false
	var missing []string
	for _, r := range failed {
		text := "the final check failed: " + brief.Account(r)
		var back []string
		for _, it := range p.Items() {
			if !it.Group && slices.Contains(it.Verify, r.Command) && p.Doc.Status(it.ID) == todo.Done {
				if err := l.Plan.MarkItem(ctx, it.ID, plan.MarkOpen); err != nil {
					return nil, err
				}
				back = append(back, it.ID)
			}
		}
		if len(back) > 0 {
			text += "\nOpen again: " + strings.Join(back, ", ") + "."
		}
		missing = append(missing, text)
	}
	rec, err := l.Mission.Record(ctx, func(rec *centurion.Mission) { rec.Reopened++ })
	if err == nil && rec.Reopened > l.Returns {
		return nil, &state.Blocked{Question: fmt.Sprintf("The final checks have failed %s: %s What should be done?", centurion.Count(rec.Reopened, "time"), missing[0])}
	}
	return missing, err
}

// verify decides whether the mission may end. again means that its agent was told what is missing.
func (l *Loop) verify(ctx context.Context) (again bool, err error) {
	if again, err = l.reviewFirst(ctx); err != nil || again {
		return again, err
	}
	missing, err := l.finalChecks(ctx)
	if err != nil || len(missing) == 0 {
		return false, err
	}
	what := "Every item is done"
	if p, err := l.Plan.Read(); err == nil && len(p.Items()) == 0 {
		what = "You ended your turn as if the goal were reached"
	}
	return true, l.Root.Say(ctx, centurion.OriginHost, what+", but the final checks say otherwise:\n- "+strings.Join(missing, "\n- ")+"\nSee to it.")
}

// completed returns the verdict of a mission that is done, unless its person wants proof and there is none.
func (l *Loop) completed(ctx context.Context) (Verdict, error) {
	reason := ""
	if l.passed == 0 {
		reason = "nothing to verify"
	}
	rec, err := l.Judge.KeepEvidence(ctx, l.Workspace.Dir())
	if err != nil {
		return Verdict{}, err
	}
	if rec.Options.RequireProof && rec.Evidence == centurion.EvidenceNone {
		return Verdict{Status: centurion.MissionBlocked, Reason: review.Lacks}, nil
	}
	if rec.Level == 0 && !state.Alone(l.Mission.Profile) {
		err = l.Plan.InferLevel(ctx)
	}
	if rec.Summary == "" && err == nil {
		var text string
		if text, err = l.Mission.LastText(ctx, l.Root.ID()); err == nil {
			_, err = l.Mission.Record(ctx, func(rec *centurion.Mission) { rec.Summary = text })
		}
	}
	notes.KeepSummary(ctx, l.Mission, l.Workspace, l.Plan.Detail(), l.Root.Sess.Record().Metadata.Given)
	return Verdict{Status: centurion.MissionCompleted, Reason: reason}, err
}

// reviewFirst sends an idle mission with every item done back to its agent while a review is missing. After as many times as a check
// may fail, it calls a person.
func (l *Loop) reviewFirst(ctx context.Context) (again bool, err error) {
	v, err := l.Judge.Look(ctx)
	missing := v.Unreviewed()
	if err != nil || len(missing) == 0 {
		return false, err
	}
	if l.sentForReview++; l.sentForReview > l.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("Every item is done, but a review is missing, and its agent was reminded %s: %s. What should be done?",
			centurion.Count(l.Returns, "time"), state.InWords(missing[0]))}
	}
	return true, l.Root.Say(ctx, centurion.OriginHost, "Every item is done, but not every one is proven:\n- "+strings.Join(missing, "\n- ")+
		"\nThe reviewer's word is needed before the mission is complete.")
}

// bare reports whether the mission would end without anything to show for it, and its own agent has not been asked about that yet:
// without a plan, nothing was changed and no check shows anything; or its person wants proof, and there is none.
func (l *Loop) bare(ctx context.Context) (bool, error) {
	v, err := l.Judge.Look(ctx)
	if err != nil || l.questioned || state.Alone(l.Mission.Profile) || !v.Bare(l.Workspace.Dir()) {
		return false, err
	}
	changed, err := l.Checkouts.Changed(ctx)
	return v.Mission.Options.RequireProof || !changed, err
}

// ownTurnEnded merges what the mission's own agent has written when its turn has ended. again means that this failed, and the agent was
// told why and must continue.
func (l *Loop) ownTurnEnded(ctx context.Context) (again bool, err error) {
	back, err := l.Queue.LandOwn(ctx, agent.AuthorOf(l.Root))
	if err != nil {
		return false, err
	}
	if back == nil {
		l.ownReturns = 0
		return false, nil
	}
	if back.Cause == event.ReturnedConflict {
		l.ownReturns = 0 // see task.Tasks
	}
	if l.ownReturns++; l.ownReturns > l.Returns {
		return false, &state.Blocked{Question: fmt.Sprintf("The %s's own changes could not be merged, %s: %s. What should be done?",
			l.Root.Agent.Name, centurion.Count(l.ownReturns, "time"), back.Short)}
	}
	return true, l.Queue.Return(ctx, agent.AuthorOf(l.Root), back, l.ownReturns)
}
