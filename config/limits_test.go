package config

import (
	"runtime"
	"testing"
	"time"
)

// A project's limit is looser where it exceeds the person's, or the documented default where they have set none.
func TestProjectLimitsAgainstDefaults(t *testing.T) {
	number := func(at func(*Own) *int) func(*Own, int64) { return func(o *Own, v int64) { *at(o) = int(v) } }
	span := func(at func(*Own) *time.Duration) func(*Own, int64) {
		return func(o *Own, v int64) { *at(o) = time.Duration(v) }
	}
	for key, tt := range map[string]struct {
		usual int64
		set   func(*Own, int64)
	}{
		"max_workers":          {50, number(func(o *Own) *int { return &o.MaxWorkers })},
		"max_per_agent":        {10, number(func(o *Own) *int { return &o.MaxPerAgent })},
		"max_commands":         {int64(max(2, runtime.NumCPU())), number(func(o *Own) *int { return &o.MaxCommands })},
		"max_attempts":         {3, number(func(o *Own) *int { return &o.MaxAttempts })},
		"max_retries":          {8, number(func(o *Own) *int { return &o.MaxRetries })},
		"stuck_rounds":         {3, number(func(o *Own) *int { return &o.StuckRounds })},
		"pause_rounds":         {5, number(func(o *Own) *int { return &o.PauseRounds })},
		"max_reopened":         {3, number(func(o *Own) *int { return &o.MaxReopened })},
		"keep_tasks":           {1000, number(func(o *Own) *int { return &o.KeepTasks })},
		"stall_timeout":        {int64(5 * time.Minute), span(func(o *Own) *time.Duration { return &o.StallTimeout })},
		"session_ttl":          {int64(time.Hour), span(func(o *Own) *time.Duration { return &o.SessionTTL })},
		"sub_agent_idle":       {int64(2 * time.Minute), span(func(o *Own) *time.Duration { return &o.SubAgentIdle })},
		"idle_timeout":         {int64(2 * time.Minute), span(func(o *Own) *time.Duration { return &o.IdleTimeout })},
		"wait_timeout":         {int64(5 * time.Minute), span(func(o *Own) *time.Duration { return &o.WaitTimeout })},
		"countdown":            {int64(2 * time.Second), span(func(o *Own) *time.Duration { return &o.Countdown })},
		"poll_interval":        {int64(time.Second), span(func(o *Own) *time.Duration { return &o.PollInterval })},
		"gate_release":         {int64(5 * time.Second), span(func(o *Own) *time.Duration { return &o.GateRelease })},
		"retry_delay":          {int64(5 * time.Second), span(func(o *Own) *time.Duration { return &o.RetryDelay })},
		"retention":            {int64(10 * time.Minute), span(func(o *Own) *time.Duration { return &o.Retention })},
		"archive_after":        {int64(30 * time.Minute), span(func(o *Own) *time.Duration { return &o.ArchiveAfter })},
		"archive_failed_after": {int64(10 * time.Minute), span(func(o *Own) *time.Duration { return &o.ArchiveFailedAfter })},
	} {
		own := func(v int64) *Own {
			o := &Own{}
			tt.set(o, v)
			return o
		}
		for _, c := range []struct {
			person  *Own
			project int64
			want    bool
		}{
			{&Own{}, tt.usual, false}, {&Own{}, tt.usual + 1, true},
			{own(tt.usual + 5), tt.usual + 5, false}, {own(tt.usual + 5), tt.usual + 6, true}, {own(1), 2, true},
		} {
			if got := loosens(key, c.person, own(c.project)); got != c.want {
				t.Errorf("%s of %d against %+v: %v", key, c.project, c.person.Limits, got)
			}
		}
	}
}
