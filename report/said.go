package report

import (
	"cmp"
	"slices"
	"strings"

	"centurion"
	"centurion/event/view"
)

// Said is what a person has written to an agent while the mission was under way.
type Said struct {
	Time    centurion.Time `json:"time"`              // when it was sent
	Text    string         `json:"text"`              // its first 2000 bytes
	Files   []string       `json:"files,omitempty"`   // that came with it, in words
	Agent   string         `json:"agent,omitempty"`   // that it was written to
	Address string         `json:"address,omitempty"` // of that agent; empty where its session had not begun
	Task    string         `json:"task,omitempty"`    // the item and the title of that agent's task; empty for the mission's own agent
	Read    centurion.Time `json:"read,omitzero"`     // when an agent took it in; zero while none has
}

// said are the messages of the person in the order in which they were sent. The goal is none of them.
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

// readBy is the index of the oldest unread message that a session has read with a text, or -1 if it is none of them, as the goal. What was
// written to a task whose session had not begun is read as it is, and what was written to one that has ended with words before it.
func readBy(all []Said, sessions []string, session, text string) int {
	found := -1
	for i, s := range all {
		if !s.Read.IsZero() {
			continue
		}
		if sessions[i] == session && text == s.Text {
			return i
		}
		// The whole text is shortened, so that the words before it may have pushed out its end.
		late := strings.HasPrefix(text, "This was written to ") && strings.Contains(text, "\n\n"+s.Text[:min(len(s.Text), 1000)])
		if found < 0 && (late || sessions[i] == "" && text == s.Text) {
			found = i
		}
	}
	return found
}

// agentOf names the agent of an event's task or session.
func agentOf(d Data, e centurion.Event) string {
	if i := slices.IndexFunc(d.Tasks, func(t centurion.Task) bool { return e.Task != "" && t.ID == e.Task }); i >= 0 {
		return d.Tasks[i].Agent
	}
	for _, of := range d.Events {
		if of.Type == centurion.EventSessionCreated && of.Session == e.Session && e.Session != "" {
			s := view.Read(of)
			return s.Agent
		}
	}
	return ""
}

// taskOf says in words which task an event belongs to; "" for the mission's own agent.
func taskOf(d Data, e centurion.Event) string {
	if e.Task == "" {
		return ""
	}
	return place(d, e)
}

// to says whom it was written to.
func (s Said) to() string {
	return whole(cmp.Or(s.Agent, "an agent"), s.Address, s.Task)
}

// whole says who an agent is: its name, its address and what it works on, as far as they are known.
func whole(agent, address, task string) string {
	return agent + suffix(" ", address) + suffix(" · ", short(task, 120))
}

// read says when it was taken in.
func (r *Report) read(s Said) string {
	switch {
	case !s.Read.IsZero():
		return "read at " + clock(s.Read)
	case r.Running:
		return "not read yet"
	}
	return "not read"
}
