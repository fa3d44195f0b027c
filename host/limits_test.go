package host

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"centurion"
	"centurion/config"
	"centurion/orchestrator"
	"centurion/recovery"
	"centurion/sandbox"
	"centurion/sandbox/confine"
	"centurion/session"
)

// ORCH-12, ORCH-36, ORCH-37, ORCH-42, ORCH-43, ORCH-84, ORCH-85, ORCH-91, ORCH-119, ORCH-127, ORCH-128, ORCH-129, ORCH-133, ORCH-136, ORCH-137, ORCH-138, ORCH-140, C-5,
// C-7, C-14: every limit that can be configured reaches the orchestrator, each as itself.
func TestLimitsReachTheOrchestrator(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	load := func(text string) *config.Config {
		t.Helper()
		path := filepath.Join(home, ".config", "centurion", "config.jsonc")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{Dir: dir, Home: home, Env: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err, centurion.HintOf(err))
		}
		return cfg
	}
	got := limits(load(`{"max_workers": 1, "max_per_agent": 2, "max_reopened": 3, "stuck_rounds": 4, "pause_rounds": 5, "keep_tasks": 6, "max_checks": 14,
		"max_attempts": 7, "compaction": {"buffer": 8000}, "task_budget": {"rounds": 9},
		"countdown": "1s", "wait_timeout": "2s", "gate_release": "3s", "poll_interval": "4s", "stall_timeout": "5s", "session_ttl": "6s",
		"retention": "7s", "archive_after": "8s", "archive_failed_after": "9s", "retry_delay": "10s", "ask_timeout": "12s",
		"sub_agent_idle": "13s", "persist": "every_event", "tool_policy": "sequential"}`), Options{DiskWait: 11 * time.Second})
	want := orchestrator.Config{Workers: 1, PerAgent: 2, Checks: 14, Returns: 3, NewApproach: 4, GiveUp: 5, KeepTasks: 6, Buffer: 8000,
		TaskBudget: centurion.TaskBudget{Rounds: 9}, Countdown: time.Second, Await: 2 * time.Second, GateWait: 3 * time.Second,
		PollInterval: 4 * time.Second, StallTimeout: 5 * time.Second, SessionTTL: 6 * time.Second, Retention: 7 * time.Second,
		ArchiveAfter: 8 * time.Second, ArchiveFailedAfter: 9 * time.Second, DiskWait: 11 * time.Second, AskTimeout: 12 * time.Second,
		SubAgentIdle: 13 * time.Second, Policy: session.PolicySequential, EveryEvent: true,
		Recovery: recovery.Policy{MaxAttempts: 7, Cooldown: 10 * time.Second}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(orchestrator.Config{}, limits(load(`{}`), Options{})); d != "" {
		t.Errorf("where nothing is configured: %s", d)
	}
	for text, want := range map[string]orchestrator.Config{ // a provider that may be silent for longer is waited for
		`{"idle_timeout": "110s"}`: {},
		`{"idle_timeout": "2m"}`:   {SubAgentIdle: 3 * time.Minute},
		`{"idle_timeout": "10m"}`:  {SubAgentIdle: 11 * time.Minute, StallTimeout: 11 * time.Minute},
		`{"idle_timeout": "10m", "sub_agent_idle": "1m", "stall_timeout": "9m"}`: {SubAgentIdle: time.Minute, StallTimeout: 9 * time.Minute},
	} {
		if d := cmp.Diff(want, limits(load(text), Options{})); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
	h := &Host{Place: Place{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "projects", "p")}, models: NewModels(&config.Config{}, config.Resolved{})}
	if r, err := h.newRunner(load(`{"max_commands": 7, "max_checks": 8, "sandbox": "off"}`)); err != nil || r.Slots != 7 || r.Checks != 8 || r.Mark != h.Mark() || r.Confine != nil {
		t.Errorf("max_commands, max_checks: %+v, %v", r, err)
	}
	// Commands are confined as well as the machine allows, unless the person wants something else.
	way, _ := sandbox.Best()
	if r, err := h.newRunner(load(`{}`)); err != nil || (r.Confine != nil) != (way != confine.None) || r.Confine != nil && r.Confine.Way != way {
		t.Errorf("by default: %+v, %v, want %s", r, err, way)
	}
}

// S3: a command in the text of a slash command is confined like an agent's, and leaves nothing behind.
func TestRunOnce(t *testing.T) {
	way, err := sandbox.Best()
	if way == confine.None && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	p := Place{Dir: t.TempDir(), State: filepath.Join(t.TempDir(), "projects", "p")}
	for how, outside := range map[string]bool{"": !way.Holds(confine.Files), "off": true} {
		cfg, out := &config.Config{Own: config.Own{Sandbox: how}}, filepath.Join(t.TempDir(), "out")
		res, err := p.RunOnce(t.Context(), cfg, centurion.Command{Script: "echo in > in; echo out > '" + out + "'; cat in", Dir: p.Dir})
		if err != nil || !strings.HasSuffix(res.Output, "in\n") {
			t.Errorf("%q: %+v, %v", how, res, err)
		}
		if _, err := os.Stat(out); (err == nil) != outside {
			t.Errorf("%q: outside: %v", how, err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
