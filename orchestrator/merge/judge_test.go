package merge

import (
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/agents"
	"centurion/event"
	"centurion/orchestrator/brief"
	"centurion/orchestrator/isolation"
	"centurion/orchestrator/plan"
	"centurion/orchestrator/state"
	"centurion/store"
	"centurion/store/storetest"
	"centurion/workspace"
	"centurion/workspace/todo"
)

// queueOf returns the queue of a mission with a plan and some tasks.
func queueOf(t *testing.T, text string, rec centurion.Mission, tasks ...centurion.Task) *Queue {
	t.Helper()
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.Close() })
	if err := ws.WriteFile(workspace.TodoPath, []byte(text)); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t)
	rec.ID, rec.Status = "msn_1", centurion.MissionRunning
	if err := s.Update(t.Context(), func(tx *store.Tx) error {
		for _, x := range tasks {
			x.Mission = rec.ID
			if err := tx.PutTask(&x); err != nil {
				return err
			}
		}
		return tx.PutMission(&rec)
	}); err != nil {
		t.Fatal(err)
	}
	st := state.New(t.Context(), nil, s, rec, nil)
	return &Queue{Prover: &Prover{st: st, plan: plan.New(st, nil, nil, ws.Todo(), func([]byte) bool { return false })}, returns: 3}
}

func author(task, item, agent string, tools ...string) *Author {
	a := &Author{Seat: &isolation.Seat{}, Agent: agents.Agent{Name: agent, Tools: tools}, Session: "ses_1"}
	if task != "" {
		a.Task = &state.Run{ID: task, Item: item, Agent: agent}
	}
	return a
}

// What proves an item is not weakened once it was handed out, nor changed once work on it has begun, but by the reviewer.
func TestKeepsChecks(t *testing.T) {
	t.Parallel()
	const was = "# P\n- verify: `make all`\n- [ ] T1 One\n  - verify: `make one`\n- [x] T2 Two\n  - verify: `make two`\n- [ ] T3 Three\n- [ ] T4 Four\n  - verify: `make four`\n  - verify: `make more`\n"
	handed := centurion.Task{ID: "tsk_1", Item: "T1", Status: centurion.TaskQueued}
	begun := handed
	begun.Started = centurion.Now()
	both := centurion.Task{ID: "tsk_4", Item: "T4", Status: centurion.TaskQueued}
	other := centurion.Task{ID: "tsk_9", Item: "T9", Started: centurion.Now()}
	for name, c := range map[string]struct {
		from, to string // replaced in the plan
		by       *Author
		rec      centurion.Mission
		tasks    []centurion.Task
		refused  bool
		changed  int
	}{
		"nothing":                   {"Three", "Four", author("", "", "commander"), centurion.Mission{}, []centurion.Task{begun}, false, 0},
		"before it is handed out":   {"make one", "true", author("", "", "commander"), centurion.Mission{}, nil, false, 0},
		"another one, handed out":   {"make one", "make uno", author("", "", "commander"), centurion.Mission{}, []centurion.Task{handed}, false, 0},
		"a weaker one, handed out":  {"make one", "true", author("", "", "commander"), centurion.Mission{}, []centurion.Task{handed}, true, 0},
		"the same one twice":        {"make more", "make four", author("", "", "commander"), centurion.Mission{}, []centurion.Task{both}, true, 0},
		"another one of two":        {"make more", "make other", author("", "", "commander"), centurion.Mission{}, []centurion.Task{both}, false, 0},
		"a weaker one of another":   {"make one", "true", author("", "", "commander"), centurion.Mission{}, []centurion.Task{other}, false, 0},
		"work has begun":            {"make one", "make uno", author("", "", "commander"), centurion.Mission{}, []centurion.Task{begun}, true, 0},
		"the plan was accepted":     {"make one", "make uno", author("", "", "commander"), centurion.Mission{Accepted: true}, nil, true, 0},
		"of a done item":            {"make two", "make dos", author("", "", "commander"), centurion.Mission{}, nil, true, 0},
		"by the reviewer":           {"make two", "make dos", author("tsk_2", "", agents.Reviewer), centurion.Mission{}, nil, false, 1},
		"the item is removed":       {"- [ ] T1 One\n  - verify: `make one`\n", "", author("", "", "commander"), centurion.Mission{}, []centurion.Task{begun}, false, 0},
		"the mission's, at first":   {"make all", "make any", author("", "", "commander"), centurion.Mission{}, nil, false, 0},
		"the mission's, then":       {"make all", "make any", author("", "", "commander"), centurion.Mission{}, []centurion.Task{handed}, true, 0},
		"the mission's, accepted":   {"make all", "make any", author("", "", "commander"), centurion.Mission{Accepted: true}, nil, true, 0},
		"only how it is to be seen": {"  - verify: `make two`\n", "  - verify: `make two`\n  - proof: regression\n", author("", "", "commander"), centurion.Mission{}, nil, true, 0},
	} {
		q := queueOf(t, was, c.rec, c.tasks...)
		prev, err := todo.Parse([]byte(was))
		next, nerr := todo.Parse([]byte(strings.Replace(was, c.from, c.to, 1)))
		if err != nil || nerr != nil {
			t.Fatal(err, nerr)
		}
		changed, err := q.KeepsChecks(t.Context(), c.by, prev, next)
		if (centurion.KindOf(err) == centurion.KindPermission) != c.refused || !c.refused && err != nil || len(changed) != c.changed {
			t.Errorf("%s: %v, %v", name, changed, err)
		}
	}
	q := queueOf(t, "# P\n- [ ] T1 One\n", centurion.Mission{Accepted: true})
	bare, _ := todo.Parse([]byte("# P\n- [ ] T1 One\n"))
	more, _ := todo.Parse([]byte("# P\n- verify: `make all`\n- [ ] T1 One\n"))
	if changed, err := q.KeepsChecks(t.Context(), author("", "", "commander"), bare, more); err != nil || len(changed) > 0 {
		t.Errorf("a first check: %v, %v", changed, err)
	}
}

