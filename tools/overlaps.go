package tools

// Overlaps is the advice for models about files that several sessions change. With apart each session has a worktree of its own.
func Overlaps(apart bool) string {
	const scheduled = "Items whose `files:` overlap run one after the other. "
	if apart {
		return scheduled + "Nothing else is locked: each session has its own worktree, and the host merges them; a conflict comes back to the later one."
	}
	return scheduled + "All sessions share one directory: until an item ends, only its agent may change the files that it names or has written."
}
