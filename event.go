package centurion

import "encoding/json"

// EventType names a kind of event. Scripts wait for these names; they keep their spelling.
type EventType string

// The types of event. All but EventDelta and EventToast are committed facts with a sequence number.
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
	EventTaskUpdated   EventType = "task.updated" // it continues after a wait, or something about it changed
	EventTaskVerifying EventType = "task.verifying"
	EventTaskRetrying  EventType = "task.retrying"
	EventTaskCompleted EventType = "task.completed"
	EventTaskFailed    EventType = "task.failed"
	EventTaskCancelled EventType = "task.cancelled"
	EventTaskBlocked   EventType = "task.blocked"
	EventTaskReturned  EventType = "task.returned"  // its work was rejected and returned to its worker with the reason
	EventTaskDelivered EventType = "task.delivered" // its result is in its parent's history
	EventTaskFenced    EventType = "task.fenced"    // a write of a superseded attempt was refused
	EventTaskStalled   EventType = "task.stalled"   // it was silent: its turn is aborted and retried

	EventSessionOpened  EventType = "session.opened"  // it exists, and has no mission before its first message
	EventSessionRenamed EventType = "session.renamed" // a person has changed its title, or what it will begin with, or has archived it or reverted its end
	EventSessionRemoved EventType = "session.removed" // a person has removed it from lists: it can be read by its id
	EventSessionCreated EventType = "session.created"
	EventSessionIdle    EventType = "session.idle"
	EventSessionError   EventType = "session.error"
	EventMessageQueued  EventType = "message.queued"  // a message to a session, not in its history yet
	EventSessionDeleted EventType = "session.deleted" // its task ended long ago: it can be read but not resumed
	EventSessionAborted EventType = "session.aborted" // a person has stopped its turn, or it continues
	EventSessionModel   EventType = "session.model"   // it continues with another model
	EventSessionAgent   EventType = "session.agent"   // it continues with another agent, which a message names
	EventMessageCreated EventType = "message.created"
	EventMessageUpdated EventType = "message.updated"
	EventPartUpdated    EventType = "message.part.updated"
	EventDelta          EventType = "message.part.delta" // not stored; has After instead of Seq
	EventToolStarted    EventType = "tool.started"
	EventToolCompleted  EventType = "tool.completed"
	EventProviderRetry  EventType = "provider.retrying"
	EventCompacted      EventType = "session.compacted" // a summary replaced the older part of its history
	EventRewound        EventType = "session.rewound"   // it continues from an older message, or from another branch
	EventForked         EventType = "session.forked"    // it is a copy of another session, in its own mission

	EventVerifyStarted EventType = "verify.started"
	EventVerifyPassed  EventType = "verify.passed"
	EventVerifyFailed  EventType = "verify.failed"
	EventMergeDone     EventType = "merge.done"
	EventMergeConflict EventType = "merge.conflict"
	EventMergeUndone   EventType = "merge.undone" // a person has undone a merge

	EventPermissionAsked   EventType = "permission.asked"
	EventPermissionReplied EventType = "permission.replied"
	EventQuestionAsked     EventType = "question.asked"
	EventQuestionAnswered  EventType = "question.answered"
	// EventPluginActed: plugins have changed something of a session, or answered for a person. What concerns one call stands in its record.
	EventPluginActed    EventType = "plugin.acted"
	EventBudgetExceeded EventType = "budget.exceeded"
	EventToast          EventType = "tui.toast.show" // not stored: derived from other events on request; has After instead of Seq
)

// EndsMission reports whether the type is the last event of one run of a mission.
func (t EventType) EndsMission() bool {
	switch t {
	case EventMissionCompleted, EventMissionFailed, EventMissionPaused, EventMissionBlocked, EventMissionCancelled:
		return true
	}
	return false
}

// Event is a fact. Seq is its row in the project's journal: increasing, never reused. A token delta is not stored: it has no Seq; After
// is the sequence number of the event before it.
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
