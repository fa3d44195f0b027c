//go:build !linux

package doctor

import (
	"context"
	"os/exec"
	"runtime"
)

// abilities returns what the system could confine a command with.
func abilities(context.Context) []string {
	if _, err := exec.LookPath("/usr/bin/sandbox-exec"); runtime.GOOS == "darwin" && err == nil {
		return []string{"Seatbelt (sandbox-exec)"}
	}
	if runtime.GOOS == "windows" {
		return []string{"job objects"}
	}
	return []string{"nothing that is known for " + runtime.GOOS}
}
