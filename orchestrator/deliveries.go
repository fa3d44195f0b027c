package orchestrator

import (
	"fmt"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/session"
	"centurion/store"
)

// deliver puts an ended task's result on its way to the session that delegated it. A parent that has ended hears nothing
// more: the mission's own session does, also what was still on its way to the task that ends here.
func deliver(tx *store.Tx, t centurion.Task, wake bool) error {
	rec, err := tx.Mission(t.Mission)
	if err != nil {
		return err
	}
	parent, err := tx.Session(t.Parent)
	if err != nil {
		return err
	}
	receiver := t.Parent
	if pt := parent.Metadata.Task; pt != "" {
		p, err := tx.Task(pt)
		if err != nil {
			return err
		}
		if p.Status.Ended() {
			receiver = rec.Session
		}
	}
	orphans, err := tx.PendingDeliveries(receiverOf(t))
	if err != nil {
		return err
	}
	for _, d := range orphans {
		d.Session = rec.Session
		if d.Task == "" {
			d.Missed = fmt.Sprintf("%s (%s, %q)", t.Name(), t.Agent, t.Title)
		}
		if err := tx.PutDelivery(&d); err != nil {
			return err
		}
	}
	return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: t.Mission, Session: receiver,
		Task: t.ID, Wake: wake, Created: centurion.Now()})
}

// takeOne puts a delivery into the history of the session that it is for.
func (m *mission) takeOne(tx *store.Tx, rec *centurion.Session, d store.Delivery) (centurion.Message, error) {
	if d.Task == "" {
		msg, err := session.Say(tx, rec, d.Origin, wordsOf(d), d.Files...)
		if err != nil {
			return msg, err
		}
		d.Taken, d.Message, d.Files = centurion.Now(), msg.ID, nil // they are kept once
		return msg, tx.PutDelivery(&d)
	}
	t, err := tx.Task(d.Task)
	if err != nil {
		return centurion.Message{}, err
	}
	text, err := m.notice(tx, t)
	if err != nil {
		return centurion.Message{}, err
	}
	msg, err := session.Say(tx, rec, centurion.OriginHost, text+m.planOf(t))
	if err != nil {
		return msg, err
	}
	return msg, take(tx, d, t, msg.ID)
}

// maxPersonLines is how much a parent is told of what a person said to a task: the newest of each kind.
const maxPersonLines = 6

// personLines tells a parent what a person wrote to a task's agent while it worked, and answered it: it may have changed the result.
func personLines(tx *store.Tx, b *strings.Builder, t centurion.Task) error {
	sent, err := tx.TakenDeliveries(t.Mission, t.Session)
	if err != nil {
		return err
	}
	asks, err := tx.Asks(t.Mission)
	if err != nil {
		return err
	}
	var wrote, answered []string
	for _, d := range sent {
		during := !d.Taken.Before(t.Started.Time) && !d.Taken.After(t.Ended.Time)
		if isMail(d) && during {
			wrote = append(wrote, "The person wrote to it: "+inQuotes(d.Text))
		}
	}
	for _, a := range asks {
		if a.Type == store.AskQuestion && a.Task == t.ID && a.By == "person" && a.Answer != event.NobodyThere {
			answered = append(answered, "The person was asked: "+inQuotes(a.Text)+" and answered: "+inQuotes(a.Answer))
		}
	}
	for _, lines := range [][]string{wrote, answered} {
		for _, l := range lines[max(0, len(lines)-maxPersonLines):] {
			b.WriteString(l + "\n")
		}
	}
	return nil
}

func inQuotes(s string) string { return "«" + centurion.Clip(strings.TrimSpace(s), 600) + "»" }

// take marks a delivery as consumed by a message.
func take(tx *store.Tx, d store.Delivery, t centurion.Task, message string) error {
	d.Taken, d.Message = centurion.Now(), message
	if err := tx.PutDelivery(&d); err != nil {
		return err
	}
	_, err := tx.Append(centurion.Event{Type: centurion.EventTaskDelivered, Mission: t.Mission, Session: d.Session, Task: t.ID,
		Data: event.Data(map[string]any{"title": t.Title, "status": t.Status, "message": message})})
	return err
}
