//go:build !linux

package doctor

import (
	"context"
	"runtime"
)

// abilities returns what the system could confine a command with. Only Linux is supported so far.
func abilities(context.Context) []string {
	return []string{"nothing that is known for " + runtime.GOOS}
}
