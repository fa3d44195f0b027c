package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/failpoint"
	"centurion/orchestrator/agent"
	"centurion/orchestrator/background"
	"centurion/orchestrator/merge"
	"centurion/orchestrator/notes"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/race"
	"centurion/orchestrator/slots"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// attempt runs the task's session to its end and merges its work. Rejected work goes back to the session a bounded number of times.
func (ts *Tasks) attempt(ctx context.Context, r *state.Run) (session.Outcome, error) {
	if r.Place == nil {
		r.Place = ts.Slots.Join(r.Agent)
		if err := ts.Mission.MoveRun(ctx, r, centurion.TaskQueued, nil); err != nil {
			return session.Outcome{}, err
		}
	}
	sl, err := ts.Slots.Launch(ctx, r.Place, func(ctx context.Context) (ref centurion.ModelRef, err error) {
		ref, r.Own, r.Instead, err = ts.Sessions.ModelOf(ctx, r.ID)
		return ref, err
	})
	if err != nil {
		return session.Outcome{}, err
	}
	defer sl.Release()
	ts.Reserves.Wake(r.Account)
	defer r.Timed()()
	c, t, err := ts.startAttempt(ctx, r, sl)
	if err != nil {
		return session.Outcome{}, err
	}
	defer ts.Sessions.Forget(c)
	defer ts.Commands.End(c)
	var files []string
	for returns := t.Returns; ; returns++ {
		out, lost, err := ts.workOn(ctx, c, files)
		if err != nil {
			return out, err
		}
		sl.Release()
		back, err := ts.accept(ctx, c, &out, returns)
		files = out.Files
		said := out.Text
		out.Text = background.WithLost(r.Agent, said, lost)
		if err != nil {
			return out, err
		}
		if back == nil || back.Ends {
			more, err := c.SpokenTo(ctx)
			if more {
				returns-- // a message is no failure, and may contain the help
				continue
			}
			if err != nil || back == nil {
				return out, err
			}
		}
		if returns, err = ts.handBack(ctx, c, sl, back, returns, said); err != nil {
			return out, err
		}
	}
}

// workOn runs a task's session to its end, and ends its background commands, so that none of them writes during the checks. have lists the
// files that the task has changed before. lost describes the commands that still ran.
func (ts *Tasks) workOn(ctx context.Context, c *agent.Conversation, have []string) (out session.Outcome, lost []string, err error) {
	out, err = c.ToEnd(ctx)
	lost = ts.Commands.End(c)
	out.Files = slices.Concat(have, out.Files)
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
	if err == nil {
		rec := c.Sess.Record()
		err = ts.Commands.TellLost(ctx, rec.Agent+" "+rec.Metadata.Address, lost)
	}
	return out, lost, err
}

// handBack gives rejected work back to its session and acquires a slot for it. It returns the new count of rejections. Work that was rejected
// too often fails, or a person decides; if the person wants another try, the count restarts. A notice does not count. A conflict resets
// the count, as it is no failure of the session. That ends some time: each conflict means that another task's work was merged.
func (ts *Tasks) handBack(ctx context.Context, c *agent.Conversation, sl *slots.Slot, back *merge.Rejection, returns int, said string) (int, error) {
	conflict := back.Cause == event.ReturnedConflict
	over := back.Ends || merge.GivesUp(said) || returns >= ts.Returns && !back.Notice && !conflict
	switch {
	case over && len(ts.rivals(c.Task)) > 0:
		return returns, &agent.StuckError{Err: &centurion.Error{Kind: centurion.KindVerify, Msg: back.Short}} // the others may do it
	case over && !ts.Checkouts.Isolated() && !back.Ends:
		return returns, &centurion.Error{Kind: centurion.KindVerify,
			Msg: fmt.Sprintf("its acceptance command still fails after %s: %s", centurion.Count(returns, "return"), back.Short)}
	case over:
		var err error
		if back.Text, err = ts.stuck(ctx, c, back, returns, said); err != nil {
			return returns, err
		}
		returns = -1 // the person wants another try
	case back.Notice:
		returns--
	case conflict:
		returns = 0
	}
	if err := sl.Acquire(ctx); err != nil {
		return returns, err
	}
	return returns, ts.Queue.Return(ctx, agent.AuthorOf(c), back, returns+1)
}

