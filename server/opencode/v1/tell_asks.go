package v1

import (
	"context"

	"centurion"
	"centurion/event"
	"centurion/store"
)

func (p *Project) tellAsk(ctx context.Context, e centurion.Event) error {
	d, err := event.Decode[event.AskData](e)
	if err != nil {
		return err
	}
	asks, err := p.API().Asks(ctx)
	if err != nil {
		return err
	}
	for _, a := range asks {
		if a.ID == d.ID {
			p.sendAsk(a)
		}
	}
	return nil
}

func (p *Project) sendAsk(a store.Ask) {
	if asksByDialog(a) {
		p.send("permission.asked", shownPermission(a))
	} else {
		p.send("question.asked", shownQuestion(a))
	}
}

type repliedEvent struct {
	Session string `json:"sessionID"`
	Request string `json:"requestID"`
	Reply   string `json:"reply"`
}

type rejectedEvent struct {
	Session string `json:"sessionID"`
	Request string `json:"requestID"`
}

type answeredEvent struct {
	Session string     `json:"sessionID"`
	Request string     `json:"requestID"`
	Answers [][]string `json:"answers"`
}

// tellAnswer closes an ask for every reader, however it was answered.
func (p *Project) tellAnswer(e centurion.Event) error {
	d, err := event.Decode[event.AskData](e)
	if err != nil {
		return err
	}
	if asksByDialog(store.Ask{Type: d.Type, Message: d.Message, Call: d.Call}) {
		reply := d.Answer
		if reply != "once" && reply != "always" {
			reply = "reject"
		}
		p.send("permission.replied", repliedEvent{e.Session, d.ID, reply})
		return nil
	}
	if d.Answer == event.NoAnswer {
		p.send("question.rejected", rejectedEvent{e.Session, questionID(d.ID)})
		return nil
	}
	p.send("question.replied", answeredEvent{e.Session, questionID(d.ID), [][]string{{d.Answer}}})
	return nil
}
