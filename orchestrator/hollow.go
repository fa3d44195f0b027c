package orchestrator

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/verify"
)

const (
	// removedTold is how much a worker is shown of what was taken out of its work, in bytes. It knows its work; this says which part.
	removedTold = 3000
	// stayedTold is how much it is shown of what its command printed then, in bytes from both ends: which tests passed.
	stayedTold = 3000
)

// mayMend reports whether a task's work may be sent back because its own tests tell nothing of it. That is done once for a session,
// and never as what would call a person next: such work is merged, and a review decides.
func (m *mission) mayMend(ctx context.Context, t centurion.Task) (bool, error) {
	if t.Returns >= m.h.cfg.Returns {
		return false, nil
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.st.ID)
	return !slices.ContainsFunc(tasks, func(o centurion.Task) bool { return o.Session == t.Session && o.RejectedFor(event.ReturnedHollow) }), err
}

// hollow tells a worker that its tests pass without its work, what was taken out, and what would be right.
func hollow(r centurion.Receipt) *rejection {
	var b strings.Builder
	b.WriteString("Your acceptance command passes, but it proves nothing: " + r.Why + ".\nThe host ran: " + r.Command)
	if removed := strings.TrimRight(r.Removed, "\n"); removed != "" {
		b.WriteString("\nTo see whether it can fail, the host ran it with this taken out (the + lines are what was missing then, the - lines what stood there instead):\n<removed>\n" + centurion.Clip(removed, removedTold) + "\n</removed>")
	}
	if out := verify.WithoutWork(r, stayedTold); out != "" {
		b.WriteString("\nThe command printed this without your work; every test that passed here cannot see your work:\n<output>\n" + out + "\n</output>")
	}
	b.WriteString("\nWhat would be right: a test that this command runs, that fails without your work and passes with it. It asserts what the work does, " +
		"its results and its errors, not only that it can be called. Try it yourself before you end: take out what the work does, run the command and see the test fail, then put it back. " +
		"Change your tests so, then end your turn; the host runs it again. " +
		"If no test can tell, say why and end your turn: this is said once, your work is merged then, and a review decides.")
	return &rejection{text: b.String(), short: "its tests tell nothing of its work: " + r.Why, cause: event.ReturnedHollow, command: r.Command}
}

// testless tells a worker that its check ran no test. One that ends its turn again without a change has no better answer.
func testless(r centurion.Receipt) *rejection {
	return &rejection{text: "Your acceptance command passes, but it proves nothing: " + r.Why + ".\nThe host ran: " + r.Command +
		"\nWrite the test that this command is to run, under the name that it asks for, then end your turn; the host runs it again. " +
		"If the command itself is wrong, say so and end your turn without a change: your work is merged then, and a review decides.",
		short: "its check ran no test: " + r.Why, cause: event.ReturnedHollow, command: r.Command}
}
