// Package cputime measures a process's work. Tests and benchmarks limit that instead of wall time, which depends on what else the
// machine does.
package cputime

import "time"

// Used returns the CPU time of all threads of this process since its start, user and system; 0 if the system does not report it.
// Concurrent threads, including the garbage collector's, make it exceed wall time: compare two calls between which nothing else runs in
// this process.
func Used() time.Duration { return used() }
