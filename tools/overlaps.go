package tools

// Overlaps is what a model is told about files that several sessions change, the same wherever it is told. With apart each session has a
// worktree of its own.
func Overlaps(apart bool) string {
	const scheduled = "Items whose `files:` overlap run one after the other. "
	if apart {
		return scheduled + "Otherwise no file is locked: each session writes in a worktree of its own. Sessions that change the same file at the same time are told so once; " +
			"the host merges both, and a conflict comes back to the one that ends later."
	}
	return scheduled + "All sessions write in one directory: until an item ends, nobody else can `write` or `edit` the files that it names or has written."
}
