package orchestrator

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/store"
)

// removedTold is how much a worker is shown of what was taken out of its work, in bytes. It knows its work; this says which part.
const removedTold = 3000

// mayMend reports whether a task's work may be sent back because its own tests tell nothing of it. That is done once for a session,
// and never as what would call a person next: such work is merged, and a review decides.
func (m *mission) mayMend(ctx context.Context, t centurion.Task) (bool, error) {
	if t.Returns >= m.h.cfg.Returns {
		return false, nil
	}
	told, err := m.returnsOf(ctx, store.EventQuery{Session: t.Session})
	return !slices.ContainsFunc(told, func(d event.ReturnData) bool { return d.Cause == event.ReturnedHollow }), err
}

// hollow tells a worker that its tests pass without its work, what was taken out, and what would be right.
func hollow(r centurion.Receipt) *rejection {
	var b strings.Builder
	b.WriteString("Your acceptance command passes, but it proves nothing: " + r.Why + ".\nThe host ran: " + r.Command)
	if removed := strings.TrimRight(r.Removed, "\n"); removed != "" {
		b.WriteString("\nTo see whether it can fail, the host ran it with this taken out (the + lines are what was missing then, the - lines what stood there instead):\n<removed>\n" + centurion.Clip(removed, removedTold) + "\n</removed>")
	}
	b.WriteString("\nWhat would be right: a test that this command runs, that fails without your work and passes with it. It asserts what the work does, " +
		"its results and its errors, not only that it can be called. Mend your tests so, then end your turn; the host tries it again. " +
		"If no test can tell, say why and end your turn: this is said once, your work is merged then, and a review decides.")
	return &rejection{text: b.String(), short: "its tests tell nothing of its work: " + r.Why, cause: event.ReturnedHollow, command: r.Command}
}
