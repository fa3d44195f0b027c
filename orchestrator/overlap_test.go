package orchestrator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/provider/scripted"
	"centurion/tools"
)

// nine is a file in which two can work without being in each other's way.
func nine(first, last string) string {
	return first + "\n2\n3\n4\n5\n6\n7\n8\n" + last
}

// barrier returns a function that holds back whoever calls it until n different callers have come.
func barrier(r **rig, n int) func(who string) {
	var mu sync.Mutex
	came, all := map[string]bool{}, make(chan struct{})
	return func(who string) {
		mu.Lock()
		if came[who] = true; len(came) == n {
			select {
			case <-all:
			default:
				close(all)
			}
		}
		mu.Unlock()
		select {
		case <-all:
		case <-(*r).ctx.Done():
		}
	}
}

// writer is which item a worker of these tests has: its prompt ends with it.
func writer(q scripted.Request) string {
	for _, id := range []string{"T1", "T2", "T3", "T4", "T5", "T6"} {
		if strings.Contains(q.First(), "write as "+id) {
			return id
		}
	}
	return ""
}

// neverHeld checks that no task waited for files and that no call was refused because of somebody else.
func (r *rig) neverHeld(mission string) {
	r.t.Helper()
	for _, e := range r.events(mission, centurion.EventTaskWaiting) {
		if d, err := event.Decode[event.TaskData](e); err == nil && strings.Contains(d.Reason, "files of") {
			r.t.Errorf("%s waited for %s", d.Item, d.Reason)
		}
	}
	for _, tool := range []string{"write", "edit", "bash"} {
		for _, out := range r.results(mission, tool) {
			if strings.Contains(out, "belongs to") || strings.Contains(out, "somebody else") {
				r.t.Errorf("a call of %s was told: %s", tool, out)
			}
		}
	}
	for _, e := range r.events(mission, centurion.EventTaskReturned) {
		if d, err := event.Decode[event.ReturnData](e); err == nil && d.Cause == event.ReturnedFiles {
			r.t.Errorf("work came back because of others' files: %s", d.Reason)
		}
	}
}

