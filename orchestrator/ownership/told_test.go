package ownership

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/tools"
)

// recorded is the state of a mission with tasks.
func recorded(t *testing.T, tasks ...centurion.Task) *store.Store {
	t.Helper()
	st := storetest.Open(t)
	if err := st.Update(t.Context(), func(tx *store.Tx) error {
		for _, one := range tasks {
			one.Mission = "msn_1"
			if err := tx.PutTask(&one); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return st
}

// live adds the goroutine of a task.
func (m *Files) live(task centurion.Task) *state.Run {
	r := &state.Run{ID: task.ID, Item: task.Item, Name: task.Name()}
	r.Now.Store(&task)
	m.st.Add(r)
	return r
}

// A session is told of all who hold files: who it is, whether it is at work, whether it is its own, and what it holds; those beside its own
// files first, and of those who may change anything the names.
func TestWhoElseIsTold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 20)
	tasks := []centurion.Task{
		{ID: "tsk_1", Item: "T1", Title: "First", Parent: "ses_2", Attempt: 1},
		{ID: "tsk_2", Item: "T2", Title: "T2", Parent: "ses_2"},
		{ID: "tsk_3", Item: "T3", Title: long, Parent: "ses_1", Attempt: 1},
		{ID: "tsk_4", Item: "T4", Parent: "ses_1", Reason: "T3", Status: centurion.TaskWaiting},
		{ID: "tsk_5", Item: "T5", Parent: "ses_1", Status: centurion.TaskQueued},
		{ID: "tsk_6", Item: "T6", Title: "Any", Agent: "worker", Attempt: 1},
		{ID: "tsk_7", Item: "T7", Title: "T7", Agent: "worker", Attempt: 1},
	}
	m := filesOf(t, recorded(t, tasks...))
	m.st.Cast = agents.Default()
	for _, task := range tasks {
		m.live(task)
		if task.Agent == "" {
			m.Take(task.Item, []string{"d" + task.Item[1:] + "/f.go", "d0/" + task.Item})
		}
	}
	m.Take("T9", []string{"d9/" + strings.Repeat("f", 300)})
	m.Settle("T1", []string{"d8/x.go"})
	cut := centurion.Clip(long, 60)
	want := "T1 (First) is being worked on by another agent: d1/f.go, d0/T1; outside its files: d8/x.go\n" +
		"T2 is taken by another agent that has not begun yet: d2/f.go, d0/T2\n" +
		"T3 (" + cut + ") is being worked on by your own task: d3/f.go, d0/T3\n" +
		"T4 is your own task, which has not begun and waits for T3; its files: d4/f.go, d0/T4\n" +
		"T5 is your own task, which has not begun; its files: d5/f.go, d0/T5\n" +
		"T9 is being worked on by another agent: " + centurion.Clip("d9/"+strings.Repeat("f", 300), 200) + "\n"
	free := "Being worked on by other agents, and may change any file, because the plan names none: "
	got := strings.Split(m.WhoElse("", "ses_1"), anyFile)
	equal(t, "told to one without files", got[0], want)
	names := strings.Split(strings.TrimSpace(got[1]), ", ")
	slices.Sort(names)
	equal(t, "at work without files", strings.Join(names, ", "), "T6 (Any), T7")
	m.st.Drop(m.st.Run("tsk_7"))
	m.Take("T0", []string{"d9/g.go"})
	equal(t, "told to one beside another", m.WhoElse("T0", "ses_1"), "T9 is being worked on by another agent: "+centurion.Clip("d9/"+strings.Repeat("f", 300), 200)+"\n"+free+"T6 (Any)\n")
}

// Who works on files elsewhere is nobody to know of, and not somebody who may change any file.
func TestWhoElseIsElsewhere(t *testing.T) {
	t.Parallel()
	m := filesOf(t, nil)
	m.st.Cast = agents.Default()
	m.live(centurion.Task{ID: "tsk_1", Item: "T1", Agent: "worker", Attempt: 1})
	m.Take("T1", []string{"a/**"})
	m.Take("T2", []string{"b/x.go"})
	equal(t, "told to one in another directory", m.WhoElse("T2", "ses_1"), "")
	equal(t, "told to one without files", m.WhoElse("T3", "ses_1"), "T1 is being worked on by another agent: a/**\nT2 is being worked on by another agent: b/x.go\n")
}

// Of very many, one without files is told of the others by name, shortened.
func TestWhoElseOfMany(t *testing.T) {
	t.Parallel()
	m := filesOf(t, nil)
	var rest []string
	for i := range 60 {
		name := fmt.Sprintf("item-%02d", i)
		m.Take(name, []string{name + "/f.go"})
		if i >= 8 {
			rest = append(rest, name)
		}
	}
	_, got, _ := strings.Cut(m.WhoElse("", "ses_1"), "item-07/f.go\n")
	equal(t, "the others", got, "52 more are being worked on, on other files: "+centurion.Clip(strings.Join(rest, ", "), 200)+"\n")
}

// Who may change any file is who works on an item whose files nobody has named, may write, and is neither a review nor a sub-agent.
func TestWhoMayChangeAnything(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task    centurion.Task
		working bool
		want    string
	}{
		"at work":        {task: centurion.Task{Item: "T1", Agent: "worker", Attempt: 1}, want: "T1"},
		"begins":         {task: centurion.Task{Item: "T1", Agent: "worker"}, working: true, want: "T1"},
		"waits":          {task: centurion.Task{Item: "T1", Agent: "worker"}},
		"no item":        {task: centurion.Task{Agent: "worker", Attempt: 1}},
		"a review":       {task: centurion.Task{Item: "T1", Agent: "worker", Attempt: 1, Reviews: true}},
		"a sub-agent":    {task: centurion.Task{Item: "T1", Agent: "worker", Attempt: 1, Sub: &centurion.SubAgent{Tools: []string{"write"}}}},
		"its own":        {task: centurion.Task{Item: "T1", Agent: "worker", Attempt: 1, Parent: "ses_1"}},
		"it only reads":  {task: centurion.Task{Item: "T1", Agent: "reviewer", Attempt: 1}},
		"nobody":         {task: centurion.Task{Item: "T1", Agent: "nobody", Attempt: 1}},
		"it holds files": {task: centurion.Task{Item: "T2", Agent: "worker", Attempt: 1}},
		"who asks":       {task: centurion.Task{Item: "T3", Agent: "worker", Attempt: 1}},
	} {
		m := filesOf(t, nil)
		m.st.Cast = agents.Default()
		c.task.ID = "tsk_1"
		m.live(c.task).Working.Store(c.working)
		equal(t, name, strings.Join(m.unnamed("T3", "ses_1", map[string][]string{"T2": {"f"}}), " "), c.want)
		begun := c.task.Attempt > 0 || c.working
		equal(t, name+": at work on files", m.atWork(c.task.Holder()) != "", begun)
	}
	m := filesOf(t, nil)
	m.live(centurion.Task{ID: "tsk_1", Item: "T1", Title: strings.Repeat("long ", 20), Attempt: 1})
	m.live(centurion.Task{ID: "tsk_2", Item: "T2", Attempt: 1})
	equal(t, "with a title", m.atWork("T1"), "T1 ("+centurion.Clip(strings.Repeat("long ", 20), 60)+")")
	equal(t, "without one", m.atWork("T2"), "T2")
	equal(t, "nobody", m.atWork("T3"), "")
}

