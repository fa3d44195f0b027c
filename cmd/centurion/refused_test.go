package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/server"
	"centurion/store"
)

// A command that an agent has started trusts nothing and takes no trust away, whatever it is given.
func TestAgentsTrustNothing(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "opencode.json"), []byte(`{"permission": {"bash": "allow"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"trust", "--yes"}, {"trust", "--revoke"}, {"trust", "--yes", "--format", "json"}} {
		for mark, want := range map[string]int{"mark": exitUsage, "": exitComplete} {
			var out, errs strings.Builder
			c := &cli{in: strings.NewReader(""), out: &out, err: &errs, env: []string{"HOME=" + home, "CENTURION_HOME=" + home, centurion.HostVariable + "=" + mark}}
			code := c.run(t.Context(), append(args, "--dir", dir))
			if code != want || (mark != "") != strings.Contains(errs.String(), "an agent's command cannot trust a project") || mark != "" && out.Len() > 0 {
				t.Errorf("%v with mark %q: exit %d, %s%s", args, mark, code, &out, &errs)
			}
		}
	}
}

// Trust that nobody can be asked for is not given, and what was given can be seen and taken back.
func TestTrustIsAsked(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "opencode.json"), []byte(`{"permission": {"bash": "allow"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"trust", exitUsage, "nothing was trusted: there is no terminal to ask on"},
		{"trust --format json", exitComplete, `"trusted":false`},
		{"trust --yes", exitComplete, "trusted, until it changes"},
		{"trust", exitComplete, "opencode.json is trusted"},
		{"trust --format json", exitComplete, `"trusted":true`},
		{"trust --revoke", exitComplete, "nothing of this project is trusted now; it was 1 file"},
		{"trust", exitUsage, "nothing was trusted"},
		{"rpc --format json", exitUsage, "--format, --detach and --merge are no flags of rpc"},
		{"rpc --detach", exitUsage, "are no flags of rpc"},
		{"ps --format xml", exitUsage, `--format cannot be "xml"`},
		{"gc --older-than -1h", exitUsage, "--older-than must not be negative"},
		{"send 0/ x --steer --queue", exitUsage, "exclude each other"},
	} {
		var out, errs strings.Builder
		c := &cli{in: strings.NewReader(""), out: &out, err: &errs, env: []string{"HOME=" + home, "CENTURION_HOME=" + home}}
		if code := c.run(t.Context(), append(strings.Fields(tt.args), "--dir", dir)); code != tt.code || !strings.Contains(out.String()+errs.String(), tt.says) {
			t.Errorf("%s: exit %d\n%s%s", tt.args, code, &out, &errs)
		}
	}
}

// A key is kept where it is said to be, listed without its value, and gone after it was removed.
func TestKeysOnTheCommandLine(t *testing.T) {
	home := t.TempDir()
	for _, tt := range []struct {
		args, in string
		code     int
		says     string
	}{
		{"auth list", "", exitComplete, "No keys are kept"},
		{"auth list --format json", "", exitComplete, "[]\n"},
		{"auth logout groq", "", exitComplete, "there was no key of groq"},
		{"auth login nosuch", "k", exitUsage, `unknown provider "nosuch"`},
		{"auth login groq", "", exitUsage, "no key came on standard input"},
		{"auth login groq", "gsk-canary\n", exitComplete, "stored in " + filepath.Join(home, "auth.json")},
		{"auth list", "", exitComplete, "groq         " + filepath.Join(home, "auth.json")},
		{"auth logout groq", "", exitComplete, "forgotten"},
		{"auth list", "", exitComplete, "No keys are kept"},
	} {
		var out, errs strings.Builder
		c := &cli{in: strings.NewReader(tt.in), out: &out, err: &errs, env: []string{"HOME=" + home, "CENTURION_HOME=" + home}}
		code := c.run(t.Context(), strings.Fields(tt.args))
		if said := out.String() + errs.String(); code != tt.code || !strings.Contains(said, tt.says) || strings.Contains(said, "canary") {
			t.Errorf("%s: exit %d, %s", tt.args, code, said)
		}
	}
}