// Only the mission's own agent replaces a line that has proved nothing, and only while no task works on its item.
func TestWhoExchangesChecks(t *testing.T) {
	t.Parallel()
	const was = "# P\n- [x] T1 One\n  - verify: `make one`\n"
	prev, _ := todo.Parse([]byte(was))
	next, _ := todo.Parse([]byte(strings.Replace(was, "make one", "make uno", 1)))
	for name, c := range map[string]struct {
		by   *Author
		runs bool
		ok   bool
	}{
		"the mission's own agent": {author("", "", "commander"), false, true},
		"while its task runs":     {author("", "", "commander"), true, false},
		"a worker":                {author("tsk_1", "T1", "worker"), false, false},
	} {
		q := queueOf(t, was, centurion.Mission{})
		r := centurion.Receipt{ID: "rcp_1", Mission: "msn_1", Item: "T1", Command: "make one", Passed: true, Proof: centurion.ProofUnproven}
		if err := q.st.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.PutReceipt(&r) }); err != nil {
			t.Fatal(err)
		}
		if c.runs {
			q.st.Add(&state.Run{ID: "tsk_2", Item: "T1"})
		}
		changed, err := q.KeepsChecks(t.Context(), c.by, prev, next)
		if (err == nil) != c.ok || c.ok && (len(changed) != 1 || changed[0].Item != "T1" || !slices.Equal(changed[0].To, []string{"make uno"})) {
			t.Errorf("%s: %+v, %v", name, changed, err)
		}
	}
}

