package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"centurion/cmd/centurion/config"
	"centurion/orchestrator"
)

// ORCH-12, ORCH-36, ORCH-37, ORCH-42, ORCH-43: each constant that a person may change in a file reaches the orchestrator
// under its own name, and nothing else changes with it.
func TestLimitsReachTheOrchestrator(t *testing.T) {
	const d = 77 * time.Second
	for key, c := range map[string]struct {
		value string
		want  func(*orchestrator.Config)
	}{
		"max_workers":          {"7", func(c *orchestrator.Config) { c.Workers = 7 }},
		"max_per_agent":        {"7", func(c *orchestrator.Config) { c.PerAgent = 7 }},
		"poll_interval":        {`"77s"`, func(c *orchestrator.Config) { c.PollInterval = d }},
		"stall_timeout":        {`"77s"`, func(c *orchestrator.Config) { c.StallTimeout = d }},
		"session_ttl":          {`"77s"`, func(c *orchestrator.Config) { c.SessionTTL = d }},
		"retention":            {`"77s"`, func(c *orchestrator.Config) { c.Retention = d }},
		"archive_after":        {`"77s"`, func(c *orchestrator.Config) { c.ArchiveAfter = d }},
		"archive_failed_after": {`"77s"`, func(c *orchestrator.Config) { c.ArchiveFailedAfter = d }},
		"keep_tasks":           {"7", func(c *orchestrator.Config) { c.KeepTasks = 7 }},
		"wait_timeout":         {`"77s"`, func(c *orchestrator.Config) { c.Await = d }},
		"gate_release":         {`"77s"`, func(c *orchestrator.Config) { c.GateWait = d }},
		"retry_delay":          {`"77s"`, func(c *orchestrator.Config) { c.Recovery.Cooldown = d }},
		"max_attempts":         {"7", func(c *orchestrator.Config) { c.Recovery.MaxAttempts = 7 }},
		"countdown":            {`"77s"`, func(c *orchestrator.Config) { c.Countdown = d }},
		"stuck_rounds":         {"7", func(c *orchestrator.Config) { c.NewApproach = 7 }},
		"pause_rounds":         {"7", func(c *orchestrator.Config) { c.GiveUp = 7 }},
		"max_reopened":         {"7", func(c *orchestrator.Config) { c.Returns = 7 }},
		"compaction":           {`{"buffer": 7}`, func(c *orchestrator.Config) { c.Buffer = 7 }},
	} {
		t.Run(key, func(t *testing.T) {
			var want orchestrator.Config
			c.want(&want)
			if got := limited(orchestrator.Config{}, ownWith(t, key, c.value)); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
		})
	}
	if r := runner("m", ownWith(t, "max_commands", "7")); r.Slots != 7 || r.Mark != "m" {
		t.Errorf("max_commands: %d", r.Slots)
	}
}

// ownWith reads a person's file with one key.
func ownWith(t *testing.T, key, value string) config.Own {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	file := filepath.Join(home, ".config", "centurion", "config.jsonc")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"`+key+`": `+value+`}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{Dir: dir, Home: home, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Own
}
