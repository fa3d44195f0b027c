//go:build unix

package main

import (
	"os"
	"syscall"
)

// jobSignals stop a process and let it go on, as a shell's job control does, or tell it that its terminal is gone.
var jobSignals = map[string]os.Signal{"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "HUP": syscall.SIGHUP}