// Who has changed nothing and ends with a question is told so once, and who changed something before is not.
func TestOnlyAsks(t *testing.T) {
	t.Parallel()
	one := centurion.Task{ID: "tsk_1", Item: "T1", Session: "ses_1", Status: centurion.TaskRunning}
	changed := func(f func(*centurion.Task)) centurion.Task { x := one; f(&x); return x }
	told := []centurion.Rejection{{Cause: event.ReturnedQuestion}}
	const asks = "I looked around.\nWhich of the two should I use?"
	for name, c := range map[string]struct {
		by    *Author
		said  string
		tasks []centurion.Task
		want  string // part of the text; "" if it is accepted
		ends  bool
	}{
		"asks":                        {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{one}, "question there. Answer it yourself", false},
		"may ask a person":            {author("tsk_1", "T1", "worker", "edit", "ask_user"), asks, []centurion.Task{one}, "Ask the person with ask_user. Or answer it yourself", false},
		"asks again":                  {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{changed(func(t *centurion.Task) { t.Rejections = told })}, "A person wants you to continue", true},
		"another one was told":        {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{one, {ID: "tsk_2", Rejections: told}}, "question there", false},
		"says what it did":            {author("tsk_1", "T1", "worker", "write"), "Done.", []centurion.Task{one}, "", false},
		"is stuck":                    {author("tsk_1", "T1", "worker", "write"), "STUCK\nWhich one?", []centurion.Task{one}, "", false},
		"may change nothing":          {author("tsk_1", "T1", "worker", "read"), asks, []centurion.Task{one}, "", false},
		"has no item":                 {author("tsk_1", "", "worker", "write"), asks, []centurion.Task{one}, "", false},
		"has changed a file":          {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{changed(func(t *centurion.Task) { t.Files = []string{"a"} })}, "", false},
		"its files are merged":        {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{changed(func(t *centurion.Task) { t.Landed = []centurion.Landed{{Files: []centurion.FileChange{{Path: "a"}}}} })}, "", false},
		"merged without a file":       {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{changed(func(t *centurion.Task) { t.Landed = []centurion.Landed{{}} })}, "question there", false},
		"reviews":                     {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{changed(func(t *centurion.Task) { t.Reviews = true })}, "", false},
		"another session has changed": {author("tsk_1", "T1", "worker", "write"), asks, []centurion.Task{one, {ID: "tsk_2", Session: "ses_2", Files: []string{"a"}}}, "question there", false},
	} {
		back, err := queueOf(t, "# P\n- [ ] T1 One\n", centurion.Mission{}, c.tasks...).onlyAsks(t.Context(), c.by, c.said)
		switch {
		case err != nil || (back == nil) != (c.want == ""):
			t.Errorf("%s: %+v, %v", name, back, err)
		case back != nil && (!strings.Contains(back.Text, c.want) || back.Ends != c.ends || back.Notice == c.ends || !strings.HasSuffix(back.Short, "Which of the two should I use?")):
			t.Errorf("%s: %+v", name, back)
		}
	}
}

// Whether work whose agent says that it is stuck is held back at once, or its checks decide.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, item, said string
		task             centurion.Task
		stuck, back      bool
	}{
		"not stuck":                 {"- [ ] T1 One\n", "T1", "Done.", centurion.Task{}, false, false},
		"without an item":           {"- [ ] T1 One\n", "", "STUCK", centurion.Task{}, false, false},
		"no check":                  {"- [ ] T1 One\n", "T1", "STUCK", centurion.Task{}, true, true},
		"a check":                   {"- [ ] T1 One\n  - verify: `make`\n", "T1", "STUCK: no", centurion.Task{}, true, false},
		"a review":                  {"- [ ] T1 One\n", "T1", "STUCK", centurion.Task{Reviews: true}, false, false},
		"its line is gone, a check": {"- [ ] T2 Two\n", "T1", "STUCK", centurion.Task{Verify: []string{"make"}}, true, false},
		"its line is gone, no one":  {"- [ ] T2 Two\n", "T1", "STUCK", centurion.Task{}, false, false},
	} {
		c.task.ID, c.task.Item = "tsk_1", c.item
		stuck, back, err := queueOf(t, "# P\n"+c.text, centurion.Mission{}, c.task).unfinished(t.Context(), author("tsk_1", c.item, "worker", "write"), c.said)
		if err != nil || stuck != c.stuck || (back != nil) != c.back || back != nil && !back.Ends {
			t.Errorf("%s: %v, %+v, %v", name, stuck, back, err)
		}
	}
}

