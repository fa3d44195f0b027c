package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"centurion"
	"centurion/event"
	"centurion/provider/scripted"
)

// nine is a file in which two can work without being in each other's way.
func nine(first, last string) string {
	return first + "\n2\n3\n4\n5\n6\n7\n8\n" + last
}

// mergedItems lists the items whose work was merged, in that order.
func (r *rig) mergedItems(mission string) (items []string) {
	for _, e := range r.events(mission, centurion.EventMergeDone) {
		for _, t := range r.tasks(mission) {
			if t.ID == e.Task {
				items = append(items, t.Item)
			}
		}
	}
	return items
}

// whenTold holds an answer of the model back until events of that type have come.
func (r *rig) whenTold(what centurion.EventType, times int) {
	r.when(func(all []centurion.Event) bool { return count(all, what) >= times })
}

// Who needs what a shell command has changed of another's file ends its turn with it again, and is merged after the other.
func TestOverlapIsMergedAfterItsHolder(t *testing.T) {
	t.Parallel()
	var r *rig
	r = inRepo(t, map[string]string{"a.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "write one"), work("T2", "write two")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch first := strings.Contains(q.First(), "write one"); {
			case first && q.Step() == 1:
				return do(call("read", args{"filePath": "a.txt"}))
			case first && q.Step() == 2:
				r.whenTold(centurion.EventTaskReturned, 1)
				return do(writes("a.txt", nine("one", "9")))
			case first:
				r.whenTold(centurion.EventTaskWaiting, 1)
			case !first && q.Step() == 1:
				return do(sh("put a.txt " + nine("1", "two")))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("one", "two"))
	equal(t, "merged", fmt.Sprint(r.mergedItems(m.ID)), "[T1 T2]")
	two := r.task(m.ID, "T2")
	equal(t, "returns", two.Returns, 0)
	equal(t, "overlaps", fmt.Sprint(two.Overlaps), "[a.txt]")
	for _, q := range r.requests("worker") {
		if q.Session == two.Session && q.Step() == 3 {
			has(t, q.Last(), "files that somebody else is working on", "a.txt belongs to item T1", "is merged after theirs")
		}
	}
	waited := false
	for _, e := range r.events(m.ID, centurion.EventTaskWaiting) {
		d, err := event.Decode[event.TaskData](e)
		waited = waited || err == nil && e.Task == two.ID && d.Reason == "files of T1"
	}
	if !waited {
		t.Error("it was not told that T2 waits for T1")
	}
}

// Two that have changed each other's files do not wait for each other.
func TestOverlapBothWays(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"one": "a.txt", "two": "b.txt"}
	var r *rig
	r = inRepo(t, map[string]string{"a.txt": nine("1", "9"), "b.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "write one"), work("T2", "write two")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			who, other := "one", "two"
			if strings.Contains(q.First(), "write two") {
				who, other = other, who
			}
			switch q.Step() {
			case 1:
				return do(sh("put "+mine[who]+" "+nine(who, "9")), sh("put "+mine[other]+" "+nine("1", who)))
			case 2: // each is at work until the other has been told
				if who == "two" {
					r.whenTold(centurion.EventTaskReturned, 1)
				}
			case 3:
				if who == "one" {
					r.whenTold(centurion.EventTaskReturned, 2)
				} else {
					r.whenTold(centurion.EventTaskWaiting, 1)
				}
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("one", "two"))
	equal(t, "b.txt", r.branchHas(m.ID, "b.txt"), nine("two", "one"))
	items := r.mergedItems(m.ID)
	slices.Sort(items)
	equal(t, "merged", fmt.Sprint(items), "[T1 T2]")
}

// Who is waited for by the holder itself is not told to wait for it.
func TestOverlapWithWhoWaits(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"a.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(handTo("planner", "T1", "see to it")), say("I wait")),
		"planner":   steps(do(work("T2", "write two")), say("it is seen to")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch q.Step() {
			case 1:
				return do(writes("b.txt", "two\n"), sh("put a.txt "+nine("1", "two")))
			case 3:
				return do(sh("put a.txt " + nine("1", "9")))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	two := r.task(m.ID, "T2")
	equal(t, "status", two.Status, centurion.TaskCompleted)
	equal(t, "returns", two.Returns, 0)
	for _, q := range r.requests("worker") {
		if q.Session == two.Session && q.Step() == 3 {
			has(t, q.Last(), "a.txt belongs to item T1")
			if strings.Contains(q.Last(), "after theirs") {
				t.Error("it is told to wait for who waits for it")
			}
		}
	}
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("1", "9"))
}

// Who needs a file that is held by whoever waits for it does not wait for ever: it is told again, each time counts, and it comes to an end.
func TestOverlapThatCannotWait(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"a.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(handTo("planner", "T1", "see to it")), say("I wait")),
		"planner":   steps(do(work("T2", "write two")), say("it is seen to")),
		"worker": func(q scripted.Request) scripted.Answer {
			if q.Step() == 1 {
				return do(sh("put a.txt " + nine("1", "two")))
			}
			return say("it is done")
		},
	})
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute) // it is over in a second
	defer cancel()
	m := r.runIn(ctx, r.start(centurion.MissionOptions{}).ID)
	two := r.task(m.ID, "T2")
	if two.Status == centurion.TaskCompleted || two.Returns == 0 {
		t.Errorf("it is %s after %d returns", two.Status, two.Returns)
	}
	for _, e := range r.events(m.ID, centurion.EventTaskWaiting) {
		if d, err := event.Decode[event.TaskData](e); err == nil && e.Task == two.ID && d.Reason == "files of T1" {
			t.Error("it waited for who waits for it")
		}
	}
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("1", "9"))
}

// What a command has written is claimed when it has ended, not first at the end of the turn, and its session is told, once, that
// others are working on some of it.
func TestCommandsClaimWhatTheyWrite(t *testing.T) {
	t.Parallel()
	var r *rig
	free := false
	r = inRepo(t, map[string]string{"a.txt": "a\n", "b.txt": "b\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "write one"), work("T2", "write two")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "write one") {
				switch q.Step() {
				case 1:
					return do(sh("put a.txt one"))
				case 2: // until the other one has tried
					r.whenTold(centurion.EventTaskReturned, 1)
				}
				return say("it is done")
			}
			switch q.Step() {
			case 1:
				r.whenClaimed("a.txt")
				return do(writes("a.txt", "two\n"))
			case 2:
				return do(sh("put a.txt two"))
			case 3:
				return do(sh("put c.txt two"))
			case 4: // what nobody else is at is its own at once, although its command has changed another's file, too
				free = slices.Contains(r.task(r.missionOf(), "T2").Claims, "c.txt")
			case 5:
				return do(sh("put a.txt a\n"))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	two := r.task(m.ID, "T2")
	has(t, strings.Join(r.results(m.ID, "write"), "\n"), "a.txt belongs to item T1")
	var told int
	for _, out := range r.results(m.ID, "bash") {
		told += strings.Count(out, "(You have changed files that somebody else is working on at the moment: a.txt belongs to item T1.")
	}
	equal(t, "times that a command's result tells of it", told, 1)
	equal(t, "the other file is claimed before the turn ends", free, true)
	equal(t, "claims", fmt.Sprint(two.Claims), "[c.txt]")
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), "one")
	equal(t, "c.txt", r.branchHas(m.ID, "c.txt"), "two")
}
