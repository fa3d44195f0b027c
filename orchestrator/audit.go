package orchestrator

import (
	"time"

	"centurion/orchestrator/pulse"
)

// Defaults of the audit in [Config].
const (
	DefaultPollInterval = time.Second
	DefaultStallTimeout = 5 * time.Minute // far above the 120 s after which a request to a silent provider ends by itself
	DefaultSessionTTL   = time.Hour       // of an attempt's own work, without its waits
)

// audit looks at every task of the mission that is at work. Gap is how much later than it should this poll has come.
func (m *mission) audit(gap time.Duration) {
	for _, c := range m.sessions.All() {
		if gap > pulse.Standstill {
			c.Pulse.Forgive(gap)
		}
		if c.Task != nil {
			c.Examine()
		}
	}
	m.lost.Look(m.st, m.relaunch)
}

// limits are how long a conversation may be silent and work.
func (c *Config) limits() pulse.Limits {
	return pulse.Limits{Silent: c.StallTimeout, Worked: c.SessionTTL}
}

// relaunch begins anew with a task that nobody works on.
func (m *mission) relaunch(id string) {
	if t, err := m.recorder.Requeue(m.st.Ctx, id, "nobody worked on it any more"); err == nil && m.st.Ctx.Err() == nil {
		m.claims.HoldAgain(t)
		m.launch(t)
	}
}
