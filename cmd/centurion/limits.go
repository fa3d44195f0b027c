package main

import (
	"centurion/cmd/centurion/config"
	"centurion/orchestrator"
	"centurion/recovery"
	"centurion/sandbox"
)

// limited returns what an orchestrator works with, with the constants that a person has changed.
func limited(c orchestrator.Config, own config.Own) orchestrator.Config {
	c.Workers, c.PerAgent, c.Countdown, c.Returns = own.MaxWorkers, own.MaxPerAgent, own.Countdown, own.MaxReopened
	c.Await, c.GateWait, c.NewApproach, c.GiveUp = own.WaitTimeout, own.GateRelease, own.StuckRounds, own.PauseRounds
	c.PollInterval, c.StallTimeout, c.SessionTTL = own.PollInterval, own.StallTimeout, own.SessionTTL
	c.Retention, c.ArchiveAfter, c.ArchiveFailedAfter, c.KeepTasks = own.Retention, own.ArchiveAfter, own.ArchiveFailedAfter, own.KeepTasks
	c.Buffer, c.TaskBudget = own.CompactionBuffer, own.TaskBudget
	c.Recovery = recovery.Policy{MaxAttempts: own.MaxAttempts, Cooldown: own.RetryDelay}
	return c
}

// runner returns what runs the commands of a host.
func runner(mark string, own config.Own) *sandbox.Runner {
	return &sandbox.Runner{Mark: mark, Slots: own.MaxCommands}
}
