// Package toolset fulfils the interfaces that the tools declare, for one session of a mission each: its background commands and the
// texts that all sessions share. It knows a session as an [Owner] and never drives one.
package toolset

import "context"

// Owner is the session that tools act for.
type Owner struct {
	Session string
	Attempt int             // the fencing number of its task's attempt; 0 for the mission's own agent
	Life    context.Context // ends with its task, for the mission's own agent with the mission
	Current func() error    // refuses what a superseded attempt still wants to write
}