// O8, SAFE: between worktrees nothing is locked. Two that edit one file at the same time, by tools and by a command, are both told of
// it once, and both are merged.
func TestWorktreesAreNotLocked(t *testing.T) {
	t.Parallel()
	var r *rig
	wrote := barrier(&r, 2)
	r = inRepo(t, map[string]string{"a.txt": nine("1", "9"), "b.txt": "b\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two")), do(work("T1", "write as T1"), work("T2", "write as T2")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			who := writer(q)
			old := map[string]string{"T1": "1\n2", "T2": "8\n9"}[who]
			switch q.Step() {
			case 1:
				return do(call("edit", args{"filePath": "a.txt", "oldString": old, "newString": strings.NewReplacer("1", "one", "9", "two").Replace(old)}))
			case 2:
				wrote(who)
				return do(sh("put " + who + ".txt x"))
			case 3:
				return do(sh("put " + who + ".txt y"))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("one", "two"))
	r.neverHeld(m.ID)
	for _, id := range []string{"T1", "T2"} {
		one := r.task(m.ID, id)
		equal(t, "status of "+id, one.Status, centurion.TaskCompleted)
		other := map[string]string{"T1": "T2", "T2": "T1"}[id]
		equal(t, id+" is told", r.told(one.Session, "At work on the same files as you: "+other+" (do "+other+"): a.txt."), 1)
		equal(t, id+" is told in all", r.told(one.Session, "At work on the same files as you"), 1)
	}
}

// Two that are half done and have changed each other's files do not wait for each other, and neither is sent back.
func TestHalfDoneItemsDoNotWait(t *testing.T) {
	t.Parallel()
	mine := map[string]string{"T1": "a.txt", "T2": "b.txt"}
	var r *rig
	wrote := barrier(&r, 2)
	r = inRepo(t, map[string]string{"a.txt": nine("1", "9"), "b.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")), do(work("T1", "write as T1"), work("T2", "write as T2")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			who, other := writer(q), "T2"
			if who == "T2" {
				other = "T1"
			}
			switch q.Step() {
			case 1:
				return do(sh("put "+mine[who]+" "+nine(who, "9")), sh("put "+mine[other]+" "+nine("1", who)))
			case 2:
				wrote(who)
				return do(call("ls", args{}))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "a.txt", r.branchHas(m.ID, "a.txt"), nine("T1", "T2"))
	equal(t, "b.txt", r.branchHas(m.ID, "b.txt"), nine("T2", "T1"))
	r.neverHeld(m.ID)
	for _, id := range []string{"T1", "T2"} {
		one := r.task(m.ID, id)
		equal(t, "returns of "+id, one.CameBack, 0)
		files := r.told(one.Session, "): a.txt.") + r.told(one.Session, "): b.txt.") + 2*r.told(one.Session, "): a.txt, b.txt.")
		equal(t, "files that "+id+" is told of", files, 2)
	}
}

// The plan's files schedule, as ever, and what somebody has written beyond them keeps nobody from beginning.
func TestFilesSchedule(t *testing.T) {
	t.Parallel()
	var r *rig
	beside := barrier(&r, 2)
	r = inRepo(t, map[string]string{"a.txt": nine("1", "9")}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One", "- [ ] T2 Two\n  - files: a.txt", "- [ ] T3 Three\n  - files: a.txt")),
			do(work("T1", "write as T1"), work("T2", "write as T2"), work("T3", "write as T3")), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			switch who := writer(q); {
			case who == "T1" && q.Step() == 1:
				return do(sh("put a.txt " + nine("one", "9")))
			case who == "T1":
				beside(who) // one of the others works before this one ends
			default:
				beside("another")
				if q.Step() == 1 {
					return do(sh("put " + who + ".txt x"))
				}
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	var waited []string
	for _, e := range r.events(m.ID, centurion.EventTaskWaiting) {
		if d, err := event.Decode[event.TaskData](e); err == nil {
			waited = append(waited, d.Item+" for "+d.Reason)
		}
	}
	slices.Sort(waited)
	if got := strings.Join(waited, ", "); got != "T3 for files of T2" && got != "T2 for files of T3" {
		t.Errorf("waited: %s", got)
	}
	equal(t, "merged", len(r.events(m.ID, centurion.EventMergeDone)), 3)
}

// A conflict is not its worker's failure: however often others were faster, the work is merged at last.
func TestManyConflictsBlockNobody(t *testing.T) {
	t.Parallel()
	const n = 6
	var r *rig
	wrote := barrier(&r, n)
	var plan []string
	var calls []scripted.Call
	for i := range n {
		id := fmt.Sprintf("T%d", i+1)
		plan, calls = append(plan, "- [ ] "+id+" Item"), append(calls, work(id, "write as "+id))
	}
	r = inRepo(t, map[string]string{"a.txt": "work:\n"}, map[string]script{
		"commander": steps(do(plans(plan...)), do(calls...), say("I wait")),
		"worker": func(q scripted.Request) scripted.Answer {
			who := writer(q)
			if q.Step() == 1 {
				return do(call("edit", args{"filePath": "a.txt", "oldString": "work:", "newString": "work: " + who}))
			}
			wrote(who)
			back, read, written := false, "", false // since the work came back
			for _, m := range q.Messages() {
				switch {
				case m.Role == "user" && strings.Contains(m.Text, "Your work does not fit"):
					back, read, written = true, "", false
				case m.Role == "tool" && strings.Contains(m.Text, "<<<<<<<"):
					read = m.Text
				case m.Role == "tool":
					written = read != ""
				}
			}
			switch {
			case back && read == "":
				return do(call("read", args{"filePath": "a.txt"}))
			case back && !written:
				var all []string
				for _, side := range regexp.MustCompile(`work:(.*)`).FindAllStringSubmatch(read, -1) {
					all = append(all, strings.Fields(side[1])...)
				}
				slices.Sort(all)
				return do(writes("a.txt", "work: "+strings.Join(slices.Compact(all), " ")+"\n"))
			}
			return say("it is done")
		},
	})
	m := r.mission(centurion.MissionOptions{})
	got := strings.Fields(r.branchHas(m.ID, "a.txt"))
	slices.Sort(got)
	equal(t, "a.txt", strings.Join(got, " "), "T1 T2 T3 T4 T5 T6 work:")
	back := 0
	for _, x := range r.tasks(m.ID) {
		equal(t, "status of "+x.Item, x.Status, centurion.TaskCompleted)
		back = max(back, x.CameBack)
	}
	if back <= DefaultReturns {
		t.Errorf("the work of nobody came back more than %d times, so that this shows nothing", DefaultReturns)
	}
}

// Who hands out a part of its item waits for it, so that the part may have the same files.
func TestChildHasItsParentsFiles(t *testing.T) {
	t.Parallel()
	r := inRepo(t, map[string]string{"a.txt": "a\n"}, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: a.txt")), do(handTo("planner", "T1", "see to it")), say("I wait")),
		"planner": func(q scripted.Request) scripted.Answer {
			if strings.Contains(q.First(), "look at T2") {
				return say("it is seen")
			}
			return steps(do(handTo("planner", "T2", "look at T2")), say("it is seen to"))(q)
		},
	})
	m := r.mission(centurion.MissionOptions{})
	equal(t, "T2", r.task(m.ID, "T2").Status, centurion.TaskCompleted)
	r.neverHeld(m.ID)
}

// Where all write in one directory, two who each want a file of the other do not wait until both give up: the younger hands its file
// over, and nothing that it wrote there is lost.
func TestCircleOfFilesIsBroken(t *testing.T) {
	other := map[string]string{"T1": "b.txt", "T2": "a.txt"}
	own := map[string]string{"T1": "a.txt", "T2": "b.txt"}
	bubble(t, map[string]script{
		"commander": steps(do(plans("- [ ] T1 One\n  - files: a.txt", "- [ ] T2 Two\n  - files: b.txt")),
			do(work("T1", "write as T1"), call("bash", args{"command": "sleep 1s"})), do(work("T2", "write as T2")), say("I wait")), // T1 is the older one
		"worker": func(q scripted.Request) scripted.Answer {
			who := writer(q)
			last := ""
			for _, m := range q.Messages() {
				if m.Role == "tool" {
					last = m.Text
				}
				if m.Role == "user" && strings.Contains(m.Text, "Leave both files alone") {
					return say("handed over; a.txt is missing")
				}
			}
			switch step := q.Step(); {
			case step == 1:
				return do(writes(own[who], "1\n"))
			case strings.Contains(last, "edited "+other[who]) || step > 12:
				return say("it is done")
			case step%2 == 0:
				return do(call("bash", args{"command": "sleep 30s"}))
			}
			return do(call("edit", args{"filePath": other[who], "oldString": "1", "newString": "1\n" + who}))
		},
	}, func(r *rig) {
		m := r.mission(centurion.MissionOptions{})
		equal(t, "the older has written both", r.read("a.txt")+r.read("b.txt"), "1\n1\nT1\n")
		equal(t, "the younger is told", r.told(r.task(m.ID, "T2").Session, "You need a.txt, which belongs to item T1, while item T1 needs b.txt, which was yours"), 1)
		equal(t, "the older is told", r.told(r.task(m.ID, "T1").Session, "b.txt is yours now: item T2 has handed it over"), 1)
		for _, id := range []string{"T1", "T2"} {
			if x := r.task(m.ID, id); x.Status != centurion.TaskCompleted || x.Ended.Sub(x.Started.Time) > 5*time.Minute {
				t.Errorf("%s is %s after %s", id, x.Status, x.Ended.Sub(x.Started.Time))
			}
		}
	})
}

// What overlaps mean is said in the same words wherever it is said, and only as it is where the mission's sessions write.
func TestOverlapsAreToldInOneText(t *testing.T) {
	t.Parallel()
	for apart, g := range map[bool]*isolation.Ground{true: {}, false: nil} {
		m := unbegun(t)
		m.iso.Ground = g
		c := &conversation{}
		var said []string
		for _, x := range m.opener.WrapTools(c, tools.All(), centurion.Session{}) {
			text, found := strings.CutSuffix(x.Description(), tools.Overlaps(apart))
			if found {
				said = append(said, x.Name())
			}
			if strings.Contains(text, "verlap") || strings.Contains(text, "share") && strings.Contains(text, "files") {
				t.Errorf("apart %v: %s says something else, too: %s", apart, x.Name(), text)
			}
		}
		equal(t, "who says it", strings.Join(said, " "), "edit bash update_todo")
		m.st.Profile = agents.ProfileAssistant
		for _, x := range m.opener.WrapTools(c, tools.All(), centurion.Session{}) {
			if strings.Contains(x.Description(), tools.Overlaps(apart)) {
				t.Errorf("%s of an assistant speaks of items", x.Name())
			}
		}
	}
	plan := steps(do(plans("- [ ] T1 One", "- [ ] T2 Two\n  - files: a.txt", "- [ ] T3 Three\n  - files: a.txt")), say("I wait"))
	for apart, r := range map[bool]*rig{true: inRepo(t, nil, map[string]script{"commander": plan}), false: newRig(t, map[string]script{"commander": plan})} {
		m := r.mission(centurion.MissionOptions{PlanOnly: true})
		said := r.results(m.ID, "update_todo")[0]
		has(t, said, "T2 and T3 share a.txt: they run one after the other.", "No files are named for T1: ")
		equal(t, "the plan's answer", strings.Count(said, tools.Overlaps(apart)), 1)
	}
}
