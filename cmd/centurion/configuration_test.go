package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	for key, want := range programDefaults() {
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

// programDefaults are the defaults of keys as the program has them.
func programDefaults() map[string]any {
	return map[string]any{"max_workers": orchestrator.DefaultWorkers, "max_per_agent": orchestrator.DefaultPerAgent, "max_cost": defaultMaxCost,
		"poll_interval": orchestrator.DefaultPollInterval, "stall_timeout": orchestrator.DefaultStallTimeout, "session_ttl": orchestrator.DefaultSessionTTL,
		"sub_agent_idle": orchestrator.DefaultSubAgentIdle, "retention": retention.DefaultRetention, "archive_after": retention.DefaultArchiveAfter,
		"archive_failed_after": retention.DefaultArchiveFailedAfter, "keep_tasks": retention.DefaultKeepTasks, "wait_timeout": orchestrator.DefaultAwait,
		"gate_release": orchestrator.DefaultGateWait, "retry_delay": recovery.DefaultCooldown, "max_attempts": recovery.DefaultMaxAttempts,
		"countdown": orchestrator.DefaultCountdown, "stuck_rounds": loop.DefaultNewApproach, "pause_rounds": loop.DefaultGiveUp, "max_reopened": orchestrator.DefaultReturns}
}

// S4: a limit in a project's file counts without trust if it is no wider than the program's own.
func TestLimitsOfAProject(t *testing.T) {
	withheld := func(key, value string) bool {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, ".opencode"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".opencode", "centurion.jsonc"), []byte(`{"`+key+`": `+value+`}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.Load(config.Options{Dir: dir, Home: t.TempDir(), Env: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		return len(c.ProjectFiles()) > 0
	}
	limits := programDefaults()
	limits["max_commands"], limits["max_retries"], limits["idle_timeout"] = max(2, runtime.NumCPU()), 8, 2*time.Minute // of package provider, which does not export them
	for key, own := range limits {
		same, wider, narrower := fmt.Sprint(own), fmt.Sprint(own), fmt.Sprint(own)
		switch own := own.(type) {
		case int:
			wider, narrower = fmt.Sprint(own+1), fmt.Sprint(own-1)
		case float64:
			wider, narrower = fmt.Sprint(own+1), fmt.Sprint(own-1)
		case time.Duration:
			same, wider, narrower = strconv.Quote(own.String()), strconv.Quote((own + 1).String()), strconv.Quote((own - 1).String())
		}
		if withheld(key, same) || withheld(key, narrower) || !withheld(key, wider) {
			t.Errorf("%s: %s, narrower %s, wider %s are not judged by the program's own", key, same, narrower, wider)
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
