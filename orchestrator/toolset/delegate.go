package toolset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/orchestrator/retention"
	"centurion/orchestrator/review"
	"centurion/orchestrator/state"
	"centurion/orchestrator/task"
	"centurion/store"
	"centurion/tools"
	"centurion/verify"
	"centurion/workspace/todo"
)

// delegator implements tools.Delegator for one conversation.
type delegator struct {
	*Set
	c      *agent.Conversation
	listed atomic.Pointer[string] // the state of its tasks in the last list
}

// Delegator returns how a conversation hands out work and ends the mission.
func (s *Set) Delegator(c *agent.Conversation) tools.Delegator { return &delegator{Set: s, c: c} }

// Delegate records a task and launches it. A call that is repeated after a restart finds its first task, whatever the state of the item.
func (d *delegator) Delegate(ctx context.Context, call *tools.Call, want tools.Delegation) (centurion.Task, error) {
	// Some endpoints count their calls anew in each answer, so the key contains the message, too.
	key := call.Message + "/" + call.ID
	if t, made, err := d.Mission.Store.TaskByCall(ctx, d.c.ID(), key); made || err != nil {
		return t, err
	}
	if d.Finisher.Claimed() {
		return centurion.Task{}, &centurion.Error{Kind: centurion.KindConflict, Msg: "the mission is complete: nothing more is started"}
	}
	agent, err := d.allowed(ctx, want)
	if err == nil { // before the plan is read: it may change while a person decides
		err = d.c.Desk().MayStart(ctx, call, agent.Name, want.Description)
	}
	if err != nil {
		return centurion.Task{}, err
	}
	plan, err := d.Plan.Read()
	if err != nil {
		return centurion.Task{}, err
	}
	reviews := plan.IsDone(want.Item) && agent.Name == agents.Reviewer
	again := plan.IsDone(want.Item) && !reviews
	if again {
		var v review.View
		v, err = d.Judge.At(ctx, plan)
		again = v.InDoubt(want.Item)
	}
	if err == nil && !reviews && !again {
		if err = plan.ItemOpen(want.Item); err == nil && agent.Name == agents.Reviewer {
			var tasks []centurion.Task
			if tasks, err = d.Mission.Store.Tasks(ctx, d.Mission.ID); err == nil {
				err = plan.HasReview(want.Item, tasks)
			}
		}
	}
	if err != nil {
		return centurion.Task{}, err
	}
	if d.c.Task == nil {
		if err := d.Plan.LevelAllows(ctx, plan, agent); err != nil {
			return centurion.Task{}, err
		}
	}
	if err := d.ownMerged(ctx, d.c); err != nil { // the new task has to see that work
		return centurion.Task{}, err
	}
	before, err := d.resumes(ctx, agent, want)
	if err != nil {
		return centurion.Task{}, err
	}
	t := centurion.Task{ID: centurion.NewID(centurion.PrefixTask), Mission: d.Mission.ID, Parent: d.c.ID(), Call: key,
		Agent: agent.Name, Title: cmp.Or(strings.TrimSpace(want.Description), centurion.Clip(want.Prompt, 60)), Prompt: want.Prompt,
		Item: want.Item, Reviews: reviews, Session: before.Session, Resumes: before.ID, Context: want.Context, Created: centurion.Now(),
		Budget: want.Budget.Or(d.TaskBudget)}
	if again {
		return d.recordAgain(ctx, t, call.Begun)
	}
	return d.launch(ctx, call, plan, t)
}

// recording is how a task is written and launched.
type recording func(t centurion.Task, begun func()) (centurion.Task, error)

// record writes a task. If its item comes after others, it is returned as waiting, as it will be in a moment.
func (d *delegator) record(p plan.View, record recording, t centurion.Task, begun func()) (centurion.Task, error) {
	t, err := record(t, begun)
	if err == nil && !t.Reviews && p.Doc != nil && t.Status == centurion.TaskQueued {
		if unmet := p.Doc.Unmet(t.Item); len(unmet) > 0 {
			t.Status, t.Reason = centurion.TaskWaiting, "after "+strings.Join(unmet, ", ")
		}
	}
	return t, err
}

// ItemTitle returns the title of an item of the plan.
func (d *delegator) ItemTitle(item string) string {
	it, _ := d.Plan.ItemNow(item)
	return it.Title
}

// recordAgain opens an item that is done but in doubt, and writes a task for it.
func (d *delegator) recordAgain(ctx context.Context, t centurion.Task, begun func()) (centurion.Task, error) {
	if err := d.Plan.MarkItem(ctx, t.Item, plan.MarkOpen); err != nil {
		return t, err
	}
	got, err := d.Launcher.Record(t, begun)
	if err != nil { // refused
		err = errors.Join(err, d.Plan.MarkItem(context.WithoutCancel(ctx), t.Item, func(d *todo.Doc, id string) error {
			if d.Status(id) != todo.Open {
				return nil
			}
			return d.SetMark(id, todo.Done)
		}))
	}
	return got, err
}

