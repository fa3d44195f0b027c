package approval

import (
	"testing"

	"centurion"
	"centurion/orchestrator/state"
	"centurion/permission"
	"centurion/store"
	"centurion/store/storetest"
)

// What a person allows always is allowed from then on; what a policy or a limit of time has answered, or once, is not.
func TestWhatIsAGrant(t *testing.T) {
	for _, test := range []struct {
		ask             store.Ask
		rules, commands int
	}{
		{store.Ask{Type: store.AskPermission, Answer: "always", By: "person", Call: "c", Permission: "bash", Always: []string{"ls *"}}, 1, 0},
		{store.Ask{Type: store.AskPermission, Answer: "always", By: "person", Permission: "bash", Always: []string{"make; rm x"}}, 0, 1},
		{store.Ask{Type: store.AskPermission, Answer: "always", By: state.ByPolicy, Call: "c", Permission: "bash", Always: []string{"ls *"}}, 0, 0},
		{store.Ask{Type: store.AskPermission, Answer: "always", By: state.ByTimeout, Permission: "bash", Always: []string{"ls"}}, 0, 0},
		{store.Ask{Type: store.AskPermission, Answer: "once", By: "person", Call: "c", Permission: "bash", Always: []string{"ls *"}}, 0, 0},
		{store.Ask{Type: store.AskQuestion, Answer: "always", By: "person", Call: "c", Always: []string{"ls *"}}, 0, 0},
	} {
		var g grants
		if g.add(test.ask); len(g.rules) != test.rules || len(g.commands) != test.commands {
			t.Errorf("%+v: %+v", test.ask, g)
		}
	}
}

// What puts something on the list of stashes, or takes it from there, is refused however it is written; looking at it is not, nor
// is text that only speaks of it.
func TestStashRules(t *testing.T) {
	t.Parallel()
	for script, denied := range map[string]bool{
		"git stash":                            true,
		"git stash push -u -m x":               true,
		"git stash pop":                        true,
		"git stash apply stash@{1}":            true,
		"git stash clear":                      true,
		"git stash --keep-index":               true,
		"git -C sub stash":                     true,
		"git -c core.x=y stash -u":             true,
		"cd sub && git stash && go test ./...": true,
		`bash -c "git stash; make"`:            true,
		"timeout 5 git stash":                  true,
		"git stash list":                       false,
		"git stash list --stat":                false,
		"git -C sub stash list":                false,
		"git stash show -p stash@{0}":          false,
		"git status && git diff":               false,
		"git commit -am 'git stash is denied'": false,
		"grep -rn 'git stash' docs":            false,
		"echo git stash":                       false,
		"ls stash":                             false,
	} {
		d := permission.DecideShell([]permission.Level{stashRules()}, script, "/p", "/home/u", false)
		if got := d.Action == permission.Deny; got != denied {
			t.Errorf("%s: %s (%s)", script, d.Action, d.Reason)
		}
	}
}

// A refusal is told to the agent in the person's words, and allows nothing, whatever they are.
func TestRefusal(t *testing.T) {
	for why, want := range map[string]string{"": "reject", " ": "reject", "too risky ": "too risky", "always": "no: always", "once": "no: once", " yes ": "no: yes", "run": "no: run"} {
		if got := Refusal(why); got != want {
			t.Errorf("%q refuses as %q, not %q", why, got, want)
		}
	}
}

// What a person types is the number of a choice, its text, or their own words.
func TestChosen(t *testing.T) {
	for typed, want := range map[string]string{"2": "Postgres", " sqlite ": "SQLite", "3": "3", "0": "0", "neither of them": "neither of them", "8": "8"} {
		if got := Chosen([]string{"SQLite", "Postgres"}, typed); got != want {
			t.Errorf("%q means %q, not %q", typed, got, want)
		}
	}
	if got := Chosen([]string{"8080", "1"}, "1"); got != "1" {
		t.Errorf("a choice that is a number: %s", got)
	}
	for typed, none := range map[string]bool{"SQLite": false, "my own": false, "3": true, "0": true, "-1": true, "99999999999999999999": true, "3rd": false, "": false} {
		if got := NoChoice([]string{"SQLite", "Postgres"}, typed); (got != nil) != none {
			t.Errorf("no choice %q: %v", typed, got)
		}
	}
	if err := NoChoice(nil, "3"); err != nil {
		t.Errorf("a number where nothing is to choose: %v", err)
	}
}

// A mission stands still only if everything in it that lives waits for the questions that are open: one that does more beside its question
// does not.
func TestStandstill(t *testing.T) {
	t.Parallel()
	task := func(id string, status centurion.TaskStatus) centurion.Task {
		return centurion.Task{ID: id, Mission: "msn_1", Session: "ses_" + id, Status: status}
	}
	asker := task("1", centurion.TaskWaiting)
	question := store.Ask{Type: store.AskQuestion, Session: "ses_1"}
	for name, c := range map[string]struct {
		asks  []store.Ask
		tasks []centurion.Task
		busy  string // the task that works beside its question
		want  bool
	}{
		"a task asks":                   {[]store.Ask{question}, []centurion.Task{asker, task("2", centurion.TaskCompleted)}, "none", true},
		"it does more":                  {[]store.Ask{question}, []centurion.Task{asker}, "1", false},
		"the mission's agent does more": {[]store.Ask{question}, []centurion.Task{asker}, "", false},
		"another task works":            {[]store.Ask{question}, []centurion.Task{asker, task("2", centurion.TaskRunning)}, "none", false},
		"another task will begin":       {[]store.Ask{question}, []centurion.Task{asker, task("2", centurion.TaskQueued)}, "none", false},
		"a permission is wanted, too":   {[]store.Ask{question, {Type: store.AskPermission}}, []centurion.Task{asker}, "none", false},
	} {
		st := storetest.Open(t)
		m := &state.Mission{Store: st, ID: "msn_1"}
		m.Spent.Store(&centurion.Mission{Session: "ses_0"})
		err := st.Update(t.Context(), func(tx *store.Tx) error {
			for _, one := range c.tasks {
				if err := tx.PutTask(&one); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		a := New(m, nil, nil, Config{Resting: func(task string, answers int, lives func(string) bool) bool {
			if answers != map[string]int{"1": 1}[task] || !lives("1") || lives("2") != (len(c.tasks) > 1 && !c.tasks[1].Status.Ended()) {
				t.Errorf("%s: %d answers for %q", name, answers, task)
			}
			return task != c.busy
		}})
		if got, err := a.standstill(t.Context(), c.asks); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
