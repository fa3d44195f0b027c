package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/verify"
	"centurion/workspace/todo"
)

// keepsChecks refuses a new plan that changes what was to be proven after work on it has begun: the acceptance commands of an
// item that has been started or done, and the mission's own checks. Only a person may do that, or the reviewer, who has no
// work of its own to defend. note is what is recorded of a change that stands.
func (m *mission) keepsChecks(ctx context.Context, c *conversation, prev, next *todo.Doc) (note string, err error) {
	if prev == nil {
		return "", nil
	}
	tasks, err := m.h.cfg.Store.Tasks(ctx, m.id)
	if err != nil {
		return "", err
	}
	rec, err := m.h.cfg.Store.Mission(ctx, m.id)
	if err != nil {
		return "", err
	}
	begun := func(it todo.Item) bool {
		return rec.Accepted || prev.Status(it.ID) == todo.Done || slices.ContainsFunc(tasks, func(t centurion.Task) bool { return t.Item == it.ID })
	}
	var changed []string
	for _, it := range prev.Items() {
		now, ok := next.Item(it.ID)
		if it.Group || !ok || len(it.Verify) == 0 || !begun(it) {
			continue
		}
		if !slices.Equal(verify.Distinct(it.Verify), verify.Distinct(now.Verify)) || it.Proof != now.Proof {
			changed = append(changed, fmt.Sprintf("item %s: %s became %s", it.ID, lines(it.Verify), lines(now.Verify)))
		}
	}
	if (rec.Accepted || len(tasks) > 0) && !slices.Equal(verify.Distinct(prev.Checks()), verify.Distinct(next.Checks())) && len(prev.Checks()) > 0 {
		changed = append(changed, fmt.Sprintf("the mission's own checks: %s became %s", lines(prev.Checks()), lines(next.Checks())))
	}
	if len(changed) == 0 {
		return "", nil
	}
	what := strings.Join(changed, "; ")
	if c.agent.Name != agents.Reviewer {
		return "", &centurion.Error{Kind: centurion.KindPermission, Msg: "acceptance commands are not changed once work on them has begun: " + what,
			Hint: "keep the lines as they were; if one is wrong, delegate to the reviewer, which may change it with update_todo, or ask the person"}
	}
	return "the reviewer changed what has to be proven: " + what, nil
}

func lines(commands []string) string {
	if len(commands) == 0 {
		return "nothing"
	}
	return "`" + strings.Join(commands, "`, `") + "`"
}

// tellNote records what the host did, or let somebody do, for a person.
func (m *mission) tellNote(ctx context.Context, note string) error {
	if note == "" {
		return nil
	}
	return m.tell(ctx, func(d *event.MissionData) { d.Note = note })
}