// allowed checks that the conversation's agent may delegate to the agent that it names.
func (d *delegator) allowed(ctx context.Context, want tools.Delegation) (agents.Agent, error) {
	agent, err := d.Mission.Cast.Find(want.Agent)
	if err != nil {
		return agent, err
	}
	if !d.c.Agent.MayDelegate(agent.Name) {
		return agent, &centurion.Error{Kind: centurion.KindPermission,
			Msg:  fmt.Sprintf("the %s may not delegate to the %s", d.c.Agent.Name, agent.Name),
			Hint: "it may delegate to: " + strings.Join(d.c.Agent.Delegates, ", ")}
	}
	if err := brief.DepthAllows(d.c.Sess.Record().Metadata.Address); err != nil {
		return agent, err
	}
	rec, err := d.Mission.Store.Mission(ctx, d.Mission.ID)
	if err != nil {
		return agent, err
	}
	if rec.Options.PlanOnly && agent.Name != agents.Planner {
		return agent, &centurion.Error{Kind: centurion.KindPermission, Msg: "only a plan is wanted: no work is started",
			Hint: "write the todo list with update_todo, or delegate to the planner, then end your turn"}
	}
	if agent.Name == agents.Planner {
		return agent, nil
	}
	p, err := d.Plan.Read()
	return agent, cmp.Or(err, p.Wanted(rec))
}

// Await waits for the end of the task, for as long as [Set.Wait]. The task continues after that.
func (d *delegator) Await(ctx context.Context, _ *tools.Call, id string) (centurion.Task, error) {
	r := d.Mission.Run(id)
	if r != nil {
		wait, cancel := context.WithTimeout(ctx, d.Wait)
		defer cancel()
		defer d.c.Live.Wait(agent.WaitChild)()
		r.Awaited.Add(1)
		defer r.Awaited.Add(-1)
		defer d.c.Pulse.Attend(id)()
		if err := d.c.Leave(ctx, "task "+r.Name); err != nil {
			return centurion.Task{}, err
		}
		select {
		case <-r.Done:
		case <-wait.Done():
		}
		if err := d.c.Enter(); err != nil {
			return centurion.Task{}, err
		}
	}
	return d.Mission.Store.Task(ctx, id)
}

// Tasks lists the conversation's tasks. If nothing has changed since the last list, it waits for a change first.
func (d *delegator) Tasks(ctx context.Context, _ *tools.Call) ([]centurion.Task, error) {
	all, err := d.c.Tasks(ctx)
	if err != nil {
		return nil, err
	}
	alive := slices.IndexFunc(all, func(t centurion.Task) bool { return !t.Status.Ended() })
	if seen := d.listed.Load(); alive >= 0 && seen != nil && *seen == standOf(all) {
		if _, err := d.c.Lull(ctx, all[alive]); err != nil {
			return nil, err
		}
		if all, err = d.c.Tasks(ctx); err != nil {
			return nil, err
		}
	}
	d.listed.Store(new(standOf(all)))
	return all, nil
}

// standOf is the state of tasks as a text, without usage and times.
func standOf(tasks []centurion.Task) string {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintln(&b, t.ID, t.Status, t.Reason)
	}
	return b.String()
}

// Result returns a task. If it lives, Result waits for its end, unless can names other work to start.
func (d *delegator) Result(ctx context.Context, _ *tools.Call, id string) (t centurion.Task, can string, err error) {
	if t, err = d.find(ctx, id); err != nil || t.Status.Ended() {
		return t, "", err
	}
	if can, err = d.c.Lull(ctx, t); err != nil {
		return t, "", err
	}
	t, err = d.Mission.Store.Task(ctx, t.ID)
	return t, can, err
}

// Report is the notice of a task's end, as its parent would get it.
func (d *delegator) Report(ctx context.Context, t centurion.Task) (text string, err error) {
	// The main loop reports a plan that cannot be read. The transaction only reads.
	p, _ := d.Plan.Read()
	err = d.Mission.Store.Update(ctx, func(tx *store.Tx) error {
		text, err = d.Brief.Notice(tx, p, t)
		return err
	})
	if strings.HasSuffix(t.Reason, retention.ArchivedReason) {
		text = "(" + t.Reason + ")\n" + text
	}
	return text + d.Brief.Outline(p, t), err
}

// goesBy reports whether a name means a task: the id of its item, unless another try of it was merged, its own name (T2/1, w7), or its id.
func goesBy(t centurion.Task, name string) bool {
	return name != "" && (t.ID == name || t.Item == name && !t.Lost() || t.Name() == name || t.Number > 0 && name == "w"+strconv.Itoa(t.Number))
}

// find returns one of the conversation's tasks.
func (d *delegator) find(ctx context.Context, id string) (centurion.Task, error) {
	tasks, err := d.c.Tasks(ctx)
	if err != nil {
		return centurion.Task{}, err
	}
	var names []string
	for _, t := range slices.Backward(tasks) { // of several tasks of an item, the newest
		if goesBy(t, id) {
			return t, nil
		}
		names = append(names, t.Name())
	}
	mine := func(t centurion.Task) bool { return goesBy(t, id) && (d.c.Task == nil || t.Parent == d.c.ID()) }
	if t, err := retention.Removed(d.Workspace, d.Mission.ID, mine); err != nil || t.ID != "" {
		return t, err
	}
	e := &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no task %q", id)}
	switch near := centurion.Nearest(id, names); {
	case near != "":
		e.Hint = "did you mean " + near + "?"
	case len(names) > 0:
		e.Hint = "the newest are: " + strings.Join(names[:min(5, len(names))], ", ")
	default:
		e.Hint = "nothing has been delegated yet"
	}
	return centurion.Task{}, e
}

