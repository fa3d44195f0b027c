package centurion

import (
	"maps"
	"testing"
)

// A blocked or failed task that another has gone on with names the newest that did; a review of its item, a task that was cancelled and
// the order the other way round name none.
func TestContinued(t *testing.T) {
	tasks := []Task{
		{ID: "before", Item: "T4", Status: TaskCompleted},
		{ID: "a", Item: "T4", Session: "s1", Status: TaskBlocked},
		{ID: "review", Item: "T4", Reviews: true, Status: TaskBlocked},
		{ID: "b", Item: "T4", Session: "s1", Resumes: "a", Status: TaskFailed},
		{ID: "c", Item: "T4", Session: "s2", Status: TaskRunning},
		{ID: "alone", Item: "T5", Session: "s3", Status: TaskBlocked},
		{ID: "gone", Item: "T5", Status: TaskCancelled},
		{ID: "x", Session: "s4", Status: TaskBlocked},
		{ID: "y", Session: "s4", Status: TaskBlocked},
		{ID: "judged", Item: "T6", Status: TaskFailed},
		{ID: "judge", Item: "T6", Reviews: true, Status: TaskRunning},
		{ID: "reverted", Item: "T7", Status: TaskCompleted, Undone: MillisTime(1)},
		{ID: "redone", Item: "T7", Status: TaskRunning},
		{ID: "lone", Status: TaskBlocked},
		{ID: "heir", Resumes: "lone", Status: TaskRunning},
		{ID: "undone", Item: "T8", Status: TaskCancelled, Undone: MillisTime(1)},
		{ID: "later", Item: "T8", Status: TaskRunning},
		{ID: "z", Status: TaskCompleted},
	}
	want := map[string]string{"a": "c", "b": "c", "x": "y", "reverted": "redone", "lone": "heir"}
	if got := Continued(tasks); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
