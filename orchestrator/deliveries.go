package orchestrator

import (
	"centurion"
	"centurion/event"
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
	if t.Session != "" {
		orphans, err := tx.PendingDeliveries(t.Session)
		if err != nil {
			return err
		}
		for _, d := range orphans {
			d.Session = rec.Session
			if err := tx.PutDelivery(&d); err != nil {
				return err
			}
		}
	}
	return tx.PutDelivery(&store.Delivery{ID: centurion.NewID(centurion.PrefixDelivery), Mission: t.Mission, Session: receiver,
		Task: t.ID, Wake: wake, Created: centurion.Now()})
}

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