func (d *delegator) Cancel(ctx context.Context, _ *tools.Call, id, reason string) (centurion.Task, error) {
	t, err := d.find(ctx, id)
	if err != nil || t.Status.Ended() {
		return t, err
	}
	reason = cmp.Or(reason, "cancelled by the "+d.c.Agent.Name)
	if t.Race != nil && id == t.Item { // all tries of the item
		for _, r := range d.Mission.Runs() {
			if race.Of(t, *r.Now.Load()) && r.ID != t.ID {
				err = errors.Join(err, d.Launcher.Cancel(ctx, r.ID, reason))
			}
		}
	}
	if err := errors.Join(err, d.Launcher.Cancel(ctx, t.ID, reason)); err != nil {
		return t, err
	}
	return d.Mission.Store.Task(ctx, t.ID)
}

// Complete ends the mission if nothing is missing.
func (d *delegator) Complete(ctx context.Context, _ *tools.Call, summary, check string) (string, error) {
	if d.c.Task != nil {
		return "", &centurion.Error{Kind: centurion.KindPermission, Msg: "a task does not end the mission",
			Hint: "end your turn with your result; the mission's own agent judges it"}
	}
	if err := d.ownMerged(ctx, d.c); err != nil {
		return "", err
	}
	err := d.takeCheck(ctx, strings.TrimSpace(check))
	if err != nil {
		return "", err
	}
	missing, err := d.Finisher.Missing(ctx)
	if err != nil {
		if _, blocked := errors.AsType[*state.Blocked](err); blocked {
			d.Mission.End(err) // the model cannot change it
		}
		return "", err
	}
	if len(missing) > 0 {
		return "", &centurion.Error{Kind: centurion.KindConflict, Msg: "not complete; missing:\n- " + strings.Join(missing, "\n- ")}
	}
	if _, err = d.Mission.Record(ctx, func(rec *centurion.Mission) { rec.Summary = summary }); err != nil {
		return "", err
	}
	d.Finisher.Claim()
	return "The mission is complete.", nil
}

// takeCheck keeps a check that the mission's own agent gives for the end. It drops one that may not run, as that would block every end, and
// one that can only pass, as that shows nothing.
func (d *delegator) takeCheck(ctx context.Context, command string) error {
	if command == "" || verify.CanOnlyPass(command) {
		return nil
	}
	if err := d.Approvals.MayCheck(ctx, command, d.c.Agent.Name, ""); err != nil {
		return err
	}
	_, err := d.Mission.Record(ctx, func(rec *centurion.Mission) { rec.Check = command })
	return err
}

// resumes returns the task whose session a delegation continues, and a task without an id for a new session. The error says why a task cannot
// be resumed: it is unknown, another agent's, not ended, or its conversation was removed.
func (d *delegator) resumes(ctx context.Context, agent agents.Agent, want tools.Delegation) (centurion.Task, error) {
	var newest centurion.Task
	if want.Resume == "" {
		return newest, nil
	}
	tasks, err := d.c.Tasks(ctx)
	if err != nil {
		return newest, err
	}
	var names []string
	for _, t := range tasks { // oldest first: the last task of a session counts
		if (goesBy(t, want.Resume) || want.Resume == t.Session) && (t.Agent == agent.Name || newest.Agent != agent.Name) {
			newest = t
		}
		names = append(names, t.Name())
	}
	switch {
	case newest.ID == "":
		e := &centurion.Error{Kind: centurion.KindNotFound, Msg: fmt.Sprintf("there is no task %q to resume", want.Resume)}
		if near := centurion.Nearest(want.Resume, names); near != "" {
			e.Hint = "did you mean " + near + "?"
		} else {
			e.Hint = "leave out resume to hand it to a new session"
		}
		return newest, e
	case newest.Agent != agent.Name:
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("task %s is the %s's", newest.Name(), newest.Agent),
			Hint: fmt.Sprintf("resume it as %s, or leave out resume to hand it to a new %s", newest.Agent, agent.Name)}
	case !newest.Status.Ended():
		return newest, task.StillAtWork(newest)
	case newest.Session == "":
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("task %s ended before it began: there is nothing to resume", newest.Name()),
			Hint: "leave out resume to hand it to a new session"}
	}
	rec, err := d.Mission.Store.Session(ctx, newest.Session)
	if centurion.KindOf(err) == centurion.KindNotFound || err == nil && state.Dropped(rec) != nil {
		return newest, &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("the conversation of task %s is not kept any more", newest.Name()),
			Hint: "leave out resume to hand it to a new session, with what it has to know in the prompt"}
	}
	return newest, err
}
