package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/permission"
	"centurion/provider/scripted"
)

// listIn returns the file list of a session's first message, with its heading.
func listIn(first string) string {
	_, rest, found := strings.Cut(first, "\n# Files of the project\n")
	list, _, closed := strings.Cut(rest, "\n</files>\n")
	if !found || !closed {
		return ""
	}
	return "\n# Files of the project\n" + list + "\n</files>\n"
}

// roles is a cast of which every role makes at least one request.
func roles(change scripted.Call) map[string]script {
	return map[string]script{
		"commander": steps(do(handTo("planner", "", "look")), say("I wait"), do(handTo("worker", "", "write it")), say("I wait"), do(handTo("reviewer", "", "judge it")), say("I wait")),
		"worker":    steps(do(change), say("written")),
		"reviewer":  steps(say("PASS: it is there")),
	}
}

// Issue "What real use showed", B.11: the first message of each role names the project's files, which is stored with it and stays; who begins after
// something was merged sees that, too. Ignored files, the program's own and what git does not track are not in it.
func TestFirstMessageNamesFiles(t *testing.T) {
	files := map[string]string{".gitignore": "out\n", "go.mod": "module x\n", "cmd/main.go": "package main\n", "docs/a b.md": "", "docs/`c`</files>.md": ""}
	check := func(t *testing.T, r *rig, later, untracked string) {
		m := r.mission(centurion.MissionOptions{})
		asked := map[string]string{}
		for _, q := range r.model.Requests() {
			if _, ok := asked[q.Agent()]; !ok {
				asked[q.Agent()] = q.First()
			}
		}
		equal(t, "roles", strings.Join(slices.Sorted(maps.Keys(asked)), " "), "commander planner reviewer worker")
		for role, first := range asked {
			if role != "commander" && untracked != "" { // the snapshot has what the person has not committed
				first = strings.Replace(first, " "+untracked, "", 1)
			}
			want := "<files>\n.gitignore go.mod\ncmd/main.go\n\"docs/a b.md\"\n\"docs/\\x60c\\x60\\x3c/files\\x3e.md\"\n</files>\n"
			if role == "reviewer" {
				want = strings.Replace(want, "cmd/main.go", later, 1)
			}
			has(t, listIn(first), want)
			if role == "commander" {
				has(t, first, "build it\n\n---\n# Files of the project\n")
			}
			if strings.Count(first, "</files>") != 1 {
				t.Errorf("the %s is told:\n%s", role, first)
			}
		}
		sessions, err := r.store.Sessions(r.ctx, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sessions {
			stored, err := r.store.Messages(r.ctx, s.ID)
			if err != nil || stored[0].Text() != asked[s.Agent] {
				t.Errorf("the %s's first message is stored as %q, %v", s.Agent, stored[0].Text(), err)
			}
		}
	}
	t.Run("git", func(t *testing.T) {
		r := gitRig(t, files, roles(writes("cmd/new.go", "package main\n")))
		r.write("untracked.go", "")
		r.write("out/x", "")
		check(t, r, "cmd/: main.go new.go", "untracked.go")
	})
	t.Run("no git", func(t *testing.T) {
		bubble(t, roles(writes("cmd/new.go", "package main\n")), func(r *rig) {
			for name, text := range files {
				r.write(name, text)
			}
			r.write("out/x", "")
			check(t, r, "cmd/: main.go new.go", "")
		})
	})
}

// Issue "What real use showed", B.11: 20,000 files cost a first message no more than 2 KB.
func TestFirstMessageOfManyFiles(t *testing.T) {
	files := map[string]string{}
	for i := range 20_000 {
		files[fmt.Sprintf("pkg%d/sub%d/file%05d_with_a_long_name.go", i%40, i%7, i)] = ""
	}
	for i := range 30 {
		files[fmt.Sprintf("cmd%d/main.go", i)] = ""
	}
	r := gitRig(t, files, nil)
	r.mission(centurion.MissionOptions{})
	asked := r.requests("commander")
	list := listIn(asked[0].First())
	if len(list) == 0 || len(list) > 2048 {
		t.Errorf("%d bytes:\n%s", len(list), list)
	}
	has(t, list, "20030 files", "\ncmd0/main.go\n", "\npkg9/ (500 files)\n")
}

// Who may not list files without a person's word is not told of them either, and who answers one request gets no list.
func TestNoFileList(t *testing.T) {
	for name, test := range map[string]struct {
		rules   []permission.Rule
		profile string
	}{
		"denied":    {rules: []permission.Rule{{Permission: "list", Pattern: "*", Action: permission.Deny}}},
		"asked":     {rules: []permission.Rule{{Permission: "list", Pattern: "*", Action: permission.Ask}}},
		"assistant": {profile: "assistant"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(r *rig) {
				r.write("go.mod", "module x\n")
				r.cfg.Rules = func(string) []permission.Level {
					return append(rules(permission.Allow), permission.Level{Name: "mine", Rules: test.rules})
				}
				r.restart()
				r.mission(centurion.MissionOptions{Profile: test.profile})
				for _, q := range r.model.Requests() {
					equal(t, "list", listIn(q.First()), "")
				}
			})
		})
	}
}
