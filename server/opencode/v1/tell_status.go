package v1

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"centurion"
	"centurion/event"
)

// state is what a session does.
type state struct {
	mission string
	told    status
}

// status is OpenCode's SessionStatus: idle, busy or retry, which alone has the other fields.
type status struct {
	Type    string
	Attempt int    // the one that failed, from 1
	Message string // why
	Next    int64  // when it is tried again, in milliseconds
}

// MarshalJSON writes what the type has.
func (s status) MarshalJSON() ([]byte, error) {
	if s.Type != "retry" {
		return json.Marshal(map[string]string{"type": s.Type})
	}
	return json.Marshal(map[string]any{"type": s.Type, "attempt": s.Attempt, "message": s.Message, "next": s.Next})
}

var (
	idle = status{Type: "idle"}
	busy = status{Type: "busy"}
)

// tellStatus tells what a session of a mission does, unless that was told.
func (p *Project) tellStatus(mission, session string, now status) {
	if session == "" {
		return
	}
	v := &p.view
	v.mu.Lock()
	was, known := v.status[session]
	if v.status[session] = (state{mission, now}); now == idle {
		delete(v.status, session)
	}
	v.mu.Unlock()
	if known && was.told == now || !known && now == idle {
		return
	}
	p.send("session.status", statusEvent{session, now})
	if now == idle {
		p.send("session.idle", idleEvent{session})
	}
}

func (p *Project) tellIdle(mission, session string) { p.tellStatus(mission, session, idle) }

// tellWork tells that a session has a new message, which is answered unless its mission is at rest; shell says that it is about a
// person's command.
func (p *Project) tellWork(e centurion.Event, shell bool) {
	if shell || p.works(e.Mission) {
		p.tellStatus(e.Mission, e.Session, busy)
	}
}

// tellEnd tells that the sessions of a mission are idle: work that a pause or a failure has ended tells no end of its own.
func (p *Project) tellEnd(mission string) {
	v := &p.view
	v.mu.Lock()
	var ended []string
	root := v.roots[mission]
	for session, s := range v.status {
		if s.mission == mission && session != root {
			ended = append(ended, session)
		}
	}
	delete(v.works, mission)
	v.mu.Unlock()
	slices.Sort(ended)
	for _, session := range append(ended, root) { // the root last: its clients leave then
		p.tellIdle(mission, session)
	}
}

// tellRetry tells that a session waits until its request or its turn is repeated.
func (p *Project) tellRetry(e centurion.Event) error {
	d, err := event.Decode[event.RetryData](e)
	if err == nil {
		p.tellStatus(e.Mission, e.Session, status{"retry", d.Attempt, cmp.Or(d.Error, d.Reason), e.Time.Millis() + d.WaitMS})
	}
	return err
}

// endRetry tells that a session waits no more: an answer comes.
func (p *Project) endRetry(e centurion.Event) {
	switch e.Type {
	case centurion.EventDelta, centurion.EventMessageUpdated, centurion.EventToolStarted:
		p.view.mu.Lock()
		s := p.view.status[e.Session]
		p.view.mu.Unlock()
		if s.told.Type == "retry" {
			p.tellStatus(s.mission, e.Session, busy)
		}
	}
}

// tellRest tells that a session's turn is over. The root of a mission that works on is busy until the mission stops.
func (p *Project) tellRest(ctx context.Context, e centurion.Event) error {
	n, err := event.Decode[named](e)
	if n.Shell || err != nil { // a person's command in a session at rest
		p.tellIdle(e.Mission, e.Session)
		return err
	}
	root, err := p.root(ctx, e.Mission)
	if err != nil {
		return err
	}
	if e.Session != root || e.Type == centurion.EventSessionAborted {
		p.tellIdle(e.Mission, e.Session)
	}
	return nil
}

// statusAtStart is the status of a session of a mission that is worked on, as it was stored.
func statusAtStart(s centurion.Session) status {
	switch retry := s.Metadata.Retry; {
	case s.Metadata.Aborted != "":
		return idle
	case retry != nil && retry.At.After(time.Now()):
		return status{"retry", retry.Attempts, retry.Reason, retry.At.Millis()}
	}
	return busy
}

// states are those of the sessions that are not idle.
func (p *Project) states(*http.Request) (any, error) {
	p.view.mu.Lock()
	defer p.view.mu.Unlock()
	out := make(map[string]status, len(p.view.status))
	for session, s := range p.view.status {
		out[session] = s.told
	}
	return out, nil
}
