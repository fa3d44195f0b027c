package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"centurion/config"
	"centurion/loop"
	"centurion/orchestrator"
	"centurion/orchestrator/retention"
	"centurion/recovery"
)

// Issue "A person's first hour" 17: docs/configuration.md names every flag of run that has a key, and the defaults that the program has.
func TestConfigurationPageIsTrue(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	defaults, flags := map[string]string{}, []string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 5 && strings.HasPrefix(line, "| `") {
			defaults[strings.Trim(cells[0], "| `")] = cells[2]
			if f := strings.Trim(cells[3], "`-"); f != "" {
				flags = append(flags, strings.Trim(cells[3], "`")[2:])
			}
		}
	}
	run := runCommand(&cli{out: io.Discard, err: io.Discard})
	run.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(flags, f.Name) && f.Name != "dir" && f.Name != "file" && f.Name != "plan" && f.Name != "help" {
			t.Errorf("--%s has no key in docs/configuration.md", f.Name)
		}
	})
	for _, f := range flags {
		if run.Flags().Lookup(f) == nil {
			t.Errorf("run has no flag --%s", f)
		}
	}
	for key, want := range map[string]any{"max_workers": orchestrator.DefaultWorkers, "max_per_agent": orchestrator.DefaultPerAgent, "max_cost": defaultMaxCost,
		"poll_interval": orchestrator.DefaultPollInterval, "stall_timeout": orchestrator.DefaultStallTimeout, "session_ttl": orchestrator.DefaultSessionTTL,
		"sub_agent_idle": orchestrator.DefaultSubAgentIdle, "retention": retention.DefaultRetention, "archive_after": retention.DefaultArchiveAfter,
		"archive_failed_after": retention.DefaultArchiveFailedAfter, "keep_tasks": retention.DefaultKeepTasks, "wait_timeout": orchestrator.DefaultAwait,
		"gate_release": orchestrator.DefaultGateWait, "retry_delay": recovery.DefaultCooldown, "max_attempts": recovery.DefaultMaxAttempts,
		"countdown": orchestrator.DefaultCountdown, "stuck_rounds": loop.DefaultNewApproach, "pause_rounds": loop.DefaultGiveUp, "max_reopened": orchestrator.DefaultReturns} {
		got := any(defaults[key])
		if d, ok := want.(time.Duration); ok {
			parsed, err := time.ParseDuration(defaults[key])
			if err != nil || parsed != d {
				t.Errorf("%s: the page says %q, the program %v", key, defaults[key], d)
			}
		} else if got != fmt.Sprint(want) {
			t.Errorf("%s: the page says %q, the program %v", key, got, want)
		}
	}
}

// Contract "Configuration": merge and detach stand in a file as well as on the command line.
func TestSwitchesOfTheConfiguration(t *testing.T) {
	f := runFlags{}
	if err := f.settle(config.Own{Merge: true, Detach: true, Yes: true}); err != nil || !f.merge || !f.detach || !f.yes {
		t.Errorf("%+v, %v", f, err)
	}
}
