//go:build unix && !linux

package sandbox

// runs reports whether a process group that has members has one that still runs. Dead processes are collected at once
// by the first process of these systems.
func runs(int) bool { return true }
