package sandbox

// process is the shell of a command that was started.
type process interface {
	pid() int         // as this process sees it; also the number of its process group
	wait() int        // until the shell has exited; its exit code, -1 after a signal
	exceeded() string // after wait: the limit for which the command was killed; "" if for none
	release()         // at the end: gives back what the system keeps for it
}
