package toolset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/text"
	"centurion/tools"
	"centurion/workspace/todo"
)

// launch records and launches a task, or the tries of its item. A review, and work that continues, is never a race.
func (d *delegator) launch(ctx context.Context, call *tools.Call, p plan.View, t centurion.Task) (centurion.Task, error) {
	if it, _ := d.Plan.ItemNow(t.Item); len(it.Race) > 0 && t.Resumes == "" && t.Agent != agents.Reviewer {
		return d.race(ctx, call, p, it, t)
	}
	return d.record(p, d.Launcher.Record, t, call.Begun)
}

// race records and launches a task for each agent in the race of an item, after telling the person what that costs.
func (d *delegator) race(ctx context.Context, call *tools.Call, p plan.View, it todo.Item, t centurion.Task) (centurion.Task, error) {
	names, err := d.Plan.Racers(it)
	if err != nil {
		return centurion.Task{}, err
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if _, err := d.allowed(ctx, tools.Delegation{Agent: name}); err != nil {
			return centurion.Task{}, err
		}
		if name != t.Agent { // it was asked about before
			if err := d.c.Desk().MayStart(ctx, call, name, t.Title); err != nil {
				return centurion.Task{}, err
			}
		}
	}
	note := fmt.Sprintf("%s is tried by %s: about %s the cost of one", it.ID, strings.Join(names, ", "), centurion.Count(len(names), "time"))
	rec := d.Mission.Spent.Load()
	if low, high := d.Approvals.Estimate(rec.Options.Model, len(names)); high > 0 {
		note += fmt.Sprintf(", roughly %s to %s", text.USD(low), text.USD(high))
	}
	if err := d.Mission.Tell(ctx, func(x *event.MissionData) { x.Note = note }); err != nil {
		return centurion.Task{}, err
	}
	record := func(t centurion.Task, begun func()) (centurion.Task, error) {
		return d.Launcher.RecordRace(t, names, begun)
	}
	return d.record(p, record, t, call.Begun)
}
