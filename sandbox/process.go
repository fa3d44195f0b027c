package sandbox

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
)

// streams are the standard streams of a command. Where both outputs are one file, they keep their order.
type streams struct {
	in  *os.File // nil is an empty one
	out *os.File
	err *os.File // nil is out
}

// list returns the streams that there are: out, in, err.
func (s streams) list() []*os.File {
	return slices.DeleteFunc([]*os.File{s.out, s.in, s.err}, func(f *os.File) bool { return f == nil })
}

func (s streams) close() {
	for _, f := range s.list() {
		_ = f.Close()
	}
}

// set gives a command its streams.
func (s streams) set(cmd *exec.Cmd) {
	cmd.Stdout, cmd.Stderr = s.out, cmp.Or(s.err, s.out)
	if s.in != nil { // a nil file in the interface would not be an empty input
		cmd.Stdin = s.in
	}
}

// process is the shell of a command that was started.
type process interface {
	pid() int         // as this process sees it; also the number of its process group
	wait() int        // until the shell has exited; its exit code, -1 after a signal
	exceeded() string // after wait: the limit for which the command was killed; "" if for none
	release()         // at the end: gives back what the system keeps for it
}
