// Package cputime tells how much work a process did. Tests and benchmarks bound that instead of the time on the clock, which
// says as much of what else the machine does. It acts on nothing.
package cputime

import "time"

// Used returns the processor time that all threads of this process have used since its start, in the program and in the system;
// 0 where the system does not tell. Several threads at once make it longer than the time on the clock, also those of the
// garbage collector: compare two calls between which nothing else runs in this process.
func Used() time.Duration { return used() }