// A session claims what nobody holds, once, and it is recorded with its task; a file of another is refused with who has it, and then
// nothing is claimed. Those who wait for it hold nothing against it.
func TestClaim(t *testing.T) {
	t.Parallel()
	m := filesOf(t, recorded(t, centurion.Task{ID: "tsk_1", Item: "T1", Status: centurion.TaskRunning, Claims: []string{"m.go"}}))
	m.Take("T2", []string{"b.go"})
	m.Take("T3", []string{"c.go"})
	seat := &isolation.Seat{Holder: "T1", HoldsFor: "tsk_1", Above: []string{"T3"}}
	want := func(when string, events int, claimed ...string) {
		t.Helper()
		now, err := m.st.Store.Task(t.Context(), "tsk_1")
		all, eerr := m.st.Store.Events(t.Context(), store.EventQuery{})
		if err != nil || eerr != nil || !slices.Equal(now.Claims, claimed) || len(all) != events {
			t.Errorf("%s: %q after %d events; %v, %v", when, now.Claims, len(all), err, eerr)
		}
		for _, e := range all {
			if e.Type != centurion.EventTaskUpdated || e.Task != "tsk_1" {
				t.Errorf("%s: %+v", when, e)
			}
		}
	}
	err := m.Claim(t.Context(), seat, []string{"a.go", "b.go"})
	if refused := (&centurion.Error{Kind: centurion.KindConflict, Msg: "b.go belongs to item T2, which another agent is working on",
		Hint: "leave it alone; if your work needs a change there, say so in your result. " + tools.Overlaps(false)}); !reflect.DeepEqual(err, error(refused)) {
		t.Errorf("%+v", err)
	}
	want("refused", 0, "m.go")
	for range 2 {
		if err := m.Claim(t.Context(), seat, []string{"z.go", "a.go", "c.go"}); err != nil {
			t.Error(err)
		}
	}
	want("claimed", 1, "a.go", "c.go", "m.go", "z.go")
	if err := m.Claim(t.Context(), &isolation.Seat{Holder: "T9", HoldsFor: "tsk_9"}, []string{"n.go"}); err == nil {
		t.Error("a claim that cannot be recorded is no error")
	}
}
