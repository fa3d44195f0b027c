package state

import (
	"cmp"
	"fmt"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/session"
	"centurion/store"
)

// Deliver sends an ended task's result to the session that delegated it, or to the mission's own session if that parent has ended. The
// undelivered messages of the ended task go to the mission's own session, too.
func Deliver(tx *store.Tx, t centurion.Task, wake bool) error {
	if err := Redirect(tx, t); err != nil {
		return err
	}
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
	return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: t.Mission, Session: receiver,
		Task: t.ID, Wake: wake, Created: centurion.Now()})
}

// Redirect gives the undelivered messages of an ended task to the mission's own session.
func Redirect(tx *store.Tx, t centurion.Task) error {
	rec, err := tx.Mission(t.Mission)
	if err != nil {
		return err
	}
	orphans, err := tx.PendingDeliveries(ReceiverOf(t))
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
	return nil
}

// Take marks a delivery as consumed by a message.
func Take(tx *store.Tx, d store.Delivery, t centurion.Task, message string) error {
	d.Taken, d.Message = centurion.Now(), message
	if err := tx.PutDelivery(&d); err != nil {
		return err
	}
	_, err := tx.Append(centurion.Event{Type: centurion.EventTaskDelivered, Mission: t.Mission, Session: d.Session, Task: t.ID,
		Data: event.Data(map[string]any{"title": t.Title, "status": t.Status, "message": message})})
	return err
}

// IsWord reports whether a delivery is a notice of the host that wakes no session. It becomes part of the history with the request that
// reads it, and can be replaced until then.
func IsWord(d store.Delivery) bool {
	return d.Task == "" && d.Origin == centurion.OriginHost && !d.Wake
}

// ReceiverOf is the address of messages to a task: its session, or the task itself as long as it has none.
func ReceiverOf(t centurion.Task) string { return cmp.Or(t.Session, t.ID) }

// Forward moves the messages sent to a task before it began to its session.
func Forward(tx *store.Tx, task, session string) error {
	waiting, err := tx.PendingDeliveries(task)
	if err != nil {
		return err
	}
	for _, d := range waiting {
		d.Session = session
		if err := tx.PutDelivery(&d); err != nil {
			return err
		}
	}
	return nil
}

// IsMail reports whether a delivery is a person's message that wants an answer.
func IsMail(d store.Delivery) bool {
	return d.Task == "" && d.Origin == centurion.OriginPerson && !d.NoReply
}

// Say adds a message to the conversation of its receiver, under the id that its sender gave it.
func Say(tx *store.Tx, rec *centurion.Session, d store.Delivery) (centurion.Message, error) {
	id, parts := "", d.Parts
	if strings.HasPrefix(d.ID, string(centurion.PrefixMessage)) && tx.CheckNewMessage(d.ID) == nil { // else it was given twice meanwhile
		id = d.ID
	}
	if parts == nil {
		parts = session.Texts(d.Text, d.Files...)
	}
	if d.Missed != "" {
		parts = append(session.Texts("This was written to "+d.Missed+", which had ended before it could read it:"), parts...)
	}
	return session.SayParts(tx, rec, d.Origin, id, parts)
}
