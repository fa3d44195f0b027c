package tools

// Overlaps is what a model is told of files that several work on, wherever that is said: it follows from where sessions write. apart says
// that each has a worktree of its own.
func Overlaps(apart bool) string {
	const scheduled = "Items whose `files:` overlap run one after the other. "
	if apart {
		return scheduled + "Otherwise no file is locked: each session writes in a worktree of its own. Who changes the same file at the same time is told once, " +
			"and the host merges both; a conflict comes back to whoever ends later."
	}
	return scheduled + "All sessions write in one directory: until an item ends, nobody else can `write` or `edit` the files that it names or has written."
}
