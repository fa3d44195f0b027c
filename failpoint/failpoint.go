// Package failpoint names the steps at which a crash would hurt most, so that a trial can kill the program at each of
// them. In a normal build [Hit] is empty. A build with the tag `failpoint` obeys the environment:
//
//	CENTURION_FAILPOINT=commit-after:3   end the process with SIGKILL when that step is reached for the third time
//	CENTURION_FAILPOINT_LOG=FILE         append the name of every step that is reached, one a line
//
// It decides nothing and keeps no state of the program.
package failpoint

// Point is the name of a step.
type Point string

// The steps. A step belongs to the code that calls [Hit] with it; a trial checks that each is reached.
const (
	CommitBefore     Point = "commit-before"      // a transaction is written, its commit is not
	CommitAfter      Point = "commit-after"       // committed, not yet published
	Migration        Point = "migration"          // a step of a migration is applied, not committed
	TaskRecorded     Point = "task-recorded"      // a delegated task is recorded, no work has started
	AttemptStarted   Point = "attempt-started"    // a task has its session, which is not open yet
	AnswerBefore     Point = "answer-before"      // an answer has streamed, but is not accepted
	AnswerAccepted   Point = "answer-accepted"    // an answer with its calls is accepted, no tool has run
	ToolRan          Point = "tool-ran"           // a tool has run, its result is not stored
	CheckRan         Point = "check-ran"          // an acceptance command has run, its receipt is not stored
	TodoBeforeRename Point = "todo-before-rename" // the new plan is written beside the old one
	TodoAfterRename  Point = "todo-after-rename"  // the new plan is in place, its directory is not synced
	TaskEnded        Point = "task-ended"         // a task's end and its delivery are recorded, its item is not marked
	DeliveryTaken    Point = "delivery-taken"     // a result is in its parent's history, the model has not seen it
	AskStored        Point = "ask-stored"         // a question for a person is stored, nothing waits for the answer yet
	AskAnswered      Point = "ask-answered"       // its answer is stored, but not delivered
	MissionVerdict   Point = "mission-verdict"    // a mission has its verdict, not recorded yet
	MergeBefore      Point = "merge.before"       // a merge is recorded, the branch has not moved
	MergeAfter       Point = "merge.after"        // the branch has moved, not yet published
	SnapshotTaken    Point = "snapshot.taken"     // the snapshot of a mission's base is made, not recorded
	CheckoutTaken    Point = "checkout.taken"     // a session's checkout is made, its owner is not recorded
	CheckoutLeft     Point = "checkout.left"      // a checkout is released, its task still names it
	MergeIntent      Point = "merge.intent"       // a merge into the person's branch is recorded, git has not started it
	LandingJournal   Point = "landing.journal"    // the changes to the person's files are recorded, none is made
	LandingMoved     Point = "landing.moved"      // the person's branch has moved, their files and index have not changed
	LandingPlaced    Point = "landing.placed"     // their files are changed, the index is not
	LandingIndexed   Point = "landing.indexed"    // files and index are changed, their journal still exists
	LandingDone      Point = "landing.done"       // git is done with the person's branch, the mission's record is not updated
	UndoMoved        Point = "undo.moved"         // an undo has moved the mission's branch, or the project's files; its tasks do not say so
	UndoRecorded     Point = "undo.recorded"      // an undo or a redo is recorded, the plan and the notes do not say so
	CompactionStored Point = "compaction"         // a summary and the pointer to the kept messages are stored, no request has used them
)

// All lists every step.
func All() []Point {
	return []Point{CommitBefore, CommitAfter, Migration, TaskRecorded, AttemptStarted, AnswerBefore, AnswerAccepted, ToolRan,
		CheckRan, TodoBeforeRename, TodoAfterRename, TaskEnded, DeliveryTaken, AskStored, AskAnswered, MissionVerdict,
		MergeBefore, MergeAfter, SnapshotTaken, CheckoutTaken, CheckoutLeft, MergeIntent, LandingJournal, LandingMoved, LandingPlaced,
		LandingIndexed, LandingDone, UndoMoved, UndoRecorded, CompactionStored}
}
