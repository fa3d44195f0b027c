package centurion

// Continued tells which tasks that are blocked, failed or reverted another one has gone on with, and which one that is: by the id of the one
// before, the id of the newest. A task goes on with another one if it was handed its session or its item later. A review of an item
// goes on with nobody's work. The tasks are given oldest first.
func Continued(tasks []Task) map[string]string {
	out := map[string]string{}
	for i, t := range tasks {
		if t.Status != TaskBlocked && t.Status != TaskFailed && !t.Reverted() {
			continue
		}
		for _, later := range tasks[i+1:] {
			if goesOn(t, later) {
				out[t.ID] = later.ID
			}
		}
	}
	return out
}

// StatusContinued is told in place of the state of a task that [Continued] names, where tasks are counted or listed by their state. No
// task is recorded with it.
const StatusContinued TaskStatus = "continued"

// StatusReverted is told in the same way in place of the state of a completed task whose work a person has reverted.
const StatusReverted TaskStatus = "reverted"

// Reverted reports whether the task was completed and a person has reverted its work.
func (t Task) Reverted() bool { return t.Status == TaskCompleted && !t.Undone.IsZero() }

func goesOn(t, later Task) bool {
	switch {
	case later.Status == TaskCancelled || later.ID == t.ID:
		return false
	case later.Resumes == t.ID || t.Session != "" && later.Session == t.Session:
		return true
	}
	return t.Item != "" && later.Item == t.Item && !later.Reviews && !t.Reviews
}
