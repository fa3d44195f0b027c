package orchestrator

import (
	"strings"
	"testing"
	"time"

	"centurion"
)

// An item that waits for one that does not exist would wait for ever: such a change is refused, with the ids that there are, and an item can be
// told to wait for nothing.
func TestUnknownAfterIsRefused(t *testing.T) {
	const refused = "an item comes after one that does not exist: "
	bubble(t, map[string]script{
		"commander": steps(
			do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T9")),
			do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")),
			do(call("update_todo", args{"add": []args{{"title": "Three", "after": []string{"T9"}}}})),
			do(call("update_todo", args{"items": []args{{"id": "T2", "after": []string{"T9"}}}})),
			do(plans("- [ ] T2 Two", "  - after: T1")),
			do(call("update_todo", args{"items": []args{{"id": "T2", "after": []string{}}}})), say("done")),
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{MaxRounds: 7})
		said := r.results(m.ID, "update_todo")
		has(t, said[0], refused+"T2 after T9", "the items are T1, T2")
		has(t, said[2], refused+"T3 after T9", "the items are T1, T2, T3")
		has(t, said[3], "T2 cannot wait for T9", "the items are T1, T2")
		has(t, said[4], refused+"T2 after T1", "the items are T2")
		has(t, said[1], "T2 Two (after T1)")
		equal(t, "waits: "+said[5], strings.Contains(said[5], "(after "), false)
	})
}

// What has to be proven is frozen when work on an item begins, not when it is handed out.
func TestCheckOfWaitingItemMayChange(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two", "  - after: T1")), do(work("T1", "first"), work("T2", "second"), onward),
			do(plans("- [~] T1 One", "- [ ] T2 Two", "  - after: T1", "  - verify: `exists b.txt`")),
			after(time.Second, do(plans("- [~] T1 One", "  - verify: `exists b.txt`", "- [ ] T2 Two", "  - after: T1", "  - verify: `exists b.txt`"))), say("I wait")),
		"worker": steps(after(time.Minute, say("made"))),
	}, func(r *rig) {
		said := r.results(r.mission(centurion.MissionOptions{MaxRounds: 6}).ID, "update_todo")
		for i, refused := range []bool{false, false, true} {
			equal(t, said[i], strings.Contains(said[i], "acceptance commands are not changed"), refused)
		}
	})
}
