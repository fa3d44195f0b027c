package orchestrator

import (
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/session"
	"centurion/store"
)

// takeOne puts a delivery into the history of the session that it is for.
func (m *mission) takeOne(tx *store.Tx, rec *centurion.Session, p plan.View, d store.Delivery) (centurion.Message, error) {
	if d.Task == "" {
		msg, err := session.Say(tx, rec, d.Origin, state.WordsOf(d), d.Files...)
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
	text, err := m.notice(tx, p, t)
	if err != nil {
		return centurion.Message{}, err
	}
	msg, err := session.Say(tx, rec, centurion.OriginHost, text+m.planOf(p, t))
	if err != nil {
		return msg, err
	}
	return msg, state.Take(tx, d, t, msg.ID)
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
		if state.IsMail(d) && during {
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
