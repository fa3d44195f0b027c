package orchestrator

import (
	"centurion"
)

// drive makes c the conversation of a session. A session has one at a time: two would both take what arrives for it, answer
// it and run calls for it, and the second would repair what the first is at. So another one is refused with KindConflict
// while the first has the session, unless a newer attempt has superseded it: then it writes nothing more, see fences.
func (m *mission) drive(session string, c *conversation) error {
	for {
		m.mu.Lock()
		other := m.drivers[session]
		m.mu.Unlock()
		if other != nil && other.current() == nil {
			return &centurion.Error{Op: "open session", Kind: centurion.KindConflict, Msg: "session " + session + " is being worked on already",
				Hint: "write to it with: centurion send --mission " + m.st.ID}
		}
		m.mu.Lock()
		same := m.drivers[session] == other
		if same {
			m.drivers[session] = c
		}
		m.mu.Unlock()
		if same {
			return nil
		}
	}
}

// park ends what drive began, for a conversation that could not be loaded.
func (m *mission) park(session string, c *conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.drivers[session] == c {
		delete(m.drivers, session)
	}
}

// forget lets go of a conversation that is over. A newer one of the same session stays.
func (m *mission) forget(c *conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := c.id()
	if m.drivers[id] == c {
		delete(m.drivers, id)
	}
	if m.convs[id] == c {
		delete(m.convs, id)
	}
}
