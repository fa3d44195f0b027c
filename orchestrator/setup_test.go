package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/isolation"
	"centurion/provider/scripted"
	"centurion/worktree"
)

// notes are what a person was told beside the work.
func (r *rig) notes(mission string) (all []string) {
	for _, e := range r.events(mission, centurion.EventMissionUpdated) {
		if d, err := event.Decode[event.MissionData](e); err == nil && d.Note != "" {
			all = append(all, d.Note)
		}
	}
	return all
}

// A setup that fails, or that may not run, is told once in the run, by its name; refused writes leave no branches behind.
func TestSetupThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		options centurion.MissionOptions
		want    string
	}{
		"fails":       {centurion.MissionOptions{Setup: []string{"echo broken; exit 3"}, TrustSetup: true}, "`echo broken; exit 3` ended with exit code 3: broken"},
		"may not run": {centurion.MissionOptions{Setup: []string{"rm -rf ../nix"}, Ask: "deny"}, "the setup command `rm -rf ../nix` may not run"},
		"untrusted":   {centurion.MissionOptions{Setup: []string{"rm -rf ../nix"}, Ask: "allow"}, "is not trusted, which --ask allow does not replace"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gitRig(t, map[string]string{"a.txt": "a\n"}, map[string]script{
				"commander": steps(do(work("", "x")), say("I wait"), say("done")),
				"worker":    steps(do(writes("b.txt", "b\n")), do(writes("b.txt", "c\n")), do(writes("d.txt", "d\n")), say("it cannot be written")),
			})
			if name != "fails" {
				r.cfg.Rules = askForShell
				r.restart()
			}
			m := r.mission(c.options)
			told := 0
			for _, n := range r.notes(m.ID) {
				if strings.Contains(n, "nothing can be written") {
					told++
					has(t, n, c.want)
				}
			}
			if told != 1 {
				t.Errorf("told %d times: %q", told, r.notes(m.ID))
			}
			for _, res := range r.results(m.ID, "write") {
				if strings.Contains(res, "acceptance command") {
					t.Errorf("the setup is called %q", res)
				}
			}
			equal(t, "branches", r.git("for-each-ref", "--format=%(refname)", "refs/heads/centurion/"), "refs/heads/"+isolation.BranchOf(m.ID))
		})
	}
}

// A setup that fails is tried once more, not for each session and each write, and the question at the end names it. Gone on with, it is
// tried anew.
func TestSetupThatFailsIsNamedAtTheEnd(t *testing.T) {
	const setup = "echo broken >> \"$COUNT\"; echo no such package; exit 3"
	count := filepath.Join(t.TempDir(), "count")
	command := strings.Replace(setup, "$COUNT", count, 1)
	var resumed, handed atomic.Bool
	first := steps(do(barePlan("- [ ] T1 One\n  - verify: `test -e b.txt`\n- [ ] T2 Two\n  - verify: `test -e d.txt`")), do(work("T1", "x"), work("T2", "y")), say("I wait"))
	r := gitRig(t, map[string]string{"a.txt": "a\n"}, map[string]script{
		"commander": func(req scripted.Request) scripted.Answer {
			if resumed.Load() && !handed.Swap(true) {
				return do(work("T1", "once more"))
			}
			return first(req)
		},
		"worker": steps(do(writes("b.txt", "b\n")), do(writes("b.txt", "c\n")), say("it cannot be written")),
	})
	m := r.mission(centurion.MissionOptions{Setup: []string{command}, TrustSetup: true})
	r.is(m, centurion.MissionBlocked, "worktree.setup")
	has(t, m.Reason, "Nothing can be written: ", "no such package")
	tries := strings.Count(fileText(t, count), "broken")
	if tries < 2 || tries > 3 { // two that begin at once may both be under way
		t.Errorf("it was run %d times", tries)
	}
	resumed.Store(true)
	r.run(m.ID)
	if again := strings.Count(fileText(t, count), "broken"); again <= tries {
		t.Errorf("it was not tried again after the resume: %d, then %d", tries, again)
	}
}

// Outside of git it is said in a few words that all write in the same place, and no level is read from a plan that there is not.
func TestOutsideOfGit(t *testing.T) {
	r := realRig(t, map[string]script{
		"commander": steps(do(work("", "x")), say("I wait"), say("done")),
		"worker":    steps(do(writes("b.txt", "b\n")), say("written")),
	})
	home := t.TempDir()
	r.cfg.Worktrees = func(ctx context.Context) (*worktree.Repo, error) {
		return worktree.Open(ctx, worktree.Options{Dir: r.dir, Home: home, Runner: r.cfg.Runner})
	}
	r.restart()
	m := r.mission(centurion.MissionOptions{})
	var notes strings.Builder
	for _, e := range r.events(m.ID, centurion.EventMissionStarted) {
		notes.WriteString(string(e.Data))
	}
	has(t, notes.String(), "all sessions write in the project's own directory: ", "lies in no git repository")
	if strings.Contains(notes.String(), "rev-parse") || strings.Contains(notes.String(), "exit status") {
		t.Errorf("told %q", notes.String())
	}
	if m.Level != 0 || m.LevelFrom != "" {
		t.Errorf("level %d, from %q", m.Level, m.LevelFrom)
	}
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The person is told once why there is no checkout; a full disk ends the mission instead, with its own notice.
func TestNoCheckoutIsToldOnce(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		rec := r.start(centurion.MissionOptions{})
		m := newMission(r.ctx, r.host, rec)
		defer m.drop(nil)
		m.iso.Ground = &isolation.Ground{}
		for kind, told := range map[centurion.Kind]int{centurion.KindDisk: 0, centurion.KindConflict: 1} {
			before := r.count(rec.ID, centurion.EventMissionUpdated)
			for range 2 {
				if err := m.iso.TellNoCheckout(r.ctx, &centurion.Error{Kind: kind, Msg: "no room"}); err != nil {
					t.Error(err)
				}
			}
			equal(t, string(kind)+" told", r.count(rec.ID, centurion.EventMissionUpdated)-before, told)
		}
	})
}
