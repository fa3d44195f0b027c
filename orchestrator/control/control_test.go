package control

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/agent"
	"centurion/store"
	"centurion/store/storetest"
)

// stopped is a desk over a store with the given mission and its tasks. Nobody works on it.
func stopped(t *testing.T, m centurion.Mission, tasks ...centurion.Task) *Desk {
	t.Helper()
	st := storetest.Open(t)
	m.ID, m.Session = "msn_1", "ses_0"
	err := st.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.PutMission(&m); err != nil {
			return err
		}
		sessions := []string{m.Session + " 0/ "}
		for i, task := range tasks {
			task.Mission, task.Number = m.ID, i+1
			if err := tx.PutTask(&task); err != nil {
				return err
			}
			if task.Session != "" {
				sessions = append(sessions, task.Session+" 0/1 "+task.ID)
			}
		}
		for _, s := range sessions {
			f := strings.Split(s, " ")
			if err := tx.PutSession(&centurion.Session{ID: f[0], Agent: "worker", Model: &centurion.SessionModel{Provider: "p", ID: "m"},
				Metadata: centurion.SessionMeta{Mission: m.ID, Address: f[1], Task: f[2]}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return &Desk{Store: st, Running: func(string) *Mission { return nil }, Ended: func(string) {}, Workers: 4, PerAgent: 2}
}

// A limit that is given replaces the mission's own, and one that is not given stays. How the person takes part holds for this time only.
func TestRaise(t *testing.T) {
	t.Parallel()
	old := centurion.MissionOptions{MaxCost: 1, MaxTokens: 2, MaxDuration: 3, MaxRounds: 4, MaxToolCalls: 5, MaxWorkers: 6, MaxPerAgent: 7, Ask: "ask",
		Model: "p/m", Merge: true, RequireProof: true, Level: 1, Detached: true, Unattended: true, ShowPlan: true, PlanOnly: true, Verify: []string{"old"}, AskVerify: true}
	kept := old
	kept.Detached, kept.Unattended, kept.ShowPlan, kept.PlanOnly, kept.Verify, kept.AskVerify = false, false, false, false, nil, false
	more := centurion.MissionOptions{MaxCost: 11, MaxTokens: 12, MaxDuration: 13, MaxRounds: 14, MaxToolCalls: 15, MaxWorkers: 16, MaxPerAgent: 17, Ask: "deny",
		Model: "p/n", Merge: true, RequireProof: true, Level: 2, Detached: true, Unattended: true, ShowPlan: true, Verify: []string{"new"}, AskVerify: true}
	mine := func(command string) centurion.MissionOptions {
		return centurion.MissionOptions{Level: 1, Verify: []string{command}, Setup: []string{command}, TrustSetup: true}
	}
	theirs := centurion.MissionOptions{Level: 1, Verify: []string{"true"}, AskVerify: true, Setup: []string{"true"}}
	for name, test := range map[string]struct{ has, given, want centurion.MissionOptions }{
		// S1: an agent wrote them, or took the file away.
		"commands of the project": {mine("old"), theirs, mine("old")},
		"no commands any more":    {mine("old"), centurion.MissionOptions{}, mine("old")},
		"commands of the person":  {mine("old"), mine("new"), mine("new")},
		"trusted now":             {theirs, mine("true"), mine("true")},

		"nothing given": {old, centurion.MissionOptions{}, kept},
		"all given":     {old, more, more},
		"had nothing":   {centurion.MissionOptions{}, more, more},
	} {
		d := stopped(t, centurion.Mission{Status: centurion.MissionPaused, Options: test.has})
		if err := d.Raise(t.Context(), "msn_1", test.given); err != nil {
			t.Fatal(err)
		}
		m, err := d.Store.Mission(t.Context(), "msn_1")
		if err != nil || !reflect.DeepEqual(m.Options, test.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, m.Options, test.want)
		}
		if m.Level != test.want.Level || m.LevelFrom != centurion.LevelByPerson || m.Accepted {
			t.Errorf("%s: level %d of %q, accepted: %v", name, m.Level, m.LevelFrom, m.Accepted)
		}
	}
	if err := stopped(t, centurion.Mission{}).Resize(t.Context(), "msn_1", 1, 1); centurion.KindOf(err) != centurion.KindConflict {
		t.Errorf("a mission that does not run is resized: %v", err)
	}
}

// family is a mission's tasks: one with a child and a grandchild, a child of it that has ended, and one beside it.
var family = []centurion.Task{
	{ID: "tsk_1", Parent: "ses_0", Session: "ses_1", Status: centurion.TaskQueued, Agent: "worker", Title: "one"},
	{ID: "tsk_2", Parent: "ses_1", Session: "ses_2", Status: centurion.TaskQueued},
	{ID: "tsk_3", Parent: "ses_2", Status: centurion.TaskQueued},
	{ID: "tsk_4", Parent: "ses_1", Session: "ses_4", Status: centurion.TaskCompleted},
	{ID: "tsk_5", Parent: "ses_0", Session: "ses_5", Status: centurion.TaskQueued},
}

// Each of the ways to end work reaches in the store what it names, also while nobody works on the mission.
func TestEndsWithoutAHost(t *testing.T) {
	t.Parallel()
	type end func(*Desk, context.Context, string, string) error
	const paused, completed, cancelled, failed = centurion.MissionPaused, centurion.MissionCompleted, centurion.MissionCancelled, centurion.MissionFailed
	for name, test := range map[string]struct {
		is        centurion.MissionStatus
		end       end
		id        string
		mission   centurion.MissionStatus
		cancelled string
		kind      centurion.Kind
	}{
		"a task with those below it": {paused, (*Desk).Stop, "tsk_1", paused, "tsk_1 tsk_2 tsk_3", ""},
		"by its session":             {paused, (*Desk).Stop, "ses_2", paused, "tsk_2 tsk_3", ""},
		"a task alone":               {paused, (*Desk).Cancel, "tsk_1", paused, "tsk_1", ""},
		"a task that has ended":      {paused, (*Desk).Cancel, "tsk_4", paused, "", ""},
		"a mission, cancelled":       {paused, (*Desk).Cancel, "msn_1", cancelled, "tsk_1 tsk_2 tsk_3 tsk_5", ""},
		"a complete one, cancelled":  {completed, (*Desk).Cancel, "msn_1", completed, "", ""},
		"a mission, stopped":         {centurion.MissionRunning, (*Desk).Stop, "msn_1", paused, "", ""},
		"stopped before":             {paused, (*Desk).Stop, "ses_0", paused, "", ""},
		"paused":                     {centurion.MissionRunning, (*Desk).Pause, "msn_1", paused, "", ""},
		"paused before":              {paused, (*Desk).Pause, "msn_1", paused, "", centurion.KindConflict},
		"paused when complete":       {completed, (*Desk).Pause, "msn_1", completed, "", centurion.KindConflict},
		"a failed one, cancelled":    {failed, (*Desk).Cancel, "msn_1", cancelled, "tsk_1 tsk_2 tsk_3 tsk_5", ""},
		"paused when failed":         {failed, (*Desk).Pause, "msn_1", failed, "", centurion.KindConflict},
		"a turn":                     {paused, (*Desk).Abort, "tsk_1", paused, "", centurion.KindConflict},
		"nothing":                    {paused, (*Desk).Stop, "tsk_9", paused, "", centurion.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			d := stopped(t, centurion.Mission{Status: test.is}, family...)
			var ended []string
			d.Ended = func(id string) { ended = append(ended, id) }
			if err := test.end(d, t.Context(), test.id, ""); centurion.KindOf(err) != test.kind {
				t.Errorf("%v, want %q", err, test.kind)
			}
			m, err := d.Store.Mission(t.Context(), "msn_1")
			if err != nil || m.Status != test.mission {
				t.Errorf("the mission is %s: %v", m.Status, err)
			}
			tasks, err := d.Store.Tasks(t.Context(), "msn_1")
			var got []string
			for _, task := range tasks {
				if task.Status == centurion.TaskCancelled {
					got = append(got, task.ID)
				}
			}
			if strings.Join(got, " ") != test.cancelled || err != nil {
				t.Errorf("cancelled are %s, want %s: %v", got, test.cancelled, err)
			}
			if strings.HasPrefix(test.id, "tsk") && !slices.Equal(ended, got) && test.kind == "" && test.id != "tsk_4" {
				t.Errorf("told as ended: %s", ended)
			}
			if moved := m.Status != test.is; moved && !slices.Equal(ended, []string{""}) {
				t.Errorf("told as ended: %q, it became %s", ended, m.Status)
			}
		})
	}
}

// A session without a host is told with its own numbers, its children, and why it does nothing.
func TestStoredState(t *testing.T) {
	t.Parallel()
	for id, test := range map[string]struct {
		is       centurion.MissionStatus
		activity agent.Activity
		children string
		kind     centurion.Kind
	}{
		"ses_0": {centurion.MissionPaused, agent.Stopped, "tsk_1 tsk_5", ""},
		"msn_1": {centurion.MissionCancelled, agent.Ended, "tsk_1 tsk_5", ""},
		"tsk_1": {centurion.MissionPaused, agent.Stopped, "tsk_2 tsk_4", ""},
		"tsk_4": {centurion.MissionPaused, agent.Ended, "", ""},
		"tsk_3": {centurion.MissionPaused, "", "", centurion.KindConflict},
		"ses_9": {centurion.MissionPaused, "", "", centurion.KindNotFound},
	} {
		d := stopped(t, centurion.Mission{Status: test.is, Reason: "why"}, family...)
		s, err := StoredState(t.Context(), d.Store, id)
		if centurion.KindOf(err) != test.kind || s.Activity != test.activity {
			t.Errorf("%s is %q: %v", id, s.Activity, err)
		}
		var children []string
		for _, c := range s.Children {
			children = append(children, c.Task)
		}
		if got := strings.Join(children, " "); got != test.children {
			t.Errorf("%s has the children %s, want %s", id, got, test.children)
		}
		if test.kind == "" && (s.Model != "p/m" || s.Mission != "msn_1" || s.Calls == nil || test.activity == agent.Stopped && s.Reason != "why") {
			t.Errorf("%s: %+v", id, s)
		}
	}
}

// While a mission is worked on, a session without a turn waits for what its task or its children wait for.
func TestActivityWithoutATurn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		task  centurion.TaskStatus // "" is the mission's own session
		child centurion.TaskStatus
		state State
		want  agent.Activity
		waits agent.Wait
	}{
		"own, idle":          {"", centurion.TaskCompleted, State{}, agent.Idle, ""},
		"own, with a child":  {"", centurion.TaskRunning, State{}, agent.Idle, agent.WaitChild},
		"own, at work":       {"", centurion.TaskRunning, State{Activity: agent.Busy}, agent.Busy, ""},
		"own, waits already": {"", centurion.TaskRunning, State{Activity: agent.Idle, Waits: agent.WaitPerson}, agent.Idle, agent.WaitPerson},
		"queued":             {centurion.TaskQueued, "", State{}, agent.Idle, agent.WaitSlot},
		"verifying":          {centurion.TaskVerifying, "", State{}, agent.Idle, agent.WaitCheck},
		"waiting":            {centurion.TaskWaiting, "", State{}, agent.Idle, agent.WaitTask},
		"between two turns":  {centurion.TaskRunning, "", State{}, agent.Idle, ""},
		"ended":              {centurion.TaskFailed, "", State{Activity: agent.Busy}, agent.Ended, ""},
	} {
		s, tasks := test.state, []centurion.Task{}
		if test.child != "" {
			s.Children = []Child{{Status: test.child}}
		}
		if test.task != "" {
			s.Task, tasks = "tsk_1", []centurion.Task{{ID: "tsk_1", Status: test.task, Reason: "why"}}
		}
		s.judge(centurion.Mission{Status: centurion.MissionRunning}, tasks, true)
		if s.Activity != test.want || s.Waits != test.waits || test.task != "" && s.Reason != "why" {
			t.Errorf("%s: %q, waits for %q, because %q", name, s.Activity, s.Waits, s.Reason)
		}
	}
	closing := State{Activity: agent.Busy, Waits: agent.WaitModel} // its run is not gone yet; a message would begin it again
	closing.judge(centurion.Mission{Status: centurion.MissionCompleted, Reason: "why", Options: centurion.MissionOptions{Profile: agents.ProfileAssistant}}, nil, true)
	if closing.Activity != agent.Stopped || closing.Waits != "" || closing.Reason != "why" {
		t.Errorf("of a closing run: %+v", closing)
	}
}
