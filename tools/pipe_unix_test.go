//go:build unix

package tools

import (
	"syscall"
	"testing"
)

func makePipe(t *testing.T, name string) bool {
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return true
}