// completing is a project with these rows.
type completing struct {
	server.API
	missions []server.Mission
	tasks    []server.Task
	sessions []centurion.Session
	asks     []store.Ask
}

func (p completing) Missions(context.Context) ([]server.Mission, error)   { return p.missions, nil }
func (p completing) Tasks(context.Context, string) ([]server.Task, error) { return p.tasks, nil }
func (p completing) Sessions(context.Context, string) ([]centurion.Session, error) {
	return p.sessions, nil
}
func (p completing) Asks(context.Context) ([]store.Ask, error) { return p.asks, nil }

// What is completed is what the command can use: living agents, missions that can be resumed, open asks of its kind.
func TestCompletions(t *testing.T) {
	api := completing{missions: []server.Mission{{ID: "msn_1", Status: centurion.MissionCompleted, Goal: "a"}, {ID: "msn_2", Status: centurion.MissionPaused, Goal: "b"}},
		tasks: []server.Task{{ID: "tsk_1", Item: "T1", Agent: "worker", Title: "one", Status: centurion.TaskCompleted}, {ID: "tsk_2", Item: "T2", Agent: "worker", Title: "two", Status: centurion.TaskRunning},
			{ID: "tsk_3", Item: "T2", Agent: "worker", Title: "two again", Status: centurion.TaskQueued}},
		sessions: []centurion.Session{{ID: "ses_0", Agent: "commander", Metadata: centurion.SessionMeta{Address: "0/"}}, {ID: "ses_1", Agent: "worker", Metadata: centurion.SessionMeta{Address: "0/0", Task: "tsk_1"}},
			{ID: "ses_2", Agent: "worker", Metadata: centurion.SessionMeta{Address: "0/1", Task: "tsk_2"}}},
		asks: []store.Ask{{ID: "per_1", Type: store.AskPermission, Title: "make"}, {ID: "que_1", Type: store.AskQuestion, Text: "so?", Options: []string{"Yes", "No"}}}}
	names := func(found []cobra.Completion, err error) string {
		if err != nil {
			t.Error(err)
		}
		var out []string
		for _, f := range found {
			name, _, _ := strings.Cut(f, "\t")
			out = append(out, name)
		}
		return strings.Join(out, " ")
	}
	resume, show := &cobra.Command{Use: "resume"}, &cobra.Command{Use: "show"}
	resume.SetContext(t.Context())
	show.SetContext(t.Context())
	for _, tt := range []struct{ name, got, want string }{
		{"missions", names(missions(show, api, nil, "")), "msn_1 msn_2"},
		{"missions to resume", names(missions(resume, api, nil, "")), "msn_2"},
		{"missions that begin so", names(missions(show, api, nil, "msn_2")), "msn_2"},
		{"agents", names(agentsOf(show, api, nil, "")), "0/ 0/1 T2 T2"},
		{"tasks of agents", names(agentsOf(show, api, nil, "tsk_")), "tsk_2 tsk_3"},
		{"sessions of agents", names(agentsOf(show, api, nil, "ses_")), "ses_0 ses_2"},
		{"items", names(items(show, api, nil, "")), "T1 tsk_1 T2 tsk_2 tsk_3"},
		{"permissions", names(asks(store.AskPermission)(show, api, nil, "")), "per_1"},
		{"questions", names(asks(store.AskQuestion)(show, api, nil, "")), "que_1"},
		{"choices", names(asks(store.AskQuestion)(show, api, []string{"que_1"}, "y")), "Yes"},
		{"no choices", names(asks(store.AskPermission)(show, api, []string{"per_1"}, "")), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
	row := agentRow{Name: "own", Tools: []string{"read", "ls"}, Source: "a.md", Model: "p/m", Temperature: new(0.5), Steps: 3}
	if got := strings.Fields(row.details()); !slices.Equal(got, strings.Fields("read ls from a.md, model p/m, temperature 0.5, 3 steps")) {
		t.Errorf("an agent of a file: %q", got)
	}
	if row.Source = builtIn; strings.Contains(row.details(), "from") {
		t.Errorf("one that is built in: %q", row.details())
	}
}
