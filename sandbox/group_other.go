//go:build unix && !linux

package sandbox

// runs reports whether a non-empty process group has a running member. The first process of these systems reaps zombies at once.
func runs(int) bool { return true }
