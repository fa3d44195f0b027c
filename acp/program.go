package acp

import (
	"context"
	"time"

	"centurion"
	"centurion/guard/peer"
)

// Program is an agent, and how it is started.
type Program struct {
	Name    string
	Command string        // for people
	Version string        // of this program
	Stable  time.Duration // how long it must not change to count as idle, if it does not say that its turn has ended; 0 is [DefaultStable]
	// Start starts it in a session's checkout. ctx limits the start.
	Start func(ctx context.Context, at centurion.Place) (Process, error)
}

// Process is a running program that is spoken with over its standard streams.
type Process = peer.Process
