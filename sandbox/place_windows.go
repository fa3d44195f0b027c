package sandbox

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"

	"centurion"
	"centurion/sandbox/confine"
)

var systemWays = []confine.Way{confine.Full, confine.Job}

// confined is how the commands of a place are started on Windows: in job objects, with limits if they are confined.
type confined struct{ limits confine.Limits }

func (c *confined) open(how *Confinement, _ confine.Policy, _ string, _ []string) error {
	if how.Way != confine.Job {
		return errors.New("on Windows there are only job objects")
	}
	c.limits = how.Limits
	return nil
}

func (c *confined) gone() bool { return false }

func (c *confined) start(m centurion.Command, args, env []string, _ string, s streams) (process, error) {
	return startJob(m, args, env, s, c.limits)
}

func (c *confined) lend(string, []string, bool) error { return nil }

func (c *confined) close() error { return nil }

var globalMemoryStatus = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// DefaultLimits returns the limits of a command: 512 processes, and half of the machine's memory.
func DefaultLimits() confine.Limits {
	limits := confine.Limits{Processes: defaultProcesses}
	var status struct { // MEMORYSTATUSEX
		length, load uint32
		total        uint64
		rest         [6]uint64
	}
	status.length = uint32(unsafe.Sizeof(status))
	if ok, _, _ := globalMemoryStatus.Call(uintptr(unsafe.Pointer(&status))); ok != 0 {
		limits.Memory = int64(status.total / 2)
	}
	return limits
}
