//go:build unix

package main

import (
	"os"
	"syscall"
)

// jobSignals stop a process and let it go on, as a shell's job control does.
var jobSignals = map[string]os.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}
