package centurion

// Continued returns, by task id, the newest task that continues a blocked, failed or reverted one. A task continues another one if it
// was given its session or its item later. A review of an item continues no work. tasks are ordered oldest first.
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

// StatusContinued replaces the status of a task in [Continued] where tasks are counted or listed by status. It is never stored.
const StatusContinued TaskStatus = "continued"

// StatusReverted likewise replaces the status of a completed task whose work a person has reverted.
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
