package centurion

import "encoding/json"

// EventType names a kind of fact. Scripts wait for these names; they keep their spelling.
type EventType string

// The types of event. Every one but EventDelta is a committed fact with a sequence number.
const (
	EventMissionStarted   EventType = "mission.started"
	EventMissionResumed   EventType = "mission.resumed"
	EventMissionUpdated   EventType = "mission.updated" // level, countdown, plan, usage
	EventMissionCompleted EventType = "mission.completed"
	EventMissionFailed    EventType = "mission.failed"
	EventMissionPaused    EventType = "mission.paused"
	EventMissionBlocked   EventType = "mission.blocked"
	EventMissionCancelled EventType = "mission.cancelled"

	EventTodoUpdated  EventType = "todo.updated"
	EventPlanAsked    EventType = "plan.asked" // the plan waits for a person's acceptance
	EventPlanAnswered EventType = "plan.answered"

	EventTaskQueued    EventType = "task.queued"
	EventTaskWaiting   EventType = "task.waiting"
	EventTaskStarted   EventType = "task.started"
	EventTaskUpdated   EventType = "task.updated" // it goes on after a wait, or something about it changed
	EventTaskVerifying EventType = "task.verifying"
	EventTaskRetrying  EventType = "task.retrying"
	EventTaskCompleted EventType = "task.completed"
	EventTaskFailed    EventType = "task.failed"
	EventTaskCancelled EventType = "task.cancelled"
	EventTaskBlocked   EventType = "task.blocked"
	EventTaskReturned  EventType = "task.returned"  // its work was not taken: it is back at its worker, who is told why
	EventTaskDelivered EventType = "task.delivered" // its result stands in its parent's history
	EventTaskFenced    EventType = "task.fenced"    // a superseded attempt was kept from writing
	EventTaskStalled   EventType = "task.stalled"   // nothing came from it: its turn is cut off and tried again

	EventSessionCreated EventType = "session.created"
	EventSessionIdle    EventType = "session.idle"
	EventSessionError   EventType = "session.error"
	EventMessageQueued  EventType = "message.queued"  // written by somebody, on its way into a session's history
	EventSessionDeleted EventType = "session.deleted" // its task ended long ago: it can be read and not be resumed
	EventSessionAborted EventType = "session.aborted" // a person has stopped its turn, or that it goes on unasked
	EventSessionModel   EventType = "session.model"   // it goes on with another model
	EventMessageCreated EventType = "message.created"
	EventMessageUpdated EventType = "message.updated"
	EventPartUpdated    EventType = "message.part.updated"
	EventDelta          EventType = "message.part.delta" // not stored; carries After in place of Seq
	EventToolStarted    EventType = "tool.started"
	EventToolCompleted  EventType = "tool.completed"
	EventProviderRetry  EventType = "provider.retrying"
	EventCompacted      EventType = "session.compacted" // a summary stands for the older part of its history
	EventRewound        EventType = "session.rewound"   // it goes on from an older message, or from one of another branch
	EventForked         EventType = "session.forked"    // it is a copy of another one, in a mission of its own

	EventVerifyStarted EventType = "verify.started"
	EventVerifyPassed  EventType = "verify.passed"
	EventVerifyFailed  EventType = "verify.failed"
	EventMergeDone     EventType = "merge.done"
	EventMergeConflict EventType = "merge.conflict"
	EventMergeUndone   EventType = "merge.undone" // a person has taken work back

	EventPermissionAsked   EventType = "permission.asked"
	EventPermissionReplied EventType = "permission.replied"
	EventQuestionAsked     EventType = "question.asked"
	EventQuestionAnswered  EventType = "question.answered"
	EventBudgetExceeded    EventType = "budget.exceeded"
	EventToast             EventType = "tui.toast.show" // not stored: derived from facts for who asks; carries After in place of Seq
)

// EndsMission reports whether the type is the last event of one run of a mission.
func (t EventType) EndsMission() bool {
	switch t {
	case EventMissionCompleted, EventMissionFailed, EventMissionPaused, EventMissionBlocked, EventMissionCancelled:
		return true
	}
	return false
}

// Event is a fact. Seq is its row in the project's journal: increasing, never reused. A token delta is not stored: it
// has no Seq and carries in After the sequence number that it came after.
type Event struct {
	Seq     int64           `json:"seq,omitempty"`
	After   int64           `json:"after,omitempty"`
	Time    Time            `json:"time"`
	Type    EventType       `json:"type"`
	Mission string          `json:"mission,omitempty"`
	Session string          `json:"session,omitempty"`
	Task    string          `json:"task,omitempty"`
	Data    json.RawMessage `json:"data"`
}
