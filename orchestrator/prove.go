package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/loop"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/verify"
	"centurion/workspace/todo"
)

// missing lists, in words for the Commander, what keeps the mission from being complete, apart from the final checks.
func (l *mainLoop) missing(ctx context.Context) ([]string, error) {
	v, err := l.m.judge.Look(ctx)
	if err != nil {
		return nil, err
	}
	unread, err := l.m.h.cfg.Store.PendingDeliveries(ctx, v.Mission.Session)
	return v.Missing(unread), err
}

// Missing is what mission_complete is refused for: see [toolset.Finisher].
func (l *mainLoop) Missing(ctx context.Context) ([]string, error) {
	missing, err := l.missing(ctx)
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

// Claim accepts that the mission is complete.
func (l *mainLoop) Claim() {
	l.claimed.Store(true)
	l.everClaimed.Store(true)
}

// Claimed reports whether that was accepted, and nothing has come since.
func (l *mainLoop) Claimed() bool { return l.claimed.Load() }

// finalChecks runs each distinct acceptance command once on the finished work. Items whose command fails are open again.
// It returns what is missing, in words for the Commander.
func (l *mainLoop) finalChecks(ctx context.Context) ([]string, error) {
	p, err := l.m.plan.Read()
	if err != nil {
		return nil, err
	}
	rec, err := l.m.h.cfg.Store.Mission(ctx, l.m.st.ID)
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
	ends := append(review.GoalChecks(rec.Goal, l.m.h.cfg.Workspace.Dir()), rec.Check) // what shows that the goal is reached, where no item does
	commands = append(commands, ends...)
	l.passed, l.checked = 0, true
	var failed []centurion.Receipt
	for _, command := range verify.Distinct(commands) {
		r, err := l.m.queue.Check(ctx, merge.Check{Command: command, Agent: "commander", Final: true, Proves: len(p.Items()) == 0 && slices.Contains(ends, command)})
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
		return nil, l.m.judge.Count(ctx, p)
	}
	return l.reopen(ctx, p, failed)
}

// reopen sets the items of failed final checks back to open and says what is missing.
func (l *mainLoop) reopen(ctx context.Context, p plan.View, failed []centurion.Receipt) ([]string, error) {
	l.checked = false
	var missing []string
	for _, r := range failed {
		text := "the final check failed: " + merge.Account(r)
		var back []string
		for _, it := range p.Items() {
			if !it.Group && slices.Contains(it.Verify, r.Command) && p.Doc.Status(it.ID) == todo.Done {
				if err := l.m.plan.MarkItem(ctx, it.ID, plan.MarkOpen); err != nil {
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
	rec, err := l.m.st.Record(ctx, func(rec *centurion.Mission) { rec.Reopened++ })
	if err == nil && rec.Reopened > l.m.h.cfg.Returns {
		return nil, &state.Blocked{Question: fmt.Sprintf("The final checks have failed %d times: %s What should be done?", rec.Reopened, missing[0])}
	}
	return missing, err
}

// sendBack tells the Commander what the final checks found.
func (l *mainLoop) sendBack(ctx context.Context, missing []string) (verdict, bool, error) {
	what := "Every item is done"
	if p, err := l.m.plan.Read(); err == nil && len(p.Items()) == 0 {
		what = "You ended your turn as if the goal were reached"
	}
	text := what + ", but the final checks say otherwise:\n- " + strings.Join(missing, "\n- ") + "\nSee to it."
	return verdict{}, true, l.m.root.Say(ctx, centurion.OriginHost, text)
}

// completed is the verdict of a mission that is done, unless its person wants proof and nothing shows that it is.
func (l *mainLoop) completed(ctx context.Context) (verdict, error) {
	reason := ""
	if l.passed == 0 {
		reason = "nothing to verify"
	}
	rec, err := l.m.judge.KeepEvidence(ctx, l.m.h.cfg.Workspace.Dir())
	if err != nil {
		return verdict{}, err
	}
	if rec.Options.RequireProof && rec.Evidence == centurion.EvidenceNone {
		return verdict{status: centurion.MissionBlocked, reason: review.Lacks}, nil
	}
	if rec.Level == 0 && !state.Alone(l.m.st.Profile) {
		err = l.m.plan.InferLevel(ctx)
	}
	if rec.Summary == "" && err == nil {
		err = l.summarize(ctx)
	}
	notes.KeepSummary(ctx, l.m.st, l.m.h.cfg.Workspace, l.m.plan.Detail(), l.m.root.Sess.Record().Metadata.Given)
	return verdict{status: centurion.MissionCompleted, reason: reason}, err
}
