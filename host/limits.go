package host

import (
	"time"

	"centurion/config"
	"centurion/orchestrator"
	"centurion/recovery"
	"centurion/sandbox"
	"centurion/session"
)

// limits is what a person has configured of how much, how often and for how long; what is zero has the orchestrator's default.
func limits(cfg *config.Config, how Options) orchestrator.Config {
	o := &cfg.Own
	return orchestrator.Config{Workers: o.MaxWorkers, PerAgent: o.MaxPerAgent, Countdown: o.Countdown, Returns: o.MaxReopened,
		Await: o.WaitTimeout, GateWait: o.GateRelease, NewApproach: o.StuckRounds, GiveUp: o.PauseRounds,
		AskTimeout: o.AskTimeout, Buffer: o.CompactionBuffer, DiskWait: how.DiskWait, TaskBudget: o.TaskBudget,
		PollInterval: o.PollInterval, SessionTTL: o.SessionTTL,
		StallTimeout: beyondSilence(o.StallTimeout, orchestrator.DefaultStallTimeout, o), SubAgentIdle: beyondSilence(o.SubAgentIdle, orchestrator.DefaultSubAgentIdle, o),
		Retention: o.Retention, ArchiveAfter: o.ArchiveAfter, ArchiveFailedAfter: o.ArchiveFailedAfter, KeepTasks: o.KeepTasks,
		Policy: session.Policy(o.ToolPolicy), EveryEvent: o.Persist == "every_event",
		Recovery: recovery.Policy{MaxAttempts: o.MaxAttempts, Cooldown: o.RetryDelay}}
}

// beyondSilence returns a limit of silence as it was configured. One that was not is above how long a provider may be silent,
// so that a request to one that a person has given more time is not cut off by who watches it.
func beyondSilence(own, usual time.Duration, o *config.Own) time.Duration {
	if own == 0 && o.IdleTimeout >= usual {
		return o.IdleTimeout + time.Minute
	}
	return own
}

// newRunner returns what runs the commands of a host.
func newRunner(mark string, own config.Own) *sandbox.Runner {
	return &sandbox.Runner{Mark: mark, Slots: own.MaxCommands}
}
