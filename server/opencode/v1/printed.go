package v1

import (
	"context"
	"maps"
	"time"

	"centurion"
	"centurion/event"
	"centurion/text"
)

// tellPrinted tells more of what a running command prints.
func (p *Project) tellPrinted(ctx context.Context, session string, d event.DeltaData) error {
	m, err := p.API().Message(ctx, session, d.Message, d.Part)
	if err != nil || len(m.Parts) == 0 || m.Parts[0].State == nil || m.Parts[0].State.Ended() {
		return err
	}
	p.printed(d.Part, d.Delta)
	p.send("message.part.updated", partEvent{session, p.shown(m.Parts[0]), time.Now().UnixMilli()})
	return nil
}

// printed keeps what a command prints for clients that come later, until it has ended: then more is "".
func (p *Project) printed(part, more string) {
	v := &p.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if more == "" {
		delete(v.prints, part)
		return
	}
	v.prints[part] = text.Tail(v.prints[part]+more, event.MaxPrinted)
}

// withPrinted is a call that runs, with what its command has printed.
func withPrinted(part centurion.Part, printed string) centurion.Part {
	if printed == "" || part.State == nil || part.State.Ended() {
		return part
	}
	state := *part.State
	state.Metadata = maps.Clone(state.Metadata)
	if state.Metadata == nil {
		state.Metadata = map[string]any{}
	}
	state.Metadata["output"] = text.Printed(printed)
	part.State = &state
	return part
}
