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
	// DefaultSubAgentIdle is how long nothing may come from a sub-agent before it is stopped. It is the first system's figure.
	DefaultSubAgentIdle = 2 * time.Minute
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
	m.tasks.FindLost()
}

// limits are how long a conversation may be silent and work.
func (c *Config) limits() pulse.Limits {
	return pulse.Limits{Silent: c.StallTimeout, Worked: c.SessionTTL}
}