// record stores the conversation of a reviewer, with a call that failed and, if it looked, one that did not; and a check of its mission.
func record(t *testing.T, q *Queue, looked, checked bool) {
	t.Helper()
	if err := q.st.Store.Update(t.Context(), func(tx *store.Tx) error {
		m := centurion.Message{ID: "msg_1", SessionID: "ses_1", Role: centurion.RoleAssistant}
		parts := []centurion.Part{{ID: "prt_1", Type: centurion.PartTool, Tool: "read", CallID: "1", State: &centurion.ToolState{Status: centurion.ToolError}}}
		if looked {
			parts = append(parts, centurion.Part{ID: "prt_2", Type: centurion.PartTool, Tool: "bash", CallID: "2", State: &centurion.ToolState{Status: centurion.ToolCompleted}})
		}
		if err := tx.PutSession(&centurion.Session{ID: "ses_1"}); err != nil {
			return err
		}
		if err := tx.PutMessage(&m); err != nil {
			return err
		}
		for i := range parts {
			parts[i].SessionID, parts[i].MessageID = m.SessionID, m.ID
			if err := tx.PutPart(&parts[i]); err != nil {
				return err
			}
		}
		return tx.PutReceipt(&centurion.Receipt{ID: "rcp_1", Mission: q.st.ID, Command: "true", Passed: checked})
	}); err != nil {
		t.Fatal(err)
	}
}

// A review without a verdict is asked for one, once; one that is stuck is not. A PASS of a reviewer that has looked at nothing goes back in
// the same way while no check has passed.
func TestUnruled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, said                  string
		looked, checked, empty, told bool // empty: there was nothing to judge
		back, blind                  bool
	}{
		"no verdict":             {agent: agents.Reviewer, said: "I looked.", looked: true, back: true},
		"told before":            {agent: agents.Reviewer, said: "I looked.", looked: true, told: true},
		"a verdict":              {agent: agents.Reviewer, said: "PASS", looked: true},
		"blind":                  {agent: agents.Reviewer, said: "PASS", back: true, blind: true},
		"blind, told before":     {agent: agents.Reviewer, said: "PASS", told: true, blind: true},
		"blind, with a check":    {agent: agents.Reviewer, said: "PASS", checked: true},
		"with nothing to see":    {agent: agents.Reviewer, said: "PASS", empty: true},
		"blind faults":           {agent: agents.Reviewer, said: "FAIL: a.go"},
		"stuck":                  {agent: agents.Reviewer, said: "STUCK: no compiler"},
		"what is not the review": {agent: "worker", said: "I looked."},
	} {
		task := centurion.Task{ID: "tsk_1", Session: "ses_1", Agent: c.agent, Unchanged: c.empty}
		if c.told {
			task.Rejections = []centurion.Rejection{{Cause: event.ReturnedVerdict}}
		}
		q, by := queueOf(t, "# P\n- [ ] T1 One\n", centurion.Mission{}, task), author("tsk_1", "", c.agent)
		by.Session = task.Session
		record(t, q, c.looked, c.checked)
		back, err := q.unruled(t.Context(), by, c.said)
		if err != nil || (back != nil) != c.back || by.Task.Blind != c.blind || back != nil && (!back.Notice || back.Cause != event.ReturnedVerdict) {
			t.Errorf("%s: %+v, %v", name, back, err)
		}
	}
}

// What a receipt is known by: an item's command that passed on its work, and a check of the mission, whichever way it ended.
func TestKnownReceipts(t *testing.T) {
	t.Parallel()
	green := centurion.Receipt{ID: "1", Item: "T1", Command: " make\n", Passed: true, Tree: "t"}
	changed := func(f func(*centurion.Receipt)) centurion.Receipt { r := green; f(&r); return r }
	for name, c := range map[string]struct {
		r          centurion.Receipt
		green, own bool
	}{
		"green":           {green, true, false},
		"red":             {changed(func(r *centurion.Receipt) { r.Passed = false }), false, false},
		"at the end":      {changed(func(r *centurion.Receipt) { r.Final = true }), false, false},
		"of another item": {changed(func(r *centurion.Receipt) { r.Item = "T2" }), false, false},
		"another command": {changed(func(r *centurion.Receipt) { r.Command = "make it" }), false, false},
		"the mission's":   {changed(func(r *centurion.Receipt) { r.Item, r.Passed = "", false }), false, true},
		"another of its":  {changed(func(r *centurion.Receipt) { r.Item, r.Command = "", "make it" }), false, false},
	} {
		if isGreen(c.r, "T1", "make") != c.green || isOwn(c.r, "make") != c.own {
			t.Errorf("%s: green %v, the mission's %v", name, isGreen(c.r, "T1", "make"), isOwn(c.r, "make"))
		}
	}
	all := []centurion.Receipt{green, changed(func(r *centurion.Receipt) { r.ID = "2" }), changed(func(r *centurion.Receipt) { r.ID, r.Tree = "3", "u" })}
	if r, ok := newest(all, "t", func(r centurion.Receipt) bool { return r.Passed }); !ok || r.ID != "2" {
		t.Errorf("the newest on a tree: %+v", r)
	}
	if r, ok := newest(all, "t", func(centurion.Receipt) bool { return false }); ok {
		t.Errorf("not wanted: %+v", r)
	}
}