// startAttempt creates or reopens the task's session under the next fencing number, and marks its item as running.
func (ts *Tasks) startAttempt(ctx context.Context, r *state.Run, sl *slots.Slot) (*agent.Conversation, centurion.Task, error) {
	t, err := ts.Mission.Store.Task(ctx, r.ID)
	if err != nil {
		return nil, t, err
	}
	r.Attempt = t.Attempt + 1
	ts.Mission.Fences.Raise(r.ID, r.Attempt)
	if t.Attempt == 0 && t.Agent == agents.Reviewer && ts.Checkouts.Isolated() {
		changed, err := ts.Checkouts.Changed(ctx)
		if err != nil {
			return nil, t, err
		}
		t.Unchanged = !changed
	}
	if t.Session == "" {
		err = ts.createSession(ctx, &t, r, sl.Model())
	} else {
		err = ts.reopenSession(ctx, &t)
	}
	r.Working.Store(err == nil)
	failpoint.Hit(failpoint.AttemptStarted)
	if err == nil && !t.Reviews {
		err = ts.Plan.MarkItem(ctx, t.Item, plan.MarkRunning)
	}
	if err != nil {
		return nil, t, err
	}
	c, err := ts.Open(ctx, t.Session, r)
	if err != nil {
		return nil, t, err
	}
	c.Slot = sl
	ts.Mission.Notify()
	return c, t, nil
}

// createSession starts the task's first attempt.
func (ts *Tasks) createSession(ctx context.Context, t *centurion.Task, r *state.Run, model centurion.ModelRef) error {
	agent, err := ts.Mission.CarriesOut(*t)
	if err != nil {
		return err
	}
	parent, err := ts.Mission.Store.Session(ctx, t.Parent)
	if err != nil {
		return err
	}
	brief, err := ts.Brief.Task(ctx, *t)
	if err != nil {
		return err
	}
	begun, _ := ts.Plan.ItemNow(t.Item)
	unchanged := t.Unchanged
	shared, given := notes.ForTask(ts.Workspace, ts.Plan.Detail(), *t)
	if t.Sub == nil {
		shared += ts.Brief.Files(ctx, ts.Briefs, agent)
	}
	told, err := ts.Brief.Open(ctx, ts.Briefs, agent, *t, model)
	if err != nil {
		return err
	}
	return ts.Mission.Store.Update(ctx, func(tx *store.Tx) error {
		serial, err := tx.NextSerial(ts.Mission.ID, parent.Metadata.Address)
		if err != nil {
			return err
		}
		address := centurion.ChildAddress(parent.Metadata.Address, serial)
		rec := session.New(centurion.Session{Title: t.Title, Agent: agent.Name, Directory: parent.Directory, ParentID: parent.ID,
			ProjectID: parent.ProjectID, Slug: strings.Trim(strings.ReplaceAll(address, "/", "-"), "-"), Version: ts.Version,
			Model: &centurion.SessionModel{ID: model.ID, Provider: model.Provider},
			Metadata: centurion.SessionMeta{Mission: ts.Mission.ID, Task: t.ID, Attempt: 1, Address: address, System: told.System, AgentFile: agent.Source,
				Roster: ts.Mission.Cast.Roster(agent), Offered: ts.Briefs.Callable(agent), Skills: told.Skills, External: told.External, Given: append(told.Given, given...)}}, centurion.Now())
		moved, err := state.MoveTask(tx, t.ID, centurion.TaskRunning, func(t *centurion.Task) {
			t.Attempt, t.Session, t.Started, t.Verify, t.Unchanged = 1, rec.ID, centurion.Now(), begun.Verify, unchanged
		})
		if err != nil {
			return err
		}
		*t = moved
		if err := underWay(tx, ts.Mission.ID, agent.Name); err != nil {
			return err
		}
		if t.Sub != nil {
			rec.Metadata.Tools = t.Sub.Tools
		}
		if r.Instead != "" {
			rec.Metadata.OwnModel = &centurion.SessionModel{ID: r.Own.ID, Provider: r.Own.Provider}
		}
		if err := session.Create(tx, &rec, centurion.OriginParent, brief+shared); err != nil {
			return err
		}
		if err := state.Forward(tx, t.ID, rec.ID); err != nil || r.Instead == "" {
			return err
		}
		return state.BeganWith(tx, &rec, r.Instead)
	})
}

// underWay moves the mission from planning to running when the first agent other than a planner begins.
func underWay(tx *store.Tx, mission, agent string) error {
	rec, err := tx.Mission(mission)
	if err != nil || rec.Status != centurion.MissionPlanning || agent == agents.Planner {
		return err
	}
	_, err = state.MoveMission(tx, mission, centurion.MissionRunning, "", nil)
	return err
}

// reopenSession starts a further attempt in the session of the last one. The first attempt of a task that resumes another one continues that
// task's session with a new prompt.
func (ts *Tasks) reopenSession(ctx context.Context, t *centurion.Task) error {
	first, prompt, unchanged := t.Attempt == 0, "", t.Unchanged
	if first {
		var err error
		if prompt, err = ts.Brief.Resumed(ctx, *t); err != nil {
			return err
		}
	}
	begun, _ := ts.Plan.ItemNow(t.Item)
	return ts.Mission.Store.Update(ctx, func(tx *store.Tx) error {
		rec, err := tx.Session(t.Session)
		if err != nil {
			return err
		}
		moved, err := state.MoveTask(tx, t.ID, centurion.TaskRunning, func(t *centurion.Task) {
			if t.Attempt++; first {
				t.Started, t.Verify, t.Unchanged = centurion.Now(), begun.Verify, unchanged
			}
		})
		if err != nil {
			return err
		}
		*t, rec.Metadata.Attempt = moved, moved.Attempt
		if first { // the waits of the ended task are over
			rec.Metadata.Task, rec.Metadata.Retry = t.ID, nil
		}
		if err := tx.PutSession(&rec); err != nil {
			return err
		}
		if err := underWay(tx, ts.Mission.ID, t.Agent); err != nil || !first {
			return err
		}
		_, err = session.Say(tx, &rec, centurion.OriginParent, prompt)
		return err
	})
}

