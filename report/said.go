package report

import (
	"cmp"
	"strings"

	"centurion"
	"centurion/event/view"
	"centurion/text"
)

// Said is a person's message to an agent during the mission.
type Said struct {
	Time    centurion.Time `json:"time"`              // when it was sent
	Text    string         `json:"text"`              // its first 2000 bytes
	Files   []string       `json:"files,omitempty"`   // attachments, in words
	Agent   string         `json:"agent,omitempty"`   // the recipient
	Address string         `json:"address,omitempty"` // of that agent; empty if its session had not begun
	Task    string         `json:"task,omitempty"`    // the item and the title of that agent's task; empty for the mission's own agent
	Read    centurion.Time `json:"read,omitzero"`     // when an agent read it; zero if none has
}

// said are the person's messages in the order they were sent, without the goal.
func said(d Data) []Said {
	out := []Said{}
	sessions := []string{}
	for _, e := range d.Events {
		if e.Type != centurion.EventMessageQueued && e.Type != centurion.EventMessageCreated {
			continue
		}
		q, err := view.Decode(e)
		if err != nil || q.Origin != string(centurion.OriginPerson) {
			continue
		}
		if e.Type == centurion.EventMessageCreated {
			if i := readBy(out, sessions, e.Session, q.Text); i >= 0 {
				out[i].Read = e.Time
				out[i].Agent = cmp.Or(out[i].Agent, q.Agent)
			}
			continue
		}
		out = append(out, Said{Time: e.Time, Text: q.Text, Files: q.Files, Agent: agentOf(d, e), Address: q.Address, Task: taskOf(d, e)})
		sessions = append(sessions, e.Session)
	}
	return out
}

// readBy is the index of the oldest unread message that a session has read with a text, or -1 if there is none, as for the goal.
// Messages to tasks without a session are read unchanged; messages to ended tasks have words before them.
func readBy(all []Said, sessions []string, session, text string) int {
	found := -1
	for i, s := range all {
		if !s.Read.IsZero() {
			continue
		}
		if sessions[i] == session && text == s.Text {
			return i
		}
		// The stored text is shortened, so words before it may have pushed out its end.
		late := strings.HasPrefix(text, "This was written to ") && strings.Contains(text, "\n\n"+s.Text[:min(len(s.Text), 1000)])
		if found < 0 && (late || sessions[i] == "" && text == s.Text) {
			found = i
		}
	}
	return found
}

// agentOf names the agent of an event's task or session.
func agentOf(d Data, e centurion.Event) string {
	if t := d.task(e); t != nil {
		return t.Agent
	}
	for _, of := range d.Events {
		if of.Type == centurion.EventSessionCreated && of.Session == e.Session && e.Session != "" {
			return view.Read(of).Agent
		}
	}
	return ""
}

// taskOf describes the task of an event; "" for the mission's own agent.
func taskOf(d Data, e centurion.Event) string {
	return text.When(e.Task != "", place(d, e))
}

// to names the recipient.
func (s Said) to() string {
	return whole(cmp.Or(s.Agent, "an agent"), s.Address, s.Task)
}

// whole describes an agent: its name, its address and its task, as far as they are known.
func whole(agent, address, task string) string {
	return agent + suffix(" ", address) + suffix(" · ", short(task, 120))
}

// read describes when it was read.
func (r *Report) read(s Said) string {
	return text.If(!s.Read.IsZero(), "read at "+clock(s.Read), text.If(r.Running, "not read yet", "not read"))
}
