package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"centurion"
)

var inForce = []string{
	"processes: the shell is ended; what it started may survive it",
}

const sweepInForce = "a host that was killed: nothing ends what it left running"

var terminateSignal = os.Kill

// scan finds nothing: the environment of other processes is not readable on Windows.
func scan(context.Context, string) ([]Process, error) { return nil, nil }

func marked(int, string) bool { return false }

func isolate(*exec.Cmd) {}

// terminate does nothing: Windows has no signal that asks a process to end.
func terminate(process) {}

func kill(p process) {
	if c, ok := p.(*child); ok {
		_ = c.cmd.Process.Kill()
	}
}

func alive(process) bool { return false }

// findShell looks for the sh of Git. Windows' own command processor will not do: permission rules assume sh's interpretation of a
// script.
func findShell() (string, error) {
	if shell, err := exec.LookPath("sh.exe"); err == nil {
		return shell, nil
	}
	for _, name := range []string{"ProgramFiles", "ProgramW6432", "LocalAppData"} {
		for _, sub := range []string{`Git\bin\sh.exe`, `Programs\Git\bin\sh.exe`} {
			path := filepath.Join(os.Getenv(name), sub)
			if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) {
				return path, nil
			}
		}
	}
	return "", &centurion.Error{Op: "run command", Kind: centurion.KindNotFound, Msg: "no sh.exe found",
		Hint: "install Git for Windows, which brings one"}
}
