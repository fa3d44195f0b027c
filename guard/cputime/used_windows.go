package cputime

import (
	"syscall"
	"time"
)

func used() time.Duration {
	var created, exited, kernel, user syscall.Filetime
	p, err := syscall.GetCurrentProcess()
	if err != nil || syscall.GetProcessTimes(p, &created, &exited, &kernel, &user) != nil {
		return 0
	}
	// In units of 100 ns: these are durations, and Filetime.Nanoseconds would treat them as dates.
	of := func(f syscall.Filetime) time.Duration {
		return time.Duration(uint64(f.HighDateTime)<<32|uint64(f.LowDateTime)) * 100
	}
	return of(kernel) + of(user)
}
