//go:build !linux

package orchestrator

func inMemory() func() { return func() {} }
