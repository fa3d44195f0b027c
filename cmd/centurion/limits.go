package main

import (
	"centurion/cmd/centurion/config"
	"centurion/orchestrator"
	"centurion/recovery"
	"centurion/sandbox"
)

// limits is what a person has configured of how much, how often and for how long; what is zero has the orchestrator's default.
func limits(cfg *config.Config, how manner) orchestrator.Config {
	o := &cfg.Own
	return orchestrator.Config{Workers: o.MaxWorkers, PerAgent: o.MaxPerAgent, Countdown: o.Countdown, Returns: o.MaxReopened,
		Await: o.WaitTimeout, GateWait: o.GateRelease, NewApproach: o.StuckRounds, GiveUp: o.PauseRounds,
		Buffer: o.CompactionBuffer, DiskWait: how.diskWait, TaskBudget: o.TaskBudget,
		PollInterval: o.PollInterval, StallTimeout: o.StallTimeout, SessionTTL: o.SessionTTL,
		Retention: o.Retention, ArchiveAfter: o.ArchiveAfter, ArchiveFailedAfter: o.ArchiveFailedAfter, KeepTasks: o.KeepTasks,
		Recovery: recovery.Policy{MaxAttempts: o.MaxAttempts, Cooldown: o.RetryDelay}}
}

// runner returns what runs the commands of a host.
func runner(mark string, own config.Own) *sandbox.Runner {
	return &sandbox.Runner{Mark: mark, Slots: own.MaxCommands}
}
