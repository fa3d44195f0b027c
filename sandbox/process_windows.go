package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"centurion"
)

var inForce = []string{
	"processes: one job object for each command, ended as a whole with everything that the command started",
}

const sweepInForce = "a host that was killed: Windows ends what it left running"

var terminateSignal = os.Kill

// scan finds nothing: no process outlives its job object, which ends with the host.
func scan(context.Context, string) ([]Process, error) { return nil, nil }

func marked(int, string) bool { return false }

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

// terminate ends the command at once: Windows has no signal that asks a process to end.
func terminate(p process) { kill(p) }

func kill(p process) {
	if j, ok := p.(*job); ok {
		j.kill()
	}
}

// alive reports whether a process of the command runs.
func alive(p process) bool {
	j, ok := p.(*job)
	return ok && j.running()
}
