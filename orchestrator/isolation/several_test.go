package isolation

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/store"
)

// ended puts the tasks of one session, ses_1, and of another; they have ended, and so has the host that ran them. made are their branches, a
// merged one or one with a commit of its own.
func ended(t *testing.T, m *Checkouts, dir string, made map[string]bool, tasks ...centurion.Task) (tip string) {
	t.Helper()
	err := m.st.Store.Update(t.Context(), func(tx *store.Tx) error {
		rec, err := tx.Mission("msn_1")
		rec.Runs = 2
		err = errors.Join(err, tx.PutMission(&rec))
		for _, task := range tasks {
			task.Mission, task.Status = "msn_1", centurion.TaskCompleted
			err = errors.Join(err, tx.PutTask(&task))
		}
		return err
	})
	tip, terr := m.Ground.Repo.Tip(t.Context(), m.Branch())
	if err = errors.Join(err, terr); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "switch", "-q", "--detach", tip)
	git(t, dir, "commit", "-q", "--allow-empty", "-m", "own")
	for name, merged := range made {
		at := "HEAD"
		if merged {
			at = tip
		}
		git(t, dir, "branch", BranchPrefix("msn_1")+name, at)
	}
	git(t, dir, "switch", "-q", "-")
	return tip
}

// A session that was resumed finds its newest work that is not merged, but none from before a resumption that was: that had it.
func TestKeptWorkOfResumedSessions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		made       map[string]bool
		landed     bool
		free, kept string
	}{
		"nothing":                  {nil, false, "tsk_3", ""},
		"of the first":             {map[string]bool{"tsk_1": false}, false, "tsk_3", "tsk_1"},
		"of the first, merged":     {map[string]bool{"tsk_1": true}, false, "tsk_3", ""},
		"the second took it along": {map[string]bool{"tsk_1": false}, true, "tsk_3", ""},
		"of the second as well":    {map[string]bool{"tsk_1": false, "tsk_2": false}, false, "tsk_3", "tsk_2"},
		"its own again":            {map[string]bool{"tsk_1": false, "tsk_3": true, "tsk_3-2": false}, true, "tsk_3-3", "tsk_3-2"},
	} {
		m, _ := hosted(t)
		second := centurion.Task{ID: "tsk_2", Session: "ses_1", Resumes: "tsk_1"}
		if c.landed {
			second.Landed = []centurion.Landed{{Commit: "c"}}
		}
		tip := ended(t, m, m.project.ws.Dir(), c.made, centurion.Task{ID: "tsk_1", Session: "ses_1"}, second, centurion.Task{ID: "tsk_3", Session: "ses_1", Resumes: "tsk_2"})
		free, kept, err := (&Workplace{m: m, task: "tsk_3"}).freeBranch(t.Context(), tip)
		short := func(branch string) string { return strings.TrimPrefix(branch, BranchPrefix("msn_1")) }
		if err != nil || short(free) != c.free || short(kept) != c.kept {
			t.Errorf("%s: free %s, kept %s, %v", name, short(free), short(kept), err)
		}
	}
}

// What a host that died has left is removed where all of a session's work is merged; the branches of another stay together.
func TestSweepBranches(t *testing.T) {
	t.Parallel()
	m, _ := hosted(t)
	dir := m.project.ws.Dir()
	ended(t, m, dir, map[string]bool{"tsk_1": true, "tsk_2": false, "tsk_7": true, "tsk_7-2": true}, centurion.Task{ID: "tsk_1", Session: "ses_1"},
		centurion.Task{ID: "tsk_2", Session: "ses_1", Resumes: "tsk_1"}, centurion.Task{ID: "tsk_7", Session: "ses_7"})
	m.SweepBranches(t.Context())
	left, err := filepath.Glob(filepath.Join(dir, ".git/refs/heads", BranchPrefix("msn_1")+"*"))
	if err != nil || len(left) != 3 { // also the mission's own
		t.Errorf("left are %v, %v", left, err)
	}
	for _, path := range left {
		if strings.Contains(path, "tsk_7") {
			t.Errorf("%s is left", path)
		}
	}
}