// Answers that a person can choose for work that was rejected too often. Any other answer is a message for the session.
const (
	stuckRetry  = "try again"
	stuckGiveUp = "give up"
	stuckCall   = "returns" // the id of that question's call, as no tool call asks it
)

// stuck decides about work that was rejected too often, or whose session gives up. A session that gives up is first the parent's to help: the
// task ends as blocked. A person, if there is one, is asked when an earlier task of the item ended like this, or when work was rejected too
// often. Until the answer, the item is blocked. The text is for the session, if it is to try again.
func (ts *Tasks) stuck(ctx context.Context, c *agent.Conversation, back *merge.Rejection, returns int, said string) (string, error) {
	short := fmt.Sprintf("it came back %s and still cannot be merged: %s", centurion.Count(returns, "time"), back.Short)
	early := back.Ends || returns < ts.Returns
	switch {
	case back.Ends:
		short = back.Short
	case early:
		short = "its agent says that it is stuck; it cannot be merged as it is: " + back.Short
	}
	none := &agent.StuckError{Err: &centurion.Error{Kind: centurion.KindVerify, Msg: short,
		Hint: "resume it with what would help, hand it out anew, or ask the person"}}
	rec, err := ts.Mission.Store.Mission(ctx, ts.Mission.ID)
	if err != nil {
		return "", err
	}
	first := false
	if early {
		if first, err = ts.firstEnd(ctx, c.Task); err != nil {
			return "", err
		}
	}
	// The question belongs to the session's newest message: after a restart it is found again, and the next rejection asks a new one.
	newest, _, err := ts.Mission.Store.Newest(ctx, c.ID())
	if err != nil {
		return "", err
	}
	call := &tools.Call{Session: c.ID(), Task: c.Task.ID, Message: newest, ID: stuckCall}
	asked, found, err := ts.Approvals.Asked(ctx, call)
	if err != nil {
		return "", err
	}
	if !found || asked.Answered.IsZero() { // with an answer the work continues at once
		if err := ts.Plan.MarkItem(ctx, c.Task.Item, plan.MarkBlocked); err != nil {
			return "", err
		}
	}
	if !found && first || rec.Options.Ask != "ask" {
		return "", none
	}
	title := strings.TrimSpace(c.Task.Item + " " + c.Task.Now.Load().Title)
	answer, err := c.Desk().AskPerson(ctx, call,
		tools.Question{Text: stuckQuestion(title, c.Agent.Name, short, said), Choices: []string{stuckGiveUp, stuckRetry}})
	if err != nil {
		return "", err
	}
	if !state.FromPerson(answer.By) || answer.Text == event.NobodyThere {
		return "", none
	}
	if err := ts.Plan.MarkItem(ctx, c.Task.Item, plan.MarkRunning); err != nil {
		return "", err
	}
	switch strings.TrimSpace(answer.Text) {
	case stuckGiveUp:
		return "", &centurion.Error{Kind: centurion.KindVerify, Msg: short, Hint: "the person has given it up"}
	case stuckRetry:
		return back.Text, nil
	}
	return back.Text + "\n\nThe person says: " + answer.Text, nil
}

// firstEnd reports whether no earlier task of the same item or session has ended as blocked by its checks.
func (ts *Tasks) firstEnd(ctx context.Context, r *state.Run) (bool, error) {
	tasks, err := ts.Mission.Store.Tasks(ctx, ts.Mission.ID)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(tasks, func(t centurion.Task) bool { return t.ID == r.ID })
	return !slices.ContainsFunc(tasks, func(t centurion.Task) bool {
		same := i >= 0 && t.Session == tasks[i].Session || t.Item != "" && t.Item == r.Item
		return t.ID != r.ID && same && !race.Of(t, *r.Now.Load()) && t.Status == centurion.TaskBlocked && t.Error != nil && t.Error.Kind == centurion.KindVerify
	}), nil
}

// stuckQuestion is the text for the person. The agent's own words come first, as they may ask for something that only the person knows.
func stuckQuestion(title, agent, short, said string) string {
	text := title + ": "
	if said = strings.TrimSpace(said); said != "" {
		text += fmt.Sprintf("the %s says: %s\n", agent, centurion.Clip(said, 1500))
	}
	return text + strings.TrimRight(centurion.Clip(short, 1500), ". \n") + ".\nHow should it go on?"
}
