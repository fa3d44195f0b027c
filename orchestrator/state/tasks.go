package state

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/store"
)

// LastText returns the newest text of a session's model.
func (m *Mission) LastText(ctx context.Context, id string) (text string, err error) {
	messages, err := m.Store.Messages(ctx, id)
	for _, msg := range messages {
		if msg.Role == centurion.RoleAssistant && !msg.Summary && msg.Finish != centurion.FinishError && msg.Text() != "" {
			text = msg.Text()
		}
	}
	return text, err
}

// Shown reports whether the session of a task was sent a text that it still has: not one from before a summary of its history.
func (m *Mission) Shown(ctx context.Context, task, text string) bool {
	t, err := m.Store.Task(ctx, task)
	if err != nil {
		return false
	}
	messages, err := m.Store.Messages(ctx, t.Session)
	for _, x := range slices.Backward(messages) {
		if err != nil || x.Summary {
			return false
		}
		if x.Role == centurion.RoleUser && strings.Contains(x.Text(), text) {
			return true
		}
	}
	return false
}

func FirstLines(s string, lines, size int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return centurion.Clip(strings.TrimSpace(strings.Join(all[:min(lines, len(all))], "\n")), size)
}

// LastLine returns the last line of a text, shortened.
func LastLine(said string) string {
	said = strings.TrimSpace(said)
	return centurion.Clip(strings.TrimSpace(said[strings.LastIndexByte(said, '\n')+1:]), 300)
}

// SaidOf returns the task's result; or, between its merge and its end, the answer that will become the result.
func (m *Mission) SaidOf(ctx context.Context, t centurion.Task) (string, error) {
	if t.Result != "" || t.Session == "" {
		return t.Result, nil
	}
	messages, err := m.Store.Messages(ctx, t.Session)
	if err != nil {
		return "", err
	}
	for _, x := range slices.Backward(messages) {
		if x.Role == centurion.RoleAssistant && x.Text() != "" {
			return x.Text(), nil
		}
	}
	return "", nil
}

// SawNothing reports whether a session has completed no tool call, while no check of the mission has passed either.
func (m *Mission) SawNothing(ctx context.Context, session string) (bool, error) {
	receipts, err := m.Store.Receipts(ctx, m.ID)
	if err != nil || slices.ContainsFunc(receipts, func(r centurion.Receipt) bool { return r.Passed }) {
		return false, err
	}
	messages, err := m.Store.Messages(ctx, session)
	return !slices.ContainsFunc(messages, func(x centurion.Message) bool {
		return slices.ContainsFunc(x.Parts, func(p centurion.Part) bool {
			return p.Type == centurion.PartTool && p.State.Status == centurion.ToolCompleted
		})
	}), err
}

// Waits reports whether a living task has not begun, or waits for others.
func Waits(t centurion.Task) bool {
	return t.Status == centurion.TaskQueued || t.Status == centurion.TaskWaiting
}

// Approves reports whether a task is a completed review with the verdict PASS. A review without a verdict, without changed files to
// judge, or that has looked at nothing does not count.
func Approves(t centurion.Task) bool {
	return !t.Unchanged && t.Reason != SawNothing && reviewSaid(t.Agent, t.Status, t.Result, centurion.RulingPass)
}

// Rejects reports whether a task is a completed review that found faults.
func Rejects(agent string, status centurion.TaskStatus, answer string) bool {
	return reviewSaid(agent, status, answer, centurion.RulingFail)
}

// JudgesNothing reports whether a task is a completed review without a verdict.
func JudgesNothing(agent string, status centurion.TaskStatus, answer string) bool {
	return reviewSaid(agent, status, answer, centurion.RulingNone)
}

func reviewSaid(agent string, status centurion.TaskStatus, answer string, want centurion.Ruling) bool {
	return agent == agents.Reviewer && status == centurion.TaskCompleted && centurion.RulingOf(answer) == want
}

// CancelTasks cancels the remaining tasks of a cancelled mission in the store.
func CancelTasks(tx *store.Tx, mission, reason string) error {
	tasks, err := tx.Tasks(mission)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if !t.Status.CanBecome(centurion.TaskCancelled) {
			continue
		}
		if _, err := MoveTask(tx, t.ID, centurion.TaskCancelled, func(t *centurion.Task) {
			t.Error = &centurion.TaskError{Kind: centurion.KindCancelled, Message: reason}
		}); err != nil {
			return err
		}
	}
	return nil
}

// RequeueTasks queues the running tasks of a host that died, until the mission is resumed. An orderly stop has queued them already.
func RequeueTasks(tx *store.Tx, mission, _ string) error {
	tasks, err := tx.Tasks(mission)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.Status.Ended() || t.Status == centurion.TaskQueued {
			continue
		}
		if _, err := MoveTask(tx, t.ID, centurion.TaskQueued, func(t *centurion.Task) { t.Reason = UntilResumed }); err != nil {
			return err
		}
	}
	return nil
}

// UntilResumed is the reason why tasks of a stopped mission wait.
const UntilResumed = "until the mission is resumed"

// FoundFaults is the reason of a completed review that did not pass.
const FoundFaults = "found faults"

// NoVerdict is the reason of a completed review with neither PASS nor FAIL.
const NoVerdict = "no verdict"

// SawNothing is the reason of a completed review with the verdict PASS that has looked at nothing, while no check has passed either.
const SawNothing = "looked at nothing"

// ChangeTasks changes the records of tasks, all in one transaction. Each task keeps the status that it has in tasks. change gets a copy
// whose Landed it may write to. also, if not nil, records more in the same transaction. The error has centurion.KindConflict if a task
// can no longer have its status; then nothing is changed.
func ChangeTasks(ctx context.Context, st *store.Store, tasks []centurion.Task, change func(*centurion.Task), also func(*store.Tx) error) error {
	return st.Update(ctx, func(tx *store.Tx) error {
		for _, t := range tasks {
			_, err := MoveTask(tx, t.ID, t.Status, func(t *centurion.Task) {
				t.Landed = slices.Clone(t.Landed)
				change(t)
			})
			if err != nil {
				return err
			}
		}
		if also == nil {
			return nil
		}
		return also(tx)
	})
}