// An agent with one tool that writes may change files; a review counts no more when its files are changed under either name.
func TestWhoseFiles(t *testing.T) {
	t.Parallel()
	for tools, want := range map[string]bool{"write": true, "edit": true, "read bash": false} {
		if got := author("", "", "worker", strings.Fields(tools)...).mayChange(); got != want {
			t.Errorf("with %s: %v", tools, got)
		}
	}
	theirs := []centurion.Task{{Landed: []centurion.Landed{{Files: []centurion.FileChange{{Path: "a"}, {Path: "b"}}}}}}
	got := alsoOf(theirs, []centurion.FileChange{{Path: "a"}, {Path: "c"}, {Path: "d", Old: "b"}, {Path: "e", Old: "f"}})
	if len(got) != 2 || got[0].Path != "a" || got[1].Path != "d" {
		t.Errorf("%+v", got)
	}
}

// A session hears how often its work came back, and what really happens then.
func TestCountdown(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		isolated bool
		ask      string
	}{
		"(Returned 2 of 3; after that your task has failed.)":                             {false, "ask"},
		"(Returned 2 of 3; after that your work is not merged and a person is asked.)":    {true, "ask"},
		"(Returned 2 of 3; after that your work is not merged and your task is blocked.)": {true, "deny"},
	} {
		if got := countdown(2, 3, c.isolated, c.ask); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for said, want := range map[string]string{"one\ntwo \n": "two", "one": "one", "": ""} {
		if got := state.LastLine(said); got != want {
			t.Errorf("the last line of %q: %q", said, got)
		}
	}
}

// An output is shown again if anything but its numbers is new: another task's, another command's, or another end.
func TestWhatCountsAsTheSameOutput(t *testing.T) {
	t.Parallel()
	before := centurion.Receipt{ID: "1", Command: "c", Task: "t", ExitCode: 1, Output: "FAILED in 12 ms\n"}
	now := before
	now.ID, now.Output = "2", "FAILED in 7 ms\n"
	for name, c := range map[string]struct {
		change func(*centurion.Receipt) // of the earlier one
		same   bool
	}{
		"the same":         {func(*centurion.Receipt) {}, true},
		"itself":           {func(r *centurion.Receipt) { r.ID = "2" }, false},
		"another task's":   {func(r *centurion.Receipt) { r.Task = "u" }, false},
		"another command":  {func(r *centurion.Receipt) { r.Command = "d" }, false},
		"of the end":       {func(r *centurion.Receipt) { r.Final = true }, false},
		"it passed":        {func(r *centurion.Receipt) { r.Passed = true }, false},
		"another error":    {func(r *centurion.Receipt) { r.Error = "it took too long" }, false},
		"another output":   {func(r *centurion.Receipt) { r.Output = "PANIC in 12 ms\n" }, false},
		"it printed none":  {func(r *centurion.Receipt) { r.Output = " \n" }, false},
		"it was not shown": {func(r *centurion.Receipt) { r.Output = "FAILED in 99 ms\n" }, false},
	} {
		was := before
		c.change(&was)
		got := brief.AccountAgain(now, []centurion.Receipt{was}, func(output string) bool { return !strings.Contains(output, "99") })
		if strings.Contains(got, "the same as the last time") != c.same || strings.Contains(got, "FAILED") == c.same {
			t.Errorf("%s: %s", name, got)
		}
	}
}
