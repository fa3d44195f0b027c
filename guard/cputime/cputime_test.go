package cputime

import (
	"runtime"
	"testing"
	"time"
)

// Work is counted.
func TestUsed(t *testing.T) {
	if runtime.GOOS != "windows" && Used() == 0 {
		t.Fatal("a process that runs has used nothing")
	}
	const work = 20 * time.Millisecond // more than the coarsest clock of a system, 15.6 ms
	begun := time.Now()
	before := Used()
	for Used()-before < work {
		if time.Since(begun) > time.Minute {
			t.Fatal("a minute of work was not counted")
		}
	}
}
